"""Figures of the articles suite: Attr% beside word frequency, and selections beside the best there could be."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from forsooth.report.aggregate import NO_MODEL, Results, levels, with_failures
from forsooth.report.drawing import BLUE, GREEN, INK, ORANGE, Drawing, Tables, note, sheet
from forsooth.suites.articles.text_figure import articles_attention, articles_text

# As in Figs. 5 and 7 of [zhou2022feature]: orange and blue articles, green for the rest.
WORDS = {
    "attr_words": (ORANGE, "correlating articles"),
    "attr_words_non_correlating": (BLUE, "non-correlating articles"),
    "attr_words_other": ("#b9dccd", "other words"),
}
SELECTORS = {"rationale_reinforce": (BLUE, "o", "REINFORCE"), "rationale_relaxed": (ORANGE, "s", "relaxation")}
SELECTIONS = {"precision_selected": "precision", "recall_selected": "recall"}
COUNTS = ["hits", "selected", "relevant", "words"]


def articles_shares(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Mean Attr% of every method on the three kinds of words, in every panel, beside their frequencies."""
    rows = results.rows
    if "frequency" not in rows or "kind" not in rows:
        return ()
    rows = with_failures(rows[rows["metric"].isin(WORDS)])
    shown = rows[rows["model"].ne(NO_MODEL)]
    if shown.empty:
        return ()
    kinds, models = levels(results, "kind"), [m for m in levels(results, "model") if m in set(shown["model"])]
    return (
        Drawing(
            name="articles_shares",
            title="Where the attribution lies, beside how often such words occur",
            caption="Each bar is a method: the share of its |attribution| on correlating articles (orange), on "
            "non-correlating ones (blue) and on all other words (green), mean over documents and trainings. Black: 95 "
            "% interval of the orange share over documents. Dashed: the frequency of correlating articles, which a map "
            "that knows nothing reaches. All of the bar should be orange (Table 1, Figs. 5 and 7 of the paper).",
            alt=f"Grid of stacked bars for {', '.join(kinds)} and {', '.join(models)}",
            figure=_shares(results, rows, list(kinds), models),
        ),
    )


def _shares(results: Results, rows: pd.DataFrame, kinds: list[str], models: list[str]) -> Figure:
    methods = [name for name in results.run["methods"] if name in set(rows["method"])]
    figure = sheet(max(7.6, 2.1 + 2.6 * len(models)), 0.9 + len(kinds) * (0.4 + 0.17 * len(methods)))
    axes = figure.subplots(len(kinds), len(models), squeeze=False, sharex=True, sharey=True)
    for k, kind in enumerate(kinds):
        for j, model in enumerate(models):
            own = rows[rows["kind"].eq(kind) & rows["model"].isin([model, NO_MODEL])]
            _stacked(axes[k, j], own, methods)
            note(axes[k, j], f"{kind}, {model}", (0, 1), (0, 4), bold=False)
        axes[k, 0].set_yticks(range(len(methods)), methods)
        axes[k, 0].set_ylim(len(methods) - 0.4, -0.6)
    axes[0, 0].set_xlim(0, 1.0)
    axes[0, 0].set_xticks([0, 0.5, 1], ["0", "50", "100"])
    for axis in axes[-1]:
        axis.set_xlabel("Attr%")
    handles: list[Any] = [Patch(color=colour, label=words) for colour, words in WORDS.values()]
    handles.append(Line2D([], [], color=INK, linestyle="--", linewidth=0.9, label="frequency of correlating articles"))
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight(), 1, 1), h_pad=0.8, w_pad=0.8)
    return figure


def _stacked(axis: Axes, rows: pd.DataFrame, methods: list[str]) -> None:
    """One panel. A method that is not there has no bar."""
    axis.grid(axis="x")
    for place, method in enumerate(methods):
        own, start = rows[rows["method"].eq(method)], 0.0
        for metric, (colour, _) in WORDS.items():
            values = own.loc[own["metric"].eq(metric), "value"].to_numpy(dtype=float)
            if not len(values):
                continue
            axis.barh(place, values.mean(), left=start, height=0.72, color=colour, linewidth=0)
            start += float(values.mean())
            if metric == "attr_words" and len(values) > 1:
                half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
                ends = np.clip([values.mean() - half, values.mean() + half], 0, 1)
                axis.plot(ends, [place, place], color=INK, linewidth=1.1)
    frequency = rows.loc[rows["metric"].eq("attr_words"), "frequency"].astype(float)
    if len(frequency):
        axis.axvline(frequency.mean(), color=INK, linestyle=(0, (4, 3)), linewidth=0.9)


