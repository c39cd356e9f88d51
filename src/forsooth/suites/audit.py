"""The audit of ground truths by Shapley values: does a network use only what its data were made to need?

Fig. 3 and appendix N of [anonymous2023evaluation], on photographs where `--data` has them, and on our own data.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from forsooth import papers, seeds
from forsooth.datasets import audited
from forsooth.engine import known_as, make_task
from forsooth.games import players
from forsooth.games.shapley import exact, permutation
from forsooth.games.values import game
from forsooth.models import recipes, train
from forsooth.models.recipes import Recipe
from forsooth.names import kept
from forsooth.records import Artefact, Cell, Choice, Dataset, Plan, Task, UsageError
from forsooth.scores.mass import mass_inside
from forsooth.settings import changed
from forsooth.stats import SHARE, Interval, crossed, mean_of
from forsooth.store import Store
from forsooth.suites import choose, sources

Perform = Callable[[Plan], Store]

REFERENCES = 1_000  # training images averaged into the baseline
PATTERN_GATE = 0.9  # the pattern is the label, and loud: who does not see it has not learned anything
BOUNDS = {"region": (0.0, float("inf")), "pattern": SHARE}  # where the audited number of each kind can lie


@dataclass(frozen=True)
class Settings:
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


def cases(choice: Choice, kind: str) -> list[tuple[str, str]]:
    """Dataset and network of every audit: AlexNet on photographs as in the paper, LeNet on small images.

    Tetrominoes need no pattern pasted in: they are one.
    """
    here = sources.found(choice.data)
    known = {"voc": "alexnet", "cifar10": "lenet", "leaves": "lenet"}
    own = {"tetromino": "mlp"} if kind == "pattern" else {}
    names = [name for name in known if name in here or name == "leaves"] + list(own)
    return [(name, (known | own)[name]) for name in kept(names, choice.only, "dataset")]


def panel_of(name: str, net: str, kind: str, settings: Settings, choice: Choice) -> dict[str, Any]:
    side = settings.side if name == "voc" else 32
    path = sources.found(choice.data).get(name)
    about = sources.spec(name, path, seed=seeds.derive(choice.seed, "data"), side=side)
    gate = PATTERN_GATE if kind == "pattern" else sources.played(name).gate
    return {"source": about, "net": net, "kind": kind, "gate": gate, "seed": seeds.derive(choice.seed, "audit", kind)}


def data(panel: dict[str, Any]) -> tuple[Dataset, Tensor]:
    """The base data with an irrelevant region or a pattern pasted in, and the number of the region of every image."""
    return _data(json.dumps(panel, sort_keys=True))


@functools.lru_cache(maxsize=1)
def _data(text: str) -> tuple[Dataset, Tensor]:
    panel = json.loads(text)
    base = sources.read(panel["source"])
    if panel["kind"] == "region":
        return audited.irrelevant_region(base, grid=4, seed=panel["seed"])
    if panel["source"]["name"] == "tetromino":
        return base, torch.zeros_like(base.y)
    side = base.x.shape[-1] // 4
    made = audited.pasted_pattern(base, side=side, seed=panel["seed"])
    return made, torch.zeros(len(made.y), dtype=torch.int64)


def training_tasks(panel: dict[str, Any], count: int, choice: Choice) -> list[Task]:
    """All trainings of the panel's network. The first has no number, as when there was one: its cells still serve."""
    recipe = {"alexnet": recipes.VISION, "lenet": recipes.LENET, "mlp": recipes.QUICK_8}[panel["net"]]
    title = f"{panel['net']}, {panel['source']['name']} with a {panel['kind']}"
    tasks = []
    for number in range(count):
        given = {
            "panel": panel,
            "recipe": dataclasses.asdict(recipe),
            "seed": seeds.derive(choice.seed, "training", *_number(number)),
            "device": choice.device,
        }
        tasks.append(make_task(train_network, given, name=f"train {title}{_which(number)}", version=1))
    return tasks


def _number(training: int) -> tuple[int, ...]:
    """What tells the seeds of a training from those of the first."""
    return (training,) if training else ()


def _which(training: int) -> str:
    """Which training of several, in words; empty for the first."""
    return f", training {training + 1}" if training else ""


