"""The tasks of XAI-TRIS: train a network, make maps, score them. Results are cells."""

import itertools
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from torch import Tensor

from forsooth.engine import task
from forsooth.models.recipes import Recipe
from forsooth.models.train import fit
from forsooth.records import NO_MODEL, Cell
from forsooth.suites import explain as explaining
from forsooth.suites import networks
from forsooth.suites.album import Album
from forsooth.suites.choose import SHOWN
from forsooth.suites.networks import NetSpec
from forsooth.suites.xaitris import data, training
from forsooth.suites.xaitris.data import DataSpec, Panel
from forsooth.suites.xaitris.questions import Ask, question

NO_INPUT = "no test image is predicted correctly by every network"


@task("xaitris.train", version=2, together=training.TOGETHER, spec="panel")
def train(*, spec: DataSpec, net: NetSpec, recipe: Recipe, model_seed: int, seed: int, device: str, part: str) -> Cell:
    """One training. The cell holds the weights and which test images the network gets right."""
    dataset = data.dataset(spec)
    trained = fit(partial(training.untrained, net, spec), dataset, recipe, seed=seed, device=device)
    return training.cell(trained, dataset, spec, net, recipe, model_seed=model_seed, device=device, part=part)


@task("xaitris.show", version=2, spec="panel")
def show(*trained: Cell, spec: DataSpec, samples: int | None, sampling_seed: int) -> Cell:
    """The images whose maps are shown, their truths, and how many images of each kind take part in the panel."""
    dataset = data.dataset(spec)
    chosen = data.explained(trained, dataset, samples, seed=sampling_seed)
    if not len(chosen):
        return Cell()
    where = data.panel(spec).factors
    roles = {"explained": chosen, **data.references(dataset, seed=sampling_seed)}
    rows = chosen[:SHOWN]
    sources = {"input": dataset.x[rows].sum(1), "truth": explaining.truth_of(dataset, rows).float()}
    album = Album({**where, "model": NO_MODEL, "method": ""})
    for (place, label), kind in itertools.product(enumerate(dataset.y[rows].tolist()), sources):
        album.add(sources[kind][place].clone(), kind, place, kind=kind, label=label)
    return album.cell(drawn=data.counts(dataset, roles, where=where))


@task("xaitris.explain", version=2, spec="panel", ask="*")
def explain(*trained: Cell, spec: DataSpec, index: int, ask: Ask) -> Cell:
    """The maps of one method for one network (index -1: it ignores them) over the test images all get right."""
    network = trained[index] if index >= 0 else None
    if network is not None and not network.facts["passed"]:
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
    reads = {"truth": explaining.truth_of(dataset, chosen)}
    scored = explaining.metric_rows(template, flat, reads, metrics, chosen, emd_tolerance)
    rows = explaining.promise_rows(template, scored, explaining.gaps(made), chosen)
    return album_of(panel, method, flat, dataset.y[chosen[:SHOWN]].tolist()).cell(rows)


def album_of(panel: Panel, method: str, maps: Tensor, labels: Sequence[int]) -> Album:
    """The first few of maps (n, side, side) and, unless nothing stays in its place, the mean of all.

    labels  of the samples that are shown
    """
    album = Album({**asdict(panel), "method": method})
    for place, label in enumerate(labels):
        album.add(maps[place].clone(), "example", place, kind="example", label=label)
    if panel.scenario != "RIGID":
        album.add(maps.nan_to_num(0.0, 0.0, 0.0).mean(0), "global", kind="global")
    return album
