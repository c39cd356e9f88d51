"""Who is best, by how much, and how sure we are."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from forsooth.report.aggregate import Results, choose, levels
from forsooth.report.bootstrap import Floats, exceeds, interval, letters, ranks
from forsooth.report.medians import Medians, medians, where
from forsooth.report.promises import NO_GAPS, gap_table

COLUMNS = (
    *("method", "score", "low", "high", "q1", "median", "q3", "rank", "rank_low", "rank_high", "group"),
    *("failed", "gap", "broken", "spread", "panels", "of", "wins", "null"),
)


def leaderboard(results: Results, metric: str, by: str | None = None) -> pd.DataFrame:
    """One line per method, best first; with `by`, one leaderboard for each level of that factor, one below the other.

    score       mean over panels of the panel's median over samples and seeds
    low, high   95 % bootstrap interval over samples and seeds
    q1, median, q3  of all samples of all panels
    rank        1 + how many do better; the oracle is not ranked; rank_low, rank_high from the bootstrap
    group       tie group: a new letter where the paired difference to the group's first member excludes 0
    failed      share of samples without a score; they count as the worst value in the metric's bounds
    gap, broken median gap of methods that promise a sum, and share of samples where they miss it
    spread      standard deviation of the panel's median between trainings, mean over panels
    panels, of  in how many of the panels it took part
    wins        panels in which it is better, with an interval that excludes 0, than each null that is no oracle
    null        ignores the model

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
    score, drawn = _mean(table.value, part), _mean(table.draws, part)
    low, high = interval(drawn)
    rank, rank_low, rank_high = _ranks(table, part=part)
    frame = pd.DataFrame({"method": table.methods, "score": score, "low": low, "high": high})
    frame = frame.join(_spread_of_samples(table.rows), on="method")
    frame = frame.assign(
        rank=rank, rank_low=rank_low, rank_high=rank_high, group=_groups(table, score, drawn, complete)
    )
    frame = frame.join(table.rows.groupby("method")["failed"].mean(), on="method")
    frame = frame.join(gaps, on="method").join(_spread_of_seeds(table.rows), on="method")
    frame = frame.assign(panels=part.sum(axis=0), of=len(part), wins=wins(table).sum(axis=0), null=table.null)
    order = np.lexsort([-table.sign * score, table.rival, ~complete])
    ranked = ["rank", "rank_low", "rank_high"]
    return frame.iloc[order].astype(dict.fromkeys(ranked, "Int64")).reset_index(drop=True)


def _mean(values: Floats, part: NDArray[np.bool_]) -> Floats:
    """Mean over the panels that a method took part in: (panels, methods, ...) -> (methods, ...)."""
    shape = part.shape + (1,) * (values.ndim - 2)
    return np.where(part.reshape(shape), values, 0).sum(axis=0) / part.sum(axis=0).reshape(shape[1:])


def _ranks(table: Medians, *, part: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Rank and its interval for each rival (methods,), among all rivals that have its panels too."""
    rank, low, high = np.full((3, len(table.methods)), np.nan)
    for pattern in np.unique(part[:, table.rival], axis=1).T:
        pool = np.flatnonzero(table.rival & part[pattern].all(axis=0))
        own = (part[:, pool] == pattern[:, None]).all(axis=0)  # (pool,)
        first = ranks(table.sign * table.value[pattern][:, pool].mean(axis=0))[own]
        drawn = ranks(table.sign * table.draws[pattern][:, pool].mean(axis=0))[own]
        tails = np.quantile(drawn, [0.025, 0.975], axis=1, method="closest_observation")
        rank[pool[own]], low[pool[own]], high[pool[own]] = (
            first,
            np.minimum(tails[0], first),
            np.maximum(tails[1], first),
        )
    return rank, low, high


def _groups(table: Medians, score: Floats, drawn: Floats, complete: NDArray[np.bool_]) -> list[str]:
    """Tie group of each method; none for the oracle and for those that missed a panel."""
    names = [""] * len(score)
    order = np.argsort(-table.sign * score, kind="stable")
    order = order[(complete & table.rival)[order]]
    for method, letter in zip(order, letters(table.sign * drawn[order]), strict=True):
        names[method] = letter
    return names


def _spread_of_samples(rows: pd.DataFrame) -> pd.DataFrame:
    quartiles = rows.groupby("method")["value"].quantile([0.25, 0.5, 0.75]).unstack()
    return quartiles.set_axis(["q1", "median", "q3"], axis=1)


def _spread_of_seeds(rows: pd.DataFrame) -> pd.Series:
    trained = rows.groupby(["method", "panel", "model_seed"])["value"].median()
    between = trained.groupby(["method", "panel"]).std()  # nan where there is one training
    return between.groupby("method").mean().rename("spread")


def wins(table: Medians) -> NDArray[np.bool_]:
    """(panels, methods): better than every null of the panel but the oracle, each by an interval that excludes 0."""
    nulls = np.flatnonzero(table.null & table.rival)
    better = np.isfinite(table.value) & ~table.null & bool(len(nulls))
    for null in nulls:
        away = np.isnan(table.value[:, [null]])  # some nulls read images and take no part in tables
        better &= exceeds(table.sign * (table.draws - table.draws[:, [null]])) | away
    return better
