"""Box plots of the per-sample scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from pandas import DataFrame, Series

from forsooth.report.aggregate import Results
from forsooth.report.drawing import (
    INK,
    SHADES,
    Drawing,
    Tables,
    colours,
    name_style,
    note,
    outer_groups,
    present,
    roles,
    sheet,
)
from forsooth.report.leaderboard import board
from forsooth.report.medians import Medians
from forsooth.stats.intervals import Bounds
from forsooth.stats.panels import Floats
from forsooth.suites.xaitris.more_figures import accuracy_by_alpha, strategies

CAPTION = (
    "Quartiles (box), median (white tick), 5th and 95th percentile (line) over samples and trainings. Shading tells "
    "the {shade}. The dashed line is the best median among the nulls other than the oracle: a box that does not clear "
    "it says no more than a map that never looks at the model. Lines that leave the panel are cut."
)
Ends = tuple[Floats, Floats]  # x and y of many points
Colours = Sequence[str] | NDArray[np.str_]
QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]


def boxes(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Box plots as in Fig. 3 of [clark2024xaitris], one figure per metric and level of the outer factors.

    Departure: boxes lie on their side, so that each has its method's name beside it, and lines end at the 5th and
    95th percentile.
    """
    for metric, table in tables.items():
        for name, panels in outer_groups(results, table.panels):
            yield Drawing(
                name="_".join(["boxes", metric, *name]),
                title=" · ".join([f"{metric} of every method in every panel", *name]),
                caption=CAPTION.format(shade=roles(results)[2] or "panel"),
                alt=f"Box plots of {metric} for {len(table.methods)} methods in {len(panels)} panels",
                figure=_figure(results, table, panels),
            )


def _figure(results: Results, table: Medians, panels: DataFrame) -> Figure:
    layout = _layout(results, panels)
    order = _order(table)
    left = 0.5 + 0.066 * max(map(len, order))  # inches for the names
    width = left + 9.5 * min(1.0, len(layout.models) * len(layout.shades) / 6)
    figure = sheet(width, len(layout.rows) * (0.35 + 0.135 * len(order)) + 0.7)
    grid = _grid(figure, layout, left=left)
    quantiles = table.rows.groupby(["panel", "method"])["value"].quantile(QUANTILES).unstack()
    limits = _limits(quantiles)
    drawn: set[int] = set()
    for panel, factors in panels.iterrows():
        place = layout.place(factors)
        axis = figure.add_subplot(grid[place.row, place.column], facecolor=SHADES[place.shade % len(SHADES)])
        null = _best_null(table, table.panels.index.get_loc(panel))
        _boxes(axis, table, quantiles.loc[panel].reindex(order), null=null, limits=limits)
        if place.column not in drawn:
            _headings(axis, layout, place)
        if place.column == 0:
            _names(axis, table, order)
            _row_name(figure, axis, layout.rows[place.row])
        drawn.add(place.column)
    return figure


def _row_name(figure: Figure, axis: Axes, name: str) -> None:
    """The name of a row of axes, upright at the left."""
    place = axis.get_position()
    middle = (place.y0 + place.y1) / 2
    figure.text(0.01, middle, name, rotation=90, va="center", fontsize=10, fontweight="bold")


class Place(NamedTuple):
    """Where the boxes of one panel stand."""

    row: int
    shade: int
    model: int
    column: int


@dataclass(frozen=True)
class Layout:
    """Which factor gives rows and which shades, and their levels; models follow each other from left to right."""

    row: str | None
    shade: str | None
    rows: list[str]
    shades: list[str]
    models: list[str]

    def place(self, factors: Series) -> Place:
        shade = self.shades.index(factors.get(self.shade, ""))
        model = self.models.index(factors.get("model", ""))
        row = self.rows.index(factors.get(self.row, ""))
        return Place(row, shade, model, model * (len(self.shades) + 1) + shade)


def _layout(results: Results, panels: DataFrame) -> Layout:
    _, row, shade = roles(results)
    models = [""]
    if "model" in panels:
        models = panels["model"].value_counts(sort=True).index.tolist()
    return Layout(row, shade, _placed(results, row, panels), _placed(results, shade, panels), models)


def _placed(results: Results, factor: str | None, panels: DataFrame) -> list[str]:
    """The levels of a factor that have a place: those in order, and whatever else a panel of a damaged run says."""
    known = present(results, factor, panels)
    said = panels[factor].unique() if factor else []
    return known + [level for level in said if level not in known]


