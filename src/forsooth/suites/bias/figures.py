"""Figures of scores against a share of players: one line per method."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame, Series

from forsooth.frames import only
from forsooth.report.aggregate import Results, levels
from forsooth.report.axes import line_styles
from forsooth.report.drawing import INK, MUTED, Drawing, Tables, note, sheet
from forsooth.report.medians import CEILING, Medians
from forsooth.stats.panels import Floats

Styles = dict[str, dict[str, Any]]  # method -> how its line is drawn
OF_CEILING = {"color": INK, "linewidth": 2.0, "linestyle": "-"}
FACTORS = ("dataset", "model", "player")


def bias_curves(results: Results, tables: Tables) -> Iterator[Drawing]:
    """M_bias of the top and of the bottom p % against p, as Fig. 7 of [anonymous2023evaluation]; one figure a panel."""
    table = tables.get("relative_bias")
    if table is not None:
        ticks = [100 * float(fraction) for fraction in levels(results, "fraction")]
        for key, own in table.panels.groupby(list(FACTORS), sort=False):
            yield drawing(key, table, own, ticks)


def drawing(key: tuple[str, ...], table: Medians, panels: DataFrame, ticks: list[float]) -> Drawing:
    dataset, model, player = key
    words = f"{dataset}, {model}{', units of a layer' if player == 'units' else ''}"
    return Drawing(
        name="_".join(["bias", *key]),
        title=f"Bias of the top and of the bottom: {words}",
        caption="Left: the p % of players that a method ranks highest; right: those it ranks lowest. The "
        "height is how far their mean attribution is from what their Shapley values say, in units of what a constant "
        "map gives to each player; median over inputs. Lower is better. Dashed grey: maps that never look at the "
        "model. Black: Shapley values sampled a second time, the best that this anchor can certify.",
        alt=f"Two line charts of bias against the share of players for {words}",
        figure=_figure(table, panels, ticks),
    )


class Curve(NamedTuple):
    """The line of one method: shares p (%) and heights (k,) at one end."""

    method: str
    p: Series
    heights: Floats


def curves(table: Medians, panels: DataFrame, end: str) -> Iterator[Curve]:
    """The curves of one panel, of methods that have a score anywhere."""
    own = only(panels, end=end)
    own = own.assign(p=own["fraction"].astype(float)).sort_values("p")
    for k, method in enumerate(table.methods):
        heights = table.value[own.index, k]
        if not pd.isna(heights).all():
            yield Curve(method, 100 * own["p"], heights)


def _figure(table: Medians, panels: DataFrame, ticks: list[float]) -> Figure:
    figure = sheet(10.5, 3.9)
    axes = dict(zip(("top", "bottom"), figure.subplots(1, 2, sharey=True), strict=True))
    styles = _styles(table)
    total: dict[str, float] = {}
    for end, axis in axes.items():
        for curve in curves(table, panels, end):
            total[curve.method] = total.get(curve.method, 0.0) + float(Series(curve.heights).mean())
            axis.plot(curve.p, curve.heights, marker="o", markersize=2.5, **styles[curve.method])
        _label(axis, end, ticks)
    axes["top"].set_ylabel("relative bias")
    axes["top"].set_ylim(bottom=0)  # shared, and after all lines: earlier it would stop at the first
    _legend(figure, styles, sorted(total, key=total.__getitem__), table)
    figure.tight_layout(rect=(0, 0, 0.83, 1))
    return figure


def _legend(figure: Figure, styles: Styles, methods: list[str], table: Medians) -> None:
    """The methods from the lowest line to the highest; those that never look at the model have a ring."""
    handles = []
    for method in methods:
        label = f"{method} ○" if table.nulls[method] else method
        handles.append(Line2D([], [], label=label, markerfacecolor=MUTED, **styles[method]))
    figure.legend(handles=handles, loc="center right", frameon=False, fontsize=7.5)


def _label(axis: Axes, end: str, ticks: list[float]) -> None:
    note(axis, f"{end} p %", (0, 1), (0, 6), bold=True)
    axis.set_xlabel("p, % of players")
    axis.set_xticks(ticks)
    axis.grid(axis="y")


def _styles(table: Medians) -> Styles:
    """How the line of each method is drawn."""
    looks = line_styles({method: null for method, null in table.nulls.items() if method not in CEILING})
    styles = {method: {**look, "linewidth": 1.1 if table.nulls[method] else 1.5} for method, look in looks.items()}
    return styles | dict.fromkeys(CEILING, OF_CEILING)


FIGURES = {
    "bias_curves": bias_curves,
}
