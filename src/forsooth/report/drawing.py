"""What the figures share: a figure with its words, colours that colour-blind readers can tell apart, a style."""

import base64
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from pandas import DataFrame
from PIL import Image

from forsooth.report.aggregate import Results, levels
from forsooth.report.medians import Tables as Tables

INK = "#1b1f24"
MUTED = "#66707c"
FAINT = "#eef0f3"
LINE = "#d4d8de"
NULL = "#9aa1ab"
# Okabe and Ito
BLUE = "#0072b2"
VERMILION = "#d55e00"
GREEN = "#009e73"
PURPLE = "#b0578d"
ORANGE = "#e69f00"
SKY = "#56b4e9"
HUES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")
SHADES = ("#ffffff", "#f1f3f6", "#e1e5ea", "#d2d7de")
STYLE: dict[Any, Any] = {
    **{"font.family": "DejaVu Sans", "font.size": 8, "axes.titlesize": 9, "axes.titleweight": "bold"},
    **{"text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": LINE, "axes.linewidth": 0.8},
    **{"xtick.color": MUTED, "ytick.color": INK, "xtick.major.size": 0, "ytick.major.size": 0},
    **{"xtick.labelsize": 7.5, "ytick.labelsize": 8, "grid.color": LINE, "grid.linewidth": 0.6},
    **{"axes.spines.top": False, "axes.spines.right": False, "figure.facecolor": "white"},
    **{"svg.hashsalt": "forsooth", "svg.fonttype": "none", "axes.axisbelow": True},  # text that one can find
    **{"text.parse_math": False},  # a dollar in a name is a dollar
}


@dataclass(frozen=True)
class Drawing:
    """A figure and its words.

    name     of the files, e.g. `boxes_emd`
    caption  what to see in it, in plain words
    alt      what it shows, for those who cannot see it
    aside    the page has the same as a table that can be looked at closely, so that the figure is a PNG beside it
    """

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure
    aside: bool = False


def sheet(width: float, height: float) -> Figure:
    """An empty figure in inches, with its own canvas: no global state."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


MOST_PIXELS = 6_000_000  # of a PNG
SAVED: dict[str, Any] = {
    "svg": {"metadata": {"Date": None}},
    "png": {"metadata": {"Software": None}, "pil_kwargs": {"compress_level": 3}},  # half the time, few bytes more
}


def rendered(figure: Figure, kind: str) -> bytes:
    """The figure as "png" or "svg", the same bytes at every call."""
    buffer = io.BytesIO()
    width, height = figure.get_size_inches()
    dpi = min(150.0, (MOST_PIXELS / (width * height)) ** 0.5)
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format=kind, dpi=dpi, **SAVED[kind])
    return buffer.getvalue()


def png_url(content: bytes) -> str:
    """A PNG as a URL that holds it."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


SIZES = ((1440, 256), (1440, 48), (1100, 48), (800, 32))  # width and colours of a PNG for the page, the best first


def slim(png: bytes, *, most: int = 700_000) -> bytes:
    """A PNG for the page: of few colours, and narrower until it has that many bytes at most, or is at its smallest."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    for width, hues in SIZES:
        if image.width > width:
            image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        image.quantize(hues, method=Image.Quantize.MEDIANCUT).save(buffer, format="png")
        if buffer.tell() <= most:
            break
    return buffer.getvalue()


def colours(methods: Sequence[str], null: Mapping[str, bool]) -> dict[str, str]:
    """One colour per method, grey for nulls: six hues in three depths."""
    hues = np.array([to_rgb(hue) for hue in HUES])
    depths = itertools.cycle(np.concatenate([hues, hues * 0.62, 1 - (1 - hues) * 0.55]))
    return {method: NULL if null.get(method) else to_hex(tuple(next(depths))) for method in methods}


def roles(results: Results) -> tuple[list[str], str | None, str | None]:
    """Which factor is what: (those that split into figures, rows, shades); `model` gives the columns."""
    factors = [factor for factor in results.run["factors"] if factor != "model"]
    shade, row = [*reversed(factors), None, None][:2]
    return factors[:-2], row, shade


def outer_groups(results: Results, frame: DataFrame) -> Iterator[tuple[list[str], DataFrame]]:
    """The rows of `frame` for each figure, with the words that tell the figure from the others ("size_8")."""
    outer = roles(results)[0]
    if frame.empty:
        return
    if not outer:
        yield [], frame
        return
    varied = [len(levels(results, name)) > 1 for name in outer]
    for key, group in frame.groupby(outer):
        words = [f"{name}_{level}" for name, level in zip(outer, key, strict=True)]
        yield list(itertools.compress(words, varied)), group


def present(results: Results, factor: str | None, frame: DataFrame) -> list[str]:
    """The levels of `factor` that occur in `frame`, in order; one empty level where there is no such factor."""
    if not factor:
        return [""]
    return [level for level in levels(results, factor) if frame[factor].eq(level).any()]


def name_style(label: Text, *, null: bool) -> None:
    """The name of a method; of one that never looks at the model, faint and slanted."""
    label.set_color(MUTED if null else INK)
    label.set_fontstyle("italic" if null else "normal")


def note(
    axis: Axes,
    words: str,
    at: tuple[float, float],
    offset: tuple[float, float],
    *,
    align: str = "left",
    bold: bool = False,
) -> None:
    """Words at a place of the axes (0 to 1), moved by an offset in points; a heading if bold."""
    look: dict[str, Any] = {"color": MUTED, "fontsize": 8}
    if bold:
        look = {"color": INK, "fontweight": "bold", "fontsize": 10}
    axis.annotate(words, at, offset, "axes fraction", "offset points", ha=align, **look)
