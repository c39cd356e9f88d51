"""How often each method would draw attention to what has no function: the table and its intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import ClassVar

from pandas import DataFrame, concat

from forsooth.counted import counted
from forsooth.frames import lines_by, only
from forsooth.records import NO_PATCH, Facts
from forsooth.scores.contrast import IIR
from forsooth.stats import share_interval
from forsooth.stats.claims import holm_by_name, mcnemar_more_often
from forsooth.user.pages import PagedResult
from forsooth.user.results import written
from forsooth.wording import share

SHOWN = ("method", "attention", "low", "high", "defined", "raised", "change", "failed", "status")
SHARES = ("attention", "low", "high", "defined", "raised", "change", "failed")
CERTAIN = 0.05  # chance that of methods that are all the same any two are said to differ


@dataclass(frozen=True)
class IndependenceResult(PagedResult):
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

    title: ClassVar[str] = "Attention to what has no function"

    def shown(self) -> DataFrame:
        """The table for a reader: whole per cents, and empty where there is no number."""
        return written(self.table, SHOWN, dict.fromkeys(SHARES, share))


def tabled(rows: DataFrame, kinds: Mapping[str, str], *, threshold: float) -> DataFrame:
    """The table, least attention first. kinds: method -> method, or null (ignores the model)."""
    table = lines_by(rows, ["method"], partial(line_of, threshold=threshold))
    table["kind"] = table["method"].map(kinds)
    return table.sort_values("attention", kind="stable", na_position="last").reset_index(drop=True)


def line_of(rows: DataFrame, threshold: float) -> Facts:
    """One method in numbers, from its rows."""
    there = attentive(rows, threshold)
    good = there[~there["failed"]]
    failed = there["failed"].mean()  # nan of none
    if good.empty:
        lost = concat([there, rows]).iloc[0]
        nothing = dict.fromkeys(SHARES, float("nan"))
        return {**nothing, "failed": failed, "status": lost["status"], "message": lost["message"]}
    attention = share_interval(there["hit"])
    return {
        "attention": attention.mean,
        "low": attention.low,
        "high": attention.high,
        "defined": good["hit"].mean(),
        "raised": there["rise"].ge(threshold).mean(),
        "change": good["change"].median(),
        "failed": failed,
        "status": "ok",
        "message": "",
    }


def attentive(rows: DataFrame, threshold: float) -> DataFrame:
    """The rows that have a patch, and whether each method is drawn to it: a `hit`, as is a map that `failed`."""
    steady = rows["change"].lt(threshold).astype(float)  # IIR of one input
    there = counted(rows.assign(value=steady, status=rows["status"].replace(NO_PATCH, "skipped")), IIR)
    return there.assign(hit=there["value"].eq(0), status=rows.loc[there.index, "status"])


def clearly_worse(rows: DataFrame, names: list[str], threshold: float) -> list[str]:
    """Those of `names`, least first, that draw more attention than the first: it was picked, so all pairs count."""
    pvalues = {(one, two): more_often(rows, one, two, threshold) for one, two in combinations(names, 2)}
    adjusted = holm_by_name(pvalues)
    return [name for name in names if adjusted.get((names[0], name), 1.0) <= CERTAIN]


def more_often(rows: DataFrame, one: str, two: str, threshold: float) -> float:
    """p-value that the second draws attention more often than the first, on the inputs that both have."""
    both = attentive(only(rows, method=(one, two)), threshold)
    wide = both.pivot(index="sample", columns="method", values="hit").dropna().astype(bool)
    return mcnemar_more_often(wide[one], wide[two])
