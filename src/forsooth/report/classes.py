"""Who was explained and who helped: the samples of each class that took part, in words for the page."""

from collections.abc import Iterator

from pandas import DataFrame

from forsooth.frames import only
from forsooth.names import grouped
from forsooth.report.aggregate import Results, panel_names
from forsooth.wording import by_name, with_text

ONE_BY_ONE = 4  # classes that are counted by name; of more, the least and the most are given
NO_FACTORS = ("role", "class", "count")


def classes(results: Results) -> DataFrame:
    """One row for all panels with the same counts, one column for each role; no rows where a run kept no counts.

    Columns: panels (their names), then the roles ("explained", "background" …), each with its counts in words; ""
    where a panel has nobody in that role.
    """
    roles = list(dict.fromkeys(line["role"] for line in results.run["classes"]))
    panels = [(tuple(_counts(only(lines, role=role)) for role in roles), name) for name, lines in _panels(results)]
    rows = [(", ".join(dict.fromkeys(names)), *words) for words, names in grouped(panels).items()]
    return DataFrame(rows, columns=["panels", *roles])


def _panels(results: Results) -> Iterator[tuple[str, DataFrame]]:
    """The name of every panel, and the lines of `run.json["classes"]` that belong to it."""
    if not results.run["classes"]:
        return
    lines = DataFrame(results.run["classes"])
    factors = [name for name in lines if name not in NO_FACTORS]
    if not set(factors) & set(results.run["factors"]):
        yield "all", lines
        return
    for _, panel in with_text(lines, factors).groupby(factors, sort=False):
        yield panel_names(results, panel)[0] or "all", panel


def _counts(lines: DataFrame) -> str:
    """The counts of one role: "T: 50, L: 50", or "100: 9 to 11 of each of 10 classes"."""
    if lines.empty:
        return ""
    counts = lines["count"]
    if len(lines) <= ONE_BY_ONE:
        return by_name(lines.set_index("class")["count"], "{}: {}")
    each = " to ".join(map(str, dict.fromkeys([counts.min(), counts.max()])))
    return f"{counts.sum()}: {each} of each of {len(lines)} classes"
