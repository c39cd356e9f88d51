"""Leaderboards, accuracies, failures and skips as tables: for the terminal, for Markdown, as csv."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from rich.table import Table

from forsooth import papers
from forsooth.counted import ABSENT
from forsooth.records import SCORED
from forsooth.report.aggregate import Results, in_order, panel_names
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


def display(board: pd.DataFrame) -> pd.DataFrame:
    """A leaderboard in words and rounded numbers, with the columns of `MEANING` (and the factor it was made by)."""
    rows = [_words(line) for line in board.to_dict("records")]
    by = [column for column in board.columns[:1] if column != "method"]
    return pd.concat([board[by], pd.DataFrame(rows, columns=list(MEANING), index=board.index)], axis=1)


def _words(line: Mapping[str, Any]) -> dict[str, str]:
    interval = f"{number(line['low'])}–{number(line['high'])}"
    return {
        "rank": _rank(line),
        "method": _name(line),
        "score": number(line["score"]),
        "95 % interval": interval,
        "group": str(line["group"]),
        "quartiles": f"{number(line['q1'])}–{number(line['q3'])}",
        "failed": share(line["failed"]),
        "gap": _unless_missing(line["gap"], "{:.0e}".format),
        "broken": _unless_missing(line["broken"], share),
        "spread": _unless_missing(line["spread"], number),
        "wins": _wins(line),
        "panels": f"{line['panels']} of {line['of']}",
        "over": str(line["over"]),
    }


def _rank(line: Mapping[str, Any]) -> str:
    """The rank with its interval, in round brackets where a method missed some panels."""
    if pd.isna(line["rank"]):
        return ""
    rank = f"{line['rank']} [{line['rank_low']}–{line['rank_high']}]"
    if line["panels"] == line["of"]:
        return rank
    return f"({rank})"


def _name(line: Mapping[str, Any]) -> str:
    if line["null"]:
        return f"{line['method']} ○"
    return str(line["method"])


def _wins(line: Mapping[str, Any]) -> str:
    if line["null"]:
        return ""
    return str(line["wins"])


def _unless_missing(value: Any, written: Callable[[Any], str]) -> str:
    if pd.isna(value):
        return ""
    return written(value)


def console(board: pd.DataFrame, *, title: str, columns: int | None = None) -> Table:
    """The leaderboard for rich, or its first columns; nulls dim, tie groups apart."""
    words = display(board).iloc[:, :columns]
    table = Table(title=title, title_justify="left")
    for column in words:
        table.add_column(column, justify=JUSTIFIED.get(column, "right"), no_wrap=column == "method")
    groups = [*board["group"], None]
    for k, values in enumerate(words.itertuples(index=False)):
        last = k + 1 == len(words)
        style = {True: "dim", False: None}[bool(board["null"].iloc[k])]
        table.add_row(*map(str, values), style=style, end_section=not last and groups[k + 1] != groups[k])
    return table


JUSTIFIED: Mapping[str, Literal["left"]] = {"method": "left", "group": "left"}


def markdown(board: pd.DataFrame) -> str:
    """The leaderboard as a Markdown table."""
    words = display(board)
    return markdown_table(words.columns, words.itertuples(index=False)) + "\n"


def csv(board: pd.DataFrame) -> str:
    """The leaderboard with all its digits."""
    return str(board.to_csv(index=False, lineterminator="\n"))


ACCURACIES = {
    "alpha": ("alpha", "first"),
    "trainings": ("value", "size"),
    "accuracy": ("value", "mean"),
    "lowest": ("value", "min"),
    "highest": ("value", "max"),
    "below": ("gated", "sum"),
}


def accuracies(results: Results) -> pd.DataFrame:
    """Accuracy of the trained models in per cent, beside the published one where the paper prints one.

    Columns: the factors, alpha, trainings, accuracy (mean), lowest, highest, below (trainings under the gate),
    published_alpha, published, difference (ours minus theirs, in points).
    """
    factors = results.run["factors"]
    if not factors:
        return pd.DataFrame(columns=list(ACCURACIES))
    rows = results.rows
    rows = rows[rows["part"].eq("training") & rows["metric"].eq("accuracy")]
    rows = rows.assign(value=100 * rows["value"].astype(float), gated=rows["status"].eq("below gate"))
    if "alpha" not in rows:
        rows = rows.assign(alpha=np.nan)
    table = in_order(results, rows.groupby(factors, sort=False, as_index=False).agg(**ACCURACIES))
    key = [table[factor].str.lower() for factor in factors]
    published = _published(results).reindex(pd.MultiIndex.from_arrays(key)).set_axis(table.index)
    return table.join(published).assign(difference=lambda both: both["accuracy"] - both["published"])


def _published(results: Results) -> pd.DataFrame:
    """published_alpha and published accuracy by the factors in lower case; no rows for other suites."""
    factors = results.run["factors"]
    columns = ["published_alpha", "published"]
    tables = PUBLISHED.get(results.run["suite"], {})
    nothing = pd.DataFrame(columns=columns, index=pd.MultiIndex.from_arrays([[] for _ in factors]), dtype=float)
    if not tables or "size" not in factors:
        return nothing
    parts = [papers.table(name).assign(size=size) for size, name in tables.items()]
    every = pd.concat(parts).rename(columns={"alpha": "published_alpha", "accuracy": "published"})
    if not set(factors) <= set(every) or every.duplicated(factors).any():
        return nothing  # a run by other factors than the paper's
    return every.assign(**{name: every[name].str.lower() for name in factors}).set_index(factors)[columns]


def failures(tables: Sequence[Medians]) -> pd.DataFrame:
    """Samples that took part and got no score: method, status, message, metrics, panels, share of its samples."""
    columns = [*REASON, "metrics", "panels", "share"]
    if not tables:
        return pd.DataFrame(columns=columns)
    every = pd.concat([table.rows.assign(metric=table.metric) for table in tables], ignore_index=True)
    asked = every.groupby(["metric", "method"]).size()
    lost = every[every["failed"]]
    lines = [_failure(reason, own, asked, of=len(tables)) for reason, own in lost.groupby(REASON, sort=False)]
    return pd.DataFrame(lines, columns=columns).sort_values("share", ascending=False, ignore_index=True)


REASON = ["method", "status", "message"]


def _failure(reason: tuple[str, ...], lost: pd.DataFrame, asked: pd.Series, *, of: int) -> tuple[Any, ...]:
    """One line of `failures`: of how many samples (metric, method) were asked, and how many metrics there are."""
    per_metric = lost.groupby("metric").size()
    shares = [count / asked[metric, reason[0]] for metric, count in per_metric.items()]
    metrics = "all"
    if len(per_metric) < of:
        metrics = ", ".join(per_metric.index)
    return (*reason, metrics, lost["panel"].nunique(), max(shares))


def skips(results: Results) -> pd.DataFrame:
    """What took no part and why: what, status, message, where (the names of its panels)."""
    rows = _left_out(results.rows)
    what = rows["method"].mask(rows["method"].eq(""), rows["part"])
    rows = rows.assign(what=what, panel=panel_names(results, rows))
    lines = []
    for reason, own in rows.groupby(["what", "status", "message"], sort=False):
        lines.append((*reason, list(own["panel"].unique())))
    return pd.DataFrame(lines, columns=["what", "status", "message", "where"])


def _left_out(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of those who took no part."""
    swept = rows["part"].eq("sweep") & rows["status"].eq("below gate")  # a sweep is made to go below
    ranked = rows["part"].eq("scores") & ~rows["status"].isin(ABSENT)  # these are failures
    return rows[~rows["status"].isin(SCORED) & ~ranked & ~swept]


def times(results: Results) -> pd.Series:
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
