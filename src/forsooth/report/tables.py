"""Leaderboards, accuracies, failures and skips as tables: for the terminal, for Markdown, as csv."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from forsooth import papers
from forsooth.counted import ABSENT
from forsooth.records import SCORED
from forsooth.report.aggregate import Results, in_order, panel_names, text
from forsooth.report.medians import Medians

# suite -> level of `size` -> published table
PUBLISHED: Mapping[str, Mapping[str, str]] = {"xaitris": {"64": "xaitris_table_1", "8": "xaitris_table_b2"}}

MEANING = {
    "rank": "1 + how many do better; in brackets the 95 % interval, which holds for all methods at once",
    "method": "methods marked ○ are nulls: they never look at the model",
    "score": "mean over panels of the median over samples and trainings",
    "95 % interval": "of this score alone, over what the last column says",
    "group": "methods with the same letter cannot be told from the first of their letter",
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
    whole = line["panels"] == line["of"]
    rank = "" if pd.isna(line["rank"]) else f"{line['rank']} [{line['rank_low']}–{line['rank_high']}]"
    return {
        "rank": rank if whole or not rank else f"({rank})",
        "method": f"{line['method']}{' ○' if line['null'] else ''}",
        "score": number(line["score"]),
        "95 % interval": f"{number(line['low'])}–{number(line['high'])}",
        "group": str(line["group"]),
        "quartiles": f"{number(line['q1'])}–{number(line['q3'])}",
        "failed": share(line["failed"]),
        "gap": "" if pd.isna(line["gap"]) else f"{line['gap']:.0e}",
        "broken": "" if pd.isna(line["broken"]) else share(line["broken"]),
        "spread": "" if pd.isna(line["spread"]) else number(line["spread"]),
        "wins": "" if line["null"] else f"{line['wins']}",
        "panels": f"{line['panels']} of {line['of']}",
        "over": str(line["over"]),
    }


def number(value: Any, *, digits: int = 3) -> str:
    """That many decimals for scores of order 1, that many digits for others.

    >>> number(0.25), number(0.25, digits=2), number(1234.5), number(1e-7), number(float("nan"))
    ('0.250', '0.25', '1.23e+03', '1e-07', '?')
    """
    if value != value:
        return "?"
    size = abs(float(value))
    return f"{value:.{digits}f}" if size < 10 and (size >= 1e-3 or size == 0) else f"{value:.{digits}g}"


def share(value: Any) -> str:
    """A share in per cent; a little is not nothing.

    >>> share(0.0), share(0.001), share(0.396)
    ('0 %', '<1 %', '40 %')
    """
    part = float(value)
    return "<1 %" if 0 < part < 0.01 else f"{100 * part:.0f} %"


def console(board: pd.DataFrame, *, title: str, columns: int | None = None) -> Table:
    """The leaderboard for rich, or its first columns; nulls dim, tie groups apart."""
    table, words = Table(title=title, title_justify="left"), display(board).iloc[:, :columns]
    for column in words:
        table.add_column(
            column, justify="left" if column in ("method", "group") else "right", no_wrap=column == "method"
        )
    groups = board["group"].tolist()
    for k, values in enumerate(words.itertuples(index=False)):
        ends = k + 1 < len(groups) and groups[k + 1] != groups[k]
        table.add_row(*map(str, values), style="dim" if board["null"].iloc[k] else None, end_section=ends)
    return table


def markdown(board: pd.DataFrame) -> str:
    """The leaderboard as a Markdown table."""
    words = display(board)
    lines = [words.columns, ["---"] * len(words.columns), *words.itertuples(index=False)]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def csv(board: pd.DataFrame) -> str:
    """The leaderboard with all its digits."""
    return str(board.to_csv(index=False, lineterminator="\n"))


ACCURACIES = ("alpha", "trainings", "accuracy", "lowest", "highest", "below")


def accuracies(results: Results) -> pd.DataFrame:
    """Accuracy of the trained models in per cent, beside the published one where the paper prints one.

    Columns: the factors, alpha, trainings, accuracy (mean), lowest, highest, below (trainings under the gate),
    published_alpha, published, difference (ours minus theirs, in points).
    """
    factors = results.run["factors"]
    if not factors:
        return pd.DataFrame(columns=ACCURACIES)
    rows = results.rows
    rows = rows[rows["part"].eq("training") & rows["metric"].eq("accuracy")]
    rows = rows.assign(value=100 * rows["value"].astype(float), gated=rows["status"].eq("below gate"))
    if "alpha" not in rows:
        rows = rows.assign(alpha=np.nan)
    table = rows.groupby(factors, sort=False, as_index=False).agg(
        alpha=("alpha", "first"),
        trainings=("value", "size"),
        accuracy=("value", "mean"),
        lowest=("value", "min"),
        highest=("value", "max"),
        below=("gated", "sum"),
    )
    table = in_order(results, table)
    key = [table[factor].str.lower() for factor in factors]
    published = _published(results).reindex(pd.MultiIndex.from_arrays(key)).set_axis(table.index)
    return table.join(published).assign(difference=lambda both: both["accuracy"] - both["published"])


def _published(results: Results) -> pd.DataFrame:
    """published_alpha and published accuracy by the factors in lower case; no rows for other suites."""
    factors = results.run["factors"]
    tables = PUBLISHED.get(results.run["suite"], {}) if "size" in factors else {}
    parts = [papers.table(name).assign(size=size) for size, name in tables.items()]
    columns = ["published_alpha", "published"]
    if not parts:
        return pd.DataFrame(columns=columns, index=pd.MultiIndex.from_arrays([[] for _ in factors]), dtype=float)
    every = pd.concat(parts).rename(columns={"alpha": "published_alpha", "accuracy": "published"})
    return every.assign(**{name: every[name].str.lower() for name in factors}).set_index(factors)[columns]


def failures(tables: Sequence[Medians]) -> pd.DataFrame:
    """Samples that took part and got no score: method, status, message, metrics, panels, share of its samples."""
    if not tables:
        return pd.DataFrame(columns=["method", "status", "message", "metrics", "panels", "share"])
    every = pd.concat([table.rows.assign(metric=table.metric) for table in tables], ignore_index=True)
    key, whole = ["method", "status", "message"], every.groupby(["metric", "method"]).size()
    lost = every[every["failed"]]
    parts = []
    for names, group in lost.groupby(key, sort=False):
        per_metric = group.groupby("metric").size()
        shares = [count / whole[metric, names[0]] for metric, count in per_metric.items()]
        metrics = "all" if len(per_metric) == len(tables) else ", ".join(per_metric.index)
        parts.append((*names, metrics, group["panel"].nunique(), max(shares)))
    frame = pd.DataFrame(parts, columns=[*key, "metrics", "panels", "share"])
    return frame.sort_values("share", ascending=False, ignore_index=True)


def skips(results: Results) -> pd.DataFrame:
    """What took no part and why: what, status, message, times, where (a few panels by name)."""
    rows = results.rows
    gated = rows["part"].eq("sweep") & rows["status"].eq("below gate")  # a sweep is made to go below
    lost = ~rows["status"].isin(SCORED) & (~rows["part"].eq("scores") | rows["status"].isin(ABSENT))
    rows = rows[lost & ~gated]
    rows = rows.assign(what=rows["method"].mask(rows["method"].eq(""), rows["part"]), panel=panel_names(results, rows))
    parts = []
    for names, group in rows.groupby(["what", "status", "message"], sort=False):
        panels = group["panel"].unique()
        more = f" and {len(panels) - 6} more" if len(panels) > 6 else ""
        parts.append((*names, len(panels), ", ".join(panels[:6]) + more))
    return pd.DataFrame(parts, columns=["what", "status", "message", "panels", "where"])


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
