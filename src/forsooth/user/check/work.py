"""A method is called on small networks, again and again, and what it does to its surroundings is seen."""

import copy
import inspect
import random
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from forsooth import plugins, seeds, surroundings
from forsooth.engine import Progress, one_thread
from forsooth.importing import staying
from forsooth.models.constructed import UNITS, Unit
from forsooth.models.specimens import CLASSES, ROWS, Specimen, only, specimens, without_shifts
from forsooth.progress import fitting_progress
from forsooth.records import Facts, Method
from forsooth.scores.promises import completeness_gap
from forsooth.suites import explain
from forsooth.user.check import units
from forsooth.user.check.evidence import Evidence, Trial
from forsooth.user.check.request import CheckRequest
from forsooth.user.check.result import CheckResult, result_of
from forsooth.user.check.verdicts import Check
from forsooth.user.requests import answer_folder

TENSORS = ("x", "target", "background", "fit")  # of a specimen, which a call must leave as they are


def answer(request: CheckRequest, *, out: Path | None = None, progress: Progress | None = None) -> CheckResult:
    """Tries the method on small networks and says what breaks the contract. See `forsooth.check`."""
    named = request.named()
    folder = answer_folder(out, "check")
    bar = progress or fitting_progress()
    evidence = []
    # What is drawn from numpy and `random` is given back at the end and not after each call: nobody seeds these two
    # between calls, and a map that depends on them must be seen to. Torch draws weights when it makes a layer.
    with surroundings.restored(), one_thread(), explain.lent_randomness(request.seed):
        kinds = specimens(request.seed, request.device)
        bar.start(total=len(kinds) + 1, done=0)
        for kind in kinds:
            bar.doing([f"check: {kind.name}"])
            evidence.append(evidence_of(named.method, kind, request.seed))
            bar.step(f"check: {kind.name}")
        bar.doing([f"check: {units.BY_HAND}"])
        tests = [unit_test(named.method, build(), request) for build in UNITS]
        bar.step(f"check: {units.BY_HAND}")
    return result_of(named, evidence, tests).kept(folder, "check")


def unit_test(method: Method, unit: Unit, request: CheckRequest) -> Check:
    """How the method does on a network with weights set by hand, in the first form for which it gives a map."""
    found = []
    for form in units.forms_of(unit):
        trial = tried(method, units.specimen_of(form, request.device), request.seed)
        found.append(units.judged(method, form, trial))
        if trial.maps is not None:
            return unit.name, found[-1]
    return unit.name, found[0]


def evidence_of(method: Method, kind: Specimen, seed: int) -> Evidence:
    """All calls on one kind of input; after a first call without a map there is nothing more to see."""
    first = tried(method, kind, seed)
    if first.maps is None:
        return Evidence(kind.name, kind.x, first)
    rows = (0, ROWS - 1)  # two, since one of them may be the one by which a batch was scaled
    return Evidence(
        input=kind.name,
        x=kind.x,
        first=first,
        again=tried(method, kind, seed),
        reseeded=tried(method, kind, seeds.derive(seed, "another")),
        retargeted=tried(method, replace(kind, target=(kind.target + 1) % CLASSES), seed),
        alone=tuple((row, tried(method, only(kind, row), seed)) for row in rows),
        gap=gap(method, kind, first.maps, seed),
    )


def tried(method: Method, kind: Specimen, seed: int) -> Trial:
    """One call as the suites make it, on copies, so that what it does to them is seen and harms no other call."""
    kind = copy.deepcopy(kind)
    before = state(kind)
    with torch.enable_grad(), explain.lent_randomness(seeds.derive(seed, method.name)):
        drawn = generators(kind.x.is_cuda)
        trial = called(method, kind, seed)
        after = state(kind)
        left = generators(kind.x.is_cuda)
    return replace(
        trial,
        changed=surroundings.differences(before, after),
        drew=surroundings.differences(drawn, left),
        graded=any(weight.grad is not None for weight in kind.model.parameters()),
    )


