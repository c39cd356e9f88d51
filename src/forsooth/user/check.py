"""Does my own method keep the contract that every method of the catalogue keeps? Small networks tell in seconds."""

import copy
import inspect
import random
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS
from forsooth.engine import Progress
from forsooth.progress import Silent
from forsooth.records import Method, Need, UsageError
from forsooth.scores.promises import completeness_gap
from forsooth.suites import explain
from forsooth.user import models
from forsooth.user.check_words import CheckResult, Evidence, Trial, identical, judged
from forsooth.user.specimens import CLASSES, ROWS, Specimen, only, specimens, without_shifts


def check(
    method: str | Method | Callable[..., Tensor],
    *,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
) -> CheckResult:
    """Tries the method on small networks and says what breaks the contract. See `forsooth.check`."""
    (record, own), bar = given(method), progress or Silent()
    found = []
    with surroundings_restored(), explain.lent_randomness(seed):  # torch draws weights when it makes a layer
        kinds = specimens(seed, device)
        bar.start(total=len(kinds), done=0)
        for kind in kinds:
            bar.doing([f"check: {kind.name}"])
            found.append(evidence(record, kind, seed))
            bar.step(f"check: {kind.name}")
    return judged(record, own, found)


def given(method: str | Method | Callable[..., Tensor]) -> tuple[Method, bool]:
    """The record of the method, and whether the user gave a plain function, of which the record says nothing."""
    thing: Any = method
    if isinstance(method, str):
        if ":" not in method:
            try:
                return names.find(method, METHODS, argument="method"), False
            except UsageError as error:
                hint = f"your own is package.module:function, e.g. {method}:my_function"
                raise UsageError(f"{error}; {hint}") from error
        thing = plugins.load(method, argument="method")
    own = not isinstance(thing, Method)
    name = method if isinstance(method, str) else getattr(thing, "__name__" if own else "name", type(thing).__name__)
    record = plugins.wrapped(thing, name=name)
    odd = set(record.needs) - set(get_args(Need))
    if odd:
        raise UsageError(f"`needs` of {name} must be among {', '.join(get_args(Need))}, got {', '.join(sorted(odd))}")
    return record, own


def evidence(method: Method, kind: Specimen, seed: int) -> Evidence:
    """All calls on one kind of input; after a first call without a map there is nothing more to see."""
    if "layer" in method.needs and kind.layer is None:
        why = "it needs a layer of a convolution, and this network has none"
        return Evidence(kind.name, kind.x, Trial(None, "raised", why, 0.0))
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
    before, maps, fault, message = state(kind), None, "", ""
    lent = {"background": kind.background, "fit": kind.fit, "layer": kind.layer, "truth": kind.x > 0}
    lent |= explain.draws(seed, method.name, kind.samples)
    shape = tuple(kind.x.shape)
    with torch.enable_grad(), explain.lent_randomness(seeds.derive(seed, method.name)):
        lots, begun = generators(kind.x.is_cuda), time.perf_counter()
        try:
            maps = method(kind.model, kind.x, kind.target, **lent)
        except (Exception, SystemExit) as error:  # a user's method may raise anything, or leave; that is the answer
            said = " ".join(f"{type(error).__name__}: {error}"[:500].split())
            fault, message = "raised", f"{said} ({place(error, method.function)})"
        seconds, after, left = time.perf_counter() - begun, state(kind), generators(kind.x.is_cuda)
    if not fault and (not isinstance(maps, Tensor) or tuple(maps.shape) != shape):
        came = tuple(maps.shape) if isinstance(maps, Tensor) else f"{type(maps).__name__}, which is no tensor"
        fault, message = "wrong shape", f"the map must be a tensor with the shape of x {shape}, got {came}"
    return Trial(
        maps=None if fault or maps is None else maps.detach().clone(),  # a view of x would change with it
        fault=fault,
        message=message,
        seconds=seconds,
        changed=tuple(key for key in before if not same(before[key], after[key])),
        drew=tuple(name for name in lots if lots[name] != left[name]),
        graded=any(weight.grad is not None for weight in kind.model.parameters()),
    )


