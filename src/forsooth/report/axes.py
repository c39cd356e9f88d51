"""What figures of many axes share: names of lines, the marks of a legend, and its place in a strip below all axes."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from forsooth.report.drawing import colours, sheet

BROKEN = ("--", ":", "-.", (0, (8, 2)), (0, (4, 1, 1, 1, 1, 1)))  # lines of nulls, one after the other


class Look(NamedTuple):
    """How the points of one kind are drawn, and what they are called."""

    label: str
    colour: str
    marker: str


def marks(looks: Iterable[Look]) -> list[Line2D]:
    """What stands for each kind in a legend."""
    return [Line2D([], [], color=look.colour, marker=look.marker, linestyle="", label=look.label) for look in looks]


def grid(figure: Figure, rows: Sequence[str], columns: Sequence[str]) -> Mapping[tuple[str, str], Axes]:
    """Axes that share their scales, by the names of their row and of their column."""
    axes = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey=True)
    return dict(zip(itertools.product(rows, columns), axes.flat, strict=True))


def words_below(figure: Figure, words: str) -> None:
    """What the lowest axes of a grid have on their horizontal axis."""
    for axis in figure.axes:
        place = axis.get_subplotspec()
        if place is not None and place.is_last_row():
            axis.set_xlabel(words)


def names_beside(axis: Axes, names: Sequence[str]) -> None:
    """A line for each name, the first on top."""
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.grid(axis="x")


def wide_axes(lines: int) -> tuple[Figure, Axes]:
    """Axes beside which there is room for the names of so many lines."""
    figure = sheet(9.5, 0.9 + max(3.6, 0.19 * lines))
    axis = figure.subplots()
    axis.grid(axis="y")
    return figure, axis


def line_styles(methods: Mapping[str, bool]) -> dict[str, dict[str, Any]]:
    """How the line of each method is drawn: broken grey of one that never looks at the model, as its value says.

    Nulls share their grey, so each is broken in another way.
    """
    shade = colours(list(methods), methods)
    broken = itertools.cycle(BROKEN)
    return {name: {"color": shade[name], "linestyle": next(broken) if null else "-"} for name, null in methods.items()}


def legend_beside(figure: Figure, *, left: float) -> None:
    """The legend to the right of all axes, which are laid out in this share of the width."""
    figure.legend(loc="center right", frameon=False, fontsize=7)
    figure.tight_layout(rect=(0, 0, left, 1))


def legend_below(figure: Figure, *, room: float = 0.3, pad: float | None = None, **legend: Any) -> None:
    """The legend in a strip of `room` inches below all axes, which are laid out in what is left.

    pad  between axes, in letters; None: as matplotlib has it
    """
    figure.legend(loc="lower center", frameon=False, **legend)
    figure.tight_layout(rect=(0, room / figure.get_figheight(), 1, 1), h_pad=pad, w_pad=pad)