@known_as("bias.audit_train")
def train_network(*, panel: dict[str, Any], recipe: dict[str, Any], seed: int, device: str) -> Cell:
    """One training; the cell holds the weights and the test accuracy."""
    dataset, _ = data(panel)
    trained = train.fit(lambda: built(panel, dataset), dataset, Recipe(**recipe), seed=seed, device=device)
    state = {f"net.{name}": value for name, value in trained.module.state_dict().items()}
    return Cell(tensors=state, facts={"accuracy": trained.test_accuracy})


def built(panel: dict[str, Any], dataset: Dataset) -> torch.nn.Module:
    return sources.build(panel["net"], tuple(dataset.x.shape[1:]), int(dataset.y.max()) + 1)


def loaded(trained: Cell, panel: dict[str, Any], dataset: Dataset, device: str) -> torch.nn.Module:
    module = built(panel, dataset)
    module.load_state_dict({name[4:]: value for name, value in trained.tensors.items() if name.startswith("net.")})
    return module.eval().requires_grad_(False).to(device)


def passing(trained: Sequence[Cell], panel: dict[str, Any]) -> list[Cell]:
    """The trainings above the panel's gate: what a network has not learned it cannot use."""
    return [cell for cell in trained if cell.facts["accuracy"] >= panel["gate"]]


@torch.no_grad()
def right(
    modules: Sequence[torch.nn.Module], dataset: Dataset, wanted: Tensor, most: int, *, seed: int, device: str
) -> Tensor:
    """At most `most` of the wanted images that all networks get right, evenly over classes. (k,)

    All trainings are audited on the same images, so that images and trainings are two sources of chance.
    """
    found = []
    for part in wanted.split(100):
        x = dataset.x[part].to(device)
        hits = torch.ones(len(part), dtype=torch.bool)
        for module in modules:
            hits &= module(x).argmax(1).cpu() == dataset.y[part]
        found.append(part[hits])
    return choose.rows_of(dataset, torch.cat(found), most, seed=seed, role="explained")


def absent_player(dataset: Dataset, *, seed: int) -> tuple[Tensor, Tensor]:
    """The mean image of training images drawn evenly over classes, (*shape), and their rows (k,).

    Evenly, or the pattern that tells a class would stand for its own absence.
    """
    rows = choose.rows_of(dataset, dataset.splits["train"], REFERENCES, seed=seed, role="baseline")
    return dataset.x[rows].mean(0, dtype=torch.float64).to(dataset.x), rows


def audited_facts(
    trained: Cell, dataset: Dataset, panel: dict[str, Any], chosen: Tensor, known: Tensor
) -> dict[str, Any]:
    """Accuracy, and how many of each class were explained and averaged into the baseline."""
    about = {"dataset": panel["source"]["name"], "model": panel["net"]}
    drawn = [
        *choose.classes_of(dataset.y[chosen], role="explained", where=about),
        *choose.classes_of(dataset.y[known], role="baseline", where=about),
    ]
    return {"accuracy": trained.facts["accuracy"], "drawn": drawn}


@known_as("bias.audit_region")
def relative_attribution(
    *trained: Cell, panel: dict[str, Any], samples: int, permutations: int, seed: int, device: str, training: int = 0
) -> Cell:
    """|A_k| / mean |A| of the irrelevant region k among sixteen, all coalitions played. One row per image.

    trained   all trainings of the network
    training  the one that is audited
    """
    own = trained[training]
    if not passing([own], panel):
        return Cell(facts={"accuracy": own.facts["accuracy"]})
    dataset, region = data(panel)
    module = loaded(own, panel, dataset, device)
    others = [loaded(cell, panel, dataset, device) for cell in passing(trained, panel)]
    chosen = right(others, dataset, dataset.splits["test"], samples, seed=seed, device=device)
    absent, known = absent_player(dataset, seed=seed)
    patches = players.patches(tuple(dataset.x.shape[1:]), 4)
    rows = []
    for part in chosen.split(4):
        x, y = dataset.x[part].to(device), dataset.y[part].to(device)
        size = exact(game(module, x, y, players=patches, baseline=absent.to(device))).values.abs().cpu()  # (k, 16)
        ratio = size.gather(1, region[part][:, None])[:, 0] / size.mean(1)
        rows += [{"sample": int(s), "value": v} for s, v in zip(part, ratio.tolist(), strict=True)]
    return Cell(rows=tuple(rows), facts=audited_facts(own, dataset, panel, chosen, known))


