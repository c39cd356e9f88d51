"""Figures of numbers: leaderboards and accuracies."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from pandas import DataFrame

from forsooth.report.aggregate import Record, Results, panel_names
from forsooth.report.axes import legend_below, names_beside
from forsooth.report.drawing import (
    BLUE,
    FAINT,
    INK,
    LINE,
    MUTED,
    NULL,
    VERMILION,
    Drawing,
    Tables,
    name_style,
    note,
    sheet,
)
from forsooth.report.leaderboard import board
from forsooth.report.tables import accuracies
from forsooth.stats.panels import Floats


def leaderboards(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Dot and interval for each method, best first, one column per metric."""
    boards = {metric: board(table) for metric, table in tables.items()}
    if not boards:
        return
    leads = "; ".join(f"{metric}: {', '.join(lines['method'][:5])}" for metric, lines in boards.items())
    yield Drawing(
        name="leaderboard",
        title="Scores with their intervals",
        caption="Score (dot) with its 95 % interval (dark line) and the quartiles of all samples (pale line). "
        "Bands and letters are tie groups: within a band, methods are indistinguishable from its first. "
        "Grey diamonds never look at the model. A fraction behind a name: it took part in some panels only.",
        alt=f"Methods ordered by score, best first. {leads}",
        figure=_boards(boards, tables),
    )


def _boards(boards: Mapping[str, DataFrame], tables: Tables) -> Figure:
    """Up to three boards side by side."""
    columns = min(3, len(boards))
    rows = -(-len(boards) // columns)
    width = 6.5 if columns == 1 else 11.4
    figure = sheet(width, rows * (0.9 + 0.205 * max(map(len, boards.values()))) + 0.2)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(boards) :]:
        axis.set_axis_off()
    for axis, (metric, lines) in zip(axes, boards.items(), strict=False):
        _dots(axis, lines)
        note(axis, metric, (1, 1), (0, 6), align="right", bold=True)  # over the names, which may leave the axis little
        axis.set_xlabel(DIRECTIONS[tables[metric].sign], loc="right", color=MUTED, fontsize=8)
    figure.legend(handles=DOT_LEGEND, loc="lower center", ncols=5, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight(), 1, 1), w_pad=2)
    return figure


DIRECTIONS = {1: "more is better →", -1: "← less is better"}


def _dots(axis: Axes, lines: DataFrame) -> None:
    place = np.arange(len(lines), dtype=float)
    partial = lines["panels"].lt(lines["of"]).to_numpy()
    place[partial] += 0.6
    _scores(axis, lines, place)
    _bands(axis, lines["group"].tolist(), place)
    axis.set_yticks(place, [_partial_name(line) for line in lines.to_dict("records")])
    for label, null in zip(axis.get_yticklabels(), lines["null"], strict=True):
        name_style(label, null=null)
    axis.set_ylim(place[-1] + 0.7, -0.7)
    axis.grid(axis="x")
    axis.spines["left"].set_visible(False)


def _scores(axis: Axes, lines: DataFrame, place: Floats) -> None:
    """Quartiles, interval and score of every method; nulls are grey diamonds."""
    colour = np.where(lines["null"], NULL, BLUE)
    axis.hlines(place, lines["q1"], lines["q3"], color=colour, alpha=0.28, linewidth=5)
    axis.hlines(place, lines["low"], lines["high"], color=np.where(lines["null"], MUTED, INK), linewidth=1.6)
    for null, marker in ((False, "o"), (True, "D")):
        chosen = lines["null"].eq(null).to_numpy()
        axis.scatter(lines["score"][chosen], place[chosen], marker=marker, color=colour[chosen], **DOT)


DOT: dict[str, Any] = {"s": 20, "edgecolor": "white", "linewidth": 0.7, "zorder": 3}


def _partial_name(line: Record) -> str:
    """The method; a fraction behind its name where it took part in some panels only."""
    if line["panels"] == line["of"]:
        return str(line["method"])
    return f"{line['method']} ({line['panels']}/{line['of']})"


def _bands(axis: Axes, groups: list[str], place: Floats) -> None:
    """A band behind every second tie group, and the group's letter at its right end."""
    for k, letter in enumerate(dict.fromkeys(group for group in groups if group)):
        own = [place[i] for i, group in enumerate(groups) if group == letter]
        if k % 2 == 0:
            axis.axhspan(own[0] - 0.5, own[-1] + 0.5, color=FAINT, linewidth=0, zorder=0)
        middle = (own[0] + own[-1]) / 2
        axis.annotate(letter, (1, middle), (4, 0), ("axes fraction", "data"), "offset points", va="center", color=MUTED)


DOT_LEGEND = (
    Line2D([], [], marker="o", color=BLUE, linestyle="", label="method"),
    Line2D([], [], marker="D", color=NULL, linestyle="", markersize=5, label="null (never looks at the model)"),
    Line2D([], [], color=INK, linewidth=1.6, label="95 % interval"),
    Line2D([], [], color=BLUE, alpha=0.28, linewidth=5, label="quartiles of samples"),
)


def accuracy(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Trained accuracy beside the published one, a line per panel."""
    table = accuracies(results)
    if table.empty:
        return
    figure = sheet(8, 0.9 + 0.215 * len(table))
    axis = figure.subplots()
    _accuracies(axis, table)
    gate_line(axis, results, vertical=True)
    names_beside(axis, panel_names(results, table))
    axis.set_xlabel("test accuracy, %")
    legend_below(figure, ncols=3)
    yield Drawing(
        name="accuracies",
        title="Trained accuracy beside the published one",
        caption="Mean test accuracy of our trainings (dot), their lowest and highest (pale line), and what the paper "
        "prints (diamond).",
        alt=f"Dot plot of test accuracy in {len(table)} panels, {table['published'].count()} of them published",
        figure=figure,
    )


def _accuracies(axis: Axes, table: DataFrame) -> None:
    place = np.arange(len(table))
    dot = "ours, mean (pale: lowest to highest training)"
    axis.hlines(place, table["lowest"], table["highest"], color=BLUE, alpha=0.3, linewidth=5)
    axis.scatter(table["accuracy"], place, s=32, color=BLUE, edgecolor="white", linewidth=0.7, zorder=3, label=dot)
    known = table["published"].notna().to_numpy()
    if known.any():
        _published(axis, table[known], place[known])


def _published(axis: Axes, table: DataFrame, place: NDArray[np.int64]) -> None:
    """What the paper prints, joined to ours by a line."""
    axis.hlines(place, table["published"], table["accuracy"], color=LINE, linewidth=1, zorder=1)
    look: dict[str, Any] = {"marker": "D", "facecolor": "white", "edgecolor": VERMILION, "linewidth": 1.4}
    axis.scatter(table["published"], place, s=34, zorder=4, label="published", **look)


def gate_line(axis: Axes, results: Results, *, vertical: bool) -> None:
    """A dashed line at the accuracy below which models are not explained."""
    gate = results.run["settings"].get("gate")
    if isinstance(gate, int | float):
        line = axis.axvline if vertical else axis.axhline
        line(100 * gate, color=MUTED, linestyle=(0, (4, 3)), linewidth=0.9, label="gate", zorder=1)
