"""The dry run: artefacts that the user fears, planted in the user's images, and methods that must show them.

For every artefact all images get a new label by the throw of a coin, and those of label 1 get the artefact: it alone
tells the label. A model that is right beyond luck uses it, and a good map of that model lies on it [zhou2022feature].
"""

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS
from forsooth.datasets.manipulations import NAMES
from forsooth.engine import make_task
from forsooth.records import NO_MODEL, Method, Plan, Task, UsageError
from forsooth.scores import METRICS
from forsooth.store import Store, write_atomically
from forsooth.suites.planted import data as planted
from forsooth.suites.planted import tasks as planting
from forsooth.suites.planted.data import DataSpec, Images
from forsooth.suites.planted.explanations import Ask, code_of, versions_of
from forsooth.suites.planted.plan import RECIPES
from forsooth.suites.planted.settings import PRESENCES
from forsooth.suites.planted.tasks import Columns
from forsooth.user import dryrun_table, dryrun_words, training
from forsooth.user.dryrun_table import DryRun

PLANNED = (
    *("saliency", "gradient_x_input", "integrated_gradients", "smooth_grad_50"),
    *("grad_cam", "guided_backprop", "gradient_shap", "lime_quickshift_200"),
)
NULLS = ("random", "constant", "sobel", "laplace", "rectified_input", "oracle")
SHORT = {"blur": "peripheral_blur", "brightness": "center_brightness", "hue": "striped_hue", "noise": "striped_noise"}
NET = "residual_small"  # trained where the user gives no training of their own
MAX_P_VALUE = 1e-3  # largest probability of a model's accuracy for one that does not use the artefact
GATE = planting.Gate(accuracy=0.0, max_p_value=MAX_P_VALUE)
PROVING = 10  # test images: all of them right by luck has a probability of 2^-10, below MAX_P_VALUE
LEAST_SIDE = 16
GOOD = 0.9  # accuracy on val below which our own training is begun anew, once
STEPS, EPOCHS = 1_000, 150  # our own training: at least so many steps, but not more epochs
MEANS = "These are means over images, with Student's intervals; the leaderboards below take medians."


@dataclass(frozen=True)
class Asked:
    """The user's words, as plain values.

    data        folder of class folders or zip; nothing is written there
    train       package.module:function of the user's training; None: ours
    methods     that the user plans to use; the nulls and the oracle are always asked, too
    artefacts   that the user fears
    size        side of the images, px
    images      so many are read at most, classes shared out evenly; None: all
    visibility  level of the artefacts, 0 (least) to 4
    samples     test images with the artefact that are explained, and as many without
    """

    data: str
    train: str | None = None
    methods: tuple[str, ...] = PLANNED
    artefacts: tuple[str, ...] = NAMES
    size: int = 64
    images: int | None = 2_000
    visibility: int = 3
    samples: int = 50
    device: str = "cpu"
    seed: int = 0

    @property
    def model(self) -> str:
        """The name of the model in rows and on the page."""
        return training.model_name(self.train) if self.train else NET


def artefact_names(asked: Iterable[str]) -> tuple[str, ...]:
    """Full names of artefacts, each once; all five where none is named.

    >>> artefact_names(["hue", "watermark", "striped_hue"])
    ('striped_hue', 'watermark')
    """
    found = [SHORT.get(name, name) for name in asked]
    for name in found:
        if name not in NAMES:
            raise names.unknown(name, (*SHORT, *NAMES), argument="artefacts")
    return tuple(dict.fromkeys(found)) or NAMES


def method_names(asked: Iterable[str]) -> tuple[str, ...]:
    """The planned methods, and behind them the nulls and the oracle, which are always asked."""
    found = tuple(dict.fromkeys(asked)) or PLANNED
    for name in found:
        plugins.method(name, METHODS)
    return (*found, *(null for null in NULLS if null not in found))


