"""Figures that suites share, by the name that a suite writes into `exhibits`; a suite has its own in `figures.py`."""

from collections.abc import Callable, Iterable, Mapping

import matplotlib

from forsooth.report.aggregate import Results, choose
from forsooth.report.attention import attention
from forsooth.report.charts import accuracy, leaderboards
from forsooth.report.drawing import STYLE, Drawing, Tables
from forsooth.report.maps import examples, global_maps

Draw = Callable[[Results, Tables], Iterable[Drawing]]
FIGURES: Mapping[str, Draw] = {
    "leaderboard": leaderboards,
    "accuracies": accuracy,
    "examples": examples,
    "globals": global_maps,
    "attention": attention,
}


def draw(name: str, results: Results, tables: Tables, figures: Mapping[str, Draw] | None = None) -> tuple[Drawing, ...]:
    """The figures called `name`, shared ones or of `figures`; none where the run has no data for them."""
    known = {**FIGURES, **(figures or {})}
    with matplotlib.rc_context(STYLE):
        return tuple(known[choose("exhibits", name, known)](results, tables))