@known_as("bias.audit_pattern")
def share_inside(
    *trained: Cell, panel: dict[str, Any], samples: int, permutations: int, seed: int, device: str, training: int = 0
) -> Cell:
    """Share of |Shapley value| inside the truth, of images that have one. One row per image.

    The pattern lies anywhere, so each patch of an 8×8 grid is cut along it: no player is half inside. The share is
    freed of noise, which would count as mass (`scores.mass`); `plain` is the one of the estimates as they are.

    trained   all trainings of the network
    training  the one that is audited
    """
    own = trained[training]
    if not passing([own], panel):
        return Cell(facts={"accuracy": own.facts["accuracy"]})
    dataset, _ = data(panel)
    module = loaded(own, panel, dataset, device)
    others = [loaded(cell, panel, dataset, device) for cell in passing(trained, panel)]
    assert dataset.truth is not None
    test = dataset.splits["test"]
    chosen = right(others, dataset, test[dataset.truth[test].flatten(1).any(1)], samples, seed=seed, device=device)
    absent, known = absent_player(dataset, seed=seed)
    patches = players.patches(tuple(dataset.x.shape[1:]), 8)
    rows = []
    for k in chosen.tolist():
        inside = dataset.truth[k]
        _, labels = torch.unique(patches * 2 + inside, return_inverse=True)
        x, y = dataset.x[k : k + 1].to(device), dataset.y[k : k + 1].to(device)
        played = game(module, x, y, players=labels, baseline=absent.to(device))
        drawn = seeds.generator(seed, "permutations", k, *_number(training))  # each its own: their errors average out
        estimate = permutation(played, permutations=permutations, generator=drawn)
        within = torch.zeros(played.count, dtype=torch.bool).scatter_(0, labels[inside], True)
        mass = mass_inside(estimate, within.to(device))
        rows.append({"sample": k, "value": mass.value.item(), "plain": mass.plain.item(), "error": mass.error.item()})
    return Cell(rows=tuple(rows), facts=audited_facts(own, dataset, panel, chosen, known))


def audit(
    choice: Choice, perform: Perform, changes: Mapping[str, Any], *, kind: str, function: Callable[..., Cell]
) -> pd.DataFrame:
    """Mean of the audited number with a 95 % interval over images and trainings, for every dataset at hand."""
    settings = changed(Settings(), changes)
    if settings.trainings < 1:
        raise UsageError(f"`trainings` must be at least 1, got {settings.trainings}")
    done: dict[tuple[str, str], list[Task]] = {}
    tasks: list[Task] = []
    for name, net in cases(choice, kind):
        panel = panel_of(name, net, kind, settings, choice)
        trained = training_tasks(panel, settings.trainings, choice)
        done[name, net] = audit_tasks(function, panel, trained, settings, choice)
        tasks += [*trained, *done[name, net]]
    store = perform(Plan(tasks=tuple(tasks)))
    lines = [{"dataset": name, "model": net, **line_of(own, store, kind)} for (name, net), own in done.items()]
    table = pd.DataFrame(lines)
    return table if kind == "pattern" else table.drop(columns="plain")


def audit_tasks(
    function: Callable[..., Cell], panel: dict[str, Any], trained: list[Task], settings: Settings, choice: Choice
) -> list[Task]:
    """The audit of every training; of the first, again, without a number."""
    given = {
        "panel": panel,
        "samples": settings.samples,
        "permutations": settings.permutations,
        "seed": seeds.derive(choice.seed, "audit"),
        "device": choice.device,
    }
    title = f"audit {panel['source']['name']}, {panel['net']}, {panel['kind']}"
    tasks = [make_task(function, given, trained, name=title, version=3)]
    for number in range(1, len(trained)):
        own = {**given, "training": number}
        tasks.append(make_task(function, own, trained, name=f"{title}{_which(number)}", version=3))
    return tasks


