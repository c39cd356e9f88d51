"""Figures of numbers: leaderboards and accuracies."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from forsooth.report.aggregate import Results, levels, panel_names
from forsooth.report.drawing import (
    BLUE,
    FAINT,
    HUES,
    INK,
    LINE,
    MARKERS,
    MUTED,
    NULL,
    VERMILION,
    Drawing,
    Tables,
    note,
    outer_groups,
    present,
    roles,
    sheet,
)
from forsooth.report.leaderboard import board
from forsooth.report.tables import accuracies
from forsooth.stats.panels import Floats


def leaderboards(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Dot and interval for each method, best first, one column per metric."""
    boards = {metric: board(table) for metric, table in tables.items()}
    if not boards:
        return ()
    columns = min(3, len(boards))
    rows = -(-len(boards) // columns)
    figure = sheet(11.4 if columns > 1 else 6.5, rows * (0.9 + 0.205 * max(map(len, boards.values()))) + 0.2)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(boards) :]:
        axis.set_axis_off()
    for axis, (metric, lines) in zip(axes, boards.items(), strict=False):
        _dots(axis, lines)
        note(axis, metric, (0, 1), (0, 6), bold=True)
        note(axis, "more is better →" if tables[metric].sign > 0 else "← less is better", (1, 1), (0, 6), align="right")
    figure.legend(handles=_dot_legend(), loc="lower center", ncols=5, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight(), 1, 1), w_pad=2)
    leads = "; ".join(f"{metric}: {', '.join(lines['method'][:5])}" for metric, lines in boards.items())
    return (
        Drawing(
            name="leaderboard",
            title="Scores with their intervals",
            caption="Score (dot) with its 95 % interval (dark line) and the quartiles of all samples (pale line). "
            "Bands and letters are tie groups: within a band, methods cannot be told from the first of the band. "
            "Grey diamonds never look at the model. A fraction behind a name: it took part in some panels only.",
            alt=f"Methods ordered by score, best first. {leads}",
            figure=figure,
        ),
    )


def _dots(axis: Axes, lines: pd.DataFrame) -> None:
    place = np.arange(len(lines), dtype=float)
    partial = lines["panels"].lt(lines["of"]).to_numpy()
    place[partial] += 0.6
    colour = np.where(lines["null"], NULL, BLUE)
    axis.hlines(place, lines["q1"], lines["q3"], color=colour, alpha=0.28, linewidth=5)
    axis.hlines(place, lines["low"], lines["high"], color=np.where(lines["null"], MUTED, INK), linewidth=1.6)
    for null, marker in ((False, "o"), (True, "D")):
        chosen = lines["null"].eq(null).to_numpy()
        axis.scatter(
            lines["score"][chosen],
            place[chosen],
            s=20,
            marker=marker,
            color=colour[chosen],
            edgecolor="white",
            linewidth=0.7,
            zorder=3,
        )
    _bands(axis, lines["group"].tolist(), place)
    names = [
        f"{line.method} ({line.panels}/{line.of})" if line.panels < line.of else line.method
        for line in lines.itertuples()
    ]
    axis.set_yticks(place, names)
    for label, null in zip(axis.get_yticklabels(), lines["null"], strict=True):
        label.set_color(MUTED if null else INK)
        label.set_fontstyle("italic" if null else "normal")
    axis.set_ylim(place[-1] + 0.7, -0.7)
    axis.grid(axis="x")
    axis.spines["left"].set_visible(False)


def _bands(axis: Axes, groups: list[str], place: Floats) -> None:
    """A band behind every second tie group, and the group's letter at its right end."""
    for k, letter in enumerate(dict.fromkeys(group for group in groups if group)):
        own = [place[i] for i, group in enumerate(groups) if group == letter]
        if k % 2 == 0:
            axis.axhspan(own[0] - 0.5, own[-1] + 0.5, color=FAINT, linewidth=0, zorder=0)
        middle = (own[0] + own[-1]) / 2
        axis.annotate(letter, (1, middle), (4, 0), ("axes fraction", "data"), "offset points", va="center", color=MUTED)


def _dot_legend() -> list[Line2D]:
    return [
        Line2D([], [], marker="o", color=BLUE, linestyle="", label="method"),
        Line2D([], [], marker="D", color=NULL, linestyle="", markersize=5, label="null (never looks at the model)"),
        Line2D([], [], color=INK, linewidth=1.6, label="95 % interval"),
        Line2D([], [], color=BLUE, alpha=0.28, linewidth=5, label="quartiles of samples"),
    ]


