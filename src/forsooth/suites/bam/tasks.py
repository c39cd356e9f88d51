"""The tasks of the BAM suite that need no method: train, verify, find patches, show.

No picture is stored but the patched ones: a task makes its images again from their recipe.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from pandas import DataFrame
from torch import Tensor, nn

from forsooth import chunks, models
from forsooth.datasets.worlds import notes
from forsooth.engine import FLAT, task
from forsooth.frames import only, worded
from forsooth.models import train as training
from forsooth.models import weights as files
from forsooth.models.normalising import IMAGENET_MEAN, IMAGENET_SPREAD, column, with_normalising
from forsooth.models.recipes import Recipe
from forsooth.models.weights import WeightsFile
from forsooth.plain import from_plain, to_plain
from forsooth.records import NO_MODEL, Cell, Dataset, Facts, Row
from forsooth.scores.functionless import Patched, Search, functionless
from forsooth.scores.verification import RARE, accuracy, accuracy_drop, confidence_rises, share, unfamiliar
from forsooth.suites import networks
from forsooth.suites.album import Album
from forsooth.suites.bam import data
from forsooth.suites.bam.data import DataSpec
from forsooth.suites.bam.specs import NetSpec, Panel, Shown
from forsooth.suites.choose import SHOWN
from forsooth.suites.explain import rows_by_sample
from forsooth.wording import paragraphs

COLOURS = 3  # channels of an image
UNFAMILIAR = 3 * RARE  # share from which a set is called out of distribution
EASIER = "; with some hundred cut-outs `--set same_objects=true` makes it easier"


PATCHES_FOUND = (
    "Functionless patches: found for {share:.0%} of {count} scenes (outputs of {name} differ by less than 5 % of their "
    "length, and the pixels by at least 10 % of their range on average)."
)


@dataclasses.dataclass(frozen=True)
class NetworkFacts:
    """What a cell says of the network it keeps."""

    name: str
    net: NetSpec
    arch: str
    classes: int
    side: int
    passed: bool
    accuracy: float


@task("bam.train", version=3, spec=FLAT, panel="about", weights="given", initial_weights="start")
def train(
    *,
    spec: DataSpec,
    panel: Panel,
    net: NetSpec,
    arch: str,
    recipe: Recipe,
    weights: WeightsFile | None,
    initial_weights: WeightsFile | None,
    seed: int,
    device: str,
) -> Cell:
    """One network, trained or read from a file of weights.

    weights          its weights; None: it is trained
    initial_weights  what all layers but the last begin with; None: they are drawn
    """
    dataset = normalised(data.dataset(spec, net))
    side = dataset.x.shape[-1]
    classes = len(dataset.y.unique())
    build = partial(models.build, arch, shape=(COLOURS, side, side), classes=classes)
    fit = partial(training.fit, build, dataset, recipe, seed=seed, device=device, start=initial_weights)
    module, origin = read_or_fitted(build, fit, weights)
    right = networks.correct(module.to(device), dataset, dataset.splits["test"], device=device)
    template = panel.row("training").having(dataset=dataset.name, net=net.name, k=net.k)
    row = networks.accuracy_row(template, share(right), gate=recipe.gate)
    own = NetworkFacts(net.name, net, arch, classes, side, row.status == "ok", share(right))
    facts = {"said": notes(spec.world), **origin, **to_plain(own)}
    return Cell(rows=(advised(row, net, spec),), tensors=networks.weights_of(module.cpu()), facts=facts)


def read_or_fitted(
    build: Callable[[], nn.Module], fit: Callable[[], training.Trained], weights: WeightsFile | None
) -> tuple[nn.Module, Facts]:
    """The network with the weights of a file, or trained; and in how many epochs it was."""
    if weights is not None:
        return files.load_same(build(), weights), {}
    fitted = fit()
    return fitted.module, {"epochs": fitted.epochs}


def advised(row: Row, net: NetSpec, spec: DataSpec) -> Row:
    """The row of a training; where a network did not learn to tell objects apart, it says what makes that easier."""
    if row.status == "ok" or net.label != "object" or spec.world.same_objects:
        return row
    return row.having(message=row.message + EASIER)


def normalised(dataset: Dataset) -> Dataset:
    """The dataset as a network reads it. In place: it is large."""
    dataset.x.sub_(column(IMAGENET_MEAN)).div_(column(IMAGENET_SPREAD))
    return dataset


def facts_of(cell: Cell) -> NetworkFacts:
    """What the cell of a training says of its network."""
    facts: NetworkFacts = from_plain(cell.facts, NetworkFacts)
    return facts


def explained_network(cell: Cell, *, device: str) -> nn.Sequential:
    """The network for images in [0, 1]: it is normalised by a convolution in front, which every method can read."""
    facts = facts_of(cell)
    module = models.build(facts.arch, shape=(COLOURS, facts.side, facts.side), classes=facts.classes)
    return with_normalising(networks.loaded(module, cell.tensors, device=device))


@torch.no_grad()
def probabilities(model: nn.Module, x: Tensor) -> Tensor:
    """(n, classes)"""
    return chunks.over(lambda part: model(part).softmax(1), x, size=networks.AT_ONCE)


@task("bam.verify", version=2, spec=FLAT, panel="about")
def verify(*trained: Cell, spec: DataSpec, panel: Panel, device: str) -> Cell:
    """The table of Fig. 2: what becomes of accuracy and confidence without the common feature, or with it alone."""
    everyone = data.images(spec, None, count=None)
    template = panel.row("verification")
    rows: list[Row] = []
    for cell in trained:
        net = facts_of(cell).net
        seen = everyone
        if net.k is not None:
            seen = data.images(spec, net.k, count=None, first_only=True)
        model = explained_network(cell, device=device)
        outputs = {shown: probabilities(model, getattr(seen, shown).to(device)).cpu() for shown in sets_of(net)}
        rows += verification_rows(template, net, outputs, data.labels_of(net, seen))
    return Cell(rows=tuple(rows), facts={"said": unfamiliar_sets(rows)})


def sets_of(net: NetSpec) -> tuple[Shown, ...]:
    """The states of the images in which a network is verified."""
    if net.k is None:
        return ("os", "s", "og")
    return ("os", "s")


def verification_rows(template: Row, net: NetSpec, outputs: Mapping[Shown, Tensor], label: Tensor) -> Iterator[Row]:
    """Accuracy and strangeness of every set; then the accuracy drop of the common feature, or the confidence.

    outputs  set -> probabilities (n, classes)
    label    (n,)
    """
    template = template.having(net=net.name, k=net.k, n=len(label))
    for shown, probability in outputs.items():
        own = template.having(shown=shown)
        yield own.having(metric="accuracy", value=accuracy(probability, label))
        yield own.having(metric="unfamiliar", value=unfamiliar(probability, outputs[net.shown]))
    if net.k is not None:
        lost = accuracy_drop(outputs["os"], outputs["s"], label)
        yield template.having(shown="s", metric="drop", value=lost)
    elif net.shown == "os":
        without: Shown = "og" if net.label == "object" else "s"
        rises = confidence_rises(outputs["os"], outputs[without], label)
        if len(rises):  # none where no output is correct
            own = template.having(shown=without, n=len(rises))
            yield own.having(metric="confidence_rises", value=share(rises))


def unfamiliar_sets(rows: Sequence[Row]) -> list[str]:
    """A sentence on sets that a network has not seen in training, and is more unsure of than of its own."""
    shares = only(DataFrame([row.flat() for row in rows]), metric="unfamiliar")
    strange = worded(shares[shares["value"] > UNFAMILIAR], "{net} on X_{shown} ({value:.0%})")
    return paragraphs(__package__, "unfamiliar.jinja", strange=strange, rare=RARE, limit=UNFAMILIAR)


@task("bam.patches", version=2, spec=FLAT, panel="about")
def find_patches(trained: Cell, *, spec: DataSpec, panel: Panel, search: Search, count: int, device: str) -> Cell:
    """Scenes with a functionless patch that begins as the common feature, for f_∅."""
    seen = data.images(spec, 1.0, count=count)
    model = explained_network(trained, device=device)
    patched = functionless(model, seen.s.to(device), seen.mask.to(device), start=seen.os.to(device), search=search)
    name = facts_of(trained).name
    template = panel.row("patches").having(net=name)
    rows = patch_rows(template, patched, seen.rows)
    found = patched.found()
    note = PATCHES_FOUND.format(share=share(found), count=len(found), name=name)
    tensors = {"x": patched.x.cpu(), "found": found.cpu().to(torch.uint8)}
    return Cell(rows=tuple(rows), tensors=tensors, facts={"said": [note], "found": share(found)})


def patch_rows(template: Row, patched: Patched, samples: Tensor) -> Iterator[Row]:
    """How far the outputs move, how visible a patch is, and whether that is enough."""
    measures = {"ratio": patched.ratio, "change": patched.change, "found": patched.found().double()}
    for metric, values in measures.items():
        yield from rows_by_sample(template.having(metric=metric), samples, value=values)


@task("bam.show", version=3, spec=FLAT, panel="about")
def show(*, spec: DataSpec, panel: Panel, samples: int) -> Cell:
    """The images whose maps the page shows, and where their objects are."""
    seen = data.images(spec, None, count=samples)
    sources = {"input": seen.os, "truth": seen.mask}
    album = Album({"model": NO_MODEL, "placing": panel.placing, "method": ""})
    for place, kind, label in itertools.product(range(len(seen.rows[:SHOWN])), sources, (0, 1)):
        album.add(sources[kind][place].half(), kind, place, kind=kind, label=label)
    return album.cell()
