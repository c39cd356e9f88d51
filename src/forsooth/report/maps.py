"""Figures of heat maps: examples and global maps."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pandas import DataFrame

from forsooth.frames import only
from forsooth.records import NO_MODEL
from forsooth.report.aggregate import Picture, Results, nulls_in, panel_names
from forsooth.report.drawing import MUTED, Drawing, Tables, name_style, outer_groups, present, sheet
from forsooth.report.walls import PLAIN, blocks, compared, wall_of
from forsooth.stats.panels import Floats

Bytes = NDArray[np.uint8]
Places = dict[str, float]  # of columns from the left, by their names
BLANK = 0.93  # grey of a tile that does not exist
INCH = 0.37  # edge of a tile in inches
CELL = 70  # the same in pixels, at most
CANVAS = 1_300_000  # pixels of all tiles of a figure, about; of many tiles each is smaller


WORDS = {
    "example": (
        "What the methods point at: {model}",
        "Each row is one test sample: the input, the truth, and |attribution| of every method for the {model}, each "
        "scaled to its own largest value. A dash: no map; a 0: a map of zeros.",
    ),
    "global": (
        "What the methods point at on average: {model}",
        "|Attribution| of every method for the {model}, averaged over all explained samples, each scaled to its own "
        "largest value. Data whose truth moves from sample to sample have no row.",
    ),
}


def examples(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Maps of one sample per dataset, as Fig. 2 of [clark2024xaitris], one figure per model."""
    return _per_model(results, "example")