def kinds(asked: Asked) -> dict[str, str]:
    """method -> method, null (ignores the model) or oracle, in the order of the table."""
    found = {name: plugins.method(name, METHODS) for name in method_names(asked.methods)}
    return {name: "oracle" if name == "oracle" else "null" if m.null else "method" for name, m in found.items()}


def answer(asked: Asked, made: Plan, cells: Store, folder: Path) -> DryRun:
    """The answer from the cells of the plan, also as dryrun.csv and dryrun.md in the folder."""
    tables = [table for table in (cells.rows(task.key) for task in made.tasks) if table is not None]
    rows = pd.DataFrame([row for table in tables for row in table.to_pylist()])
    dryrun_table.demand_a_model(rows)
    said = list(dict.fromkeys(s for task in made.tasks for s in cells.meta(task.key)["facts"].get("said", ())))
    table = dryrun_table.tabled(rows, kinds(asked))
    words = dryrun_words.told(table, rows, said, visibility=asked.visibility, own=bool(asked.train))
    found = DryRun(table, rows, words, folder)
    write_atomically(folder / "dryrun.csv", table.to_csv(index=False).encode())
    write_atomically(folder / "dryrun.md", found.markdown().encode())
    return found


def about(asked: Asked, found: DryRun) -> dict[str, Any]:
    """What run.json says of a dry run, so that its page can be written; the words stand on it."""
    attr = names.find("attr", METRICS, argument="metrics")
    trust, lines = dryrun_words.lead(found.words)
    return {
        "suite": "planted",
        "title": "Dry run on your own images",
        "question": "The model can only be right by a planted artefact: which of the planned methods show it?",
        "preset": "",
        "seed": asked.seed,
        "command": command(asked),
        "settings": asdict(asked),
        "factors": ["manipulation", "model"],
        "levels": {"manipulation": list(asked.artefacts), "model": [asked.model]},
        "exhibits": ["examples", "planted_curves", "planted_gate"],
        "metrics": {
            attr.name: {"better": attr.better, "bounds": [*attr.bounds], "cite": attr.cite, "version": attr.version}
        },
        "answer": [trust],
        "facts": [*lines, MEANS],
    }


def command(asked: Asked) -> str:
    """The words at the terminal that repeat it."""
    options = {
        **{"data": asked.data, "train": asked.train, "methods": ",".join(asked.methods)},
        **{"artefacts": ",".join(asked.artefacts), "size": asked.size, "images": asked.images or 0},
        **{"visibility": asked.visibility, "samples": asked.samples, "seed": asked.seed, "device": asked.device},
    }
    words = [f"--{name} {shlex.quote(str(value))}" for name, value in options.items() if value is not None]
    return " ".join(["forsooth dryrun", *words])


def outside(folder: Path, data: str) -> Path:
    """The folder of the run, which must not lie in the user's data."""
    if folder.resolve().is_relative_to(Path(data).resolve()):
        raise UsageError(f"`out` must lie outside of `data`, where nothing is written, got {folder} inside {data}")
    return folder


def check(asked: Asked) -> None:
    """UsageError where a number has no meaning."""
    if asked.visibility not in range(5):
        raise UsageError(f"`visibility` must be 0 (least) to 4, got {asked.visibility}")
    for name, least in (("size", LEAST_SIDE), ("samples", 1)):
        if getattr(asked, name) < least:
            raise UsageError(f"`{name}` must be at least {least}, got {getattr(asked, name)}")


def plan(asked: Asked) -> Plan:
    """All work of a dry run, after the images were read once and found to be enough."""
    check(asked)
    methods = [plugins.method(name, METHODS) for name in method_names(asked.methods)]
    code = plugins.fingerprint(training.found(asked.train)) if asked.train else ""
    images = base(asked)
    tasks: list[Task] = []
    for name in asked.artefacts:
        columns, spec = panel(name, images, asked)
        tasks.append(make_task(planting.show, {"spec": spec, "columns": columns}, name=f"example: {name}"))
        if asked.train:
            tasks += own_task(spec, columns, methods, code, asked)
        else:
            tasks += our_tasks(spec, columns, methods, asked)
    return Plan(tasks=tuple(tasks))


