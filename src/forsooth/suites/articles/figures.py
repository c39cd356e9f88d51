"""Figures of the articles suite: Attr% beside word frequency, and selections beside the best there could be."""

from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from pandas import DataFrame

from forsooth.frames import only, worded
from forsooth.records import NO_MODEL
from forsooth.report.aggregate import Results, levels, methods_in, with_failures
from forsooth.report.axes import Look, grid, legend_below, marks, names_beside, words_below
from forsooth.report.drawing import BLUE, GREEN, INK, ORANGE, Drawing, Tables, note, present, sheet
from forsooth.suites.articles.tables import attr_interval, selection_table
from forsooth.suites.articles.text_figure import ARTICLES, articles_attention, articles_text

# As in Figs. 5 and 7 of [zhou2022feature]: orange and blue articles, green for the rest.
WORDS = {"attr_words": ORANGE, "attr_words_non_correlating": BLUE, "attr_words_other": "#b9dccd"}
SHARES_LEGEND = [
    *ARTICLES,
    Patch(color="#b9dccd", label="other words"),
    Line2D([], [], color=INK, linestyle="--", linewidth=0.9, label="frequency of correlating articles"),
]
MARKS = {"rationale_reinforce": Look("REINFORCE", BLUE, "o"), "rationale_relaxed": Look("relaxation", ORANGE, "s")}
LINES = {"dataset": "-", "document": "--"}
SELECTION_LEGEND = [
    *marks(MARKS.values()),
    Line2D([], [], color=GREEN, linestyle="-", label="best over the data set"),
    Line2D([], [], color=GREEN, linestyle="--", label="best in every document"),
]
SELECTIONS = ("precision", "recall")


def articles_shares(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Mean Attr% of every method on the three kinds of words, in every panel, beside their frequencies."""
    rows = results.rows
    if "frequency" not in rows or "kind" not in rows:
        return
    rows = with_failures(only(rows, metric=WORDS))
    models = present(results, "model", rows)
    if not models:
        return
    kinds = levels(results, "kind")
    yield Drawing(
        name="articles_shares",
        title="Where the attribution lies, beside how often such words occur",
        caption="Each bar is a method: the share of its |attribution| on correlating articles (orange), on "
        "non-correlating ones (blue) and on all other words (green), mean over documents and trainings. Black: "
        "95 % interval of the orange share over documents and, where there are several, trainings. Dashed: the "
        "frequency of correlating articles, which a map that knows nothing reaches. All of the bar should be orange "
        "(Table 1, Figs. 5 and 7 of the paper).",
        alt=f"Grid of stacked bars for {', '.join(kinds)} and {', '.join(models)}",
        figure=_shares(results, rows, kinds, models),
    )


def _shares(results: Results, rows: DataFrame, kinds: tuple[str, ...], models: list[str]) -> Figure:
    """A grid of kinds by models."""
    methods = methods_in(results, rows)
    figure = sheet(max(7.6, 2.1 + 2.6 * len(models)), 0.9 + len(kinds) * (0.4 + 0.17 * len(methods)))
    axes = grid(figure, kinds, models)
    names_beside(figure.axes[0], methods)
    figure.axes[0].set(xlim=(0, 1.0))
    figure.axes[0].set_xticks([0, 0.5, 1], ["0", "50", "100"])
    for (kind, model), axis in axes.items():
        _stacked(axis, only(rows, kind=kind, model=(model, NO_MODEL)), methods)
        note(axis, f"{kind}, {model}", (0, 1), (0, 4))
    words_below(figure, "Attr%")
    legend_below(figure, pad=0.8, handles=SHARES_LEGEND, ncols=4)
    return figure


def _stacked(axis: Axes, rows: DataFrame, methods: list[str]) -> None:
    """One panel. A method that is not there has no bar."""
    axis.grid(axis="x")
    for place, method in enumerate(methods):
        _bar(axis, place, only(rows, method=method))
    frequency = only(rows, metric="attr_words")["frequency"].astype(float)
    axis.axvline(frequency.mean(), color=INK, linestyle=(0, (4, 3)), linewidth=0.9)


def _bar(axis: Axes, place: int, rows: DataFrame) -> None:
    """The three shares of one method, one after the other, and the interval of the first."""
    start = 0.0
    for metric, colour in WORDS.items():
        own = only(rows, metric=metric)
        if own.empty:
            continue
        share = attr_interval(own)
        axis.barh(place, share.mean, left=start, height=0.72, color=colour, linewidth=0)
        start += share.mean
        if metric == "attr_words":
            axis.plot([share.low, share.high], [place, place], color=INK, linewidth=1.1)


def articles_selection(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Precision and recall of rationales against the rate of selection, with the two optimality lines of Fig. 8."""
    rows = results.rows
    if "line" not in rows or "words" not in rows:
        return
    table = selection_table(rows)
    if table.empty:
        return
    best = only(rows, part="optimum", status="ok")
    kinds = present(results, "kind", table)
    rates = ", ".join(worded(table, "{kind} {model} {selected:.1%}"))
    yield Drawing(
        name="articles_selection",
        title="Precision and recall of rationales",
        caption="Each mark is one model: the share of its selected words that are correlating articles (precision) "
        "and the share of correlating articles that it selects (recall), over all words of the test documents, at "
        "the rate of selection that it has. Green: the best that any selection of that rate can do, over the whole "
        "data set (solid) and if every document must keep the rate (dashed), as Fig. 8 of the paper.",
        alt=f"Precision and recall against the rate of selection: {rates}",
        figure=_selection(table, best, kinds),
    )


def _selection(table: DataFrame, best: DataFrame, kinds: list[str]) -> Figure:
    """A grid of precision and recall by kinds."""
    figure = sheet(max(6.8, 1.2 + 2.6 * len(kinds)), 5.2)
    for (metric, kind), axis in grid(figure, SELECTIONS, kinds).items():
        optimum = only(best, kind=kind, metric=f"{metric}_selected")
        _selected(axis, metric, only(table, kind=kind), optimum)
        note(axis, f"{kind}: {metric}", (0, 1), (0, 5))
    figure.axes[0].set_ylim(-0.03, 1.06)
    figure.axes[0].set_xlim(left=0)
    words_below(figure, "words selected, %")
    legend_below(figure, pad=0.8, handles=SELECTION_LEGEND, ncols=4)
    return figure


def _selected(axis: Axes, metric: str, models: DataFrame, best: DataFrame) -> None:
    """One panel: the two lines, and a mark for each model."""
    axis.grid(axis="y")
    for line, own in best.sort_values("rate").groupby("line"):
        axis.plot(100 * own["rate"], own["value"], color=GREEN, linestyle=LINES[line], linewidth=1.1)
    for model, own in models.groupby("model"):
        look = MARKS[model]
        axis.scatter(
            100 * own["selected"], own[metric], color=look.colour, marker=look.marker, s=26, zorder=3, alpha=0.85
        )


FIGURES = {
    "articles_shares": articles_shares,
    "articles_selection": articles_selection,
    "articles_attention": articles_attention,
    "articles_text": articles_text,
}