def line_of(tasks: Sequence[Task], store: Store, kind: str) -> dict[str, float]:
    """The numbers of one dataset from the audits of its trainings."""
    audited = pd.concat(
        [pd.DataFrame(store.read(task.key).rows).assign(training=k) for k, task in enumerate(tasks)],
        ignore_index=True,
    ).reindex(columns=["training", "sample", "value", "plain"])
    accuracies = pd.Series([store.meta(task.key)["facts"]["accuracy"] for task in tasks])
    gate = tasks[0].arguments["panel"]["gate"]
    passed = accuracies >= gate
    interval = interval_of(audited.dropna(subset="value"), kind)
    return {
        "accuracy": 100 * accuracies[passed | ~passed.any()].mean(),
        "gate": 100 * gate,
        "trainings": int(passed.sum()),
        "below_gate": int((~passed).sum()),
        "inputs": interval.n,
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "plain": audited["plain"].astype(float).mean(),
    }


def interval_of(rows: pd.DataFrame, kind: str) -> Interval:
    """Mean and 95 % interval over images, and over trainings where there are several."""
    by_image = rows.groupby("sample")["value"].mean()
    by_training = rows.groupby("training")["value"].mean()
    if len(by_training) < 2:
        return mean_of(by_image, bounds=BOUNDS[kind])
    return crossed(by_image, by_training, bounds=BOUNDS[kind])


def below(line: Any) -> str:
    """Why a network was not audited; empty if it was."""
    if line.inputs:
        return ""
    why = f"below its gate of {line.gate:.0f} %" if line.accuracy < line.gate else "no image with a region got right"
    return f"{who(line)}: {why}, so not audited."


def who(line: Any) -> str:
    return f"{line.dataset}, {line.model} ({line.accuracy:.0f} % accurate)"


def drawn_words(line: Any) -> str:
    """What the interval of a line is over."""
    if line.trainings < 2:
        words = f"{line.inputs} images of one training (the interval knows its images alone)"
    else:
        words = f"{line.inputs} images and {line.trainings} trainings"
    if line.below_gate:
        words += f"; {line.below_gate} below the gate of {line.gate:.0f} % left out"
    return words


def used(line: Any) -> str:
    """What the interval says of a region that cannot matter."""
    if line.low > 0.1:
        return "It is not 0, so the published finding holds: pasted regions are used."
    if line.low > 0:
        return "It is not 0, so the finding holds weakly: pasted regions are used."
    return "The interval reaches 0, so whether pasted regions are used is inconclusive."


def outside(line: Any) -> str:
    """What the interval says of the mass outside a pattern that is the label."""
    if line.low > 0.98:
        return "next to nothing of it lies outside."
    if line.high < 1:
        return "a part of it lies outside."
    return "whether a part of it lies outside is inconclusive."


def figure_3(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Fig. 3: relative attribution of a region that was pasted in from another class; 0 if it did not matter."""
    table = audit(choice, perform, changes, kind="region", function=relative_attribution)
    table["published"] = published("figure-3")
    lines = [
        below(r)
        or f"{who(r)}: the irrelevant region has {r.mean:.3f} [{r.low:.3f}, {r.high:.3f}] of the mean attribution of a "
        f"region over {drawn_words(r)} (published {r.published}). {used(r)}"
        for r in table.itertuples()
    ]
    return table.round(4), "\n".join(lines) + "\n"


def appendix_n(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Appendix N: share of Shapley mass inside a pattern whose presence is the label; 1 if nothing else mattered."""
    table = audit(choice, perform, changes, kind="pattern", function=share_inside)
    table["published"] = published("appendix-n")
    lines = [
        below(r)
        or f"{who(r)}: {r.mean:.3f} [{r.low:.3f}, {r.high:.3f}] of the Shapley mass lies inside the pattern "
        f"over {drawn_words(r)} (published {r.published}; {r.plain:.3f} if the noise of the estimates counts, too); "
        f"{outside(r)}"
        for r in table.itertuples()
    ]
    return table.round(4), "\n".join(lines) + "\n"


def published(artefact: str) -> float:
    return float(papers.table("bias_audits").set_index("artefact").loc[artefact, "value"])


ARTEFACTS = (
    Artefact("bias/figure-3", "do networks use a pasted region that cannot matter?", figure_3),
    Artefact("bias/appendix-n", "do networks use only the pattern that is the label?", appendix_n),
)