def base(asked: Asked) -> Images:
    """Where the images come from; UsageError unless a model can be told from luck on their tests."""
    path = str(Path(asked.data).resolve())
    classes = len(planted.class_names(path, 0))
    if asked.images is not None and asked.images < 3 * classes:
        raise UsageError(
            f"`images` must be at least {3 * classes}, three for each of {classes} classes, got {asked.images}"
        )
    images = planted.images_at(
        path,
        classes=classes,
        per_class=asked.images and asked.images // classes,
        side=asked.size,
        seed=seeds.derive(asked.seed, "data"),
    )
    dataset = planted.base(images)
    held = len(dataset.splits["test"])
    if held < PROVING:
        raise UsageError(
            f"`data` must leave at least {PROVING} images for testing, or a model that uses the artefact cannot be "
            f"told from luck, got {held} of {len(dataset.x)} usable images in {asked.data}: give 100 images or more"
        )
    return images


def panel(name: str, images: Images, asked: Asked) -> tuple[Columns, DataSpec]:
    """The columns that its rows share, and what decides the planted data."""
    seed = seeds.derive(asked.seed, "dry run", name)
    artefact = planted.legible(name, level=asked.visibility, side=asked.size)
    spec = DataSpec(images, None, artefact, 0.5, None, seed)
    own: Columns = {"level": asked.visibility, "model_seed": 0, "experiment": "dry run", "kind": "all"}
    return {**planted.factors(spec), **own, "part": "scores"}, spec


def question(method: Method, spec: DataSpec, asked: Asked) -> Ask:
    """What a method is asked."""
    return Ask(
        method=method.name,
        version=method.version,
        code=code_of(method),
        samples=asked.samples,
        presences=PRESENCES,
        output=method.output or "logits",
        metrics=versions_of(["attr"]),
        checkpoints=False,
        show=True,
        seed=seeds.derive(asked.seed, "method", spec.seed),
        device=asked.device,
    )


def our_tasks(spec: DataSpec, columns: Columns, methods: Sequence[Method], asked: Asked) -> list[Task]:
    """A training of ours, and a task for every method. Images are mirrored: all regions are symmetric."""
    recipe = RECIPES["quick"]
    batches = len(planted.base(spec.images).splits["train"]) / 32
    epochs = min(EPOCHS, max(recipe.epochs, math.ceil(STEPS / batches)))
    arguments = {
        "spec": spec,
        "net": NET,
        "recipe": replace(recipe, gate=GOOD, restarts=1, epochs=epochs, augment="flip"),
        "gate": GATE,
        "keep": False,
        "columns": {**columns, "part": "training"},
        "seed": seeds.derive(asked.seed, "training", spec.seed),
        "device": asked.device,
    }
    artefact = columns["manipulation"]
    trained = make_task(planting.train, arguments, name=f"train {NET}: {artefact}")
    tasks = [trained]
    for method in methods:
        index, model = (-1, NO_MODEL) if method.null else (0, NET)
        asking = {
            "spec": spec,
            "index": index,
            "ask": question(method, spec, asked),
            "columns": {**columns, "model": model},
        }
        tasks.append(make_task(planting.explain, asking, [trained], name=f"explain: {method.name}, {artefact}"))
    return tasks


def own_task(spec: DataSpec, columns: Columns, methods: Sequence[Method], code: str, asked: Asked) -> list[Task]:
    """The user's training and all methods in one task: nobody but the user's function can build the model again."""
    arguments = {
        "spec": spec,
        "train": asked.train,
        "code": code,
        "gate": GATE,
        "asks": [question(method, spec, asked) for method in methods],
        "columns": columns,
        "seed": seeds.derive(asked.seed, "training", spec.seed),
        "device": asked.device,
    }
    name = f"train and explain: {columns['manipulation']}"
    return [make_task(training.train_and_explain, arguments, name=name)]
