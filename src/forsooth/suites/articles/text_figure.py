"""Text in colour: the words of a document behind which every method paints its attribution."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from forsooth.report.aggregate import NO_MODEL, Results, levels, text
from forsooth.report.drawing import BLUE, GREEN, INK, MUTED, ORANGE, Drawing, Tables, note, sheet

Floats = NDArray[np.float64]
POINTS = 8.0  # size of the letters
CHARACTER = 0.602 * POINTS / 72  # inches: every letter of the font has this width
ROW = 0.2  # inches of a line of text
ACROSS = 104  # letters in a line
FONT = "DejaVu Sans Mono"  # matplotlib brings it along
UNKNOWN = "?"
COLUMNS = ("tensor", "shows", "kind", "model", "method", "words")


class Document(NamedTuple):
    """words, and which are correlating and non-correlating articles, (2, length)."""

    words: list[str]
    articles: Floats


class Placed(NamedTuple):
    """A word in a paragraph: its line, its first column, and how many columns it takes."""

    line: int
    column: int
    width: int


def articles_text(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """One document for each kind of data and each model, painted by every method."""
    pictures, drawings = _pictures(results), []
    for kind, model, document, maps in _shown(results, pictures):
        told = ", ".join(method for method, _ in maps)
        drawings.append(
            Drawing(
                name=f"articles_text_{kind}_{model}",
                title=f"One document in colour: {kind}, {model}",
                caption="The darker a word, the larger its |attribution|, as a share of the largest of the document. "
                "Correlating articles have a thick orange line below, non-correlating ones a thin blue one: only words "
                "on orange lines tell the label. A dash: no map; a 0: a map of zeros. "
                "A question mark may stand for a sign that the font lacks.",
                alt=f"A document of {len(document.words)} words, painted by {told}",
                figure=_paragraphs(document, maps),
            )
        )
    return tuple(drawings)


def articles_attention(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Attention weight of every word of one document, as Figs. 5 and 7 of [zhou2022feature]."""
    found = [
        (kind, document, dict(maps)["attention"])
        for kind, _, document, maps in _shown(results, _pictures(results))
        if "attention" in dict(maps)
    ]
    if not found:
        return ()
    figure = sheet(9, 0.6 + 1.35 * len(found))
    axes = figure.subplots(len(found), 1, squeeze=False)[:, 0]
    for axis, (kind, document, weights) in zip(axes, found, strict=True):
        _bars(axis, document, weights)
        note(axis, kind, (0, 1), (0, 3))
    handles = [
        Patch(color=colour, label=words)
        for colour, words in ((ORANGE, "correlating articles"), (BLUE, "non-correlating articles"), (GREEN, "others"))
    ]
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0.32 / figure.get_figheight(), 1, 1))
    return (
        Drawing(
            name="articles_attention",
            title="Attention on every word of one document",
            caption="Each bar is a word, in the order of the text, its height the attention weight. A model that is "
            "right must read the orange words; the others tell nothing (Figs. 5 and 7 of the paper).",
            alt=f"Bars of attention weights for {', '.join(kind for kind, _, _ in found)}",
            figure=figure,
        ),
    )


def _bars(axis: Axes, document: Document, weights: Floats) -> None:
    colour = np.where(document.articles[0] > 0, ORANGE, np.where(document.articles[1] > 0, BLUE, GREEN))
    axis.bar(range(len(weights)), np.abs(weights), color=colour.tolist(), width=0.85, linewidth=0)
    axis.set_xticks([])
    axis.set_xlim(-0.6, len(weights) - 0.4)
    axis.locator_params(axis="y", nbins=3)
    axis.grid(axis="y")


def _pictures(results: Results) -> pd.DataFrame:
    """run.json's pictures of this suite that are there."""
    frame = pd.DataFrame(results.run["pictures"]).reindex(columns=list(COLUMNS))
    return frame[frame["tensor"].isin(list(results.pictures)) & frame["shows"].notna()]


def _shown(results: Results, pictures: pd.DataFrame) -> Iterator[tuple[str, str, Document, list[tuple[str, Floats]]]]:
    """Kind of data, model, document, and the map of each method, for every panel that has one."""
    if pictures.empty:
        return
    for kind in levels(results, "kind"):
        here = pictures[pictures["kind"].map(text).eq(kind)]
        shown = here[here["shows"].eq("document")]
        if shown.empty:
            continue
        picture = shown.iloc[0]
        document = Document([_plain(word) for word in picture["words"]], results.pictures[picture["tensor"]])
        for model in levels(results, "model"):
            own = here[here["shows"].eq("weights") & here["model"].isin([model, NO_MODEL])].set_index("method")
            if own["model"].eq(model).any():
                names = [name for name in results.run["methods"] if name in own.index]
                maps = [(name, results.pictures[own.loc[name, "tensor"]].astype(float)) for name in names]
                yield kind, model, document, list(maps)


