"""Who is best, by how much, and how sure we are."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from forsooth.report.aggregate import Results, choose, levels
from forsooth.report.medians import Medians, medians, where
from forsooth.report.promises import NO_GAPS, gap_table
from forsooth.stats import differences
from forsooth.stats.differences import Bools, differing, letters, pairs, ranks
from forsooth.stats.panels import Floats
from forsooth.stats.spread import half_widths, spread_of

COLUMNS = (
    *("method", "score", "low", "high", "over", "q1", "median", "q3", "rank", "rank_low", "rank_high", "group"),
    *("failed", "gap", "broken", "spread", "panels", "of", "wins", "null"),
)


def leaderboard(results: Results, metric: str, by: str | None = None) -> pd.DataFrame:
    """One line per method, best first; with `by`, one leaderboard for each level of that factor, one below the other.

    score       mean over panels of the panel's median over samples and seeds
    low, high   95 % interval of this score alone, over what `over` says; it ends where the metric does
    over        "samples and trainings", or "samples" where no panel has two trainings of it
    q1, median, q3  of all samples of all panels
    rank        1 + how many do better; the oracle is not ranked
    rank_low, rank_high  1 + how many are clearly better, and how many are not clearly worse: 95 %, of all at once
    group       tie group: a new letter where a method is clearly worse than the group's first member
    failed      share of samples without a score; they count as the worst value in the metric's bounds
    gap, broken median gap of methods that promise a sum, and share of samples where they miss it
    spread      standard deviation of the panel's median between trainings, mean over panels
    panels, of  in how many of the panels it took part
    wins        panels in which it is clearly better than each null that is no oracle
    null        ignores the model

    "Clearly" holds for a whole board: where all methods are the same, at most one board in twenty names any difference
    (`forsooth.stats`).

    Where no map was scored there is no line.
    A method that took part in some of the panels stands below the others, without a group: its rank is the one
    it would have among the others in its own panels.
    """
    table = medians(results, metric)
    gaps = gap_table(results.rows)
    if table.panels.empty:
        return pd.DataFrame(columns=COLUMNS if by is None else [by, *COLUMNS])
    if by is None:
        return board(table, gaps=gaps)
    choose("by", by, results.run["factors"])
    parts = [
        board(where(table, table.panels[by].eq(level).to_numpy()), gaps=gaps).assign(**{by: level})
        for level in levels(results, by)
        if table.panels[by].eq(level).any()
    ]
    joined = pd.concat(parts, ignore_index=True)
    return joined[[by, *(column for column in joined if column != by)]]


def board(table: Medians, *, gaps: pd.DataFrame = NO_GAPS) -> pd.DataFrame:
    """The leaderboard over all panels of `table`; gaps as from `gap_table`."""
    part = np.isfinite(table.value)
    complete = np.asarray(part.all(axis=0))
    score = np.where(part, table.value, 0).sum(axis=0) / part.sum(axis=0)
    half, differ = _judged(table, part=part)
    low, high = np.clip([score - half, score + half], *table.bounds)
    frame = pd.DataFrame({"method": table.methods, "score": score, "low": low, "high": high, "over": over(table)})
    frame = frame.join(_spread_of_samples(table.rows), on="method")
    for name, column in zip(("rank", "rank_low", "rank_high"), _ranks(table, differ, part=part), strict=True):
        frame[name] = column
    frame["group"] = _groups(table, score, differ, complete)
    frame = frame.join(table.rows.groupby("method")["failed"].mean(), on="method")
    frame = frame.join(gaps, on="method").join(_spread_of_seeds(table.rows), on="method")
    frame = frame.assign(panels=part.sum(axis=0), of=len(part), wins=wins(table).sum(axis=0), null=table.null)
    order = np.lexsort([-table.sign * score, table.rival, ~complete])
    ranked = ["rank", "rank_low", "rank_high"]
    return frame.iloc[order].astype(dict.fromkeys(ranked, "Int64")).reset_index(drop=True)


def _judged(table: Medians, *, part: NDArray[np.bool_]) -> tuple[Floats, Bools]:
    """Half the interval of each score (methods,), and which rivals differ (methods, methods).

    A pair is compared where both took part; all pairs, of whatever panels, are one family.
    """
    half = np.full(len(table.methods), np.nan)
    pvalues = np.full((len(table.methods), len(table.methods)), np.nan)
    for pattern in np.unique(part, axis=1).T:
        own = np.flatnonzero((part == pattern[:, None]).all(axis=0))
        pool = np.flatnonzero(part[pattern].all(axis=0))
        chance = [panel for panel, taken in zip(table.chance, pattern, strict=True) if taken]
        half[own] = half_widths(spread_of([panel.take(own) for panel in chance]))[:-1, -1]
        rivals = pool[table.rival[pool]]
        mine = np.isin(rivals, own)
        if len(rivals) > 1 and mine.any():
            here = pairs([panel.take(rivals) for panel in chance])
            rows, columns = np.nonzero(mine[:, None] & ~np.eye(len(rivals), dtype=bool))
            pvalues[rivals[rows], rivals[columns]] = here[rows, columns]
            pvalues[rivals[columns], rivals[rows]] = here[rows, columns]
    return half, differing(pvalues)


def over(table: Medians) -> list[str]:
    """What the interval of each method was drawn over."""
    trained = {
        name
        for panel in table.chance
        for name, own in zip(table.methods, panel.several, strict=True)
        if own and len(panel.seeds) > 1
    }
    return ["samples and trainings" if name in trained else "samples" for name in table.methods]


def _ranks(table: Medians, differ: Bools, *, part: NDArray[np.bool_]) -> Floats:
    """Rank, lowest and highest rank of each rival (3, methods), among all rivals that have its panels too."""
    found = np.full((3, len(table.methods)), np.nan)
    for pattern in np.unique(part[:, table.rival], axis=1).T:
        pool = np.flatnonzero(table.rival & part[pattern].all(axis=0))
        own = (part[:, pool] == pattern[:, None]).all(axis=0)  # (pool,)
        good = table.sign * table.value[pattern][:, pool].mean(axis=0)
        found[:, pool[own]] = ranks(good, differ[np.ix_(pool, pool)])[:, own]
    return found


def _groups(table: Medians, score: Floats, differ: Bools, complete: NDArray[np.bool_]) -> list[str]:
    """Tie group of each method; none for the oracle and for those that missed a panel."""
    names = [""] * len(score)
    order = np.argsort(-table.sign * score, kind="stable")
    order = order[(complete & table.rival)[order]]
    for method, letter in zip(order, letters(differ[np.ix_(order, order)]), strict=True):
        names[method] = letter
    return names


def _spread_of_samples(rows: pd.DataFrame) -> pd.DataFrame:
    quartiles = rows.groupby("method")["value"].quantile([0.25, 0.5, 0.75]).unstack()
    return quartiles.set_axis(["q1", "median", "q3"], axis=1)


def _spread_of_seeds(rows: pd.DataFrame) -> pd.Series:
    trained = rows.groupby(["method", "panel", "model_seed"])["value"].median()
    between = trained.groupby(["method", "panel"]).std()  # nan where there is one training
    return between.groupby("method").mean().rename("spread")


def wins(table: Medians) -> Bools:
    """(panels, methods): clearly better than every null of the panel but the oracle; all of them are one family."""
    return differences.wins(table.chance, sign=table.sign, null=table.null, rival=table.rival)


def losses(table: Medians) -> Bools:
    """(panels, methods, nulls): clearly worse than that null, of all but the oracle; all of them are one family."""
    return differences.losses(table.chance, sign=table.sign, null=table.null, rival=table.rival)
