"""Figures of the BAM suite: what the networks need, contrasts with their baselines, series over k, curves over t.

All numbers come from `tables`, as those of the reproductions do.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame, concat

from forsooth.frames import only, without
from forsooth.report.aggregate import Results, methods_in, nulls_in
from forsooth.report.axes import Look, legend_below, legend_beside, line_styles, marks, names_beside, wide_axes
from forsooth.report.drawing import BLUE, INK, MUTED, NULL, ORANGE, VERMILION, Drawing, Tables, note, sheet
from forsooth.stats.bootstrap import TRIALS
from forsooth.suites.bam import tables as numbers
from forsooth.suites.bam.tasks import UNFAMILIAR

COLUMNS = {"comparison", "placing", "mask", "k", "net", "shown", "first", "second"}
METRICS = {"mcs": "MCS", "idr": "IDR", "iir": "IIR, t = 10 %"}
NO_DIFFERENCE = {"mcs": 0.0, "idr": 0.5, "iir": 0.0}
PERCENT = range(1, 101)
THRESHOLDS = [percent / 100 for percent in PERCENT]


SHOWN = {
    "os": Look("object in scene", BLUE, "o"),
    "s": Look("scene alone", ORANGE, "s"),
    "og": Look("object alone", VERMILION, "^"),
}
MARKS = (
    Look("method", BLUE, "s"),
    Look("never looks at the model", NULL, "s"),
    Look("random mask", ORANGE, "|"),
    Look("other size or place", VERMILION, "^"),
)


Drawn = tuple[int, Figure] | None  # how much is shown, and the figure; None where there is nothing to show


class Exhibit(NamedTuple):
    """A figure for each architecture.

    alt   with the places {count} and {model}
    draw  (results, rows of one architecture) -> what is drawn
    """

    name: str
    title: str
    caption: str
    alt: str
    draw: Callable[[Results, DataFrame], Drawn]


def draw_exhibit(results: Results, tables: Tables, *, exhibit: Exhibit) -> Iterator[Drawing]:
    """The figure of every architecture, whose name is behind its own where there are several."""
    rows = results.rows
    if not set(rows.columns) >= COLUMNS:  # of a run of another suite
        return
    models = without(rows, model="")["model"].unique()
    for model in models:
        drawn = exhibit.draw(results, only(rows, model=model))
        if drawn is not None:
            count, figure = drawn
            name = exhibit.name + f"_{model}" * (len(models) > 1)
            yield Drawing(name, exhibit.title, exhibit.caption, exhibit.alt.format(count=count, model=model), figure)


def in_order(results: Results, table: DataFrame) -> dict[str, bool]:
    """The methods of a table as the run lists them, TCAV last: name -> whether it never looks at the model."""
    order = {name: name in nulls_in(results) for name in methods_in(results, table)}
    if table["method"].eq(numbers.TCAV).any():
        order[numbers.TCAV] = False
    return order


def verification(results: Results, rows: DataFrame) -> Drawn:
    """Fig. 2: test accuracy of every network with and without the common feature."""
    table = numbers.verification_table(rows)
    if table.empty:
        return None
    nets = list(dict.fromkeys(table["net"]))
    rises = only(table, metric="confidence_rises").set_index("net")["value"]
    strange = only(table, metric="unfamiliar").set_index(["net", "shown"])["value"]
    figure = sheet(7.5, 1.3 + 0.27 * len(nets))
    axis = figure.subplots()
    for line in only(table, metric="accuracy").itertuples():
        look = SHOWN[line.shown]
        face = "white" if strange.get((line.net, line.shown), 0.0) > UNFAMILIAR else look.colour
        place = (100 * line.value, nets.index(line.net))
        axis.scatter(*place, s=34, marker=look.marker, color=face, edgecolor=look.colour, zorder=3)
    labels = {net: f"{net} ({share:.0%} rise)" for net, share in rises.items()}
    names_beside(axis, [labels.get(net, net) for net in nets])
    axis.set(xlim=(-3, 103), xlabel="test accuracy, %")
    legend_below(figure, room=0.34, handles=marks(SHOWN.values()), ncols=len(SHOWN))
    return len(nets), figure


def contrasts(results: Results, rows: DataFrame) -> Drawn:
    """Figs. 4, 8 and 10: MCS, IDR and IIR as bars, with random masks and other places beside."""
    tables = {metric: numbers.contrast_table(rows, metric) for metric in METRICS}
    everyone = concat(tables.values())
    if everyone.empty:
        return None
    methods = in_order(results, everyone)
    figure = sheet(11.4, 1.3 + 0.25 * len(methods))
    axes = figure.subplots(1, len(METRICS), sharey=True)
    names_beside(axes[0], list(methods))
    for axis, (metric, words) in zip(axes, METRICS.items(), strict=True):
        note(axis, words, (0, 1), (0, 6), bold=True)
        axis.grid(axis="x")
        axis.axvline(NO_DIFFERENCE[metric], color=MUTED, linewidth=0.8)
        for line in tables[metric].to_dict("records"):
            method = line["method"]
            bar(axis, line, list(methods).index(method), null=methods[method])
    legend_below(figure, room=0.34, handles=marks(MARKS), ncols=len(MARKS))
    return len(methods), figure


def bar(axis: Axes, line: Mapping[str, Any], place: int, *, null: bool) -> None:
    """One method in one metric: a line of `contrast_table`."""
    if np.isnan(line["value"]):
        return
    axis.barh(place, line["value"], height=0.62, color=NULL if null else BLUE, alpha=0.75)
    if np.isfinite(line["low"]):
        axis.hlines(place, line["low"], line["high"], color=INK, linewidth=1.4)
    if np.isfinite(line["sd"]):
        edge = np.nanmax([line["high"], 0])
        axis.annotate(f"{line['sd']:.2f}", (edge, place), (3, 0), "data", "offset points", va="center", fontsize=6)
    axis.scatter(line["random_mask"], place, marker="|", s=110, color=ORANGE)
    moved = [value for name, value in line.items() if name.startswith("at_")]
    axis.scatter(moved, [place] * len(moved), marker="^", s=16, color=VERMILION, zorder=3)


def series(results: Results, rows: DataFrame) -> Drawn:
    """Figs. 6 and 13: MCS against the commonality k, and the accuracy drop that it should follow."""
    drop = numbers.drop_table(rows)
    if len(drop) < numbers.LEAST_KS:
        return None
    table = numbers.series_table(rows)
    if table.empty:
        return None
    looks = styles(in_order(results, table))
    table = table.set_index("method")
    figure, axis = wide_axes(len(looks))
    axis.plot(drop["k"], drop["value"], color=INK, linestyle="--", linewidth=2, label="accuracy drop")
    means = table[[f"k_{k:g}" for k in drop["k"]]]
    for method, look in looks.items():
        rho = table.loc[method, "rho"]
        label = method if np.isnan(rho) else f"{method} {rho:+.2f}"
        axis.plot(drop["k"], means.loc[method].astype(float), marker="o", markersize=3, label=label, **look)
    axis.set(xlabel="k, share of classes that have the feature", ylabel="MCS; accuracy drop")
    legend_beside(figure, left=0.7)
    return len(looks), figure


def styles(methods: Mapping[str, bool]) -> dict[str, dict[str, Any]]:
    """How the line of each method is drawn: that of TCAV, which has no map, is dotted."""
    looks = line_styles(methods)
    if numbers.TCAV in looks:
        looks[numbers.TCAV]["linestyle"] = ":"
    return looks


def patches(results: Results, rows: DataFrame) -> Drawn:
    """IIR against the threshold t."""
    own = numbers.taking_part(only(rows, part="samples", metric="iir"), "iir")
    if own.empty:
        return None
    looks = styles(in_order(results, own))
    figure, axis = wide_axes(len(looks))
    for method, look in looks.items():
        rates = numbers.iir_over_thresholds(only(own, method=method), THRESHOLDS)
        axis.plot(PERCENT, rates, label=method, **look)
    axis.axvline(10, color=MUTED, linewidth=0.8)
    axis.set(xlabel="threshold t, % of the saliency before", ylabel="IIR", ylim=(-0.02, 1.02))
    legend_beside(figure, left=0.7)
    return len(looks), figure


EXHIBITS = (
    Exhibit(
        name="bam_verification",
        title="What the networks need",
        caption="Test accuracy with object and scene, with the scene alone, and with the object alone on grey. f_o "
        "learns the object, f_s the scene, f_0 scenes without objects. Right of the names: the share of correctly "
        "classified images whose confidence rises when what should not matter is taken away. Below, f_s_k: the first "
        "scene class, for networks that saw the common feature in the share k of the classes; the gap is how much "
        "they need it. Hollow: the network is far more unsure than on its own test images, so the set is out of its "
        "distribution.",
        alt="Dot plot of accuracies of {count} networks of {model}",
        draw=verification,
    ),
    Exhibit(
        name="bam_contrasts",
        title="Contrasts between models and between inputs",
        caption="Mean over correctly classified images, with its 95 % interval over images and trainings; the number "
        f"is the standard deviation over {TRIALS} trials. TCAV's interval is over inputs and random sets. Orange "
        "ticks: the same with a random mask instead of the object. Red triangles: objects of other sizes or in other "
        "places. MCS: object in f_o less object in f_s. IDR: the object is given less than the scene it covers; chance "
        "is a half. IIR: a patch without function changes the saliency of its place by less than 10 %. Grey: maps that "
        "never look at the model; a constant map has the best IIR.",
        alt="Bars of MCS, IDR and IIR for {count} methods on {model}",
        draw=contrasts,
    ),
    Exhibit(
        name="bam_series",
        title="The more common a feature, the less it matters",
        caption="MCS between a network that saw the common feature in the share k of the classes and one that saw it "
        "in all of them. Dashed black: how much the accuracy of the first class drops when the feature is taken away. "
        "Behind a name: Pearson's correlation with the drop. Dashed grey: maps that never look at the model.",
        alt="Line chart of MCS against k for {count} methods on {model}",
        draw=series,
    ),
    Exhibit(
        name="bam_patches",
        title="Patches that are seen but change nothing",
        caption="The share of scenes in which a functionless patch changes the saliency of its place by less than t, "
        "against t; the line at 10 % is the paper's threshold. A method that draws attention to the patch stays low. "
        "Dashed grey: maps that never look at the model.",
        alt="Line chart of IIR against the threshold for {count} methods on {model}",
        draw=patches,
    ),
)
FIGURES = {exhibit.name: partial(draw_exhibit, exhibit=exhibit) for exhibit in EXHIBITS}