def _headings(axis: Axes, layout: Layout, place: Place) -> None:
    """The shade above a column, and the model above its first one."""
    note(axis, layout.shades[place.shade], (0.5, 1), (0, 5), align="center")
    if place.shade == 0:
        note(axis, layout.models[place.model], (0, 1), (0, 19), bold=True)


def _limits(quantiles: DataFrame) -> Bounds:
    """Room for all boxes and for lines up to a third of their range: one stray line must not flatten the rest."""
    low, q1, _, q3, high = quantiles.to_numpy().T
    least = q1.min()
    most = q3.max()
    room = (most - least) / 3 or 1.0
    return float(max(low.min(), least - room)), float(min(high.max(), most + room))


def _order(table: Medians) -> list[str]:
    """Methods, best first, then the nulls."""
    return list(board(table).sort_values("null", kind="stable")["method"])


def _grid(figure: Figure, layout: Layout, *, left: float) -> GridSpec:
    """A column per shade, with a narrow gap between models."""
    width, height = figure.get_size_inches()
    ratios = [*[1.0] * len(layout.shades), 0.15] * len(layout.models)
    return figure.add_gridspec(
        len(layout.rows),
        len(ratios) - 1,
        width_ratios=ratios[:-1],
        wspace=0.06,
        hspace=0.08,
        left=left / width,
        right=1 - 0.1 / width,
        top=1 - 0.5 / height,
        bottom=0.3 / height,
    )


def _boxes(axis: Axes, table: Medians, quantiles: DataFrame, *, null: float, limits: Bounds) -> None:
    """quantiles: a line per method, nan where it took no part. Boxes are thick lines: one artist, not thirty."""
    place = np.arange(len(quantiles), dtype=np.float64)
    span = (limits[1] - limits[0]) or 1.0  # one value only: any width will do
    low, q1, middle, q3, high = quantiles.to_numpy().T
    paint = colours(table.methods, table.nulls)
    colour = np.array([paint[method] for method in quantiles.index])
    tick = np.where(q3 - q1 > 0.02 * span, "#ffffff", colour)
    _lines(axis, (low, place), (high, place), colour, width=0.9)
    _lines(axis, (q1, place), (q3, place), colour, width=7)
    _lines(axis, (middle, place - 0.36), (middle, place + 0.36), tick, width=1.4)
    axis.axvline(null, color=INK, linestyle=(0, (3, 2)), linewidth=0.8)
    axis.set_ylim(len(quantiles) - 0.4, -0.6)
    axis.set_yticks([])
    _horizontal(axis, limits, span)


def _lines(axis: Axes, begin: Ends, end: Ends, colour: Colours, *, width: float) -> None:
    """Lines between points (x, y), each with its colour. Limits are set by hand: matplotlib would look at each line."""
    segments = np.stack([np.column_stack(begin), np.column_stack(end)], axis=1)
    axis.add_collection(LineCollection(list(segments), colors=list(colour), linewidths=width), autolim=False)


def _horizontal(axis: Axes, limits: Bounds, span: float) -> None:
    axis.set_xlim(limits[0] - 0.03 * span, limits[1] + 0.03 * span)
    ticks = np.asarray(MaxNLocator(3).tick_values(*limits))  # none near the ends: the next panel begins there
    axis.set_xticks(ticks[(ticks > limits[0] + 0.1 * span) & (ticks < limits[1] - 0.1 * span)])
    axis.grid(axis="x")


def _best_null(table: Medians, panel: int) -> float:
    """The best median of a null other than the oracle; nan where there is none."""
    nulls = table.value[panel, table.null & table.rival]
    if not np.isfinite(nulls).any():
        return np.nan
    return float(table.sign * np.nanmax(table.sign * nulls))


def _names(axis: Axes, table: Medians, order: Sequence[str]) -> None:
    """The names of methods at the left: as notes, which are made and drawn in a fifth of the time of ticks."""
    for place, method in enumerate(order):
        label = axis.annotate(
            method,
            (0, place),
            (-4, 0),
            axis.get_yaxis_transform(),
            "offset points",
            ha="right",
            va="center",
            fontsize=7.5,
        )
        name_style(label, null=table.nulls[method])


FIGURES = {
    "boxes": boxes,
    "accuracy_by_alpha": accuracy_by_alpha,
    "strategies": strategies,
}
