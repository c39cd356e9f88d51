"""Maps and samples become cells, cells become rows, and the rows a run like any other, with its page."""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from forsooth import plugins, seeds
from forsooth.adapters import models
from forsooth.arguments import run_folder
from forsooth.attributions import METHODS
from forsooth.engine import Progress, about_task, execute, make_task, task
from forsooth.progress import Silent
from forsooth.records import NO_MODEL, Cell, Facts, Method, Metric, Plan, Row, Task, Tensors, UsageError
from forsooth.runs import Run, assemble, described_method, described_metric, write_page
from forsooth.store import Store
from forsooth.suites import explain
from forsooth.suites.album import Album
from forsooth.suites.planning import versions
from forsooth.user.export import Samples
from forsooth.user.pages import grey
from forsooth.user.requests import NULLS
from forsooth.user.results import times
from forsooth.user.score import given
from forsooth.user.score.request import ScoreRequest
from forsooth.wording import paragraphs

GIVEN = "given"  # the model of maps that were made elsewhere
AT_ONCE = 100  # samples of a task
SHOWN = 4  # samples whose maps the page shows, the first
LOST = {"status": "error", "message": "there is no map of this sample"}


@dataclass(frozen=True)
class Case:
    """The request, checked and read.

    samples  those of which any method has a map
    numbers  (n,) of the samples, in rows
    maps     method -> (n, *map); nan where it has none
    """

    request: ScoreRequest
    samples: Samples
    numbers: tuple[int, ...]
    maps: Tensors
    metrics: tuple[Metric, ...]

    def bounded(self) -> list[str]:
        """The scores that take long, and may lie between bounds."""
        return [metric.name for metric in self.metrics if metric.name in explain.BOUNDED]

    def nulls(self) -> list[Method]:
        """The maps that ignore every model and can be made of what is known, and the oracle."""
        image = self.samples.truth.ndim == 3
        found = []
        for null in (plugins.method(name, METHODS) for name in NULLS):
            readable = self.samples.x is not None and (image or "table" in null.inputs)
            if null.blind or "truth" in null.needs or readable:
                found.append(null)
        return found


def answer(
    request: ScoreRequest,
    *,
    out: Path | None = None,
    workers: int = 1,
    page: bool = True,
    progress: Progress | None = None,
) -> Run:
    """The board of the maps beside nulls and oracle. See `forsooth.score`."""
    begun = time.monotonic()
    case = prepare(request)
    folder = run_folder(out or Path("forsooth-runs") / "score")
    cells = Store(folder / "store")
    plan = Plan(tasks=tuple(tasks_of(case, cells)))
    if not case.bounded():
        workers = 1  # the other scores are done before a second process has begun
    execute(plan.tasks, cells, workers=workers, progress=progress or Silent())
    assemble(folder, plan, cells, {**run_facts(case), **times(time.monotonic() - begun)})
    if page:
        write_page([folder])
    return Run(folder)


def prepare(request: ScoreRequest) -> Case:
    """What the user gave, read, matched and found to fit."""
    samples = given.samples_from(request.truth, request.images)
    metrics = request.records(["truth"] if samples.x is None else ["truth", "x"])
    maps = given.maps_from(request.maps, samples.ids)
    taken = sorted(set(maps) & set(NULLS))
    if taken or not maps:
        raise UsageError(f"`maps` must have names that no null has, got {', '.join(taken) or 'no maps'}")
    places = {name: given.places(own, samples, name) for name, own in maps.items()}
    rows = torch.cat(list(places.values())).unique()
    filled = {}
    for name, own in maps.items():
        everywhere = torch.full(samples.truth.shape, torch.nan)
        everywhere[places[name]] = given.reduced(own.values, samples.truth, name)
        filled[name] = everywhere[rows]
    chosen = samples.at(rows)
    numbers = rows.tolist()
    if all(map(str.isdecimal, chosen.ids)):
        numbers = list(map(int, chosen.ids))
    return Case(request, chosen, tuple(numbers), filled, metrics)


def tasks_of(case: Case, cells: Store) -> Iterator[Task]:
    """The cells of what was given, put into the store, and a task for every method and slice of the samples."""
    shared: Facts = {
        "dataset": case.samples.name,
        "metrics": versions([metric.name for metric in case.metrics]),
        "emd_tolerance": case.request.emd_tolerance or None,
    }
    for part in torch.arange(len(case.numbers)).split(AT_ONCE):
        shared["show"] = SHOWN if int(part[0]) == 0 else 0
        samples = put(part_of(case, part), cells, "samples")
        yield samples
        for name, maps in case.maps.items():
            own = put({"maps": maps[part]}, cells, f"maps: {name}")
            yield own
            yield make_task(score_maps, {**shared, "method": name}, [samples, own], name=f"score: {name}")
        for null in case.nulls():
            arguments = {**shared, "method": null.name, "version": null.version, "seed": case.request.seed}
            yield make_task(score_null, arguments, [samples], name=f"score: {null.name}")