def _plain(word: str) -> str:
    """The word in signs that the font has.

    >>> _plain("naïve"), _plain("пиво"), _plain("日本")
    ('naïve', 'пиво', '??')
    """
    return "".join(sign if sign.isprintable() and ord(sign) in _signs() else UNKNOWN for sign in word) or UNKNOWN


@functools.cache
def _signs() -> frozenset[int]:
    """The signs that the font has."""
    return frozenset(get_font(findfont(FONT)).get_charmap())


def placed(words: Sequence[str], *, across: int = ACROSS) -> list[Placed]:
    """Where each word stands when lines of `across` letters are filled; a longer word is alone and cut there.

    >>> placed(["one", "two", "three"], across=8)
    [Placed(line=0, column=0, width=3), Placed(line=0, column=4, width=3), Placed(line=1, column=0, width=5)]
    """
    found, line, column = [], 0, 0
    for word in words:
        width = min(len(word), across)
        if column and column + width > across:
            line, column = line + 1, 0
        found.append(Placed(line, column, width))
        column += width + 1
    return found


def _paragraphs(document: Document, maps: Sequence[tuple[str, Floats]]) -> Figure:
    """One paragraph for each method, its name to the left."""
    places = placed(document.words)
    lines = max((place.line for place in places), default=0) + 1
    left = 0.25 + CHARACTER * max(len(method) for method, _ in maps)
    height = len(maps) * (lines + 0.6) * ROW
    figure = sheet(left + ACROSS * CHARACTER + 0.2, height + 0.2)
    figure.set_dpi(150)  # as it is saved: at 100 the letters would be rounded to wider ones
    size = figure.get_size_inches()
    axis = figure.add_axes((left / size[0], 0.1 / size[1], ACROSS * CHARACTER / size[0], height / size[1]))
    axis.set(xlim=(0, ACROSS), ylim=(len(maps) * (lines + 0.6), 0))
    axis.set_axis_off()
    letters: dict[str, Any] = {"family": FONT, "fontsize": POINTS, "parse_math": False}
    written = _lines(document.words, places, lines)
    for k, (method, weights) in enumerate(maps):
        top = k * (lines + 0.6) + 0.3
        _paint(axis, document, places, weights, top)
        for line, words in enumerate(written):
            axis.text(0, top + line + 0.5, words, va="center", ha="left", color=INK, **letters)
        shown = method + _mark(weights)
        axis.text(-1.2, top + 0.5, shown, va="center", ha="right", color=MUTED, **letters)
    return figure


def _lines(words: Sequence[str], places: Sequence[Placed], count: int) -> list[str]:
    """The text of each line: one string draws faster than its words, and every letter is as wide as the others."""
    rows = [[" "] * ACROSS for _ in range(count)]
    for word, place in zip(words, places, strict=True):
        rows[place.line][place.column : place.column + place.width] = word[: place.width]
    return ["".join(row).rstrip() for row in rows]


def _paint(axis: Axes, document: Document, places: Sequence[Placed], weights: Floats, top: float) -> None:
    """Backgrounds by attribution, and lines below the articles."""
    sizes = np.nan_to_num(np.abs(weights), posinf=0)
    sizes = sizes / (sizes.max(initial=0) or 1.0)
    boxes = [Rectangle((p.column, top + p.line + 0.08), p.width, 0.78) for p in places]
    shades = colormaps["OrRd"](0.65 * sizes)
    shades[sizes < 0.01] = (1, 1, 1, 1)
    axis.add_collection(PatchCollection(boxes, facecolors=shades, linewidths=0))
    for articles, colour, width in zip(document.articles, (ORANGE, BLUE), (2.2, 1.0), strict=True):
        chosen = [p for p, there in zip(places, articles, strict=True) if there > 0]
        ends = [[(p.column, top + p.line + 0.93), (p.column + p.width, top + p.line + 0.93)] for p in chosen]
        axis.add_collection(LineCollection(ends, colors=colour, linewidths=width))


def _mark(weights: Floats) -> str:
    if not np.isfinite(weights).all():
        return " –"
    return "" if weights.any() else " 0"
