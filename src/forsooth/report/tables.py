"""Leaderboards, accuracies, failures and skips as tables: for the terminal and for Markdown."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas import DataFrame, Series, concat
from rich.table import Table

from forsooth import papers
from forsooth.counted import ABSENT
from forsooth.frames import lines_by, only
from forsooth.records import SCORED
from forsooth.report.aggregate import Record, Results, Values, Written, in_order, panel_names
from forsooth.report.medians import Medians
from forsooth.wording import markdown_table, number, share, text

# suite -> level of `size` -> published table
PUBLISHED: Mapping[str, Mapping[str, str]] = {"xaitris": {"64": "xaitris_table_1", "8": "xaitris_table_b2"}}

MEANING = {
    "rank": "1 + how many do better; in brackets the 95 % interval, which holds for all methods at once",
    "method": "methods marked ○ are nulls: they never look at the model",
    "score": "mean over panels of the median over samples and trainings",
    "95 % interval": "of this score alone, over what the last column says",
    "group": "methods with the same letter are indistinguishable from the first of their letter",
    "quartiles": "lower and upper quartile of all samples of all panels",
    "failed": "share of samples without a score; each counts as the worst possible value",
    "gap": "median completeness gap, of methods that promise one",
    "broken": "share of samples where a promised sum is missed",
    "spread": "standard deviation between trainings",
    "wins": "panels in which it is clearly better than every null",
    "panels": "panels it took part in",
    "over": "what the interval is over; over samples alone it cannot know how another training differs",
}


def display(board: DataFrame) -> DataFrame:
    """A leaderboard in words and rounded numbers, with the columns of `MEANING` (and the factor it was made by)."""
    rows = [_words(line) for line in board.to_dict("records")]
    by = [column for column in board.columns[:1] if column != "method"]
    return concat([board[by], DataFrame(rows, columns=list(MEANING), index=board.index)], axis=1)


def _words(line: Record) -> Written:
    return {
        "rank": _rank(line),
        "method": f"{line['method']} ○" if line["null"] else str(line["method"]),
        "score": number(line["score"]),
        "95 % interval": f"{number(line['low'])}–{number(line['high'])}",
        "group": str(line["group"]),
        "quartiles": f"{number(line['q1'])}–{number(line['q3'])}",
        "failed": share(line["failed"]),
        "gap": unless_missing(line["gap"], "{:.0e}".format),
        "broken": unless_missing(line["broken"], share),
        "spread": unless_missing(line["spread"], number),
        "wins": "" if line["null"] else str(line["wins"]),
        "panels": f"{line['panels']} of {line['of']}",
        "over": str(line["over"]),
    }


def _rank(line: Record) -> str:
    """The rank with its interval, in round brackets where a method missed some panels."""
    if pd.isna(line["rank"]):
        return ""
    rank = "{rank} [{rank_low}–{rank_high}]".format_map(line)
    return rank if line["panels"] == line["of"] else f"({rank})"


def unless_missing(value: Any, written: Callable[[Any], str]) -> str:
    """The value as it is written; empty where there is none."""
    return "" if pd.isna(value) else written(value)


def console(board: DataFrame, *, title: str, columns: int | None = None) -> Table:
    """The leaderboard for rich, or its first columns; nulls dim, tie groups apart."""
    words = display(board).iloc[:, :columns]
    table = Table(title=title, title_justify="left")
    for column in words:
        table.add_column(column, justify=JUSTIFIED.get(column, "right"), no_wrap=column == "method")
    ends = board["group"].ne(board["group"].shift(-1))  # of the last line it means nothing
    for values, null, end in zip(words.itertuples(index=False), board["null"], ends, strict=True):
        table.add_row(*map(str, values), style="dim" if null else None, end_section=end)
    return table


JUSTIFIED: Mapping[str, Literal["left"]] = {"method": "left", "group": "left"}


def markdown(board: DataFrame) -> str:
    """The leaderboard as a Markdown table."""
    words = display(board)
    return markdown_table(words.columns, words.itertuples(index=False)) + "\n"


ACCURACIES = {
    "alpha": ("alpha", "first"),
    "trainings": ("value", "size"),
    "accuracy": ("value", "mean"),
    "lowest": ("value", "min"),
    "highest": ("value", "max"),
    "below": ("gated", "sum"),
}


def accuracies(results: Results) -> DataFrame:
    """Accuracy of the trained models in per cent, beside the published one where the paper prints one.

    Columns: the factors, alpha, trainings, accuracy (mean), lowest, highest, below (trainings under the gate),
    published_alpha, published, difference (ours minus theirs, in points).
    """
    factors = results.run["factors"]
    if not factors:
        return DataFrame(columns=list(ACCURACIES))
    rows = only(results.rows, part="training", metric="accuracy")
    rows = rows.assign(value=100 * rows["value"].astype(float), gated=rows["status"].eq("below gate"))
    rows = rows.assign(alpha=rows.get("alpha", np.nan))
    table = in_order(results, rows.groupby(factors, sort=False, as_index=False).agg(**ACCURACIES))
    key = [table[factor].str.lower() for factor in factors]
    published = _published(results).reindex(pd.MultiIndex.from_arrays(key)).set_axis(table.index)
    return table.join(published).assign(difference=lambda both: both["accuracy"] - both["published"])


def _published(results: Results) -> DataFrame:
    """published_alpha and published accuracy by the factors in lower case; no rows for other suites."""
    factors = results.run["factors"]
    columns = ["published_alpha", "published"]
    nothing = DataFrame(columns=[*factors, *columns])
    every = nothing
    if results.run["suite"] in PUBLISHED and "size" in factors:
        tables = PUBLISHED[results.run["suite"]]
        every = concat([papers.table(name).assign(size=size) for size, name in tables.items()])
        every = every.rename(columns={"alpha": "published_alpha", "accuracy": "published"})
    if not set(factors) <= set(every) or every.duplicated(factors).any():
        every = nothing  # a run by other factors than the paper's
    key = [every[factor].str.lower() for factor in factors]
    return every[columns].astype(float).set_axis(pd.MultiIndex.from_arrays(key))


def failures(tables: Sequence[Medians]) -> DataFrame:
    """Samples that took part and got no score: method, status, message, metrics, panels, share of its samples."""
    columns = [*REASON, "metrics", "panels", "share"]
    if not tables:
        return DataFrame(columns=columns)
    every = concat([table.rows.assign(metric=table.metric) for table in tables], ignore_index=True)
    # of all samples that a method was asked about by a metric, the same at each of its lines
    every = every.assign(asked=every.groupby(["metric", "method"])["failed"].transform("size"))
    found = lines_by(every[every["failed"]], REASON, partial(_failure, of=len(tables)))
    return DataFrame(found.to_dict("records"), columns=columns).sort_values("share", ascending=False, ignore_index=True)


REASON = ["method", "status", "message"]


def _failure(lost: DataFrame, *, of: int) -> Values:
    """One line of `failures`: in which of so many metrics and how many panels, and the largest share of samples."""
    shares = lost.groupby("metric")["asked"].agg(lambda asked: len(asked) / asked.iloc[0])
    metrics = ", ".join(shares.index) if len(shares) < of else "all"
    return {"metrics": metrics, "panels": lost["panel"].nunique(), "share": shares.max()}


def skips(results: Results) -> DataFrame:
    """What took no part and why: what, status, message, where (the names of its panels)."""
    rows = _left_out(results.rows)
    what = rows["method"].mask(rows["method"].eq(""), rows["part"])
    rows = rows.assign(what=what, panel=panel_names(results, rows))
    key = ["what", "status", "message"]
    found = lines_by(rows, key, lambda own: {"where": list(own["panel"].unique())})
    return DataFrame(found.to_dict("records"), columns=[*key, "where"])


def _left_out(rows: DataFrame) -> DataFrame:
    """Rows of those who took no part."""
    swept = rows["part"].eq("sweep") & rows["status"].eq("below gate")  # a sweep is made to go below
    ranked = rows["part"].eq("scores") & ~rows["status"].isin(ABSENT)  # these are failures
    return rows[~rows["status"].isin(SCORED) & ~ranked & ~swept]


def times(results: Results) -> Series:
    """method -> seconds of computing, of the cells that hold one method alone."""
    rows = results.rows[["cell", "method"]].drop_duplicates()
    alone = rows[~rows["cell"].duplicated(keep=False) & ~rows["method"].eq("")]
    return alone.merge(results.timings, on="cell").groupby("method")["seconds"].sum()


def settings(record: Mapping[str, object]) -> str:
    """A record's settings in one line.

    >>> settings({"steps": 50, "baseline": "zeros"})
    'steps=50, baseline=zeros'
    """
    return ", ".join(f"{name}={text(value)}" for name, value in record.items())
