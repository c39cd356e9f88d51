"""Does a method keep the contract? What was seen becomes a table, a verdict, and words on what to mend."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from forsooth.records import TOLERANCE, Method
from forsooth.user.words import joined

CLOSE = 1e-5  # of the largest value of a map: so far may an input alone be from the same one in a batch
ROUNDING = 1e-3  # so far single precision can drive them apart where a method takes differences or quotients
ALL = "all"  # stands in the column `input` for a line about all inputs together
COLUMNS = ("check", "input", "status", "message")

# What may be found changed after a call: the sentence, and how to mend it.
CHANGES = {
    "x": ("x was changed", "work on a copy, x = x.clone()"),
    "requires_grad of x": ("x was left with another requires_grad", "derive by a copy, x.clone().requires_grad_()"),
    "target": ("target was changed", "work on target.clone()"),
    "background": ("background was changed", "work on background.clone()"),
    "fit": ("fit was changed", "work on fit.clone()"),
    "weights": ("weights or buffers of the model were changed", "work on copy.deepcopy(model)"),
    "requires_grad": ("weights of the model were left with another requires_grad", "put the flags back in a finally"),
    "mode": ("parts of the model were left in another mode (train or eval)", "leave the model in eval, as it comes"),
    "hooks": ("hooks were left on the model", "call handle.remove() in a finally"),
    "layers": ("layers of the model were replaced", "work on copy.deepcopy(model)"),
    "torch": ("torch was left in another grad mode", "use `with torch.no_grad():`, which puts it back"),
}
DRAWS = {
    "torch": "it draws from torch's global generator; that is seeded before each call here, and may not be elsewhere",
    "numpy": "it draws from numpy's global generator, which nobody seeds here",
    "random": "it draws from the global generator of `random`, which nobody seeds here",
}
Verdict = tuple[str, str]  # status and message
SEEDED = "draw with torch, or declare needs=('generators',) in a forsooth.Method: one for each input to draw from"


@dataclass(frozen=True)
class Trial:
    """One call of a method: what it gave, or why it gave nothing.

    maps     (n, *shape) as it came, detached; None where there is no tensor of that shape
    fault    "raised", "wrong shape" or "" where there is a map
    message  what the fault is
    changed  keys of CHANGES; drew: keys of DRAWS; graded: gradients were left in .grad of the weights
    """

    maps: Tensor | None
    fault: str
    message: str
    seconds: float
    changed: tuple[str, ...] = ()
    drew: tuple[str, ...] = ()
    graded: bool = False


@dataclass(frozen=True)
class Evidence:
    """All trials of a method on one kind of input x (n, *shape).

    first, again  the same seed twice; reseeded: another seed; retargeted: other classes
    alone         row -> that input by itself
    gap           how far the sum of a map is from what it promises, or from f(x) - f(0) where nothing is promised: the
                  median, nan where it cannot be told
    """

    input: str
    x: Tensor
    first: Trial
    again: Trial | None = None
    reseeded: Trial | None = None
    retargeted: Trial | None = None
    alone: tuple[tuple[int, Trial], ...] = ()
    gap: float = float("nan")


@dataclass(frozen=True)
class Line:
    check: str
    input: str
    status: str
    message: str


@dataclass(frozen=True)
class CheckResult:
    """Whether a method keeps the contract of every method of the catalogue.

    table   one line per check and kind of input: check, input, status (ok, wrong, note or cannot be told), message
    passed  nothing is wrong
    words   the same in plain sentences: what is wrong, and how to mend it
    """

    table: pd.DataFrame
    passed: bool
    words: str

    def __str__(self) -> str:
        return f"{self.shown().to_string(index=False)}\n\n{self.words}"

    def shown(self) -> pd.DataFrame:
        """The table for a reader: inputs of which the same is said stand in one line."""
        return merged(self.table)


def judged(method: Method, own: bool, found: Sequence[Evidence]) -> CheckResult:
    """The verdict. own: the user gave a plain function, so that its record says nothing of it."""
    usable = [seen for seen in found if not seen.first.fault]
    lines = [line for seen in found for line in lines_of(method, own, seen, works=bool(usable))]
    lines += overall(found, usable)
    table = pd.DataFrame(lines, columns=list(COLUMNS))
    passed = not table["status"].eq("wrong").any()
    return CheckResult(table=table, passed=passed, words=told(method, table, usable))


def lines_of(method: Method, own: bool, seen: Evidence, *, works: bool) -> list[Line]:
    """All checks on one kind of input. A fault is a note where the method works on another kind."""
    first, fault = seen.first, "note" if works else "wrong"
    if first.fault == "raised":
        return [Line("runs", seen.input, fault, first.message)]
    runs = Line("runs", seen.input, "ok", "")
    if first.maps is None:
        return [runs, Line("shape", seen.input, fault, first.message)]
    verdicts = {
        "shape": ("ok", ""),
        "dtype": dtype(first.maps, seen.x),
        "device": device(first.maps, seen.x),
        "finite": finite(first.maps),
        "global draws": draws(first),
        "same seed": same_seed(seen),
        "randomness": randomness(seen, None if own else method.random),
        "batch": batch(seen),
        "target": targets(seen),
        "sum": total(seen.gap, method.promise),
    }
    if not own and not method.signed:
        verdicts["sign"] = sign(first.maps)
    left = [Line("untouched", seen.input, *verdict) for verdict in untouched(seen)]
    return [runs, *(Line(check, seen.input, *verdict) for check, verdict in verdicts.items()), *left]


def dtype(maps: Tensor, x: Tensor) -> Verdict:
    if maps.dtype == x.dtype:
        return "ok", ""
    return "wrong", f"the map must be {x.dtype} like x, got {maps.dtype}: return map.to(x.dtype)"


def device(maps: Tensor, x: Tensor) -> Verdict:
    if maps.device == x.device:
        return "ok", ""
    return "wrong", f"the map must be on {x.device} like x, got {maps.device}: make tensors with device=x.device"


def finite(maps: Tensor) -> Verdict:
    bad = int((~maps.isfinite()).sum())
    if bad:
        how = "look for a division by zero, a logarithm or a root"
        return "wrong", f"{bad} of {maps.numel()} values are nan or infinite: {how}"
    return ("note", "every map is zero everywhere") if bool((maps == 0).all()) else ("ok", "")


def sign(maps: Tensor) -> Verdict:
    if bool((maps < 0).any()):
        return "wrong", "the record says signed=False, and there are values below zero: say signed=True"
    return "ok", ""


def untouched(seen: Evidence) -> list[Verdict]:
    """A verdict for each thing that any of the calls left changed."""
    trials = [seen.first, seen.again, seen.reseeded, seen.retargeted, *(trial for _, trial in seen.alone)]
    keys = {key for trial in trials if trial is not None for key in trial.changed}
    if keys:
        return [("wrong", f"{what}: {mend}") for key, (what, mend) in CHANGES.items() if key in keys]
    if seen.first.graded:
        return [("note", "it fills .grad of the model's weights; torch.autograd.grad(output, x) would not")]
    return [("ok", "")]


def draws(first: Trial) -> Verdict:
    return ("note", "; ".join(DRAWS[name] for name in first.drew)) if first.drew else ("ok", "")


def same_seed(seen: Evidence) -> Verdict:
    assert seen.first.maps is not None and seen.again is not None
    if seen.again.maps is None:
        return "wrong", f"a second call with the same inputs failed: {seen.again.message}"
    if identical(seen.first.maps, seen.again.maps):
        return "ok", ""
    loose = [name for name in seen.first.drew if name != "torch"]
    why = f"; {DRAWS[loose[0]]}" if loose else ""
    return "wrong", f"two calls with the same seed give two maps{why}: {SEEDED}"


def randomness(seen: Evidence, said: bool | None) -> Verdict:
    """said: what the record says of it; None without a record."""
    assert seen.first.maps is not None and seen.again is not None and seen.reseeded is not None
    if seen.again.maps is None or not identical(seen.first.maps, seen.again.maps) or seen.reseeded.maps is None:
        return "cannot be told", "see the line on the same seed"
    if identical(seen.first.maps, seen.reseeded.maps):
        return "ok", "deterministic"
    if said is False:
        return "wrong", "the record says random=False, and another seed gives another map: say random=True"
    return "ok", "random"


def batch(seen: Evidence) -> Verdict:
    """An input by itself against the same one among others."""
    assert seen.first.maps is not None
    worst = 0.0
    for row, trial in seen.alone:
        if trial.maps is None:
            return "wrong", f"with a batch of one it failed: {trial.message}"
        both = torch.stack([seen.first.maps[row].double(), trial.maps[0].double()])
        if not bool(both.isfinite().all()):
            return "cannot be told", "the maps are not finite"
        worst = max(worst, (both[0] - both[1]).abs().max().item() / (both.abs().max().item() or 1.0))
    if worst <= CLOSE:
        return "ok", ""
    size = f"{10 ** math.floor(math.log10(worst)):g} of its largest value or more"
    far = f"an input alone gets another map than in a batch, off by {size}"
    if worst <= ROUNDING:
        return "note", f"{far}, as rounding does in single precision"
    if randomness(seen, None)[1] != "deterministic":
        return "cannot be told", "it is random, and draws differently for another batch"
    return "wrong", f"{far}: reduce over the axes of one input only, dim=tuple(range(1, x.ndim))"


def targets(seen: Evidence) -> Verdict:
    assert seen.first.maps is not None and seen.retargeted is not None
    if seen.retargeted.maps is None:
        return "wrong", f"with other classes it failed: {seen.retargeted.message}"
    if seen.again is not None and seen.again.maps is not None and not identical(seen.first.maps, seen.again.maps):
        return "cannot be told", "the map changes from call to call, so nobody knows what another class changes"
    if identical(seen.first.maps, seen.retargeted.maps):
        return "note", "the map is the same for every class: target is not used"
    return "ok", ""


SUMS: dict[str | None, str] = {"conserve": "f(x)", "complete to background": "f(x) - mean f(background)"}


def total(gap: float, promise: str | None) -> Verdict:
    """Is the promised sum kept? Without a promise, how far off would it be?"""
    sums = SUMS.get(promise, "f(x) - f(0)")
    if gap != gap:
        return "cannot be told", f"no map whose sum could be compared with {sums}"
    share = "100 % or more" if gap >= 1 else f"{100 * gap:.1f} %"
    off = f"a map sums to {sums}" if gap < 0.0005 else f"the sum of a map is off {sums} by {share}"
    if promise is None:
        return "note", f"{off}; nothing is promised"
    if gap <= TOLERANCE:
        return "ok", off
    return "wrong", f"{off}, though the record promises it: mend the method, or say promise=None"


def overall(found: Sequence[Evidence], usable: Sequence[Evidence]) -> list[Line]:
    """On which inputs it works, and how long a map takes."""
    names = [seen.input for seen in usable]
    if not usable:
        return [Line("inputs", ALL, "wrong", "it gives a map for none of them")]
    lost = [seen.input for seen in found if seen.input not in names]
    works = (
        ("note", f"works on {joined(names)}; not on {joined(lost)}") if lost else ("ok", f"works on {joined(names)}")
    )
    quick = {seen.input: min(t.seconds for t in (seen.first, seen.again) if t) / len(seen.x) for seen in usable}
    each = ", ".join(f"{seconds:.2g} ({name})" for name, seconds in quick.items())
    return [Line("inputs", ALL, *works), Line("seconds", ALL, "note", f"for one map: {each}")]


def merged(table: pd.DataFrame) -> pd.DataFrame:
    """The table with one line for all inputs of which the same is said."""
    asked = table.groupby("check")["input"].nunique()
    same = table.groupby(["check", "status", "message"], sort=False)["input"].agg(list).reset_index()
    pairs = zip(same["check"], same["input"], strict=True)
    same["input"] = [ALL if len(inputs) == asked[check] > 1 else ", ".join(inputs) for check, inputs in pairs]
    order = {check: place for place, check in enumerate(table["check"].unique())}
    return same.sort_values("check", key=lambda check: check.map(order), kind="stable")[list(COLUMNS)]


def told(method: Method, table: pd.DataFrame, usable: Sequence[Evidence]) -> str:
    """The verdict in sentences; what is wrong is said once, with the inputs where it was seen."""
    wrong = merged(table[table["input"].ne(ALL)]).query("status == 'wrong'")
    kind = f"It is {'random' if table['message'].eq('random').any() else 'deterministic'}."
    if wrong.empty:
        where = joined([seen.input for seen in usable])
        go = f" Next: forsooth run SUITE --methods {method.name}" if ":" in method.name else ""
        return f"{method.name} keeps the contract on {where}. {kind} Notes are no faults.{go}"
    mend = [f"- {line.check} ({line.input}): {line.message}." for line in wrong.itertuples()]
    return "\n".join([f"{method.name} breaks the contract. To mend:", *mend])


def identical(first: Tensor, second: Tensor) -> bool:
    """Equal to the bit in shape, type and values; nan equals nan."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    there = ~first.isnan()
    return torch.equal(there, ~second.isnan()) and torch.equal(first[there], second[there])
