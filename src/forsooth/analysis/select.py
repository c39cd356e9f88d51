"""A part of a run: the panels that the reader asks for, with the maps that ignore every model in all of them."""

import dataclasses
from collections.abc import Iterable, Mapping

from forsooth.names import admitted
from forsooth.records import NO_MODEL
from forsooth.report import Results
from forsooth.report.aggregate import choose, levels

Only = Mapping[str, str | Iterable[str]]


def narrowed(results: Results, only: Only) -> Results:
    """The run with the rows of these levels alone; nulls, whose model is "none", stay beside every model.

    only  factor -> value or values to keep, in capitals or not, e.g. {"scenario": "LIN", "model": ["mlp", "cnn"]}
    """
    rows = results.rows
    for factor, value in only.items():
        choose("only", factor, results.run["factors"])
        wanted = [_level(results, factor, word) for word in admitted(value)]
        if factor == "model":
            wanted.append(NO_MODEL)
        rows = rows[rows[factor].isin(wanted)]
    return dataclasses.replace(results, rows=rows)


def _level(results: Results, factor: str, word: str) -> str:
    """The level as the run writes it."""
    known = levels(results, factor)
    spelt = {level.lower(): level for level in known}
    return choose(factor, spelt.get(word.lower(), word), known)
