"""The tasks of XAI-TRIS: train a network, make maps, score them. Results are cells."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from torch import Tensor

from forsooth.engine import task
from forsooth.models.recipes import Recipe
from forsooth.models.train import fit
from forsooth.records import NO_MODEL, Cell, Dataset, Facts
from forsooth.suites import explain as explaining
from forsooth.suites import networks
from forsooth.suites.choose import SHOWN, placed
from forsooth.suites.networks import NetSpec
from forsooth.suites.xaitris import data, training
from forsooth.suites.xaitris.data import DataSpec, Panel
from forsooth.suites.xaitris.questions import Ask, question, truth_of

NO_INPUT = "no test image is predicted correctly by every network"


@task("xaitris.train", version=2, together=training.TOGETHER, spec="panel")
def train(*, spec: DataSpec, net: NetSpec, recipe: Recipe, model_seed: int, seed: int, device: str, part: str) -> Cell:
    """One training. The cell holds the weights and which test images the network gets right."""
    dataset = data.dataset(spec)
    build = partial(training.untrained, net, spec)
    trained = fit(build, dataset, recipe, seed=seed, device=device)
    return training.cell(trained, dataset, spec, net, recipe, model_seed=model_seed, device=device, part=part)


@task("xaitris.show", version=2, spec="panel")
def show(*trained: Cell, spec: DataSpec, samples: int | None, sampling_seed: int) -> Cell:
    """The images whose maps are shown, their truths, and how many images of each kind take part in the panel."""
    dataset = data.dataset(spec)
    chosen = data.explained(trained, dataset, samples, seed=sampling_seed)
    if not len(chosen):
        return Cell()
    where = data.panel(spec).factors
    rows = {"explained": chosen, **data.references(dataset, seed=sampling_seed)}
    drawn = [line for role in rows for line in data.counts(dataset, rows[role], role=role, where=where)]
    return shown(dataset, chosen[:SHOWN], where, drawn)


def shown(dataset: Dataset, rows: Tensor, where: Mapping[str, Any], drawn: Sequence[Mapping[str, Any]]) -> Cell:
    """The cell with the images at rows (k,) of the dataset and their truths."""
    assert dataset.truth is not None
    tensors = {}
    pictures = []
    for place, row in enumerate(rows.tolist()):
        shared = {**where, "model": NO_MODEL, "method": "", "label": int(dataset.y[row]), "place": place}
        for kind, picture in {"input": dataset.x[row].sum(0), "truth": dataset.truth[row].float()}.items():
            name = placed(kind, place)
            tensors[name] = picture
            pictures.append({**shared, "tensor": name, "kind": kind})
    return Cell(tensors=tensors, facts={"pictures": pictures, "drawn": list(drawn)})


@task("xaitris.explain", version=2, spec="panel", ask="*")
def explain(*trained: Cell, spec: DataSpec, index: int, ask: Ask) -> Cell:
    """The maps of one method for one network (index -1: it ignores them) over the test images all get right."""
    network = None
    if index >= 0:
        network = trained[index]
        if not network.facts["passed"]:
            return Cell(facts=networks.BELOW_GATE)
    chosen = data.explained(trained, data.dataset(spec), ask.samples, seed=ask.sampling_seed)
    if not len(chosen):
        return Cell(facts={"status": "no correct input", "message": NO_INPUT})
    cell = explaining.attribute(ask.method, question(network, spec, chosen, ask))
    return Cell(tensors={**cell.tensors, "samples": chosen}, facts=cell.facts)


@task("xaitris.score", version=2, spec="panel", panel="about")
def score(
    made: Cell,
    *,
    spec: DataSpec,
    panel: Panel,
    method: str,
    metrics: dict[str, int],
    emd_tolerance: float | None = None,
) -> Cell:
    """Rows of every metric for the maps of one cell, and the maps that the page shows.

    emd_tolerance  of the earth mover's score, see `Settings`; None: exact
    """
    template = panel.row("scores", method)
    if "maps" not in made.tensors:
        return explaining.without_maps(template, metrics, made)
    dataset = data.dataset(spec)
    chosen = made.tensors["samples"]
    flat = made.tensors["maps"].abs().sum(1)  # the papers score |s|; one channel here, so the sum changes nothing
    reads = {"truth": truth_of(dataset, chosen)}
    scored = list(explaining.metric_rows(template, flat, reads, metrics, chosen.tolist(), emd_tolerance))
    rows = explaining.promise_rows(template, scored, explaining.gaps(made), chosen.tolist())
    labels = dataset.y[chosen[:SHOWN]].tolist()
    return Cell(rows=tuple(rows), tensors=shown_maps(flat), facts={"pictures": pictures(panel, method, labels)})


def shown_maps(maps: Tensor) -> dict[str, Tensor]:
    """The first few of maps (n, side, side), and the mean of all."""
    first = {placed("example", place): one.clone() for place, one in enumerate(maps[:SHOWN])}
    return {**first, "global": maps.nan_to_num(0.0, 0.0, 0.0).mean(0)}


def pictures(panel: Panel, method: str, labels: Sequence[int]) -> list[Facts]:
    """What the page shows of a method in a panel; where nothing stays in its place, a mean map shows nothing.

    labels  of the samples that are shown
    """
    shared: Mapping[str, Any] = {**asdict(panel), "method": method}
    shown: list[Facts] = []
    for place, label in enumerate(labels):
        shown.append({**shared, "tensor": placed("example", place), "kind": "example", "label": label, "place": place})
    if panel.scenario != "RIGID":
        shown.append({**shared, "tensor": "global", "kind": "global"})
    return shown