def accuracy(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Trained accuracy beside the published one, a line per panel."""
    table = accuracies(results)
    if table.empty:
        return ()
    figure = sheet(8, 0.9 + 0.215 * len(table))
    axis = figure.subplots()
    _accuracies(axis, table)
    _gate(axis, results, vertical=True)
    axis.set_yticks(range(len(table)), panel_names(results, table))
    axis.set_ylim(len(table) - 0.4, -0.6)
    axis.set_xlabel("test accuracy, %")
    axis.grid(axis="x")
    figure.legend(loc="lower center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight(), 1, 1))
    return (
        Drawing(
            name="accuracies",
            title="Trained accuracy beside the published one",
            caption="Mean test accuracy of our trainings (dot), their lowest and highest (pale line), and what the "
            "paper prints (diamond).",
            alt=f"Dot plot of test accuracy in {len(table)} panels, {table['published'].count()} of them published",
            figure=figure,
        ),
    )


def _accuracies(axis: Axes, table: pd.DataFrame) -> None:
    place, known = np.arange(len(table)), table["published"].notna().to_numpy()
    ours, theirs = table["accuracy"].to_numpy(), table["published"].to_numpy()
    dot, diamond = "ours, mean (pale: lowest to highest training)", "published"
    axis.hlines(place, table["lowest"], table["highest"], color=BLUE, alpha=0.3, linewidth=5)
    axis.scatter(ours, place, s=32, color=BLUE, edgecolor="white", linewidth=0.7, zorder=3, label=dot)
    if known.any():
        axis.hlines(place[known], theirs[known], ours[known], color=LINE, linewidth=1, zorder=1)
        look: dict[str, Any] = {"marker": "D", "facecolor": "white", "edgecolor": VERMILION, "linewidth": 1.4}
        axis.scatter(theirs[known], place[known], s=34, zorder=4, label=diamond, **look)


def _gate(axis: Axes, results: Results, *, vertical: bool) -> None:
    """A dashed line at the accuracy below which models are not explained."""
    gate = results.run["settings"].get("gate")
    if isinstance(gate, int | float):
        line = axis.axvline if vertical else axis.axhline
        line(100 * gate, color=MUTED, linestyle=(0, (4, 3)), linewidth=0.9, label="gate", zorder=1)


def accuracy_by_alpha(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Accuracy against the signal-to-noise ratio, as in Fig. B2 of [clark2024xaitris]."""
    rows = results.rows
    rows = rows[rows["part"].eq("sweep") & rows["metric"].eq("accuracy") & rows["value"].notna()]
    drawings = []
    for name, group in outer_groups(results, rows):
        figure = _sweep(results, group)
        drawings.append(
            Drawing(
                name="_".join(["accuracy_by_alpha", *name]),
                title=" · ".join(["Accuracy against the strength of the signal", *name]),
                caption="Mean test accuracy for each signal-to-noise ratio α, lowest and highest training (band).",
                alt=f"Curves of test accuracy against alpha for the models {', '.join(group['model'].unique())}",
                figure=figure,
            )
        )
    return tuple(drawings)


def _sweep(results: Results, rows: pd.DataFrame) -> Figure:
    _, row, shade = roles(results)
    tops, columns = present(results, row, rows), present(results, shade, rows)
    figure = sheet(1 + 2.6 * len(tops), 0.8 + 1.7 * len(columns))
    axes = figure.subplots(len(columns), len(tops), squeeze=False, sharex=True, sharey=True)
    for (k, column), (j, top) in product(enumerate(columns), enumerate(tops)):
        own = rows[(rows[row].eq(top) if row else True) & (rows[shade].eq(column) if shade else True)]
        _curves(axes[k, j], results, own)
        if k == 0:
            note(axes[k, j], top, (0.5, 1), (0, 6), align="center", bold=True)
        if j == 0:
            axes[k, j].set_ylabel(f"{column}\ntest accuracy, %" if column else "test accuracy, %")
        if k == len(columns) - 1:
            axes[k, j].set_xlabel("α")
    axes[0, 0].set_ylim(100 * min(0.5, rows["value"].min()) - 5, 103)  # shared by all
    handles = {
        label: handle for axis in axes.ravel() for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=6, frameon=False)
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight(), 1, 1))
    return figure


def _curves(axis: Axes, results: Results, rows: pd.DataFrame) -> None:
    for k, model in enumerate(levels(results, "model")):
        curve = rows[rows["model"].eq(model)].groupby("alpha")["value"].agg(["mean", "min", "max"]) * 100
        if len(curve):
            axis.fill_between(curve.index, curve["min"], curve["max"], color=HUES[k % 6], alpha=0.18, linewidth=0)
            axis.plot(
                curve.index,
                curve["mean"],
                color=HUES[k % 6],
                marker=MARKERS[k % 6],
                markersize=3.5,
                linewidth=1.4,
                label=model,
            )
    _gate(axis, results, vertical=False)
    axis.grid()
