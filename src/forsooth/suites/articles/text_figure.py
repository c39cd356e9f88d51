"""Text in colour: the words of a document behind which every method paints its attribution."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray
from pandas import DataFrame

from forsooth.frames import only
from forsooth.records import NO_MODEL
from forsooth.report.aggregate import Results, levels, methods_in
from forsooth.report.axes import legend_below
from forsooth.report.drawing import BLUE, GREEN, INK, MUTED, ORANGE, Drawing, Tables, note, sheet
from forsooth.report.passages import texts
from forsooth.wording import Place, lines_of, placed

Floats = NDArray[np.float64]
POINTS = 8.0  # size of the letters
CHARACTER = 0.602 * POINTS / 72  # inches: every letter of the font has this width
ROW = 0.2  # inches of a line of text
ACROSS = 104  # letters in a line
GAP = 0.6  # lines between paragraphs
FONT = "DejaVu Sans Mono"  # matplotlib brings it along
LETTERS: dict[str, Any] = {"family": FONT, "fontsize": POINTS, "parse_math": False, "va": "center"}
UNKNOWN = "?"
NAMED = 60  # words, of which each still has room for its name below its bar
LONGEST = 12  # letters of a name there
UNDERLINES = ((ORANGE, 2.2), (BLUE, 1.0))  # colour and width below correlating and non-correlating articles
ARTICLES = (Patch(color=ORANGE, label="correlating articles"), Patch(color=BLUE, label="non-correlating articles"))
LEGEND = (*ARTICLES, Patch(color=GREEN, label="others"))


class Page(NamedTuple):
    """The words of a document, and the weights (length,) that each method gives to them for one model.

    articles  (2, length) bool: which words are correlating and which are non-correlating articles
    """

    kind: str
    model: str
    words: list[str]
    articles: NDArray[np.bool_]
    maps: dict[str, Floats]


def articles_text(results: Results, tables: Tables) -> Iterator[Drawing]:
    """The first document for each kind of data and each model, painted by every method; the page has all as text."""
    for page in _pages(results):
        yield Drawing(
            name=f"articles_text_{page.kind}_{page.model}",
            title=f"One document in colour: {page.kind}, {page.model}",
            caption="The darker a word, the larger its |attribution|, as a share of the largest of the document. "
            "Correlating articles have a thick orange line below, non-correlating ones a thin blue one: only words "
            "on orange lines tell the label. A dash: no map; a 0: a map of zeros. "
            "A question mark may stand for a sign that the font lacks.",
            alt=f"A document of {len(page.words)} words, painted by {', '.join(page.maps)}",
            figure=_paragraphs(page),
            aside=True,
        )


def articles_attention(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Attention weight of every word of one document, as Figs. 5 and 7 of [zhou2022feature]."""
    pages = [page for page in _pages(results) if "attention" in page.maps]
    if not pages:
        return
    figure = sheet(9, 0.6 + 1.8 * len(pages))
    axes = figure.subplots(len(pages), 1, squeeze=False)[:, 0]
    for axis, page in zip(axes, pages, strict=True):
        _bars(axis, page, page.maps["attention"])
        note(axis, page.kind, (0, 1), (0, 3))
    legend_below(figure, room=0.32, handles=LEGEND, ncols=3)
    yield Drawing(
        name="articles_attention",
        title="Attention on every word of one document",
        caption="Each bar is a word, in the order of the text, its height the attention weight. A model that is right "
        "must read the orange words; the others tell nothing (Figs. 5 and 7 of the paper).",
        alt=f"Bars of attention weights for {', '.join(page.kind for page in pages)}",
        figure=figure,
    )


def _bars(axis: Axes, page: Page, weights: Floats) -> None:
    colours = np.select(list(page.articles), [ORANGE, BLUE], GREEN)
    axis.bar(range(len(weights)), np.abs(weights), color=colours.tolist(), width=0.85, linewidth=0)
    axis.set_xticks([])
    if len(weights) <= NAMED:
        axis.set_xticks(range(len(weights)), [word[:LONGEST] for word in page.words])
        axis.tick_params(axis="x", rotation=90, labelsize=6.5, length=0)
    axis.set_xlim(-0.6, len(weights) - 0.4)
    axis.locator_params(axis="y", nbins=3)
    axis.grid(axis="y")


