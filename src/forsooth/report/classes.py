"""Who was explained and who helped: the samples of each class that took part, in words for the page."""

from collections.abc import Iterator

import pandas as pd

from forsooth.frames import only
from forsooth.report.aggregate import Results, panel_names
from forsooth.wording import text

ONE_BY_ONE = 4  # classes that are counted by name; of more, the least and the most are given
NO_FACTORS = ("role", "class", "count")


def classes(results: Results) -> pd.DataFrame:
    """One row for all panels with the same counts, one column for each role; no rows where a run kept no counts.

    Columns: panels (their names), then the roles ("explained", "background" …), each with its counts in words; ""
    where a panel has nobody in that role.
    """
    roles = list(dict.fromkeys(line["role"] for line in results.run["classes"]))
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, lines in _panels(results):
        words = tuple(_counts(only(lines, role=role)) for role in roles)
        alike.setdefault(words, []).append(name)
    rows = [(", ".join(dict.fromkeys(names)), *words) for words, names in alike.items()]
    return pd.DataFrame(rows, columns=["panels", *roles])


def _panels(results: Results) -> Iterator[tuple[str, pd.DataFrame]]:
    """The name of every panel, and the lines of `run.json["classes"]` that belong to it."""
    if not results.run["classes"]:
        return
    lines = pd.DataFrame(results.run["classes"])
    factors = [name for name in lines if name not in NO_FACTORS]
    if not set(factors) & set(results.run["factors"]):
        yield "all", lines
        return
    lines = lines.assign(**{name: lines[name].map(text) for name in factors})
    for _, panel in lines.groupby(factors, sort=False):
        yield panel_names(results, panel)[0] or "all", panel


def _counts(lines: pd.DataFrame) -> str:
    """The counts of one role: "T: 50, L: 50", or "100: 9 to 11 of each of 10 classes"."""
    if lines.empty:
        return ""
    counts = lines["count"]
    if len(lines) <= ONE_BY_ONE:
        return ", ".join(f"{name}: {count}" for name, count in zip(lines["class"], counts, strict=True))
    each = " to ".join(map(str, dict.fromkeys([counts.min(), counts.max()])))
    return f"{counts.sum()}: {each} of each of {len(lines)} classes"
