"""The doors for Python: what the command line does, a script can do with these functions."""

import dataclasses
import datetime
import math
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from forsooth import names, report, store
from forsooth.asked import admitted, check_models, method_path, run_folder, usable_device
from forsooth.doors import Asked, BiasResult, training
from forsooth.doors import bias as bias_door
from forsooth.doors import check as check_door
from forsooth.doors import dryrun as dry
from forsooth.doors import independence as independence_door
from forsooth.doors.check_words import CheckResult
from forsooth.doors.dryrun_table import DryRun
from forsooth.doors.independence_words import IndependenceResult, Wanted
from forsooth.engine import Progress, execute
from forsooth.progress import Silent
from forsooth.records import Choice, Method, Plan, Suite
from forsooth.runs import Run, assemble
from forsooth.settings import configured
from forsooth.suites import ARTEFACTS, SUITES


def run(
    suite: str,
    *,
    preset: str = "quick",
    methods: Iterable[str | Method | Callable[..., torch.Tensor]] = (),
    only: Mapping[str, str | Iterable[str]] | None = None,
    settings: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    workers: int = 1,
    out: str | Path | None = None,
    seed: int = 0,
    page: bool = True,
    progress: Progress | None = None,
) -> Run:
    """Run a suite, or go on where an earlier call with the same words stopped.

    methods   names, `package.module:name`, or functions(model, x, target) -> tensor like x and Methods of a module
    only      factor -> value or values to keep, e.g. {"scenario": "LIN"}
    settings  fields of the preset to change, e.g. {"trainings": 5, "alpha": 0.3}
    workers   processes; every number is the same whatever their count
    page      write report.html at the end
    """
    begun = time.monotonic()
    record = names.find(suite, SUITES, argument="suite")
    chosen = configured(record, preset, settings or {})
    choice = Choice(
        methods=tuple(method_path(m) for m in methods),
        only={factor: admitted(value) for factor, value in (only or {}).items()},
        data=None if data is None else str(data),
        device=usable_device(device),
        seed=seed,
    )
    if settings and "models" in settings:
        check_models(choice.only, chosen.models)
    plan = record.plan(chosen, choice)
    folder = run_folder(Path(out) if out is not None else Path("forsooth-runs") / f"{suite}-{preset}")
    cells = store.Store(folder / "store")
    execute(plan.tasks, cells, workers=workers, progress=progress or Silent())
    about = {
        "suite": record.name,
        "title": record.title,
        "question": record.question,
        "preset": preset,
        "seed": seed,
        "command": _command(record, preset, choice, settings or {}),
        "settings": dataclasses.asdict(chosen),
        "choice": dataclasses.asdict(choice),
        "factors": list(record.factors),
        "levels": {factor: list(getattr(chosen, f"{factor}s")) for factor in record.factors},
        "exhibits": list(record.exhibits),
        "metrics": {
            m.name: {"better": m.better, "bounds": _finite(m.bounds), "cite": m.cite, "version": m.version}
            for m in record.metrics(chosen)
        },
        "facts": list(plan.facts),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    assemble(folder, plan, cells, {**about, "seconds": round(time.monotonic() - begun, 1)})
    if page:
        report.write_page([folder])
    return Run(folder)


def reproduce(
    artefact: str,
    *,
    only: Mapping[str, str | Iterable[str]] | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    workers: int = 1,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> tuple[pd.DataFrame, str]:
    """A published table made again: ours beside theirs, and a verdict in words. Both are kept, see `table_of`."""
    record = names.find(artefact, ARTEFACTS, argument="artefact")
    file = table_of(artefact, out)
    folder = file.parent
    kept = {factor: admitted(value) for factor, value in (only or {}).items()}
    choice = Choice(only=kept, data=None if data is None else str(data), device=usable_device(device))
    cells = store.Store(folder / "store")

    def perform(plan: Plan) -> store.Store:
        store.writable(folder, "out")  # not before: words that are refused leave no folder behind
        execute(plan.tasks, cells, workers=workers, progress=progress or Silent())
        return cells

    table, words = record.function(choice, perform, dict(settings or {}))
    store.replace(file, table.to_csv(index=False).encode())
    store.replace(file.with_suffix(".md"), words.encode())
    return table, words


def table_of(artefact: str, out: str | Path | None = None) -> Path:
    """The csv that `reproduce` writes; the words are beside it with the suffix .md."""
    return Path(out or Path("forsooth-runs") / "reproduce") / f"{artefact.replace('/', '-')}.csv"


def bias(
    model: Any,
    inputs: Any,
    *,
    target: Any = None,
    methods: Iterable[str | Method | Callable[..., torch.Tensor]] = (),
    players: Any = "pixels",
    permutations: int | str = 1000,
    baseline: Any = "mean",
    data: Any = None,
    output: str = "logits",
    channels: str = "signed_max",
    seed: int = 0,
    device: str = "auto",
    workers: int = 1,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> BiasResult:
    """Which explanations of your own model can be trusted, where nobody knows the truth? M_bias of every method.

    model         a torch module, an estimator with predict_proba, a function x -> (n, classes) on arrays or tensors,
                  or `package.module:name` of one of them or of a function that builds it
    inputs        (n, *shape): an array, a tensor, a table, or a .npy, .npz or .safetensors file
    target        None: the predicted class; a class; one for each input
    methods       names of the catalogue, `package.module:name`, functions(model, x, target) -> tensor like x; none:
                  those that suit the model. The nulls and the Shapley values themselves are always judged too
    players       pixels, features, grid:N, units:LAYER, or integer labels (*spatial) or (*shape)
    permutations  random orders from which the Shapley values are estimated, or "exact" for at most 20 players
    baseline      what absent players take: mean, channel_mean, zero, blur, or values (*shape) or (n, *shape)
    data          (k, *shape), what means are taken over and what methods read as background; None: the inputs
    output        logits: the outputs as they are; probabilities: their softmax
    channels      how the channels of a gradient become one number: signed_max, max_abs or sum
    out           folder for bias.csv and bias.md; with a model by path and inputs from files also for finished work,
                  so that the same call goes on where it stopped
    workers       processes, where finished work is kept
    """
    if isinstance(model, str) or device != "auto":
        device = usable_device(device)
    asked = Asked(model, inputs, target, players, permutations, baseline, data, output, channels, device, seed)
    folder = None if out is None else Path(out)
    return bias_door.bias(asked, tuple(methods), out=folder, workers=workers, progress=progress)


def dryrun(
    data: str | Path,
    *,
    train: str | Callable[..., Any] | None = None,
    methods: Iterable[str | Method | Callable[..., torch.Tensor]] = (),
    artefacts: Iterable[str] = (),
    size: int = 64,
    images: int | None = 2_000,
    visibility: int = 3,
    samples: int = 50,
    device: str = "auto",
    workers: int = 1,
    out: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> DryRun:
    """Would the planned methods show an artefact in your images? Plants it, trains a model that must use it, and asks.

    data        folder of class folders, or a zip of it; nothing is written there
    train       function(dataset) -> torch module that gives two logits for x (n, 3, size, size) in [0, 1], or its
                `package.module:name`; None: a small residual network. The dataset has x, y and the splits train, val
                and test
    methods     as in `run`; none: eight common ones. Maps that ignore the model and the oracle are always asked, too
    artefacts   blur, brightness, hue, noise, watermark; none: all of them
    size        side to which the images are resized, px
    images      so many are read at most; None: all
    visibility  of the artefacts, 0 (least) to 4
    samples     test images with the artefact that are explained, and as many without
    out         folder of the run; the same call goes on where it stopped
    workers     processes; every number is the same whatever their count
    """
    begun = time.monotonic()
    asked = dry.Asked(
        data=str(data),
        train=None if train is None else training.path_of(train),
        methods=tuple(method_path(m) for m in methods) or dry.PLANNED,
        artefacts=dry.artefact_names(artefacts),
        size=size,
        images=images,
        visibility=visibility,
        samples=samples,
        device=usable_device(device),
        seed=seed,
    )
    folder = dry.outside(Path(out) if out is not None else Path("forsooth-runs") / "dryrun", asked.data)
    plan, folder = dry.plan(asked), run_folder(folder)
    cells = store.Store(folder / "store")
    execute(plan.tasks, cells, workers=workers, progress=progress or Silent())
    answer = dry.answer(asked, plan, cells, folder)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    times = {"started": started, "seconds": round(time.monotonic() - begun, 1)}
    assemble(folder, plan, cells, {**dry.about(asked, answer), **times})
    answer.report()
    return answer


def independence(
    model: Any,
    inputs: Any,
    *,
    target: Any = None,
    methods: Iterable[str | Method | Callable[..., torch.Tensor]] = (),
    patch: Any = "grid:4",
    bounds: tuple[float, float] | None = None,
    layer: str | None = None,
    threshold: float = 0.1,
    seed: int = 0,
    device: str = "auto",
    workers: int = 1,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> IndependenceResult:
    """How often would each method point at a patch of your inputs that your model does not react to at all?

    model      a torch module, or `package.module:name` of one or of a function that builds it; gradients are needed
    inputs     (n, *shape): an array, a tensor, or a .npy, .npz or .safetensors file
    target     None: the predicted class; a class; one for each input
    methods    names of the catalogue, `package.module:name`, functions(model, x, target) -> tensor like x; none:
               common ones. Random and constant maps are always asked, too
    patch      grid:N (a cell of an N × N grid, drawn for each input), size:S (a square of S pixels a side), or a mask
               (*spatial) or (n, *spatial)
    bounds     least and largest value of an input; None: those of the inputs
    layer      what Grad-CAM reads; None: the last convolution
    threshold  change of the saliency of the patch's place from which it draws attention
    workers    processes, where finished work is kept
    out        folder for independence.csv and independence.md; with a model by path and inputs from files also for
               finished work, so that the same call goes on where it stopped
    """
    if isinstance(model, str) or device != "auto":
        device = usable_device(device)
    wanted = Wanted(model, inputs, target, patch, bounds, layer, threshold, device, seed)
    folder = None if out is None else Path(out)
    return independence_door.independence(wanted, tuple(methods), out=folder, workers=workers, progress=progress)


def check(
    method: str | Method | Callable[..., torch.Tensor],
    *,
    device: str = "cpu",
    seed: int = 0,
    progress: Progress | None = None,
) -> CheckResult:
    """Does a method keep the contract that every method of the catalogue keeps, and if not, what is to be mended?

    method  `package.module:name`, a function(model, x, target) -> tensor like x, a Captum class, a Method, or a name of
            the catalogue. It is tried on small untrained networks for images, tables and words
    """
    return check_door.check(method, seed=seed, device=usable_device(device), progress=progress)


def _command(suite: Suite, preset: str, choice: Choice, changes: Mapping[str, Any]) -> str:
    words = ["forsooth run", suite.name, "--preset", preset, "--seed", str(choice.seed)]
    words += [f"--only {factor}={','.join(values)}" for factor, values in choice.only.items()]
    words += [f"--set {name}={_word(value)}" for name, value in changes.items()]
    words += [f"--methods {','.join(choice.methods)}"] if choice.methods else []
    words += [f"--data {choice.data}"] if choice.data else []
    return " ".join([*words, "--device", choice.device])


def _finite(bounds: tuple[float, float]) -> list[float | None]:
    """Bounds for JSON, which has no infinity."""
    return [bound if math.isfinite(bound) else None for bound in bounds]


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
