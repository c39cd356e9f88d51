"""The package for Python: what the command line does, a script can do with these functions."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from forsooth import isolation, names, store, surroundings
from forsooth.adapters.trainings import training_path
from forsooth.arguments import (
    check_models,
    chosen_methods,
    method_path,
    outside,
    run_folder,
    several,
    usable_device,
    usable_workers,
)
from forsooth.engine import Progress
from forsooth.progress import fitting_progress
from forsooth.records import Choice, Dataset, FailedTasks, Method, UsageError
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
from forsooth.user import export as exports
from forsooth.user import independence as independence_answers
from forsooth.user import score as score_answers
from forsooth.user.bias import BiasRequest, BiasResult
from forsooth.user.check import CheckRequest, CheckResult
from forsooth.user.dryrun import DryRun, DryRunRequest
from forsooth.user.dryrun.request import PLANNED, artefact_names
from forsooth.user.independence import IndependenceRequest, IndependenceResult
from forsooth.user.score import ScoreRequest
from forsooth.user.score.request import TOLERANCE

Several = str | Method | Callable[..., torch.Tensor] | Iterable[str | Method | Callable[..., torch.Tensor]]


def run(
    suite: str,
    *,
    preset: str = "quick",
    methods: Several = (),
    only: Mapping[str, str | Iterable[str]] | None = None,
    settings: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    workers: int = 1,
    on: str | None = None,
    task_timeout: float | None = None,
    method_timeout: float | None = None,
    method_memory: float | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    page: bool = True,
    progress: Progress | None = None,
) -> Run:
    """Run a suite, or go on where an earlier call with the same words stopped.

    methods   names (a list, or one string with commas; `all` for the catalogue), `package.module:name`,
              functions(model, x, target) -> map like x, Method records, or objects of other libraries (see
              docs/bring-your-own.md)
    only      factor -> value or values to keep, e.g. {"scenario": "LIN"}
    settings  fields of the preset to change, e.g. {"trainings": 5, "alpha": 0.3}
    workers   processes; every number is the same whatever their count
    on        a Dask cluster in their place: tcp://host:port, local:N or a scheduler file
    task_timeout  seconds after which a task is ended and tried once more
    method_timeout, method_memory  seconds and GiB that one question to a method of yours, named by its path, may take;
              None: 600 and 8
    page      write report.html at the end
    progress  who is told; None: a bar on a terminal and in a notebook. `forsooth.progress.Silent()` says nothing,
              `Lines()` writes a line every few seconds
    """
    record = names.find(suite, SUITES, argument="suite")
    chosen = configured(record, preset, settings or {})
    folder = outside(_folder(out) or Path("forsooth-runs") / f"{suite}-{preset}", data)
    choice = Choice(
        methods=tuple(method_path(m) for m in chosen_methods(methods)),
        only={factor: names.admitted(value) for factor, value in (only or {}).items()},
        data=None if data is None else str(data),
        device=usable_device(device),
        seed=seed,
    )
    if settings and "models" in settings:
        check_models(choice.only, chosen.models)
    plan = record.plan(chosen, choice)
    if not plan.tasks and not plan.skips:
        raise UsageError("`settings` must leave something to do, and these leave nothing")
    run_folder(folder)
    command = _command(record.name, preset, choice, settings or {})
    about = {**suite_facts(record, chosen), **choice_facts(choice, command), "preset": preset}
    progress = progress or fitting_progress()
    able = usable_workers(workers, choice.methods, progress.say)
    work = Work(folder, store.Store(folder / "store"), able, progress, on, task_timeout)
    with isolation.limited(method_timeout, method_memory):
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
    on: str | None = None,
    task_timeout: float | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> tuple[pd.DataFrame, str]:
    """A published table made again: ours beside theirs, and a verdict in words.

    on, task_timeout  as in `run`
    out  folder for several of them: `OUT/bias-table-13/` has table.csv, verdict.md, the rows and the page, and
         `OUT/store` what was computed, which they share
    """
    record = names.find(name, REPRODUCTIONS, argument="name")
    folder = outside(reproduction_folder(name, out), data)
    choice = Choice(
        only={factor: names.admitted(value) for factor, value in (only or {}).items()},
        data=None if data is None else str(data),
        device=usable_device(device),
    )
    work = Work(folder, store.Store(folder.parent / "store"), workers, progress or fitting_progress(), on, task_timeout)
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
    try:
        judgement = record.judge(outcome_of(work, plan, chosen, choice))
    except (FailedTasks, UsageError):
        write_page([folder])  # what there is can be seen, though nothing can be said of it
        raise
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
    methods: Several = (),
    players: Any = "auto",
    permutations: int | str = "auto",
    anchor: str = "auto",
    budget: int = 50_000_000,
    budget_seconds: float = 86_400,
    baseline: Any = "auto",
    data: Any = None,
    output: str = "logits",
    channels: str = "signed_max",
    seed: int = 0,
    device: str = "auto",
    workers: int = 1,
    method_timeout: float | None = None,
    method_memory: float | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> BiasResult:
    """Which explanations of your own model can be trusted, where nobody knows the truth? M_bias of every method.

    model         a torch module, an estimator with predict_proba, a function x -> (n, classes) on arrays or tensors,
                  or `package.module:name` of one of them or of a function that builds it
    inputs        (n, *shape): an array, a tensor, a table, or a .npy, .npz, .safetensors or .csv file
    target        None: the predicted class; a class; one for each input
    methods       names of the catalogue, `package.module:name`, functions(model, x, target) -> tensor like x; none:
                  those that suit the model. The nulls and the Shapley values themselves are always judged too
    players       auto (words of a text, pixels or features while they are few, else patches), pixels, features, words,
                  grid:N, units:LAYER, or integer labels (*spatial) or (*shape)
    permutations  random orders from which the Shapley values are estimated, or "exact" for at most 20 players; auto:
                  1,000, and 200 where `anchor` auto chose leverage
    anchor        permutations; leverage: a least squares as sure as these, with a tenth of their forwards (a fifth
                  above 64 players), whose own work makes it slower than these on cheap models with many players;
                  auto: leverage for images of more than 64 pixels with at most 256 players where no permutations are
                  given, else permutations
    budget        most forwards for all Shapley values; a request that takes more is refused before it begins
    budget_seconds  the same for the seconds of all work, as they are estimated from the time of a forward
    baseline      what replaces hidden features: mean, channel_mean, zero, blur, or values (*shape) or (n, *shape);
                  rows or rows:N: the values of N rows of the data, one after another, outputs averaged, which is all
                  that a table with text, categories or gaps can have. auto: rows for such a table, else mean
    data          (k, *shape), what means are taken over and what methods read as background; None: the inputs
    output        logits: the outputs as they are; probabilities: their softmax
    channels      how the channels of a gradient become one number: signed_max, max_abs or sum
    out           folder for the page, bias.csv and bias.md; with a model by path and inputs from files also for
                  finished work, so that the same call goes on where it stopped. None: nothing is written, and
                  `answer.report(folder)` writes the page
    workers       processes, where finished work is kept
    method_timeout, method_memory  as in `run`
    """
    if isinstance(model, str) or device != "auto":
        device = usable_device(device)
    request = BiasRequest(
        model=model,
        inputs=inputs,
        methods=chosen_methods(methods, truth=False),
        target=target,
        players=players,
        permutations=permutations,
        anchor=anchor,
        budget=budget,
        budget_seconds=budget_seconds,
        baseline=baseline,
        data=data,
        output=output,
        channels=channels,
        device=device,
        seed=seed,
    )
    with isolation.limited(method_timeout, method_memory), surroundings.restored():
        return bias_answers.answer(request, out=_folder(out), workers=workers, progress=progress)


def dryrun(
    data: str | Path,
    *,
    train: str | Callable[..., Any] | None = None,
    methods: Several = (),
    artefacts: str | Iterable[str] = (),
    size: int = 64,
    images: int | None = 2_000,
    visibility: int = 3,
    samples: int = 50,
    device: str = "auto",
    workers: int = 1,
    method_timeout: float | None = None,
    method_memory: float | None = None,
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
    method_timeout, method_memory  as in `run`
    """
    request = DryRunRequest(
        data=str(data),
        train=training_path(train),
        methods=tuple(method_path(method) for method in chosen_methods(methods, truth=False)) or PLANNED,
        artefacts=artefact_names(several(artefacts)),
        size=size,
        images=images,
        visibility=visibility,
        samples=samples,
        device=usable_device(device),
        seed=seed,
    )
    progress = progress or fitting_progress()
    workers = usable_workers(workers, request.methods, progress.say)
    with isolation.limited(method_timeout, method_memory):
        return dryrun_answers.answer(request, out=_folder(out), workers=workers, progress=progress)


