"""The audit of ground truths by Shapley values: does a network use only what its data were made to need?

Fig. 3 and appendix N of [anonymous2023evaluation], on photographs where `--data` has them, and on our own data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from forsooth import names, seeds
from forsooth.datasets import audited
from forsooth.engine import make_task, task
from forsooth.games import players
from forsooth.games.shapley import Estimate, exact, permutation
from forsooth.games.values import game
from forsooth.models import recipes
from forsooth.models import train as training
from forsooth.models.recipes import Recipe
from forsooth.plain import remembered
from forsooth.records import Cell, Choice, Dataset, Facts, Plan, Row, Task
from forsooth.scores.mass import mass_inside, relative_attribution
from forsooth.settings import SIDES, check_range
from forsooth.suites import choose, networks
from forsooth.suites.bias import data
from forsooth.suites.bias.data import DataSpec
from forsooth.suites.bias.stage import PREFIX, which
from forsooth.suites.explain import rows_by_sample
from forsooth.suites.planning import planned

Kind = Literal["region", "pattern"]

REFERENCES = 1_000  # training images averaged into the baseline
PATTERN_GATE = 0.9  # the pattern is the label, and loud: who does not see it has not learned anything
NETWORKS = {"voc": "alexnet", "cifar10": "lenet", "leaves": "lenet", "tetromino": "mlp"}
RECIPES: Mapping[str, Recipe] = {"alexnet": recipes.VISION, "lenet": recipes.LENET, "mlp": recipes.QUICK_8}
SMALL_SIDE = 32
REGIONS = 4  # a side: sixteen regions are few enough to play all their coalitions
PATCHES = 8  # a side
TESTED_AT_ONCE = 100
PLAYED_AT_ONCE = 4


@dataclass(frozen=True)
class AuditSettings:
    """What decides an audit.

    samples       test inputs audited per network: those that all its trainings get right
    trainings     of each network from different starts, on the same data
    permutations  random orders of joining, where players are too many to enumerate
    side          of photographs; that of CIFAR-10 and of generated images is 32
    """

    samples: int = 100
    trainings: int = 1
    permutations: int = 300
    side: int = 224


@dataclass(frozen=True)
class AuditSpec:
    """A network and the data that it is audited on.

    kind  what is pasted in: a region of another class, or a pattern that is the label
    gate  accuracy below which there is no audit: what a network has not learned it cannot use
    """

    source: DataSpec
    net: str
    kind: Kind
    gate: float
    seed: int


@dataclass(frozen=True)
class Request:
    """Which training is audited, on how many images, with how many permutations."""

    training: int
    samples: int
    permutations: int
    seed: int
    device: str


def plan(settings: AuditSettings, choice: Choice, kind: Kind) -> Plan:
    """Train and audit every dataset at hand."""
    check_range(settings, ("trainings", "samples", "permutations"), 1)
    check_range(settings, ("side",), *SIDES)
    tasks: list[Task] = []
    for name in datasets(choice, kind):
        spec = audit_spec(name, kind, settings, choice)
        trained = [training_task(spec, number, choice) for number in range(settings.trainings)]
        tasks += trained
        tasks += [audit_task(spec, number, trained, settings, choice) for number in range(settings.trainings)]
    return planned(tasks)


def datasets(choice: Choice, kind: Kind) -> list[str]:
    """What is audited: photographs where they are at hand, and generated data always."""
    here = [name for name in ("voc", "cifar10") if name in data.datasets_in(choice.data)]
    own = ["leaves"]
    if kind == "pattern":
        own.append("tetromino")  # which needs no pattern pasted in: it is one
    return names.kept([*here, *own], choice.only, "dataset")


def audit_spec(name: str, kind: Kind, settings: AuditSettings, choice: Choice) -> AuditSpec:
    path = data.datasets_in(choice.data).get(name)
    side = settings.side if name == "voc" else SMALL_SIDE
    source = data.data_spec(name, path, seed=seeds.derive(choice.seed, "data"), side=side)
    gate = PATTERN_GATE if kind == "pattern" else data.entry_for(name).gate
    return AuditSpec(source, NETWORKS[name], kind, gate, seed=seeds.derive(choice.seed, "audit", kind))


def training_task(spec: AuditSpec, number: int, choice: Choice) -> Task:
    arguments = {
        "spec": spec,
        "recipe": RECIPES[spec.net],
        "seed": seeds.derive(choice.seed, "training", *number_in_seeds(number)),
        "device": choice.device,
    }
    name = f"train {spec.net}, {spec.source.name} with a {spec.kind}{which(number)}"
    return make_task(train, arguments, name=name)


def audit_task(spec: AuditSpec, number: int, trained: Sequence[Task], settings: AuditSettings, choice: Choice) -> Task:
    seed = seeds.derive(choice.seed, "audit")
    request = Request(number, settings.samples, settings.permutations, seed, choice.device)
    name = f"audit {spec.source.name}, {spec.net}, {spec.kind}{which(number)}"
    function = audit_region if spec.kind == "region" else audit_pattern
    return make_task(function, {"spec": spec, "request": request}, trained, name=name)


def number_in_seeds(training: int) -> tuple[int, ...]:
    """What tells the seeds of a training from those of the first, which has none, as when there was one alone."""
    return (training,) if training else ()


@remembered(1)
def audited_data(spec: AuditSpec) -> tuple[Dataset, Tensor]:
    """The base data with an irrelevant region or a pattern pasted in, and the number of the region of every image."""
    base = data.dataset(spec.source)
    if spec.kind == "region":
        return audited.irrelevant_region(base, grid=REGIONS, seed=spec.seed)
    if spec.source.name != "tetromino":
        base = audited.pasted_pattern(base, side=base.x.shape[-1] // 4, seed=spec.seed)
    return base, torch.zeros_like(base.y)


@task("bias.audit_train", spec="panel")
def train(*, spec: AuditSpec, recipe: Recipe, seed: int, device: str) -> Cell:
    """One training; the cell holds the weights and the test accuracy."""
    dataset, _ = audited_data(spec)
    fitted = training.fit(lambda: data.untrained(spec.net, dataset), dataset, recipe, seed=seed, device=device)
    return Cell(tensors=networks.weights_of(fitted.module, PREFIX), facts={"accuracy": fitted.test_accuracy})


class Audit:
    """A trained network, the images it is audited on, and what stands for absent players.

    chosen          (k,) images that all trainings above the gate get right, so that images and trainings are two
                    sources of chance
    reference_rows  (m,) training images drawn evenly over classes: else the pattern that tells a class would stand for
                    its own absence
    absent          (*shape) their mean
    """

    def __init__(self, trained: Sequence[Cell], spec: AuditSpec, request: Request) -> None:
        self.request = request
        self.template = audit_row(spec, request.training)
        self.dataset, self.region = audited_data(spec)
        modules = [self.loaded(cell, spec.net) for cell in trained if passes(cell, spec)]
        self.module = self.loaded(trained[request.training], spec.net)
        self.chosen = self.drawn(self.right(modules, self.wanted(spec.kind)), request.samples, "explained")
        self.reference_rows = self.drawn(self.dataset.splits["train"], REFERENCES, "baseline")
        mean = self.dataset.x[self.reference_rows].mean(0, dtype=torch.float64)
        self.absent = mean.to(self.dataset.x).to(request.device)

    @property
    def truth(self) -> Tensor:
        assert self.dataset.truth is not None
        return self.dataset.truth

    def wanted(self, kind: Kind) -> Tensor:
        """The test images, those with a pattern where it is audited. (k,)"""
        test = self.dataset.splits["test"]
        if kind == "region":
            return test
        return test[self.truth[test].flatten(1).any(1)]

    def loaded(self, cell: Cell, net: str) -> nn.Module:
        module = data.untrained(net, self.dataset)
        return networks.loaded(module, cell.tensors, device=self.request.device, prefix=PREFIX)

    def drawn(self, rows: Tensor, most: int, role: str) -> Tensor:
        return choose.rows_of(self.dataset, rows, most, seed=self.request.seed, role=role)

    def right(self, modules: Sequence[nn.Module], wanted: Tensor) -> Tensor:
        """The wanted images (n,) that all networks get right. (k,)"""
        device = self.request.device
        hits = [
            networks.correct(module, self.dataset, wanted, device=device, size=TESTED_AT_ONCE) for module in modules
        ]
        return wanted[torch.stack(hits).all(0)]

    def parts(self, size: int) -> tuple[Tensor, ...]:
        """The chosen images, so many at once; none where there are none."""
        return self.chosen.split(size) if len(self.chosen) else ()

    def inputs(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.dataset.x[rows].to(self.request.device), self.dataset.y[rows].to(self.request.device)

    def estimate(self, part: Tensor, labels: Tensor, inside: Tensor) -> tuple[Estimate, Tensor]:
        """Sampled Shapley values of one image, and which of the players (p,) lie inside the truth (*shape)."""
        x, y = self.inputs(part)
        played = game(self.module, x, y, players=labels, baseline=self.absent)
        # each image and training has orders of its own, so that their errors average out
        names = (int(part), *number_in_seeds(self.request.training))
        orders = seeds.generator(self.request.seed, "permutations", *names)
        within = torch.zeros(played.count, dtype=torch.bool).scatter_(0, labels[inside], True)
        estimate = permutation(played, permutations=self.request.permutations, generator=orders)
        return estimate, within.to(self.request.device)

    def classes(self) -> list[Facts]:
        """How many of each class were explained and averaged into the baseline."""
        where = {"dataset": self.template.dataset, "model": self.template.model}
        roles = {"explained": self.dataset.y[self.chosen], "baseline": self.dataset.y[self.reference_rows]}
        return choose.classes_of(roles, where=where)


def audit_row(spec: AuditSpec, number: int) -> Row:
    row = Row("bias", "audit", dataset=spec.source.name, model=spec.net, model_seed=number, method="")
    return row.having(kind=spec.kind, gate=spec.gate)


def passes(trained: Cell, spec: AuditSpec) -> bool:
    return bool(trained.facts["accuracy"] >= spec.gate)


def audited_cell(
    trained: Sequence[Cell], spec: AuditSpec, request: Request, measure: Callable[[Audit], Iterator[Row]]
) -> Cell:
    """The row of the training, and those of its audit where it is above the gate."""
    own = trained[request.training]
    template = audit_row(spec, request.training).having(part="training")
    accuracy = networks.accuracy_row(template, own.facts["accuracy"], gate=spec.gate)
    if not passes(own, spec):
        return Cell(rows=(accuracy,))
    audit = Audit(trained, spec, request)
    return Cell(rows=(accuracy, *measure(audit)), facts={"drawn": audit.classes()})


@task("bias.audit_region", version=4, spec="panel")
def audit_region(*trained: Cell, spec: AuditSpec, request: Request) -> Cell:
    """|A_k| / mean |A| of the irrelevant region k among sixteen, all coalitions played. One row per image.

    trained  all trainings of the network
    """
    return audited_cell(trained, spec, request, region_rows)


def region_rows(audit: Audit) -> Iterator[Row]:
    template = audit.template.having(metric="relative_attribution")
    patches = players.patches(audit.dataset.x.shape[1:], REGIONS)
    for part in audit.parts(PLAYED_AT_ONCE):
        x, y = audit.inputs(part)
        estimate = exact(game(audit.module, x, y, players=patches, baseline=audit.absent))
        ratio = relative_attribution(estimate.values.cpu(), audit.region[part])
        yield from rows_by_sample(template, part, value=ratio)


@task("bias.audit_pattern", version=4, spec="panel")
def audit_pattern(*trained: Cell, spec: AuditSpec, request: Request) -> Cell:
    """Share of |Shapley value| inside the truth, of images that have one. One row per image.

    trained  all trainings of the network
    """
    return audited_cell(trained, spec, request, pattern_rows)


def pattern_rows(audit: Audit) -> Iterator[Row]:
    """The pattern lies anywhere, so each patch of an 8×8 grid is cut along it: no player is half inside.

    The share is freed of noise, which would count as mass (`scores.mass`); `plain` is the one of the estimates as they
    are.
    """
    template = audit.template.having(metric="mass_inside")
    patches = players.patches(audit.dataset.x.shape[1:], PATCHES)
    for part in audit.parts(1):
        inside = audit.truth[int(part)]
        _, labels = torch.unique(patches * 2 + inside, return_inverse=True)
        mass = mass_inside(*audit.estimate(part, labels, inside))
        numbers = {"value": mass.value.item(), "plain": mass.plain.item(), "error": mass.error.item()}
        yield template.having(numbers, sample=int(part))
