"""Who is best, by how much, and how sure we are."""

from collections.abc import Mapping

import numpy as np
from pandas import DataFrame, concat

from forsooth.report.aggregate import Results, choose, levels
from forsooth.report.medians import Medians, medians, where
from forsooth.report.promises import NO_GAPS, gap_table
from forsooth.stats import differences
from forsooth.stats.boards import quartiles, spread_of_trainings
from forsooth.stats.differences import Bools

Boards = Mapping[str, DataFrame]  # metric -> its leaderboard
RANKS = ["rank", "rank_low", "rank_high"]
COLUMNS = (
    *("method", "score", "low", "high", "over", "q1", "median", "q3", "rank", "rank_low", "rank_high", "group"),
    *("failed", "gap", "broken", "spread", "panels", "of", "wins", "null"),
)


def leaderboard(results: Results, metric: str, by: str | None = None) -> DataFrame:
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
    if table.panels.empty:
        return DataFrame(columns=COLUMNS if by is None else [by, *COLUMNS])
    if by is None:
        return board(table, gaps=gap_table(results.rows))
    choose("by", by, results.run["factors"])
    return concat(boards_by(results, table, by), names=[by]).reset_index(by).reset_index(drop=True)


def boards_by(results: Results, table: Medians, factor: str) -> dict[str, DataFrame]:
    """The leaderboard of each level of a factor that has one."""
    gaps = gap_table(results.rows)
    found = {}
    for level in levels(results, factor):
        own = table.panels[factor].eq(level).to_numpy()
        if own.any():
            found[level] = board(where(table, own), gaps=gaps)
    return found


def board(table: Medians, *, gaps: DataFrame = NO_GAPS) -> DataFrame:
    """The leaderboard over all panels of `table`; gaps as from `gap_table`."""
    found = table.standings
    low, high = np.clip([found.score - found.half, found.score + found.half], *table.bounds)
    frame = DataFrame({"method": table.methods, "score": found.score, "low": low, "high": high, "over": found.over})
    frame = frame.join(quartiles(table.rows), on="method")
    frame[RANKS] = found.ranks.T
    frame["group"] = found.groups
    failed = table.rows.groupby("method")["failed"].mean()  # the share of samples without a score
    for beside in (failed, gaps, spread_of_trainings(table.rows)):
        frame = frame.join(beside, on="method")
    frame = frame.assign(panels=found.panels, of=len(table.panels), wins=table.wins.sum(axis=0), null=table.null)
    return frame.iloc[found.order].astype(dict.fromkeys(RANKS, "Int64")).reset_index(drop=True)


def losses(table: Medians) -> Bools:
    """(panels, methods, nulls): clearly worse than that null, of all but the oracle; all of them are one family."""
    return differences.losses(table.chance, sign=table.sign, null=table.null, rival=table.rival)
