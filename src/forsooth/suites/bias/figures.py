"""Figures of scores against a share of players: one line per method."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from forsooth.report.aggregate import Results, levels
from forsooth.report.drawing import INK, MUTED, NULL, Drawing, Tables, colours, note, sheet
from forsooth.report.medians import CEILING, Medians
from forsooth.stats.panels import Floats

FACTORS = ("dataset", "model", "player")


def bias_curves(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """M_bias of the top and of the bottom p % against p, as Fig. 7 of [anonymous2023evaluation]; one figure a panel."""
    table = tables.get("relative_bias")
    if table is None:
        return ()
    drawings = []
    for key, panels in table.panels.groupby(list(FACTORS), sort=False):
        words = _words(key)
        drawings.append(
            Drawing(
                name="_".join(["bias", *map(str, key)]),
                title=f"Bias of the top and of the bottom: {words}",
                caption=f"{words}. Left: the p % of players that a method ranks highest; right: those it ranks lowest. "
                "The height is how far their mean attribution is from what their Shapley values say, in units of what "
                "a "
                "constant map gives to each player; median over inputs. Lower is better. Dashed grey: maps that never "
                "look "
                "at the model. Black: Shapley values sampled a second time, the best that this anchor can certify.",
                alt=f"Two line charts of bias against the share of players for {words}",
                figure=_figure(results, table, panels),
            )
        )
    return tuple(drawings)


def _words(key: tuple[str, ...]) -> str:
    dataset, model, player = key
    return f"{dataset}, {model}" + (", units of a layer" if player == "units" else "")


def _figure(results: Results, table: Medians, panels: pd.DataFrame) -> Figure:
    figure = sheet(10.5, 3.9)
    left, right = figure.subplots(1, 2, sharey=True)
    null = dict(zip(table.methods, table.null, strict=True))
    shade = colours([m for m in table.methods if m not in CEILING], null)
    shown: dict[str, float] = {}
    for axis, end in ((left, "top"), (right, "bottom")):
        own = panels[panels["end"].eq(end)]
        own = own.assign(p=own["fraction"].astype(float)).sort_values("p")
        for k, method in enumerate(table.methods):
            heights = table.value[own.index, k]
            if pd.isna(heights).all():
                continue
            shown[method] = shown.get(method, 0.0) + float(pd.Series(heights).mean())
            _line(axis, 100 * own["p"], heights, method=method, null=bool(null[method]), colour=shade.get(method, INK))
        note(axis, f"{end} p %", (0, 1), (0, 6), bold=True)
        axis.set_xlabel("p, % of players")
        axis.set_xticks([100 * float(f) for f in levels(results, "fraction")])
        axis.grid(axis="y")
    left.set_ylabel("relative bias")
    left.set_ylim(bottom=0)  # shared, and after all lines: earlier it would stop at the first
    handles = [_handle(m, null=bool(null[m]), colour=shade.get(m, INK)) for m in sorted(shown, key=lambda m: shown[m])]
    figure.legend(handles=handles, loc="center right", frameon=False, fontsize=7.5)
    figure.tight_layout(rect=(0, 0, 0.83, 1))
    return figure


def _style(method: str, *, null: bool, colour: str) -> dict[str, Any]:
    if method in CEILING:
        return {"color": INK, "linewidth": 2.0, "linestyle": "-"}
    return {"color": NULL if null else colour, "linewidth": 1.1 if null else 1.5, "linestyle": "--" if null else "-"}


def _line(axis: Axes, x: pd.Series, y: Floats, *, method: str, null: bool, colour: str) -> None:
    axis.plot(x, y, marker="o", markersize=2.5, **_style(method, null=null, colour=colour))


def _handle(method: str, *, null: bool, colour: str) -> Line2D:
    label = f"{method} ○" if null else method
    return Line2D([], [], label=label, markerfacecolor=MUTED, **_style(method, null=null, colour=colour))


FIGURES = {
    "bias_curves": bias_curves,
}
