"""The checks: each looks at the evidence of one kind of input and gives a status and a message."""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from forsooth.records import TOLERANCE, Method
from forsooth.user.check.evidence import Evidence, same_maps
from forsooth.user.check.words import CHANGES, DRAWS, SEEDED, SUMS
from forsooth.wording import share

CLOSE = 1e-5  # of the largest value of a map: so far may an input alone be from the same one in a batch
ROUNDING = 1e-3  # so far single precision can drive them apart where a method takes differences or quotients
EXACT = 0.0005  # gap below which a sum is called kept
Status = Literal["ok", "wrong", "note", "inconclusive", "pass", "fail", "refused"]


class Verdict(NamedTuple):
    """What a check found; pass, fail and refused (there is no map) are of networks with weights set by hand."""

    status: Status
    message: str = ""


OK = Verdict("ok")
Check = tuple[str, Verdict]  # its name, and what it found


def verdicts(method: Method, own: bool, seen: Evidence) -> list[Check]:
    """All checks, by name, on a kind of input for which the method gave maps.

    own  the user gave a plain function, so that its record says nothing of it
    """
    checks: dict[str, Callable[[Evidence], Verdict]] = {
        "dtype": dtype,
        "device": device,
        "finite": finite,
        "global draws": draws,
        "same seed": same_seed,
        "randomness": lambda seen: randomness(seen, declared=None if own else method.random),
        "batch": batch,
        "target": target,
        "sum": lambda seen: promised_sum(seen.gap, method.promise),
    }
    if not own and not method.signed:
        checks["sign"] = sign
    found = [(name, check(seen)) for name, check in checks.items()]
    return [("shape", OK), *found, *(("untouched", verdict) for verdict in untouched(seen))]


def maps_of(seen: Evidence) -> Tensor:
    assert seen.first.maps is not None
    return seen.first.maps


def like_x(seen: Evidence, *, part: str, must: str, fix: str) -> Verdict:
    """Whether the map has what x has."""
    wanted = getattr(seen.x, part)
    came = getattr(maps_of(seen), part)
    if came == wanted:
        return OK
    return Verdict("wrong", f"the map must {must} {wanted} like x, got {came}: {fix}")


dtype = partial(like_x, part="dtype", must="be", fix="return map.to(x.dtype)")
device = partial(like_x, part="device", must="be on", fix="make tensors with device=x.device")


def finite(seen: Evidence) -> Verdict:
    maps = maps_of(seen)
    bad = int((~maps.isfinite()).sum())
    if bad:
        how = "look for a division by zero, a logarithm or a root"
        return Verdict("wrong", f"{bad} of {maps.numel()} values are nan or infinite: {how}")
    if bool((maps == 0).all()):
        return Verdict("note", "every map is zero everywhere")
    return OK


def sign(seen: Evidence) -> Verdict:
    if bool((maps_of(seen) < 0).any()):
        return Verdict("wrong", "the record says signed=False, and there are values below zero: say signed=True")
    return OK


def untouched(seen: Evidence) -> list[Verdict]:
    """A verdict for each thing that any of the calls left changed."""
    changed = {key for trial in seen.trials for key in trial.changed}
    if changed:
        return [Verdict("wrong", f"{what}: {fix}") for key, (what, fix) in CHANGES.items() if key in changed]
    if seen.first.graded:
        return [Verdict("note", "it fills .grad of the model's weights; torch.autograd.grad(output, x) would not")]
    return [OK]


def draws(seen: Evidence) -> Verdict:
    if seen.first.drew:
        return Verdict("note", "; ".join(DRAWS[name] for name in seen.first.drew))
    return OK


def same_seed(seen: Evidence) -> Verdict:
    if seen.again.maps is None:
        return Verdict("wrong", f"a second call with the same inputs failed: {seen.again.message}")
    if seen.repeats:
        return OK
    why = "".join(f"; {DRAWS[name]}" for name in seen.first.drew if name != "torch")
    return Verdict("wrong", f"two calls with the same seed give two maps{why}: {SEEDED}")


def randomness(seen: Evidence, *, declared: bool | None = None) -> Verdict:
    """declared: what the record says of it; None without a record."""
    if not seen.repeats or seen.reseeded.maps is None:
        return Verdict("inconclusive", "see the line on the same seed")
    if same_maps(seen.first, seen.reseeded):
        return Verdict("ok", "deterministic")
    if declared is False:
        return Verdict("wrong", "the record says random=False, and another seed gives another map: say random=True")
    return Verdict("ok", "random")


def batch(seen: Evidence) -> Verdict:
    """An input by itself against the same one among others."""
    worst = 0.0
    for row, trial in seen.alone:
        if trial.maps is None:
            return Verdict("wrong", f"with a batch of one it failed: {trial.message}")
        both = torch.stack([maps_of(seen)[row].double(), trial.maps[0].double()])
        if not bool(both.isfinite().all()):
            return Verdict("inconclusive", "the maps are not finite")
        worst = max(worst, (both[0] - both[1]).abs().max().item() / (both.abs().max().item() or 1.0))
    if worst <= CLOSE:
        return OK
    size = f"{10 ** math.floor(math.log10(worst)):g} of its largest value or more"
    far = f"an input alone gets another map than in a batch, off by {size}"
    if worst <= ROUNDING:
        return Verdict("note", f"{far}, as rounding does in single precision")
    if randomness(seen).message != "deterministic":
        return Verdict("inconclusive", "it is random, and draws differently for another batch")
    return Verdict("wrong", f"{far}: reduce over the axes of one input only, dim=tuple(range(1, x.ndim))")


def target(seen: Evidence) -> Verdict:
    if seen.retargeted.maps is None:
        return Verdict("wrong", f"with other classes it failed: {seen.retargeted.message}")
    if seen.again.maps is not None and not seen.repeats:
        why = "the map changes from call to call, so nobody knows what another class changes"
        return Verdict("inconclusive", why)
    if same_maps(seen.first, seen.retargeted):
        return Verdict("note", "the map is the same for every class: target is not used")
    return OK


def promised_sum(gap: float, promise: str | None) -> Verdict:
    """Is the promised sum kept? Without a promise, how far off would it be?"""
    total = SUMS.get(promise, "f(x) - f(0)")
    if gap != gap:
        return Verdict("inconclusive", f"no map whose sum could be compared with {total}")
    off = deviation(gap, total)
    if promise is None:
        return Verdict("note", f"{off}; nothing is promised")
    if gap <= TOLERANCE:
        return Verdict("ok", off)
    return Verdict("wrong", f"{off}, though the record promises it: fix the method, or say promise=None")


def deviation(gap: float, total: str) -> str:
    """How far a sum is from the total, in words."""
    if gap < EXACT:
        return f"a map sums to {total}"
    if gap >= 1:
        return f"the sum of a map is off {total} by 100 % or more"
    return f"the sum of a map is off {total} by {share(gap, digits=1)}"