def _pages(results: Results) -> Iterator[Page]:
    """Every kind of data and model that has a map of its own; maps that ignore the model are on all pages."""
    shown = only(texts(results), place=0)  # the first
    for document in only(shown, shows="document").itertuples():
        words = [_plain(word) for word in document.words]
        articles = results.pictures[document.tensor] > 0
        for model in levels(results, "model"):
            here = only(shown, shows="weights", kind=document.kind, model=(model, NO_MODEL))
            if here["model"].eq(model).any():
                yield Page(document.kind, model, words, articles, _maps(results, here))


def _maps(results: Results, pictures: DataFrame) -> dict[str, Floats]:
    """The weights (length,) of each method, in the order of the run."""
    tensors = dict(zip(pictures["method"], pictures["tensor"], strict=True))
    return {name: results.pictures[tensors[name]].astype(float) for name in methods_in(results, pictures)}


def _plain(word: str) -> str:
    """The word in signs that the font has.

    >>> _plain("naïve"), _plain("пиво"), _plain("日本")
    ('naïve', 'пиво', '??')
    """
    signs = [sign if sign.isprintable() and ord(sign) in _signs() else UNKNOWN for sign in word]
    return "".join(signs) or UNKNOWN


@functools.cache
def _signs() -> frozenset[int]:
    """The signs that the font has."""
    return frozenset(get_font(findfont(FONT)).get_charmap())


def _paragraphs(page: Page) -> Figure:
    """One paragraph for each method, its name to the left."""
    places = placed(page.words, across=ACROSS)
    lines = lines_of(page.words, places)
    figure = _sheet_of_letters(len(page.maps) * (len(lines) + GAP), margin=max(map(len, page.maps)))
    (axis,) = figure.axes
    for number, (method, weights) in enumerate(page.maps.items()):
        top = number * (len(lines) + GAP) + GAP / 2
        _paint(axis, page.articles, places, weights, top)
        for line, words in enumerate(lines):
            axis.text(0, top + line + 0.5, words, ha="left", color=INK, **LETTERS)
        axis.text(-1.2, top + 0.5, method + _mark(weights), ha="right", color=MUTED, **LETTERS)
    return figure


def _sheet_of_letters(lines: float, *, margin: int) -> Figure:
    """A figure of axes whose units are letters and lines, with so many letters to the left."""
    left = 0.25 + CHARACTER * margin
    figure = sheet(left + ACROSS * CHARACTER + 0.2, lines * ROW + 0.2)
    figure.set_dpi(150)  # as it is saved: at 100 the letters would be rounded to wider ones
    width, height = figure.get_size_inches()
    axis = figure.add_axes((left / width, 0.1 / height, ACROSS * CHARACTER / width, lines * ROW / height))
    axis.set(xlim=(0, ACROSS), ylim=(lines, 0))
    axis.set_axis_off()
    return figure


def _paint(axis: Axes, articles: NDArray[np.bool_], places: Sequence[Place], weights: Floats, top: float) -> None:
    """Backgrounds by attribution, and lines below the articles (2, length)."""
    boxes = [Rectangle((place.column, top + place.line + 0.08), place.width, 0.78) for place in places]
    axis.add_collection(PatchCollection(boxes, facecolors=_shades(weights), linewidths=0))
    for there, (colour, width) in zip(articles, UNDERLINES, strict=True):
        line, column, letters = np.array(places)[there].T
        axis.hlines(top + line + 0.93, column, column + letters, colors=colour, linewidths=width)


def _shades(weights: Floats) -> Floats:
    """A colour (length, 4) for each word, by the size of its weight; white for next to nothing."""
    sizes = np.nan_to_num(np.abs(weights), posinf=0)
    sizes = sizes / (sizes.max(initial=0) or 1.0)
    shades: Floats = colormaps["OrRd"](0.65 * sizes)
    shades[sizes < 0.01] = (1, 1, 1, 1)
    return shades


def _mark(weights: Floats) -> str:
    if not np.isfinite(weights).all():
        return " –"
    return " 0" * (not weights.any())