def independence(
    model: Any,
    inputs: Any,
    *,
    target: Any = None,
    methods: Several = (),
    patch: Any = "grid:4",
    bounds: tuple[float, float] | None = None,
    layer: str | None = None,
    threshold: float = 0.1,
    seed: int = 0,
    device: str = "auto",
    workers: int = 1,
    method_timeout: float | None = None,
    method_memory: float | None = None,
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
    out        folder for the page, independence.csv and independence.md; with a model by path and inputs from files
               also for finished work, so that the same call goes on where it stopped. None: nothing is written, and
               `answer.report(folder)` writes the page
    method_timeout, method_memory  as in `run`
    """
    if isinstance(model, str) or device != "auto":
        device = usable_device(device)
    request = IndependenceRequest(
        model=model,
        inputs=inputs,
        methods=chosen_methods(methods, truth=False),
        target=target,
        patch=patch,
        bounds=bounds,
        layer=layer,
        threshold=threshold,
        device=device,
        seed=seed,
    )
    with isolation.limited(method_timeout, method_memory), surroundings.restored():
        return independence_answers.answer(request, out=_folder(out), workers=workers, progress=progress)


def check(
    method: str | Method | Callable[..., torch.Tensor],
    *,
    device: str = "cpu",
    seed: int = 0,
    method_timeout: float | None = None,
    method_memory: float | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> CheckResult:
    """Does a method keep the contract that every method of the catalogue keeps, and if not, what is to be fixed?

    method  `package.module:name`, a function(model, x, target) -> tensor like x, a Captum class, a Method, or a name of
            the catalogue. It is tried on small untrained networks for images, tables and words
    method_timeout, method_memory  as in `run`, for all calls on one network together
    out     folder for the page; None: nothing is written
    """
    request = CheckRequest(method=method, device=usable_device(device), seed=seed)
    with isolation.limited(method_timeout, method_memory):
        return check_answers.answer(request, out=_folder(out), progress=progress)


def score(
    maps: Any,
    truth: str | Path | Dataset | Any,
    *,
    images: Any = None,
    metrics: str | Iterable[str] = (),
    emd_tolerance: float = TOLERANCE,
    workers: int = 1,
    out: str | Path | None = None,
    seed: int = 0,
    page: bool = True,
    progress: Progress | None = None,
) -> Run:
    """Score maps that were made elsewhere: a board beside nulls and oracle on the same samples, and a page.

    maps     an array (n, *map), with or without channels; arrays by the names of methods; a .npy, .npz or .safetensors
             file; or a folder of these, of one folder for each method, or of files named by their samples
    truth    a folder that `export_data` wrote, a folder of masks, a file or array (n, *map), or a Dataset. Maps whose
             file has an array `sample`, or that are files themselves, are matched by it; others by their order
    images   the inputs, for nulls that read them: a folder, a file or an array; None: those of the export
    metrics  names of those that read nothing but the truth and the images; none: ima and precision
    emd_tolerance  that an earth mover's score may be off, proven for each map; 0: exact
    workers  processes
    out      folder of the run
    """
    request = ScoreRequest(
        maps=maps, truth=truth, images=images, metrics=several(metrics), emd_tolerance=emd_tolerance, seed=seed
    )
    return score_answers.answer(request, out=_folder(out), workers=workers, page=page, progress=progress)


def export_data(
    suite: str,
    *,
    preset: str = "quick",
    only: Mapping[str, str | Iterable[str]] | None = None,
    settings: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
    samples: int | None = 100,
    split: str = "test",
    out: str | Path | None = None,
    seed: int = 0,
) -> list[Path]:
    """Write samples of a suite with their truth, to make maps elsewhere and to `score` them; says into which folders.

    preset, only, settings, data, seed  as in `run`: the same words give the same data
    samples  of each dataset at most, drawn evenly over its classes; None: all
    split    test, val or train
    """
    record = names.find(suite, SUITES, argument="suite")
    chosen = configured(record, preset, settings or {})
    choice = Choice(
        only={factor: names.admitted(value) for factor, value in (only or {}).items()},
        data=None if data is None else str(data),
        seed=seed,
    )
    folder = outside(_folder(out) or Path("forsooth-runs") / f"data-{suite}", data)
    return exports.export(record, chosen, choice, folder, samples=samples, split=split)


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