def part_of(case: Case, part: Tensor) -> Tensors:
    """Some of the samples (k,), as tensors of a cell."""
    tensors = {"truth": case.samples.truth[part], "numbers": torch.tensor(case.numbers)[part]}
    if case.samples.x is not None:
        tensors["x"] = case.samples.x[part]
    return tensors


def put(tensors: Tensors, cells: Store, name: str) -> Task:
    """The task that stands for what was given, whose cell is in the store already: its key is the content's hash."""
    cell = Cell(tensors={key: tensor.contiguous() for key, tensor in tensors.items()})
    total = hashlib.sha256()
    for key, tensor in sorted(cell.tensors.items()):
        total.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode() + models.raw(tensor))
    stand_in = make_task(keep, {"digest": total.hexdigest()}, name=name)
    if not cells.has(stand_in.key):
        cells.write(stand_in.key, cell, about=about_task(stand_in, 0.0))
    return stand_in


@task("user.score_given", version=1)
def keep(*, digest: str) -> Cell:
    """Never asked where the store is whole: only who has the maps can put them there."""
    raise UsageError("`out` must hold the maps that were given, but they were removed: ask once more")


@task("user.score_maps", version=2)
def score_maps(
    samples: Cell,
    own: Cell,
    *,
    dataset: str,
    method: str,
    metrics: dict[str, int],
    emd_tolerance: float | None,
    show: int,
) -> Cell:
    """The rows of one method on some samples."""
    return scored(samples, own.tensors["maps"], row(dataset, method, GIVEN), metrics, emd_tolerance, show)


@task("user.score_null", version=2)
def score_null(
    samples: Cell,
    *,
    dataset: str,
    method: str,
    version: int,
    metrics: dict[str, int],
    emd_tolerance: float | None,
    show: int,
    seed: int,
) -> Cell:
    """The rows of a null, or of the oracle, on some samples. `version` changes the key with it."""
    reads = samples.tensors
    x = reads.get("x", torch.zeros(reads["truth"].shape)).float()
    question = explain.Question(
        model=nn.Identity(),
        x=x,
        target=torch.zeros(len(x), dtype=torch.int64),
        background=x[:0],
        fit=x[:0],
        truth=reads["truth"],
        layer=None,
        seed=seeds.derive(seed, "score"),
        samples=reads["numbers"],
    )
    made = explain.attribute(method, question)
    template = row(dataset, method, NO_MODEL)
    if "maps" not in made.tensors:
        return Cell(rows=tuple(explain.no_scores(template, metrics, reads["numbers"].tolist(), made.facts)))
    maps = given.reduced(made.tensors["maps"], reads["truth"], method)
    return scored(samples, maps, template, metrics, emd_tolerance, show)


def scored(
    samples: Cell,
    maps: Tensor,
    template: Row,
    metrics: dict[str, int],
    emd_tolerance: float | None,
    show: int,
) -> Cell:
    """The rows of maps (n, *map) of some samples, and what the page shows; a sample without a map says so."""
    there = ~maps.flatten(1).isnan().all(1)
    reads = {name: tensor[there] for name, tensor in samples.tensors.items()}
    rows = list(explain.metric_rows(template, maps[there], reads, metrics, reads["numbers"].tolist(), emd_tolerance))
    rows += explain.no_scores(template, metrics, samples.tensors["numbers"][~there].tolist(), LOST)
    album = Album({"dataset": template.dataset, "model": template.model, "method": template.method, "label": 0})
    for place in there[:show].nonzero().flatten().tolist():
        for kind, picture in looked_at(samples.tensors, maps, template, place).items():
            if picture.ndim == 2:  # only (h, w) can be looked at
                album.add(picture, kind, place, kind=kind)
    return album.cell(rows)


def looked_at(reads: Tensors, maps: Tensor, template: Row, place: int) -> Tensors:
    """Its map of the sample at that place; of the oracle the truth itself, and the input where that is known."""
    if template.method != "oracle":
        return {"example": maps[place]}
    known = {"truth": reads["truth"][place].float()}
    if "x" in reads:
        known["input"] = grey(reads["x"][place])
    return known


def row(dataset: str, method: str, model: str) -> Row:
    return Row(suite="score", part="scores", dataset=dataset, model=model, model_seed=0, method=method)


def run_facts(case: Case) -> Facts:
    """What run.json says, so that the page can be written."""
    own = {name: {"null": False, "cite": "", "signed": False, "settings": {}} for name in case.maps}
    return {
        "suite": "score",
        "title": "Maps made elsewhere",
        "question": "Which of these maps point at what is known to matter?",
        "preset": "",
        "seed": case.request.seed,
        "command": case.request.command(),
        "settings": {"metrics": [metric.name for metric in case.metrics], "emd_tolerance": case.request.emd_tolerance},
        "factors": ["dataset", "model"],
        "levels": {"dataset": [case.samples.name], "model": [GIVEN]},
        "exhibits": ["examples"],
        "metrics": {metric.name: described_metric(metric) for metric in case.metrics},
        "methods": {**own, **{null.name: described_method(null) for null in case.nulls()}},
        "facts": paragraphs(__package__, "facts.jinja", case=case, bounded=case.bounded()),
    }
