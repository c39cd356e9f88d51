"""How often each method would draw attention to what has no function: the table, its intervals, and plain words."""

from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats
from torch import Tensor, nn

from forsooth.counted import counted
from forsooth.report.promises import broken_promises, gap_table
from forsooth.scores.contrast import IIR
from forsooth.scores.functionless import Patched
from forsooth.stats import holm, share_of
from forsooth.user import inputs
from forsooth.user.words import joined

FEW = 20  # inputs below which an interval says little
SHOWN = ("method", "attention", "low", "high", "defined", "raised", "change", "failed", "status")
CERTAIN = 0.05  # chance that of methods that are all the same any two are said to differ


@dataclass(frozen=True)
class Wanted:
    """The user's words.

    model      package.module:name, or a torch module
    inputs     (n, *shape): a file, an array or a tensor
    target     None: the predicted class; a class; one for each input (n,)
    patch      grid:N (a cell of an N × N grid, drawn for each input), size:S (a square of S pixels a side, anywhere),
               or a mask (*spatial) or (n, *spatial), in memory or in a file
    bounds     least and largest value of an input; None: those of the inputs
    layer      what Grad-CAM reads; None: the last convolution
    threshold  change of the patch's saliency, as a share, from which it draws attention
    """

    model: Any
    inputs: Any
    target: Any = None
    patch: Any = "grid:4"
    bounds: tuple[float, float] | None = None
    layer: str | None = None
    threshold: float = 0.1
    device: str = "auto"
    seed: int = 0

    def words(self) -> dict[str, Any] | None:
        """What decides the patches, as plain values that a task can carry; None where something is live.

        Files are named by their full path. The layer is a matter of single methods, and the threshold of the judgement.
        """
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        del found["layer"], found["threshold"]
        found["bounds"] = None if self.bounds is None else [float(end) for end in self.bounds]
        for name, value in found.items():
            if isinstance(value, Path) or (name != "model" and inputs.is_file(value)):
                found[name] = str(Path(value).resolve())
            elif name != "bounds" and not isinstance(value, str | int | None):
                return None
        return found if isinstance(self.model, str) else None


