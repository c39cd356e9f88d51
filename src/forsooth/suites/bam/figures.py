"""Figures of the BAM suite: what the networks need, contrasts with their baselines, series over k, curves over t."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from forsooth.report.aggregate import Results, with_failures
from forsooth.report.drawing import (
    BLUE,
    INK,
    MUTED,
    NULL,
    ORANGE,
    VERMILION,
    Drawing,
    Tables,
    colours,
    note,
    sheet,
)

COLUMNS = ("comparison", "placing", "mask", "k", "net", "shown", "first", "second")
SHOWN = {
    "os": ("object in scene", BLUE, "o"),
    "s": ("scene alone", ORANGE, "s"),
    "og": ("object alone", VERMILION, "^"),
}
METRICS = {"mcs": "MCS", "idr": "IDR", "iir": "IIR, t = 10 %"}
CONCEPT = ("concept_inputs", "concept_sets")  # parts of the rows: TCAV's MCS by each of its sources of chance
TRIALS, SIZE = 10, 100  # of which the paper prints standard deviations
THRESHOLDS = np.linspace(0.01, 1, 100)


def _rows(results: Results, model: str | None = None) -> pd.DataFrame:
    """The rows of the run, where it is one of this suite; else none."""
    rows = results.rows
    if not set(COLUMNS) <= set(rows.columns):
        return rows.iloc[:0]
    return rows if model is None else rows[rows["model"].eq(model)]


def _each_model(results: Results) -> list[tuple[str, str, pd.DataFrame]]:
    """Each architecture with its rows, and what to put behind names where there are several."""
    rows = _rows(results)
    models = [str(model) for model in rows["model"].unique() if model]
    return [(model, f"_{model}" if len(models) > 1 else "", _rows(results, model)) for model in models]


def bam_verification(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Fig. 2: test accuracy of every network with and without the common feature."""
    drawings = []
    for model, end, rows in _each_model(results):
        told = rows[rows["part"].eq("verification")]
        if told.empty:
            continue
        drawings.append(
            Drawing(
                name=f"bam_verification{end}",
                title="What the networks need",
                caption="Test accuracy with object and scene, with the scene alone, and with the object alone on grey. "
                "f_o learns the object, f_s the scene, f_0 scenes without objects. Right of the names: the share of "
                "correctly classified images whose confidence rises when what should not matter is taken away. Below, "
                "f_s_k: the first scene class, for networks that saw the common feature in the share k of the classes; "
                "the gap is how much they need it. Hollow: the network is far more unsure than on its own test images, "
                "so the set is out of its distribution.",
                alt=f"Dot plot of accuracies of {told['net'].nunique()} networks of {model}",
                figure=_verification(told),
            )
        )
    return tuple(drawings)


def _verification(told: pd.DataFrame) -> Figure:
    told = told.groupby(["net", "shown", "metric"], sort=False, as_index=False)["value"].mean()  # over trainings
    nets = list(dict.fromkeys(told["net"]))
    rises = told[told["metric"].eq("confidence_rises")].set_index("net")["value"]
    strange = told[told["metric"].eq("unfamiliar")].set_index(["net", "shown"])["value"]
    figure = sheet(7.5, 1.3 + 0.27 * len(nets))
    axis = figure.subplots()
    for line in told[told["metric"].eq("accuracy")].itertuples():
        _, colour, marker = SHOWN[line.shown]
        hollow = strange.get((line.net, line.shown), 0.0) > 0.15
        face = "white" if hollow else colour
        axis.scatter(
            100 * line.value, nets.index(line.net), s=34, marker=marker, color=face, edgecolor=colour, zorder=3
        )
    labels = [f"{net} ({rises[net]:.0%} rise)" if net in rises.index else net for net in nets]
    axis.set_yticks(range(len(nets)), labels)
    axis.set_ylim(len(nets) - 0.4, -0.6)
    axis.set_xlim(-3, 103)
    axis.set_xlabel("test accuracy, %")
    axis.grid(axis="x")
    handles = [Line2D([], [], color=c, marker=m, linestyle="", label=w) for w, c, m in SHOWN.values()]
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0.35 / figure.get_figheight(), 1, 1))
    return figure


