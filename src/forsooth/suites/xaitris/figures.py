"""Box plots of the per-sample scores."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import MaxNLocator

from forsooth.report.aggregate import Results
from forsooth.report.drawing import (
    INK,
    MUTED,
    SHADES,
    Drawing,
    Tables,
    colours,
    note,
    outer_groups,
    present,
    roles,
    sheet,
)
from forsooth.report.leaderboard import board
from forsooth.report.medians import Medians

CAPTION = (
    "Quartiles (box), median (white tick), 5th and 95th percentile (line) over samples and trainings. Shading tells "
    "the {shade}. The dashed line is the best median among the nulls other than the oracle: a box that does not clear "
    "it says no more than a map that never looks at the model. Lines that leave the panel are cut."
)
QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]


def boxes(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Box plots as in Fig. 3 of [clark2024xaitris], one figure per metric and level of the outer factors.

    Departure: boxes lie on their side, so that each has its method's name beside it, and lines end at the 5th and
    95th percentile.
    """
    drawings = []
    for metric, table in tables.items():
        for name, panels in outer_groups(results, table.panels):
            drawings.append(
                Drawing(
                    name="_".join(["boxes", metric, *name]),
                    title=" · ".join([f"{metric} of every method in every panel", *name]),
                    caption=CAPTION.format(shade=roles(results)[2] or "panel"),
                    alt=f"Box plots of {metric} for {len(table.methods)} methods in {len(panels)} panels",
                    figure=_figure(results, table, panels),
                )
            )
    return tuple(drawings)


def _figure(results: Results, table: Medians, panels: pd.DataFrame) -> Figure:
    _, row, shade = roles(results)
    order, drawn = _order(table), set()
    rows, shades = present(results, row, panels), present(results, shade, panels)
    models = panels["model"].value_counts(sort=True).index.tolist() if "model" in panels else [""]
    left = 0.5 + 0.066 * max(map(len, order))  # inches for the names
    figure = sheet(left + 9.5 * min(1.0, len(models) * len(shades) / 6), len(rows) * (0.35 + 0.135 * len(order)) + 0.7)
    grid = _grid(figure, rows=len(rows), models=len(models), shades=len(shades), left=left)
    quantiles = table.rows.groupby(["panel", "method"])["value"].quantile(QUANTILES).unstack()
    limits = _limits(quantiles)
    for panel, factors in panels.iterrows():
        k, s = rows.index(factors.get(row, "")), shades.index(factors.get(shade, ""))
        model = factors.get("model", "")
        column = models.index(model) * (len(shades) + 1) + s
        axis = figure.add_subplot(grid[k, column])
        axis.set_facecolor(SHADES[s % len(SHADES)])
        null = _best_null(table, table.panels.index.get_loc(panel))
        _boxes(axis, table, quantiles.loc[panel].reindex(order), null=null, limits=limits)
        if column not in drawn:
            note(axis, shades[s], (0.5, 1), (0, 5), align="center")
            note(axis, model if s == 0 else "", (0, 1), (0, 19), bold=True)
        if column == 0:
            _names(axis, table, order)
            figure.text(0.01, _middle(axis), rows[k], rotation=90, va="center", fontsize=10, fontweight="bold")
        drawn.add(column)
    return figure


def _limits(quantiles: pd.DataFrame) -> tuple[float, float]:
    """Room for all boxes and for lines up to a third of their range: one stray line must not flatten the rest."""
    low, q1, _, q3, high = quantiles.to_numpy().T
    least, most = q1.min(), q3.max()
    room = (most - least) / 3 or 1.0
    return float(max(low.min(), least - room)), float(min(high.max(), most + room))


def _order(table: Medians) -> list[str]:
    """Methods, best first, then the nulls."""
    lines = board(table)
    return [*lines["method"][~lines["null"]], *lines["method"][lines["null"]]]


def _grid(figure: Figure, *, rows: int, models: int, shades: int, left: float) -> GridSpec:
    """A column per shade, with a narrow gap between models."""
    width, height = figure.get_size_inches()
    return figure.add_gridspec(
        rows,
        models * (shades + 1) - 1,
        width_ratios=([1.0] * shades + [0.15]) * (models - 1) + [1.0] * shades,
        wspace=0.06,
        hspace=0.08,
        left=left / width,
        right=1 - 0.1 / width,
        top=1 - 0.5 / height,
        bottom=0.3 / height,
    )


def _boxes(axis: Axes, table: Medians, quantiles: pd.DataFrame, *, null: float, limits: tuple[float, float]) -> None:
    """quantiles: a line per method, nan where it took no part. Boxes are thick lines: one artist, not thirty."""
    place, span = np.arange(len(quantiles)), (limits[1] - limits[0]) or 1.0  # one value only: any width will do
    low, q1, middle, q3, high = quantiles.to_numpy().T
    paint = colours(table.methods, dict(zip(table.methods, table.null, strict=True)))
    colour = np.array([paint[method] for method in quantiles.index])
    axis.hlines(place, low, high, color=colour, linewidth=0.9)
    axis.hlines(place, q1, q3, color=colour, linewidth=7)
    axis.vlines(
        middle, place - 0.36, place + 0.36, color=np.where(q3 - q1 > 0.02 * span, "#ffffff", colour), linewidth=1.4
    )
    axis.axvline(null, color=INK, linestyle=(0, (3, 2)), linewidth=0.8)
    axis.set_ylim(len(quantiles) - 0.4, -0.6)
    axis.set_yticks([])
    axis.set_xlim(limits[0] - 0.03 * span, limits[1] + 0.03 * span)
    ticks = np.asarray(MaxNLocator(3).tick_values(*limits))  # none near the ends: the next panel begins there
    axis.set_xticks(ticks[(ticks > limits[0] + 0.1 * span) & (ticks < limits[1] - 0.1 * span)])
    axis.grid(axis="x")


def _best_null(table: Medians, panel: int) -> float:
    """The best median of a null other than the oracle; nan where there is none."""
    nulls = table.value[panel, table.null & table.rival]
    return float(table.sign * np.nanmax(table.sign * nulls)) if np.isfinite(nulls).any() else np.nan


def _names(axis: Axes, table: Medians, order: Sequence[str]) -> None:
    axis.set_yticks(range(len(order)), order, fontsize=7.5)
    nulls = {method for method, null in zip(table.methods, table.null, strict=True) if null}
    for label, method in zip(axis.get_yticklabels(), order, strict=True):
        label.set_color(MUTED if method in nulls else INK)
        label.set_fontstyle("italic" if method in nulls else "normal")


def _middle(axis: Axes) -> float:
    """Height of the middle of the axes in the figure, from 0 to 1."""
    place = axis.get_position()
    return (place.y0 + place.y1) / 2


FIGURES = {
    "boxes": boxes,
}
