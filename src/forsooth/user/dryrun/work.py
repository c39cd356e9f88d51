"""All work of a dry run: planted images, trainings of ours or of the user, methods, and the answer from all of it."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from pandas import DataFrame

from forsooth import plugins, seeds
from forsooth.adapters.trainings import load_training
from forsooth.arguments import outside, run_folder
from forsooth.datasets import plain_images
from forsooth.datasets.plain_images import Images
from forsooth.datasets.visibility import legible
from forsooth.engine import Progress, execute, make_task
from forsooth.models.gates import Gate
from forsooth.progress import fitting_progress
from forsooth.records import NO_MODEL, Columns, Facts, Method, Plan, Task, UsageError
from forsooth.runs import assemble, described_metric
from forsooth.scores.planted import ATTR
from forsooth.store import Store
from forsooth.suites.planning import versions
from forsooth.suites.planted import data as planted
from forsooth.suites.planted import tasks as planting
from forsooth.suites.planted.data import DataSpec
from forsooth.suites.planted.plan import RECIPES
from forsooth.suites.planted.questions import Ask
from forsooth.suites.planted.settings import PRESENCES
from forsooth.user.dryrun import training, words
from forsooth.user.dryrun.request import NET, DryRunRequest
from forsooth.user.dryrun.result import DryRun, demand_a_model, tabled
from forsooth.user.results import as_text, times

MAX_P_VALUE = 1e-3  # largest probability of a model's accuracy for one that does not use the artefact
GATE = Gate(accuracy=0.0, max_p_value=MAX_P_VALUE)
PROVING = 10  # test images: all of them right by chance has a probability of 2^-10, below MAX_P_VALUE
GOOD = 0.9  # accuracy on val below which our own training is restarted, once
STEPS = 1_000  # of our own training, at least …
EPOCHS = 150  # … but not more epochs
BATCH = 32
MEANS = (
    "These are means over images, with Student's intervals; the leaderboards below take medians, over images with the "
    "artefact alone."
)


def answer(
    request: DryRunRequest, *, out: Path | None = None, workers: int = 1, progress: Progress | None = None
) -> DryRun:
    """What the planned methods make of the artefacts. See `forsooth.dryrun`."""
    begun = time.monotonic()
    folder = outside(out or Path("forsooth-runs") / "dryrun", request.data)
    work = plan(request)
    cells = Store(run_folder(folder) / "store")
    execute(work.tasks, cells, workers=workers, progress=progress or fitting_progress())
    result = result_from(request, work, cells, folder)
    result.keep(folder, "dryrun", result.table)
    assemble(folder, work, cells, {**run_facts(request, result), **times(time.monotonic() - begun)})
    result.report()
    return result


def result_from(request: DryRunRequest, work: Plan, cells: Store, folder: Path) -> DryRun:
    """The answer from the cells of the plan."""
    lines: list[Facts] = []
    notes: list[str] = []
    for task in work.tasks:
        table = cells.rows(task.key)
        if table is not None:
            lines += table.to_pylist()
        notes += cells.meta(task.key)["facts"].get("said", ())
    rows = DataFrame(lines)
    demand_a_model(rows)
    table = tabled(rows, request.kinds())
    about_images = list(dict.fromkeys(notes))
    summary = words.summary(table, rows, about_images, visibility=request.visibility, own=bool(request.train))
    return DryRun(table, rows, summary, folder)


def run_facts(request: DryRunRequest, result: DryRun) -> Facts:
    """What run.json says of a dry run, so that its page can be written; the words stand on it."""
    trust, lines = words.lead(result.words)
    return {
        "suite": "planted",
        "title": "Dry run on your own images",
        "question": "The model can only be right by a planted artefact: which of the planned methods show it?",
        "preset": "",
        "seed": request.seed,
        "command": request.command(),
        "settings": asdict(request),
        "factors": ["manipulation", "model"],
        "levels": {"manipulation": list(request.artefacts), "model": [request.model]},
        "exhibits": ["examples", "planted_curves", "planted_gate"],
        "metrics": {ATTR.name: described_metric(ATTR)},
        "answer": [trust],
        "facts": [*lines, MEANS],
        "table": as_text(result.shown()),
    }


def plan(request: DryRunRequest) -> Plan:
    """All work of a dry run, after the images were read once and found to be enough."""
    request.check()
    methods = request.records()
    code = ""
    if request.train:
        code = plugins.fingerprint(load_training(request.train))
    images = usable_images(request)
    tasks: list[Task] = []
    for name in request.artefacts:
        columns, spec = panel(name, images, request)
        tasks.append(make_task(planting.show, {"spec": spec, "columns": columns}, name=f"example: {name}"))
        if request.train:
            tasks.append(own_training_task(spec, columns, methods, code, request))
        else:
            tasks += our_tasks(spec, columns, methods, request)
    return Plan(tasks=tuple(tasks))


def usable_images(request: DryRunRequest) -> Images:
    """Where the images come from; UsageError unless they can prove that a model uses an artefact."""
    path = str(Path(request.data).resolve())
    classes = len(plain_images.class_names(path, 0, least=1))  # which play no part
    if request.images is not None and request.images < 3 * classes:
        least = f"at least {3 * classes}, three for each of {classes} classes"
        raise UsageError(f"`images` must be {least}, got {request.images}")
    images = plain_images.images_at(
        path,
        classes=classes,
        per_class=request.images and request.images // classes,
        side=request.size,
        seed=seeds.derive(request.seed, "data"),
    )
    dataset = plain_images.base(images)
    held = len(dataset.splits["test"])
    if held < PROVING:
        raise UsageError(
            f"`data` must leave at least {PROVING} images for testing, or a model that uses the artefact cannot be "
            f"distinguished from chance, got {held} of {len(dataset.x)} usable images in {request.data}: give 100 "
            "images or more"
        )
    return images


def panel(name: str, images: Images, request: DryRunRequest) -> tuple[Columns, DataSpec]:
    """The columns that the rows of an artefact share, and what decides the planted data."""
    artefact = legible(name, level=request.visibility, side=request.size)
    seed = seeds.derive(request.seed, "dry run", name)
    spec = DataSpec(images=images, pair=None, manipulation=artefact, r=0.5, border=None, seed=seed)
    own: Columns = {
        "part": "scores",
        "level": request.visibility,
        "model_seed": 0,
        "experiment": "dry run",
        "kind": "all",
    }
    return {**planted.factors(spec), **own}, spec


def ask_of(method: Method, spec: DataSpec, request: DryRunRequest) -> Ask:
    """What a method is asked."""
    return Ask(
        **plugins.identity(method),
        samples=request.samples,
        presences=PRESENCES,
        output=method.output or "logits",
        metrics=versions([ATTR.name]),
        checkpoints=False,
        show=True,
        seed=seeds.derive(request.seed, "method", spec.seed),
        device=request.device,
    )


def our_tasks(spec: DataSpec, columns: Columns, methods: Sequence[Method], request: DryRunRequest) -> Iterator[Task]:
    """A training of ours, and a task for every method."""
    artefact = columns["manipulation"]
    trained = make_task(planting.train, our_training(spec, columns, request), name=f"train {NET}: {artefact}")
    yield trained
    for method in methods:
        asking = {
            "spec": spec,
            "index": -1 if method.null else 0,
            "ask": ask_of(method, spec, request),
            "columns": {**columns, "model": NO_MODEL if method.null else NET},
        }
        yield make_task(planting.explain, asking, [trained], name=f"explain: {method.name}, {artefact}")


def our_training(spec: DataSpec, columns: Columns, request: DryRunRequest) -> Facts:
    """The arguments of a training of ours. Images are mirrored: all regions are symmetric."""
    recipe = RECIPES["quick"]
    batches = len(plain_images.base(spec.images).splits["train"]) / BATCH
    epochs = min(EPOCHS, max(recipe.epochs, math.ceil(STEPS / batches)))
    return {
        "spec": spec,
        "net": NET,
        "recipe": replace(recipe, gate=GOOD, restarts=1, epochs=epochs, augment="flip"),
        "gate": GATE,
        "keep": False,
        "columns": {**columns, "part": "training"},
        "seed": seeds.derive(request.seed, "training", spec.seed),
        "device": request.device,
    }


def own_training_task(
    spec: DataSpec, columns: Columns, methods: Sequence[Method], code: str, request: DryRunRequest
) -> Task:
    """The user's training and all methods in one task: nobody but the user's function can build the model again."""
    arguments = {
        "spec": spec,
        "path": request.train,
        "code": code,
        "gate": GATE,
        "asks": [ask_of(method, spec, request) for method in methods],
        "columns": columns,
        "seed": seeds.derive(request.seed, "training", spec.seed),
        "device": request.device,
    }
    return make_task(training.train_and_explain, arguments, name=f"train and explain: {columns['manipulation']}")
