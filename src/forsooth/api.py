"""The package for Python: what the command line does, a script can do with these functions."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from forsooth import names, store
from forsooth.adapters.trainings import training_path
from forsooth.arguments import admitted, check_models, method_path, run_folder, usable_device
from forsooth.engine import Progress
from forsooth.progress import Silent
from forsooth.records import Choice, Method
from forsooth.runs import (
    Run,
    Work,
    choice_facts,
    keep_judgement,
    outcome_of,
    perform,
    suite_facts,
    write_page,
)
from forsooth.settings import changed, configured
from forsooth.suites import REPRODUCTIONS, SUITES
from forsooth.user import bias as bias_answers
from forsooth.user import check as check_answers
from forsooth.user import dryrun as dryrun_answers
from forsooth.user import independence as independence_answers
from forsooth.user.bias import BiasRequest, BiasResult
from forsooth.user.check import CheckRequest, CheckResult
from forsooth.user.dryrun import DryRun, DryRunRequest
from forsooth.user.dryrun.request import PLANNED, artefact_names
from forsooth.user.independence import IndependenceRequest, IndependenceResult


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
    command = _command(record.name, preset, choice, settings or {})
    about = {**suite_facts(record, chosen), **choice_facts(choice, command), "preset": preset}
    work = Work(folder, store.Store(folder / "store"), workers, progress or Silent())
    perform(work, plan, about)
    if page:
        write_page([folder])
    return Run(folder)


def reproduce(
    name: str,
    *,
    only: Mapping[str, str | Iterable[str]] | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    workers: int = 1,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> tuple[pd.DataFrame, str]:
    """A published table made again: ours beside theirs, and a verdict in words.

    out  folder for several of them: `OUT/bias-table-13/` has table.csv, verdict.md, the rows and the page, and
         `OUT/store` what was computed, which they share
    """
    record = names.find(name, REPRODUCTIONS, argument="name")
    folder = reproduction_folder(name, out)
    choice = Choice(
        only={factor: admitted(value) for factor, value in (only or {}).items()},
        data=None if data is None else str(data),
        device=usable_device(device),
    )
    work = Work(folder, store.Store(folder.parent / "store"), workers, progress or Silent())
    suite = names.find(name.partition("/")[0], SUITES, argument="suite")
    base = record.settings
    if choice.data is not None and record.with_data is not None:
        base = record.with_data
    chosen = changed(base, settings or {}, renamed=suite.renamed)
    plan = record.plan(chosen, choice)
    run_folder(folder)
    command = _command(record.name, None, choice, settings or {})
    about = {**suite_facts(suite, chosen), **choice_facts(choice, command), "preset": record.name}
    perform(work, plan, about)
    judgement = record.judge(outcome_of(work, plan, chosen, choice))
    keep_judgement(folder, record, judgement)
    write_page([folder])
    return judgement.table, judgement.words


def reproduction_folder(name: str, out: str | Path | None = None) -> Path:
    """The folder of a reproduction: its table.csv, verdict.md and report.html."""
    return Path(out or Path("forsooth-runs") / "reproduce") / name.replace("/", "-")


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
    baseline      what replaces hidden features: mean, channel_mean, zero, blur, or values (*shape) or (n, *shape)
    data          (k, *shape), what means are taken over and what methods read as background; None: the inputs
    output        logits: the outputs as they are; probabilities: their softmax
    channels      how the channels of a gradient become one number: signed_max, max_abs or sum
    out           folder for bias.csv and bias.md; with a model by path and inputs from files also for finished work,
                  so that the same call goes on where it stopped
    workers       processes, where finished work is kept
    """
    if isinstance(model, str) or device != "auto":
        device = usable_device(device)
    request = BiasRequest(
        model=model,
        inputs=inputs,
        methods=tuple(methods),
        target=target,
        players=players,
        permutations=permutations,
        baseline=baseline,
        data=data,
        output=output,
        channels=channels,
        device=device,
        seed=seed,
    )
    return bias_answers.answer(request, out=_folder(out), workers=workers, progress=progress)


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
    request = DryRunRequest(
        data=str(data),
        train=training_path(train),
        methods=tuple(method_path(method) for method in methods) or PLANNED,
        artefacts=artefact_names(artefacts),
        size=size,
        images=images,
        visibility=visibility,
        samples=samples,
        device=usable_device(device),
        seed=seed,
    )
    return dryrun_answers.answer(request, out=_folder(out), workers=workers, progress=progress)


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
    layer      what Grad-CAM reads; None: the last module that gives a map
    threshold  change of the saliency of the patch's place from which it draws attention
    workers    processes, where finished work is kept
    out        folder for independence.csv and independence.md; with a model by path and inputs from files also for
               finished work, so that the same call goes on where it stopped
    """
    if isinstance(model, str) or device != "auto":
        device = usable_device(device)
    request = IndependenceRequest(
        model=model,
        inputs=inputs,
        methods=tuple(methods),
        target=target,
        patch=patch,
        bounds=bounds,
        layer=layer,
        threshold=threshold,
        device=device,
        seed=seed,
    )
    return independence_answers.answer(request, out=_folder(out), workers=workers, progress=progress)


def check(
    method: str | Method | Callable[..., torch.Tensor],
    *,
    device: str = "cpu",
    seed: int = 0,
    progress: Progress | None = None,
) -> CheckResult:
    """Does a method keep the contract that every method of the catalogue keeps, and if not, what is to be fixed?

    method  `package.module:name`, a function(model, x, target) -> tensor like x, a Captum class, a Method, or a name of
            the catalogue. It is tried on small untrained networks for images, tables and words
    """
    request = CheckRequest(method=method, device=usable_device(device), seed=seed)
    return check_answers.answer(request, progress=progress)


def _folder(out: str | Path | None) -> Path | None:
    if out is None:
        return None
    return Path(out)


def _command(what: str, preset: str | None, choice: Choice, changes: Mapping[str, Any]) -> str:
    """The command that repeats a run (with a preset) or a reproduction."""
    words = ["forsooth", "reproduce", what] if preset is None else ["forsooth", "run", what, "--preset", preset]
    words += ["--seed", str(choice.seed)] if preset is not None else []
    for factor, values in choice.only.items():
        words += ["--only", f"{factor}={','.join(values)}"]
    for name, value in changes.items():
        words += ["--set", f"{name}={_word(value)}"]
    words += ["--methods", ",".join(choice.methods)] if choice.methods else []
    words += ["--data", choice.data] if choice.data else []
    return shlex.join([*words, "--device", choice.device])


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