def called(method: Method, kind: Specimen, seed: int) -> Trial:
    """What a call gives, and how long it takes."""
    if "layer" in method.needs and kind.layer is None:
        return Trial(None, "raised", "it needs a layer of a convolution, and this network has none", 0.0)
    needs = lent(method, kind, seed)
    begun = time.perf_counter()
    try:
        with staying():
            maps = method(kind.model, kind.x, kind.target, **needs)
    except (Exception, SystemExit) as error:  # a user's method may raise anything, or leave; that is the answer
        return Trial(None, "raised", raised(error, method.function), time.perf_counter() - begun)
    seconds = time.perf_counter() - begun
    if isinstance(maps, Tensor) and maps.shape == kind.x.shape:
        return Trial(maps.detach().clone(), "", "", seconds)  # a view of x would change with it
    return Trial(None, "wrong shape", explain.misshapen(maps, kind.x), seconds)


def lent(method: Method, kind: Specimen, seed: int) -> Facts:
    """All that a method may declare to need."""
    return {
        "background": kind.background,
        "fit": kind.fit,
        "layer": kind.layer,
        "truth": kind.x > 0,
        **explain.draws(seed, method.name, kind.samples),
    }


def raised(error: BaseException, function: Callable[..., Any]) -> str:
    """An error of the user's code in one line, with the place where it came from."""
    text = " ".join(f"{type(error).__name__}: {error}"[:500].split())
    return f"{text} ({place(error, function)})"


def state(kind: Specimen) -> Facts:
    """All that a call must leave as it is, by the keys of `words.CHANGES`."""
    tensors = {name: getattr(kind, name).detach().clone() for name in TENSORS}
    about = {"requires_grad of x": kind.x.requires_grad, "torch": torch.is_grad_enabled()}
    return {**tensors, **about, **surroundings.model_state(kind.model)}


def generators(cuda: bool) -> Facts:
    """The states of the global generators, by the keys of `words.DRAWS`."""
    ours = torch.get_rng_state()
    if cuda:
        ours = torch.cat([ours, torch.cuda.get_rng_state()])
    _, key, *rest = np.random.get_state()  # noqa: NPY002 (only the old generator is global)
    return {"torch": ours, "numpy": (np.asarray(key).tobytes(), *rest), "random": random.getstate()}


def place(error: BaseException, function: Callable[..., Any]) -> str:
    """File and line: the last one in the method's own file, else where the method begins; for Captum, the last one."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    code = code_of(function)
    if code is not None and code.co_filename != plugins.__file__:
        own = [frame for frame in frames if frame[0] == code.co_filename]
        frames = [(code.co_filename, code.co_firstlineno), *own]
    name, line = frames[-1]
    file = Path(name)
    if file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())
    return f"{file}, line {line}"


def code_of(function: Callable[..., Any]) -> Any:
    """The code of a function, of what is inside a partial one, or of an object that is called; None of others."""
    function = inspect.unwrap(getattr(function, "func", function))
    return getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)


@torch.no_grad()
def gap(method: Method, kind: Specimen, maps: Tensor | None, seed: int) -> float:
    """The median gap between the sums of maps (n, *shape) and what they promise, or f(x) - f(0) without a promise.

    A bias takes part of what is conserved, and z+ rules conserve what is positive. So a method that promises to
    conserve is asked about a network without shifts, and judged where the output is positive.
    """
    judged = torch.arange(len(kind.x), device=kind.x.device)
    if method.promise == "conserve":
        kind = replace(kind, model=without_shifts(kind.model))
        output, target = kind.model(kind.x).max(1)
        kind = replace(kind, target=target)
        maps = tried(method, kind, seed).maps
        judged = judged[output > 0]
    if maps is None:
        return float("nan")
    held = replace(method, promise=method.promise or "complete")
    promised = explain.promised(held, kind.model, kind.x, kind.target, background=kind.background)
    return completeness_gap(maps.to(promised.device), promised)[judged].median().item()