def articles_selection(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Precision and recall of rationales against the rate of selection, with the two optimality lines of Fig. 8."""
    rows = results.rows
    if "line" not in rows or not set(COUNTS) <= set(rows.columns):
        return ()
    found, best = (
        pooled(rows[rows["part"].eq("selection")]),
        rows[rows["part"].eq("optimum") & rows["status"].eq("ok")],
    )
    kinds = [kind for kind in levels(results, "kind") if kind in set(found["kind"])]
    if not kinds:
        return ()
    told = ", ".join(f"{line.kind} {line.model} {line.rate:.1%}" for line in found.itertuples())
    return (
        Drawing(
            name="articles_selection",
            title="Precision and recall of rationales",
            caption="Each mark is one model: the share of its selected words that are correlating articles (precision) "
            "and the share of correlating articles that it selects (recall), over all words of the test documents, at "
            "the rate of selection that it has. Green: the best that any selection of that rate can do, over the whole "
            "data set (solid) and if every document must keep the rate (dashed), as Fig. 8 of the paper.",
            alt=f"Precision and recall against the rate of selection: {told}",
            figure=_selection(found, best, kinds),
        ),
    )


def pooled(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per rationale model: rate of selection, precision and recall over all words of its test documents."""
    rows = rows[rows["metric"].eq("recall_selected") & rows["words"].notna()]
    keys = ["kind", "model", "model_seed", "rate"]
    found = rows.groupby(keys, sort=False)[COUNTS].sum().astype(float).reset_index()
    target, found["rate"] = found["rate"], found["selected"] / found["words"]
    found = found.assign(target=target, recall_selected=found["hits"] / found["relevant"].where(found["relevant"] > 0))
    return found.assign(precision_selected=found["hits"] / found["selected"].where(found["selected"] > 0))


def _selection(found: pd.DataFrame, best: pd.DataFrame, kinds: list[str]) -> Figure:
    figure = sheet(max(6.8, 1.2 + 2.6 * len(kinds)), 5.2)
    axes = figure.subplots(len(SELECTIONS), len(kinds), squeeze=False, sharex=True, sharey=True)
    for (k, (metric, words)), (j, kind) in (
        (row, column) for row in enumerate(SELECTIONS.items()) for column in enumerate(kinds)
    ):
        axis = axes[k, j]
        for line, style in (("dataset", "-"), ("document", "--")):
            own = best[best["kind"].eq(kind) & best["metric"].eq(metric) & best["line"].eq(line)].sort_values("rate")
            axis.plot(100 * own["rate"], own["value"], color=GREEN, linestyle=style, linewidth=1.1)
        for model, (colour, marker, _) in SELECTORS.items():
            own = found[found["kind"].eq(kind) & found["model"].eq(model)]
            axis.scatter(100 * own["rate"], own[metric], color=colour, marker=marker, s=26, zorder=3, alpha=0.85)
        axis.grid(axis="y")
        note(axis, f"{kind}: {words}", (0, 1), (0, 5))
    axes[0, 0].set_ylim(-0.03, 1.06)
    axes[0, 0].set_xlim(left=0)
    for axis in axes[-1]:
        axis.set_xlabel("words selected, %")
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="", label=words)
        for colour, marker, words in SELECTORS.values()
    ]
    handles.append(Line2D([], [], color=GREEN, linestyle="-", label="best over the data set"))
    handles.append(Line2D([], [], color=GREEN, linestyle="--", label="best in every document"))
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1), h_pad=0.8)
    return figure


FIGURES = {
    "articles_shares": articles_shares,
    "articles_selection": articles_selection,
    "articles_attention": articles_attention,
    "articles_text": articles_text,
}
