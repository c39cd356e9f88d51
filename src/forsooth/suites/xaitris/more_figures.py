"""Figures beside the scores: accuracy against the strength of the signal, and what the scores reward."""

from collections.abc import Iterable, Iterator
from itertools import cycle
from textwrap import wrap

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from forsooth.frames import only
from forsooth.report import maps, walls
from forsooth.report.aggregate import Results, levels
from forsooth.report.axes import grid, legend_below, words_below
from forsooth.report.charts import gate_line
from forsooth.report.drawing import HUES, MARKERS, Drawing, Tables, note, outer_groups, present, roles, sheet
from forsooth.wording import number


def accuracy_by_alpha(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Accuracy against the signal-to-noise ratio, as in Fig. B2 of [clark2024xaitris]."""
    rows = only(results.rows, part="sweep", metric="accuracy").dropna(subset="value")
    for name, group in outer_groups(results, rows):
        yield Drawing(
            name="_".join(["accuracy_by_alpha", *name]),
            title=" · ".join(["Accuracy against the strength of the signal", *name]),
            caption="Mean test accuracy for each signal-to-noise ratio α, lowest and highest training (band).",
            alt=f"Curves of test accuracy against alpha for the models {', '.join(group['model'].unique())}",
            figure=_sweep(results, group),
        )


def _sweep(results: Results, rows: DataFrame) -> Figure:
    """A row of axes for each level of one factor, a column for each of another."""
    _, across, down = roles(results)
    tops = present(results, across, rows)
    sides = present(results, down, rows)
    figure = sheet(1 + 2.6 * len(tops), 0.8 + 1.7 * len(sides))
    for (side, top), axis in grid(figure, sides, tops).items():
        factors = {factor: level for factor, level in ((across, top), (down, side)) if factor}
        _curves(axis, results, only(rows, **factors))
        if side == sides[0]:
            note(axis, top, (0.5, 1), (0, 6), align="center", bold=True)
        if top == tops[0]:
            axis.set_ylabel(f"{side}\ntest accuracy, %".lstrip())
    words_below(figure, "α")
    figure.axes[0].set_ylim(100 * min(0.5, rows["value"].min()) - 5, 103)  # shared by all
    entries = _entries(figure.axes)
    legend_below(figure, handles=list(entries.values()), labels=list(entries), ncols=6)
    return figure


def _entries(axes: Iterable[Axes]) -> dict[str, Artist]:
    """Every line once by its label, though it stands in many axes."""
    found = [zip(*axis.get_legend_handles_labels(), strict=True) for axis in axes]
    return {label: handle for entries in found for handle, label in entries}


def _curves(axis: Axes, results: Results, rows: DataFrame) -> None:
    looks = zip(levels(results, "model"), cycle(HUES), cycle(MARKERS), strict=False)
    for model, colour, marker in looks:
        curve = only(rows, model=model).groupby("alpha")["value"].agg(["mean", "min", "max"]) * 100
        if curve.empty:
            continue
        axis.fill_between(curve.index, curve["min"], curve["max"], color=colour, alpha=0.18, linewidth=0)
        axis.plot(curve.index, curve["mean"], color=colour, label=model, marker=marker, markersize=3.5, linewidth=1.4)
    gate_line(axis, results, vertical=False)
    axis.grid()


def strategies(results: Results, tables: Tables) -> Iterator[Drawing]:
    """What the scores say of maps drawn by hand, as Fig. B3 of [clark2024xaitris]."""
    pictures = walls.pictures(results)
    rows = only(results.rows, part="strategies")
    outer = roles(results)[0]
    for name, group in outer_groups(results, rows):
        shown = only(pictures, kind="strategy", method=group["method"])
        if outer:
            shown = shown.merge(group[[*outer]].drop_duplicates())
        if shown.empty:
            continue
        yield Drawing(
            name="_".join(["strategies", *name]),
            title=" · ".join(["What the scores reward", *name]),
            caption="Maps drawn by hand and what the scores make of them.",
            alt="Hand-made maps with their scores: " + ", ".join(shown["method"].unique()),
            figure=_row_of_maps(results, shown.drop_duplicates("method"), group),
        )


def _row_of_maps(results: Results, pictures: DataFrame, rows: DataFrame) -> Figure:
    """The pictures side by side, each with its name above and its scores below."""
    figure = sheet(1.75 * len(pictures), 2.85)
    axes = figure.subplots(1, len(pictures), squeeze=False)[0]
    for axis, picture in zip(axes, pictures.itertuples(), strict=True):
        axis.imshow(maps.painted(results.pictures[picture.tensor], picture.method), interpolation="nearest")
        axis.set_axis_off()
        axis.set_title("\n".join(wrap(picture.method, 18)), fontsize=9)
        words = _scores(rows, picture.method)
        axis.text(0.5, -0.06, words, transform=axis.transAxes, ha="center", va="top", fontsize=8.5, linespacing=1.4)
    figure.subplots_adjust(left=0.02, right=0.98, top=0.84, bottom=0.27, wspace=0.12)
    return figure


def _scores(rows: DataFrame, method: str) -> str:
    scores = only(rows, method=method).groupby("metric", sort=False)["value"].mean()
    return "\n".join(f"{metric} {number(value, digits=2)}" for metric, value in scores.items())