def state(kind: Specimen) -> dict[str, Any]:
    """All that a call must leave as it is, by the keys of `check_words.CHANGES`."""
    tensors = {"x": kind.x, "target": kind.target, "background": kind.background, "fit": kind.fit}
    parts = list(kind.model.named_modules())
    hooks = [(part._forward_hooks, part._forward_pre_hooks, part._backward_hooks) for _, part in parts]
    return {
        **{name: value.detach().clone() for name, value in tensors.items()},
        "requires_grad of x": kind.x.requires_grad,
        "weights": {name: value.detach().clone() for name, value in kind.model.state_dict().items()},
        "requires_grad": [(name, weight.requires_grad) for name, weight in kind.model.named_parameters()],
        "mode": [(name, part.training) for name, part in parts],
        "hooks": [[len(kept) for kept in each] for each in hooks],
        "layers": [(name, type(part)) for name, part in parts],
        "torch": torch.is_grad_enabled(),
    }


def same(before: Any, after: Any) -> bool:
    if isinstance(before, Tensor):
        return identical(before, after)
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(same(before[name], after[name]) for name in before)
    return bool(before == after)


def generators(cuda: bool) -> dict[str, Any]:
    """The states of the global generators, by the keys of `check_words.DRAWS`."""
    ours = [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if cuda else [])]
    _, key, *rest = np.random.get_state()  # noqa: NPY002 (only the old generator is global)
    numpys = (np.asarray(key).tobytes(), *rest)
    return {"torch": [models.raw(part) for part in ours], "numpy": numpys, "random": random.getstate()}


@contextmanager
def surroundings_restored() -> Iterator[None]:
    """One thread, as more only wait for one another; what was drawn from numpy and `random` is given back at the end.

    Not after each call: nobody seeds these two between calls, and a map that depends on them must be seen to.
    """
    threads, numpys, randoms = torch.get_num_threads(), np.random.get_state(), random.getstate()  # noqa: NPY002
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        np.random.set_state(numpys)  # noqa: NPY002
        random.setstate(randoms)


def place(error: BaseException, function: Callable[..., Any]) -> str:
    """File and line: the last one in the method's own file, else where the method begins; for Captum, the last one."""
    function = inspect.unwrap(getattr(function, "func", function))
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if code is not None and code.co_filename != plugins.__file__:
        begin = (code.co_filename, code.co_firstlineno)
        frames = [begin, *(frame for frame in frames if frame[0] == code.co_filename)]
    file, line = frames[-1]
    here = Path(file)
    return f"{here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here}, line {line}"


@torch.no_grad()
def gap(method: Method, kind: Specimen, maps: Tensor, seed: int) -> float:
    """The median gap between the sums of maps (n, *shape) and f(x) - f(0), or f(x) for a method that conserves.

    A bias takes part of what is conserved, and z+ rules conserve what is positive. So a method that promises to
    conserve is asked about a network without shifts, and judged where the output is positive.
    """
    if method.promise == "conserve":
        kind = replace(kind, model=without_shifts(kind.model))
        output, target = kind.model(kind.x).max(1)
        again = tried(method, replace(kind, target=target), seed)
        if again.maps is None:
            return float("nan")
        gaps = completeness_gap(again.maps.to(output.device), output)[output > 0]
    else:
        rows = torch.arange(len(kind.x), device=kind.x.device)
        behind = kind.model(torch.zeros_like(kind.x))
        if method.promise == "complete to background":
            behind = kind.model(kind.background).mean(0)
        change = kind.model(kind.x) - behind
        gaps = completeness_gap(maps.to(rows.device), change[rows, kind.target])
    return gaps.median().item() if len(gaps) else float("nan")
