"""Figures of the planted suite: Attr% against whatever an experiment varies, and accuracies against p*."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from pandas import DataFrame

from forsooth.frames import only
from forsooth.records import Names
from forsooth.report.aggregate import Results, methods_in
from forsooth.report.axes import Look, grid, legend_below, marks, names_beside, words_below
from forsooth.report.drawing import BLUE, GREEN, INK, MUTED, ORANGE, VERMILION, Drawing, Tables, present, sheet
from forsooth.scores.planted import shapley_range
from forsooth.suites.planted.tables import model_means

PRESENCE = {"with": (BLUE, "o"), "without": (ORANGE, "x")}
COLUMNS = ("experiment", "presence", "er", "level", "r", "accuracy", "epoch", "kind", "p_star", "manipulation")
P_STAR = "p*: without the artefact at most"
VARIED = {"5.3": ", level {0.level:.0f}", "5.4": ", r {0.r:g}, {0.kind}"}  # experiment -> what tells its trainings
STYLES = {"distinct": "--"}  # kind of classes -> line


@dataclass(frozen=True)
class Curve:
    """One experiment as a grid of small axes, a row per method and a column per manipulation.

    x, along  column on the horizontal axis, and the one that orders the points of a line; None: no lines
    """

    name: str
    parts: Names
    x: str
    along: str | None
    label: str
    title: str
    caption: str
    metric: str = "attr"
    shaded: bool = False


SEEN = "Blue dots: images with the artefact; orange crosses: images without. "
GREY = "Dashed grey: what a constant or random map scores. "
CURVES = (
    Curve(
        "planted_regions",
        ("scores", "absence"),
        "er",
        None,
        "%ER",
        title="Attribution on the region against its size",
        caption="Each point is one model: the share of |attribution| that lies in the joint effective region, against "
        f"the share of the image that the region takes. {SEEN}The model can be right only by this region, so 1 is "
        "right; the diagonal is a random map (Fig. 3, left, and Fig. 10 of the paper).",
    ),
    Curve(
        "planted_checkpoints",
        ("checkpoints",),
        "accuracy",
        "epoch",
        "test accuracy",
        title="Attribution on the region while the model learns",
        caption=f"Each line is one training, at its checkpoints. {SEEN}{GREY}The better the model, the more must come "
        "from the region (Fig. 3, right, and Fig. 13 of the paper).",
    ),
    Curve(
        "planted_visibility",
        ("visibility",),
        "level",
        "level",
        "level of visibility",
        title="Attribution on the region against the visibility of the artefact",
        caption=f"Each line is one region, with a model for each level, 0 being the least visible. {SEEN}{GREY}A good "
        "method does not depend on it (Fig. 4, left, and Fig. 11 of the paper).",
    ),
    Curve(
        "planted_r",
        ("r",),
        "r",
        "r",
        "r",
        title="Attribution on the region against what the original image tells",
        caption="Labels are kept with probability r, so that the original image tells more. Green: the range of "
        f"Shapley values of a perfect model, 1.5 − r and above. {SEEN}Dashed lines: distinct classes (Fig. 4, right, "
        "and Fig. 12 of the paper).",
        shaded=True,
    ),
    Curve(
        "planted_border",
        ("border",),
        "accuracy",
        "epoch",
        "test accuracy",
        title="Attribution on a border that tells nothing",
        caption="A white border is painted on random images. Each line is one training, at its checkpoints: the share "
        "of |attribution| on the border. Blue dots: images with the border; orange crosses: images without. "
        f"{GREY}The better the model, the nearer to 0 it should come.",
        metric="attr_non_informative",
    ),
)


def planted_curves(results: Results, tables: Tables) -> Iterator[Drawing]:
    """The figures of 5.1 to 5.4 and of the border, for every model, where the run has their rows."""
    if set(COLUMNS) <= set(results.rows.columns):
        for curve in CURVES:
            yield from drawings_of(curve, results)


def drawings_of(curve: Curve, results: Results) -> Iterator[Drawing]:
    """A figure for every model."""
    points = model_means(only(results.rows, part=curve.parts), curve.metric)
    several = points["model"].nunique() > 1
    for model, own in points.groupby("model", sort=False):
        yield Drawing(
            name=f"{curve.name}_{model}" if several else curve.name,
            title=f"{curve.title}: {model}" if several else curve.title,
            caption=curve.caption,
            alt=f"Grid of charts of Attr% against {curve.label} for {', '.join(own['method'].unique())}",
            figure=curves_figure(results, own, curve),
        )


def curves_figure(results: Results, points: DataFrame, curve: Curve) -> Figure:
    methods = methods_in(results, points)
    kinds = present(results, "manipulation", points)
    figure = sheet(max(5.2, 2.1 + 1.65 * len(kinds)), 1.0 + 1.05 * len(methods))
    for (method, kind), axis in grid(figure, methods, kinds).items():
        draw_panel(axis, only(points, method=method, manipulation=kind), curve)
        if kind == kinds[0]:
            axis.set_ylabel(method, rotation=0, ha="right", va="center", fontsize=7.5)
        if method == methods[0]:
            axis.set_title(kind, fontsize=8.5)
    words_below(figure, curve.label)
    set_limits(figure.axes[0], points, curve)
    legend_below(figure, pad=0.4, handles=handles(curve), ncols=4)
    return figure


def set_limits(axis: Axes, points: DataFrame, curve: Curve) -> None:
    """Limits and ticks, which all axes share."""
    most = 1.0
    if curve.metric != "attr":
        most = float(points[["value", "er"]].max().max())
    axis.set_ylim(-0.03 * most, 1.06 * most)
    if curve.x == "er":
        axis.set_xlim(0, 1)
        axis.set_xticks([0, 0.5, 1])
    elif curve.x == "level":
        axis.set_xticks(sorted(points["level"].unique()))


def draw_panel(axis: Axes, points: DataFrame, curve: Curve) -> None:
    """One method on one manipulation, and what a random map would score there."""
    axis.locator_params(axis="y", nbins=3)
    axis.grid(axis="y")
    draw_reference(axis, points, curve)
    for (_, kind, presence), line in points.groupby(["model_seed", "kind", "presence"], sort=False):
        colour, marker = PRESENCE[presence]
        style = "none"
        if curve.along is not None:
            style = STYLES.get(kind, "-")
            line = line.sort_values(curve.along)
        axis.plot(
            line[curve.x],
            line["value"],
            color=colour,
            marker=marker,
            linestyle=style,
            linewidth=1.0,
            markersize=3.5,
        )


def draw_reference(axis: Axes, points: DataFrame, curve: Curve) -> None:
    """What a map should score, or a random one does."""
    if curve.x == "er":
        axis.plot([0, 1], [0, 1], color=VERMILION, linewidth=0.8)
        axis.axhline(1, color=GREEN, linewidth=0.8)
    elif curve.shaded:
        ends = [0.5, 1.0]
        least, most = zip(*(shapley_range(r) for r in ends), strict=True)
        axis.fill_between(ends, least, most, color=GREEN, alpha=0.18, linewidth=0)
    elif len(points):
        axis.axhline(points["er"].mean(), color=MUTED, linestyle=(0, (4, 3)), linewidth=0.8)


def handles(curve: Curve) -> list[Artist]:
    what = "artefact" if curve.metric == "attr" else "border"
    points = marks(Look(f"{presence} the {what}", *look) for presence, look in PRESENCE.items())
    if curve.shaded:
        return [*points, Patch(color=GREEN, alpha=0.18, label="Shapley range")]
    if curve.x == "er":
        right = Line2D([], [], color=GREEN, label="right")
        return [*points, Line2D([], [], color=VERMILION, label="random map"), right]
    return [*points, Line2D([], [], color=MUTED, linestyle="--", label="random map")]


def planted_gate(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Accuracy of every trained model beside p*, the most that a model could reach without the artefact."""
    rows = results.rows
    if not set(COLUMNS) <= set(rows.columns):
        return
    rows = only(rows, metric="accuracy").dropna(subset="p_star")
    if rows.empty:
        return
    gated = rows["status"].ne("ok").sum()
    yield Drawing(
        name="planted_gate",
        title="Does the model use the artefact?",
        caption="Test accuracy of every model (dots) and p* (tick), the most that one can expect who knows the "
        "original image only. A model counts if chance would hardly bring it so far; hollow ones are not explained. "
        "Where p* is 100 % nobody can beat it, and a good model is enough.",
        alt=f"Dot plot of {len(rows)} accuracies beside p*, {gated} of them do not count",
        figure=gate_figure(rows),
    )