def global_maps(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Mean |map| over all samples, as Fig. B4 of [clark2024xaitris], one figure per model."""
    return _per_model(results, "global")


def _per_model(results: Results, kind: str) -> Iterator[Drawing]:
    chosen = only(compared(results), kind=(kind, *PLAIN), place=0)
    title, caption = WORDS[kind]
    for name, group in outer_groups(results, chosen):
        for model in present(results, "model", group):
            own = group[group["model"].isin([model, NO_MODEL, ""]) | group["kind"].isin(PLAIN)]
            yield Drawing(
                name="_".join([f"{kind}s", *name, model]),
                title=" · ".join([title.format(model=model), *name]),
                caption=caption.format(model=model),
                alt=f"Grid of heat maps of the {model}: a row per dataset, a column per method",
                figure=_grid(results, own, kind),
                aside=True,
            )


def _grid(results: Results, shown: DataFrame, kind: str) -> Figure:
    """A row per dataset (and label) that has a map of the model, a column per method."""
    wall = wall_of(results, shown, kind)
    columns = _placed(blocks(results, shown, kind))
    rows = wall.lines.to_dict("records")
    panels = panel_names(results, wall.lines.drop(columns="model"))
    names = [wall.title(panel, row) for panel, row in zip(panels, rows, strict=True)]
    lines = [wall.hung(row, columns, 0) for row in rows]
    return _tiled(lines, names=names, columns=columns, faint=nulls_in(results))


def _placed(blocks: Sequence[Sequence[str]]) -> Places:
    """The place of every column, with a gap between blocks."""
    places: Places = {}
    for gap, block in enumerate(blocks):
        for name in block:
            places[name] = len(places) + 0.35 * gap
    return places


def _tiled(
    lines: Sequence[Mapping[str, Picture]],
    *,
    names: Sequence[str],
    columns: Places,
    faint: Collection[str],
) -> Figure:
    """Tiles in rows, columns in blocks with a gap between them, names to the left and above.

    faint  columns of maps that never look at the model
    """
    figure, axis = _frame(names, columns)
    across = _width(columns)
    axis.imshow(_canvas(lines, columns), extent=(0, across, len(lines), 0), aspect="auto", interpolation="nearest")
    for row, line in enumerate(lines):
        axis.text(-0.25, row + 0.5, names[row], ha="right", va="center", fontsize=8)
        for name, x in columns.items():
            words = mark(line.get(name))
            if words:
                axis.text(x + 0.5, row + 0.5, words, ha="center", va="center", color=MUTED, fontsize=8)
    for name, x in columns.items():
        label = axis.text(x + 0.45, -0.15, name, rotation=55, rotation_mode="anchor", va="bottom", fontsize=8)
        name_style(label, null=name in faint)
        if name in PLAIN:
            label.set_fontweight("bold")
    return figure


def _width(columns: Places) -> float:
    """Of all columns together, in tiles."""
    return max(columns.values()) + 1


def _frame(names: Sequence[str], columns: Places) -> tuple[Figure, Axes]:
    """A sheet with room for the names of rows and, slanted, of columns; sizes in inches."""
    long = [len(name) for name in columns]
    left = 0.2 + 0.075 * max(map(len, names))
    top = 0.3 + 0.06 * max(long)
    right = 0.1 + 0.045 * max(long[-4:])
    across = INCH * _width(columns)
    down = INCH * len(names)
    figure = sheet(left + right + across, top + 0.1 + down)
    width, height = figure.get_size_inches()
    axis = figure.add_axes((left / width, 0.1 / height, across / width, down / height))
    axis.set_axis_off()
    return figure, axis


def mark(picture: Picture | None) -> str:
    """What to write where there is nothing to see: a dash for no map or no number in it, a 0 for a map of zeros."""
    if picture is None or picture.ndim < 2 or not np.isfinite(picture).any():
        return "–"
    if np.nan_to_num(picture, posinf=0, neginf=0).any():
        return ""
    return "0"


def _canvas(lines: Sequence[Mapping[str, Picture]], columns: Places) -> Bytes:
    """All tiles in one picture, each of the same size: one image draws faster than five hundred."""
    edge = _edge(len(lines) * _width(columns))
    margin = round(edge / 23)
    canvas = np.full((edge * len(lines), round(edge * _width(columns)), 3), 255, dtype=np.uint8)
    inner = edge - 2 * margin
    for row, line in enumerate(lines):
        top = edge * row + margin
        for name, x in columns.items():
            left = round(edge * x) + margin
            canvas[top : top + inner, left : left + inner] = _enlarged(_tile(line.get(name), name), inner)
    return canvas


def _edge(tiles: float) -> int:
    """Pixels of a tile, its white border with it, where there are so many."""
    return int(max(12, min(CELL, round((CANVAS / tiles) ** 0.5))))


def _tile(picture: Picture | None, name: str) -> Bytes:
    """The colours of a picture; grey where there is nothing to see."""
    colours = np.full((1, 1, 3), BLANK) if picture is None or mark(picture) else painted(picture, name)
    return np.asarray(np.round(255 * colours), dtype=np.uint8)


def _enlarged(tile: Bytes, edge: int) -> Bytes:
    """The tile with so many pixels a side, each the nearest. (edge, edge, 3)"""
    down = np.arange(edge) * tile.shape[0] // edge
    right = np.arange(edge) * tile.shape[1] // edge
    return np.asarray(tile[down[:, None], right])


def painted(picture: Picture, name: str) -> Floats:
    """Colours of a picture (height, width) or (channels, height, width).

    An input is grey or, with three channels, in colour; a map is |map| summed over channels, over its largest.
    """
    if name == "input":
        return _painted_input(_channels(picture))
    values = mass(picture)
    return np.asarray(colormaps["magma"](values / (values.max() or 1.0)))[..., :3]


def mass(picture: Picture) -> Floats:
    """|map| summed over channels, of a map (height, width) or (channels, height, width); what is no number is 0."""
    return np.asarray(np.abs(_channels(picture)).sum(axis=0))


def _channels(picture: Picture) -> Floats:
    """Finite values (channels, height, width)."""
    values = np.nan_to_num(np.asarray(picture, dtype=float), posinf=0, neginf=0)
    return np.asarray(values.reshape(-1, *values.shape[-2:]))


def _painted_input(values: Floats) -> Floats:
    if len(values) == 3:
        span = np.ptp(values) or 1.0
        return np.moveaxis((values - values.min()) / span, 0, -1)
    return np.asarray(colormaps["gray"](0.5 + 0.5 * values[0] / (np.abs(values).max() or 1.0)))[..., :3]