def bam_contrasts(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Figs. 4, 8 and 10: MCS, IDR and IIR as bars, with random masks and other places beside."""
    drawings = []
    for model, end, rows in _each_model(results):
        parts = rows[rows["part"].isin(["samples", "random", "robustness", "concepts", *CONCEPT])]
        coarse = pd.to_numeric(parts["k"], errors="coerce").isna()
        own = with_failures(parts[parts["method"].ne("") & coarse])
        if own[own["part"].eq("samples")].empty:
            continue
        drawings.append(
            Drawing(
                name=f"bam_contrasts{end}",
                title="Contrasts between models and between inputs",
                caption="Mean over correctly classified images, with its 95 % interval; the number is the standard "
                f"deviation over {TRIALS} trials. TCAV's interval is over inputs and random sets. Orange "
                "ticks: the same with a random mask instead of the object. "
                "Red triangles: objects of other sizes or in other places. MCS: object in f_o less object in f_s. "
                "IDR: the object is given less than the scene it covers; chance is a half. IIR: a patch without "
                "function changes the saliency of its place by less than 10 %. Grey: maps that never look at the "
                "model; a constant map has the best IIR.",
                alt=f"Bars of MCS, IDR and IIR for {own['method'].nunique()} methods on {model}",
                figure=_bars(results, own),
            )
        )
    return tuple(drawings)


def _bars(results: Results, rows: pd.DataFrame) -> Figure:
    made = rows[rows["part"].eq("samples")]
    methods = [name for name in results.run["methods"] if name in set(made["method"])]
    methods += ["tcav"] if rows["method"].eq("tcav").any() else []
    null = {name for name in methods if results.run["methods"].get(name, {}).get("null")}
    figure = sheet(11.4, 1.3 + 0.25 * len(methods))
    axes = figure.subplots(1, len(METRICS), sharey=True)
    for axis, (metric, words) in zip(axes, METRICS.items(), strict=True):
        own = rows[rows["metric"].eq(metric)]
        for place, method in enumerate(methods):
            _bar(axis, own[own["method"].eq(method)], place, null=method in null)
        note(axis, words, (0, 1), (0, 6), bold=True)
        axis.grid(axis="x")
        axis.axvline(0.5 if metric == "idr" else 0, color=MUTED, linewidth=0.8)
    axes[0].set_yticks(range(len(methods)), methods)
    axes[0].set_ylim(len(methods) - 0.4, -0.6)
    handles = [
        Line2D([], [], color=BLUE, marker="s", linestyle="", label="method"),
        Line2D([], [], color=NULL, marker="s", linestyle="", label="never looks at the model"),
        Line2D([], [], color=ORANGE, marker="|", markersize=9, linestyle="", label="random mask"),
        Line2D([], [], color=VERMILION, marker="^", linestyle="", label="other size or place"),
    ]
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)
    figure.tight_layout(rect=(0, 0.32 / figure.get_figheight(), 1, 1))
    return figure


def _bar(axis: Axes, rows: pd.DataFrame, place: int, *, null: bool) -> None:
    """One method in one metric."""
    own = rows[rows["part"].isin(["samples", "concepts"]) & rows["mask"].eq("object")]
    values = own.groupby("sample", sort=False)["value"].mean().to_numpy(float)  # an image once, also of many trainings
    if not len(values):
        return
    axis.barh(place, values.mean(), height=0.62, color=NULL if null else BLUE, alpha=0.75)
    if len(values) > 1:
        low, high = _interval(values, rate=set(rows["metric"]) != {"mcs"})
        axis.hlines(place, low, high, color=INK, linewidth=1.4)
        edge = max(high, 0)
        axis.annotate(f"{spread(values):.2f}", (edge, place), (3, 0), "data", "offset points", va="center", fontsize=6)
    concept = [rows[rows["part"].eq(part)].groupby("sample")["value"].mean() for part in CONCEPT]
    if min(map(len, concept)) > 1:
        half = 1.96 * sum(float(part.var()) / len(part) for part in concept) ** 0.5
        axis.hlines(place, max(values.mean() - half, -1), min(values.mean() + half, 1), color=INK, linewidth=1.4)
    chance = rows[rows["mask"].eq("random") & rows["part"].isin(["random", "concepts"])]["value"]
    axis.scatter([chance.mean()] * bool(len(chance)), [place] * bool(len(chance)), marker="|", s=110, color=ORANGE)
    moved = rows[rows["part"].eq("robustness") & rows["mask"].eq("object")].groupby("placing")["value"].mean()
    axis.scatter(moved, [place] * len(moved), marker="^", s=16, color=VERMILION, zorder=3)


def _interval(values: np.ndarray, *, rate: bool) -> tuple[float, float]:
    """95 % interval of the mean; of a rate Wilson's, which stays in [0, 1]."""
    n, mean = len(values), float(values.mean())
    if not rate:
        half = 1.96 * float(values.std(ddof=1)) / n**0.5
        return mean - half, mean + half
    square = 1.96**2
    middle = (mean + square / (2 * n)) / (1 + square / n)
    half = 1.96 * (mean * (1 - mean) / n + square / (4 * n**2)) ** 0.5 / (1 + square / n)
    return middle - half, middle + half


def spread(values: np.ndarray) -> float:
    """Standard deviation of the mean over ten trials, each of 100 images or half of them where there are fewer."""
    rng = np.random.default_rng(0)
    size = max(1, min(SIZE, len(values) // 2))
    means = [rng.permutation(values)[:size].mean() for _ in range(TRIALS)]
    return float(np.std(means, ddof=1))


def bam_series(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Fig. 6 and 13: MCS against the commonality k, and the accuracy drop that it should follow."""
    drawings = []
    for model, end, rows in _each_model(results):
        series, drop = _series(rows)
        if series.empty or len(drop) < 2:
            continue
        drawings.append(
            Drawing(
                name=f"bam_series{end}",
                title="The more common a feature, the less it matters",
                caption="MCS between a network that saw the common feature in the share k of the classes and one that "
                "saw it in all of them. Dashed black: how much the accuracy of the first class drops when the feature "
                "is taken away. Behind a name: Pearson's correlation with the drop. Dashed grey: maps that never look "
                "at the model.",
                alt=f"Line chart of MCS against k for {series['method'].nunique()} methods on {model}",
                figure=_lines(results, series, drop),
            )
        )
    return tuple(drawings)


def _series(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """Mean MCS by method and k; and the drop by k."""
    rows = rows.assign(k=pd.to_numeric(rows["k"], errors="coerce"))
    rows = rows[rows["k"].notna()]
    fine = with_failures(rows[rows["part"].isin(["fine", "concepts"]) & rows["mask"].eq("object")])
    series = fine.groupby(["method", "k"], sort=False, as_index=False)["value"].mean()
    drop = rows[rows["part"].eq("verification") & rows["metric"].eq("drop")].groupby("k")["value"].mean()
    return series, drop


def correlation(series: pd.Series, drop: pd.Series) -> float:
    """Pearson's ρ between two series over k, at the k that both have; nan where one does not vary."""
    both = pd.concat([series, drop], axis=1, join="inner").dropna().to_numpy(float)
    if len(both) < 2 or np.ptp(both, axis=0).min() == 0:
        return float("nan")
    return float(np.corrcoef(both.T)[0, 1])


def _lines(results: Results, series: pd.DataFrame, drop: pd.Series) -> Figure:
    methods = [name for name in results.run["methods"] if name in set(series["method"])]
    methods += ["tcav"] if series["method"].eq("tcav").any() else []
    null = {name: bool(results.run["methods"].get(name, {}).get("null")) for name in methods}
    shade = colours(methods, null)
    figure = sheet(9.5, 0.9 + max(3.6, 0.19 * len(methods)))
    axis = figure.subplots()
    axis.plot(drop.index, drop, color=INK, linestyle="--", linewidth=2)
    handles = [Line2D([], [], color=INK, linestyle="--", label="accuracy drop")]
    for method in methods:
        own = series[series["method"].eq(method)].set_index("k")["value"].sort_index()
        style: Any = "--" if null[method] else ":" if method == "tcav" else "-"
        axis.plot(own.index, own, color=shade[method], linestyle=style, marker="o", markersize=3)
        rho = correlation(own, drop)
        label = method if np.isnan(rho) else f"{method} {rho:+.2f}"
        handles.append(Line2D([], [], color=shade[method], linestyle=style, label=label))
    axis.set_xlabel("k, share of classes that have the feature")
    axis.set_ylabel("MCS; accuracy drop")
    axis.grid(axis="y")
    figure.legend(handles=handles, loc="center right", frameon=False, fontsize=7)
    figure.tight_layout(rect=(0, 0, 0.7, 1))
    return figure


def bam_patches(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """IIR against the threshold t, and what the patches do to the outputs."""
    drawings = []
    for model, end, rows in _each_model(results):
        own = with_failures(rows[rows["part"].eq("samples") & rows["metric"].eq("iir")])
        if own.empty:
            continue
        drawings.append(
            Drawing(
                name=f"bam_patches{end}",
                title="Patches that are seen but change nothing",
                caption="The share of scenes in which a functionless patch changes the saliency of its place by less "
                "than t, against t; the line at 10 % is the paper's threshold. A method that draws attention to the "
                "patch stays low. Dashed grey: maps that never look at the model.",
                alt=f"Line chart of IIR against the threshold for {own['method'].nunique()} methods on {model}",
                figure=_curves(results, own),
            )
        )
    return tuple(drawings)


def _curves(results: Results, rows: pd.DataFrame) -> Figure:
    methods = [name for name in results.run["methods"] if name in set(rows["method"])]
    null = {name: bool(results.run["methods"][name].get("null")) for name in methods}
    shade = colours(methods, null)
    figure = sheet(9.5, 0.9 + max(3.4, 0.19 * len(methods)))
    axis = figure.subplots()
    handles = []
    for method in methods:
        own = rows[rows["method"].eq(method)]
        first, second = own["first"].to_numpy(float), own["second"].to_numpy(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.abs(first - second) / second
        style: Any = "--" if null[method] else "-"
        axis.plot(100 * THRESHOLDS, (change[:, None] < THRESHOLDS).mean(0), color=shade[method], linestyle=style)
        handles.append(Line2D([], [], color=shade[method], linestyle=style, label=method))
    axis.axvline(10, color=MUTED, linewidth=0.8)
    axis.set_xlabel("threshold t, % of the saliency before")
    axis.set_ylabel("IIR")
    axis.set_ylim(-0.02, 1.02)
    axis.grid(axis="y")
    figure.legend(handles=handles, loc="center right", frameon=False, fontsize=7)
    figure.tight_layout(rect=(0, 0, 0.72, 1))
    return figure


FIGURES = {
    "bam_verification": bam_verification,
    "bam_contrasts": bam_contrasts,
    "bam_series": bam_series,
    "bam_patches": bam_patches,
}