@dataclass(frozen=True)
class IndependenceResult:
    """How often every method would draw attention to a patch without function.

    table  one line per method, the least first:
           attention  share of the inputs where the saliency of the patch's place changes by the threshold or more; an
                      input without a usable map, or with nothing at that place before and after, counts as one of them
           low, high  its 95 % interval (Wilson's)
           defined    the same share without such inputs
           raised     share of the inputs where it rises so much
           change     median of the relative change, where there is one
           failed     share of the inputs without a usable map, or with nothing at that place before and after
           kind       method, or null (ignores the model)
    rows   one line per method and input
    words  the same in plain words; the last sentence says what to do
    """

    table: pd.DataFrame
    rows: pd.DataFrame
    words: str

    def __str__(self) -> str:
        return f"{self.shown().to_string(index=False)}\n\n{self.words}"

    def shown(self) -> pd.DataFrame:
        """The table for a reader: whole per cents, and empty where there is no number."""
        shown = self.table[list(SHOWN)].copy()
        for name in ("attention", "low", "high", "defined", "raised", "change", "failed"):
            shown[name] = [f"{value:.0%}" if value == value else "" for value in self.table[name]]
        told = zip(self.table["status"], self.table["message"], strict=True)
        shown["status"] = [f"{status}: {message}" if message else status for status, message in told]
        return shown

    def markdown(self) -> str:
        """The table and the words as a page."""
        lines = [list(SHOWN), ["---"] * len(SHOWN), *self.shown().to_numpy().tolist()]
        body = [f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |" for line in lines]
        return "\n".join(["# Attention to what has no function", "", *body, "", self.words, ""])


@dataclass(frozen=True)
class Case:
    """All that is fixed before the first method is asked.

    module   in eval mode
    x, mask  (n, *shape), (n, *spatial) bool
    target   (n,), the explained classes
    bounds   least and largest value of an input
    layer    what Grad-CAM reads; None: there is no convolution
    noun     the patch, in words
    digest   tells this model, these inputs and these places from any other; empty where something is live
    """

    wanted: Wanted
    module: nn.Module
    x: Tensor
    target: Tensor
    mask: Tensor
    bounds: tuple[float, float]
    layer: str | None
    noun: str
    digest: str


def judged(case: Case, done: Patched, rows: pd.DataFrame, nulls: dict[str, bool]) -> IndependenceResult:
    """The table, least attention first, and its words."""
    lines = [line_of(name, rows[rows["method"].eq(name)], case.wanted.threshold) for name in nulls]
    table = pd.DataFrame(lines).assign(kind=["null" if null else "method" for null in nulls.values()])
    table = table.sort_values("attention", kind="stable", na_position="last").reset_index(drop=True)
    return IndependenceResult(table=table, rows=rows, words=told(case, done, table, rows))


def line_of(name: str, rows: pd.DataFrame, threshold: float) -> dict[str, Any]:
    """One method in numbers."""
    there = attentive(rows, threshold)
    good = there[~there["failed"]]
    nothing = dict.fromkeys(("attention", "low", "high", "defined", "raised", "change"), float("nan"))
    failed = float(there["failed"].mean()) if len(there) else float("nan")
    if good.empty:
        lost = rows.iloc[0] if there.empty else there.iloc[0]
        return {"method": name, **nothing, "failed": failed, "status": lost["status"], "message": lost["message"]}
    share = share_of(there["hit"])
    numbers = {"attention": share.mean, "low": share.low, "high": share.high, "defined": float(good["hit"].mean())}
    numbers |= {"raised": float(there["rise"].ge(threshold).mean()), "change": float(good["change"].median())}
    return {"method": name, **numbers, "failed": failed, "status": "ok", "message": ""}


def attentive(rows: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """The rows that have a patch, and whether each method is drawn to it: a `hit`, as is a map that `failed`."""
    steady = rows["change"].lt(threshold).astype(float)  # IIR of one input
    there = counted(rows.assign(value=steady, status=rows["status"].replace("no patch", "no sample")), IIR)
    return there.assign(hit=there["value"].eq(0), status=rows.loc[there.index, "status"])


def told(case: Case, done: Patched, table: pd.DataFrame, rows: pd.DataFrame) -> str:
    """What was asked, what was found, and what to do."""
    found, ratio, seen = done.found(), done.ratio, done.change
    n, some = len(case.x), int(found.sum())
    first = (
        f"{n} inputs; the patch is {case.noun}. A patch that is seen and changes no output was found for {some} of {n}"
    )
    if not some:
        what = f"the outputs still differ by {float(ratio.median()):.0%} of their length in the median"
        return (
            f"{first}: {what}.\n\nTry smaller patches (grid:8), or wider bounds: without patches nothing can be said."
        )
    on = f"outputs differ by {float(ratio[found].median()):.1%} of their length and pixels by"
    parts = [f"{first} ({on} {float(seen[found].median()):.0%} of their range, medians)."]
    good = table[table["attention"].notna()]
    said = [f"{line.method} {sentence(line)}" for line in good[good["kind"].eq("method")].itertuples()]
    limit = f"{case.wanted.threshold:.0%}"
    parts.append(
        f"The map of the patch's place changes by {limit} or more: {'; '.join(said) or 'no method was usable'}."
    )
    nulls = [f"{line.method} maps {sentence(line)}" for line in good[good["kind"].eq("null")].itertuples()]
    steady = "neither looks at the model: so steady is a map that says nothing, and so much does chance alone move one"
    parts.append(f"Beside them, {' and '.join(nulls)}; {steady}.")
    if some < FEW:
        parts.append(f"Warning: with {some} patches the intervals are wide; give at least {FEW} inputs.")
    gaps = gap_table(rows.assign(metric="gap", value=rows["gap"]))
    parts += [" ".join(broken_promises(gaps).values())] if broken_promises(gaps) else []
    parts.append(advice(good[good["kind"].eq("method")], rows, case.wanted.threshold))
    return "\n\n".join(parts)


def sentence(line: Any) -> str:
    return f"in {line.attention:.0%} of inputs (95 % interval {line.low:.0%} to {line.high:.0%})"


def advice(methods: pd.DataFrame, rows: pd.DataFrame, threshold: float) -> str:
    """Whom to believe about a place that may have no function."""
    if methods.empty:
        return "No method gave a usable map: ask others."
    best, names = methods["method"].iloc[0], methods["method"].tolist()
    worse = surely_worse(rows, best, names, threshold)
    same = [name for name in names if name not in worse]
    often = methods[methods["low"] > 0.5]["method"].tolist()
    tail = f" In more than half of the inputs {joined(often)} would mislead." if often else ""
    rest = f"; {joined(worse)} {'does' if len(worse) == 1 else 'do'} so clearly more often" if worse else ""
    least = f"Least drawn to what has no function: {joined(same, 'or')}{rest}.{tail}"
    return f"{least} Steadiness alone is no proof: ask `forsooth bias`, too."


def surely_worse(rows: pd.DataFrame, best: str, names: list[str], threshold: float) -> list[str]:
    """Those of `names`, least first, that draw more attention than `best`: it was picked, so all pairs are a family."""
    pairs = list(combinations(names, 2))
    adjusted = holm([rarity(rows, one, two, threshold) for one, two in pairs])
    sure = [pair for pair, value in zip(pairs, adjusted, strict=True) if value <= CERTAIN]
    return [name for name in names if (best, name) in sure]


def rarity(rows: pd.DataFrame, one: str, two: str, threshold: float) -> float:
    """How likely luck alone has the second draw attention so much more often: the exact test of the pairs, two-sided.

    1 where it does not draw attention more often.
    """
    both = attentive(rows[rows["method"].isin([one, two])], threshold)
    wide = both.pivot(index="sample", columns="method", values="hit").dropna().astype(bool)
    more, less = (int((wide[a] & ~wide[b]).sum()) for a, b in ((two, one), (one, two)))
    return float(stats.binomtest(more, more + less).pvalue) if more > less else 1.0