def gate_figure(rows: DataFrame) -> Figure:
    """A line for each kind of training, a dot for each training."""
    names = [line_name(row) for row in rows.itertuples()]
    lines = list(dict.fromkeys(names))
    figure = sheet(8, 1.1 + 0.215 * len(lines))
    axis = figure.subplots()
    draw_trainings(axis, rows.assign(line=[lines.index(name) for name in names]))
    names_beside(axis, lines)
    axis.set_xlabel("test accuracy, %")
    legend_below(figure, room=0.35, pad=0.4, ncols=3)
    return figure


def draw_trainings(axis: Axes, rows: DataFrame) -> None:
    """Accuracy and p* of every training on its line; hollow where it does not count."""
    axis.scatter(100 * rows["p_star"], rows["line"], marker="|", s=90, color=INK, label=P_STAR)
    passed = rows["status"].eq("ok")
    for label, colour, own in (("does not count", "#ffffff", rows[~passed]), ("counts", BLUE, rows[passed])):
        axis.scatter(100 * own["value"], own["line"], s=26, color=colour, edgecolor=BLUE, label=label, zorder=3)


def line_name(row: Any) -> str:
    """What the line of a training is called; row: of the table."""
    return ("{0.experiment} {0.manipulation}" + VARIED.get(row.experiment, "")).format(row)


FIGURES = {
    "planted_curves": planted_curves,
    "planted_gate": planted_gate,
}
