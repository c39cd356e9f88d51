"""Figures of heat maps: examples and global maps."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pandas import DataFrame, Series, concat

from forsooth.frames import only
from forsooth.records import NO_MODEL
from forsooth.report.aggregate import Results, in_order, panel_names
from forsooth.report.drawing import MUTED, Drawing, Tables, name_style, outer_groups, present, sheet
from forsooth.report.medians import CEILING
from forsooth.wording import text

Tile = NDArray[np.float64]  # (height, width, 3) in [0, 1]
PLAIN = ("input", "truth")  # columns that are no method's map
BLANK = 0.93  # grey of a tile that does not exist
INCH = 0.37  # edge of a tile in inches
CELL = 70  # the same in pixels, at most
CANVAS = 1_300_000  # pixels of all tiles of a figure, about; of many tiles each is smaller


def examples(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Maps of one sample per dataset, as Fig. 2 of [clark2024xaitris], one figure per model."""
    caption = (
        "Each row is one test sample: the input, the truth, and |attribution| of every method for the {model}, each "
        "scaled to its own largest value. A dash: no map; a 0: a map of zeros."
    )
    return _per_model(results, kind="example", title="What the methods point at: {model}", caption=caption)


def global_maps(results: Results, tables: Tables) -> Iterator[Drawing]:
    """Mean |map| over all samples, as Fig. B4 of [clark2024xaitris], one figure per model."""
    caption = (
        "|Attribution| of every method for the {model}, averaged over all explained samples, each scaled to its own "
        "largest value. Data whose truth moves from sample to sample have no row."
    )
    return _per_model(results, kind="global", title="What the methods point at on average: {model}", caption=caption)


def _per_model(results: Results, *, kind: str, title: str, caption: str) -> Iterator[Drawing]:
    chosen = only(compared(results), kind=(kind, *PLAIN), place=0)
    for name, group in outer_groups(results, chosen):
        for model in present(results, "model", group):
            own = group[group["model"].isin([model, NO_MODEL, ""]) | group["kind"].isin(PLAIN)]
            yield Drawing(
                name="_".join([f"{kind}s", *name, model]),
                title=" · ".join([title.format(model=model), *name]),
                caption=caption.format(model=model),
                alt=f"Grid of heat maps of the {model}: a row per dataset, a column per method",
                figure=_grid(results, own, kind=kind, model=model),
                aside=True,
            )


def compared(results: Results) -> DataFrame:
    """The pictures that a reader compares: without maps of whoever was told the truth, but with the truth itself."""
    every = pictures(results)
    return every[every["kind"].isin(PLAIN) | ~every["method"].isin(CEILING)]


def pictures(results: Results, *more: str) -> DataFrame:
    """run.json's list of pictures, with factors as text and one line per picture that is there.

    place  which of the samples of its panel it is of: 0, 1 …
    more   further columns
    """
    factors = results.run["factors"]
    columns = dict.fromkeys(("tensor", "kind", "method", "label", "place", *more, *factors))
    frame = DataFrame(results.run["pictures"], columns=list(columns))
    frame = frame.assign(**{name: frame[name].map(text) for name in (*factors, "label", "method")})
    frame["place"] = pd.to_numeric(frame["place"], errors="coerce").fillna(0).astype(int)
    return only(frame, tensor=results.pictures)


def _grid(results: Results, pictures: DataFrame, *, kind: str, model: str) -> Figure:
    """A row per dataset (and label) that has a map of the model, a column per method."""
    key = [factor for factor in results.run["factors"] if factor != "model"]
    maps = only(pictures, kind=kind)
    rows = only(maps, model=model)[[*key, "label"]].drop_duplicates()
    rows = in_order(results, rows).reset_index(drop=True)
    names = panel_names(results, rows)
    if rows.duplicated(key).any():  # several samples of one dataset
        names = [f"{name} y={label}" for name, label in zip(names, rows["label"], strict=True)]
    lines = [_line(results, pictures, row, key=key, kind=kind) for _, row in rows.iterrows()]
    columns = _placed([*BEFORE[kind], *blocks(results, set(maps["method"]))])
    return _tiled(lines, names=names, columns=columns, faint=nulls(results))


BEFORE = {"example": [["input", "truth"]], "global": [["truth"]]}  # columns that are no method's map


def blocks(results: Results, shown: set[str]) -> list[list[str]]:
    """The methods that have maps, then the nulls; no block is empty."""
    blind = nulls(results)
    methods = [name for name in results.run["methods"] if name in shown]
    both = [[name for name in methods if name not in blind], [name for name in methods if name in blind]]
    return [block for block in both if block]


def nulls(results: Results) -> set[str]:
    return {name for name, record in results.run["methods"].items() if record.get("null")}


def _placed(blocks: Sequence[Sequence[str]]) -> dict[str, float]:
    """Column -> its place from the left, with a gap between blocks."""
    places: dict[str, float] = {}
    for gap, block in enumerate(blocks):
        for name in block:
            places[name] = len(places) + 0.35 * gap
    return places


def _line(results: Results, pictures: DataFrame, row: Series, *, key: list[str], kind: str) -> dict[str, NDArray[Any]]:
    """Column -> picture of one row."""
    here = only(pictures, **row[key].to_dict())
    plain = only(here, kind=PLAIN)
    same = only(plain, label=row["label"])
    found: dict[str, NDArray[Any]] = {}
    for entry in concat([same, plain]).itertuples():  # the sample's own, or else any of the dataset
        found.setdefault(entry.kind, results.pictures[entry.tensor])
    for entry in only(here, kind=kind, label=(row["label"], "")).itertuples():
        found[entry.method] = results.pictures[entry.tensor]
    return found


def _tiled(
    lines: Sequence[Mapping[str, NDArray[Any]]],
    *,
    names: Sequence[str],
    columns: Mapping[str, float],
    faint: Collection[str],
) -> Figure:
    """Tiles in rows, columns in blocks with a gap between them, names to the left and above.

    columns  name -> place from the left
    faint    columns of maps that never look at the model
    """
    figure, axis = _frame(names, columns, rows=len(lines))
    across = _width(columns)
    axis.imshow(_canvas(lines, columns), extent=(0, across, len(lines), 0), aspect="auto")
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


def _width(columns: Mapping[str, float]) -> float:
    """Of all columns together, in tiles."""
    return max(columns.values()) + 1


def _frame(names: Sequence[str], columns: Mapping[str, float], *, rows: int) -> tuple[Figure, Axes]:
    """A sheet with room for the names of rows and, slanted, of columns; sizes in inches."""
    long = [len(name) for name in columns]
    left = 0.2 + 0.075 * max(map(len, names))
    top = 0.3 + 0.06 * max(long)
    right = 0.1 + 0.045 * max(long[-4:])
    across = INCH * _width(columns)
    figure = sheet(left + right + across, top + 0.1 + INCH * rows)
    width, height = figure.get_size_inches()
    axis = figure.add_axes((left / width, 0.1 / height, across / width, INCH * rows / height))
    axis.set_axis_off()
    return figure, axis


def mark(picture: NDArray[Any] | None) -> str:
    """What to write where there is nothing to see: a dash for no map or no number in it, a 0 for a map of zeros."""
    if picture is None or picture.ndim < 2 or not np.isfinite(picture).any():
        return "–"
    if np.nan_to_num(picture, posinf=0, neginf=0).any():
        return ""
    return "0"


def _canvas(lines: Sequence[Mapping[str, NDArray[Any]]], columns: Mapping[str, float]) -> NDArray[np.uint8]:
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


def _tile(picture: NDArray[Any] | None, name: str) -> NDArray[np.uint8]:
    """The colours of a picture; grey where there is nothing to see."""
    colours = np.full((1, 1, 3), BLANK)
    if picture is not None and not mark(picture):
        colours = painted(picture, name)
    return np.asarray(np.round(255 * colours), dtype=np.uint8)


def _enlarged(tile: NDArray[np.uint8], edge: int) -> NDArray[np.uint8]:
    """The tile with so many pixels a side, each the nearest. (edge, edge, 3)"""
    down = np.arange(edge) * tile.shape[0] // edge
    right = np.arange(edge) * tile.shape[1] // edge
    return np.asarray(tile[down[:, None], right])


def painted(picture: NDArray[Any], name: str) -> Tile:
    """Colours of a picture (height, width) or (channels, height, width).

    An input is grey or, with three channels, in colour; a map is |map| summed over channels, over its largest.
    """
    if name == "input":
        return _painted_input(_channels(picture))
    values = mass(picture)
    return np.asarray(colormaps["magma"](values / (values.max() or 1.0)))[..., :3]


def mass(picture: NDArray[Any]) -> NDArray[np.float64]:
    """|map| summed over channels, of a map (height, width) or (channels, height, width); what is no number is 0."""
    return np.asarray(np.abs(_channels(picture)).sum(axis=0))


def _channels(picture: NDArray[Any]) -> Tile:
    """Finite values (channels, height, width)."""
    values = np.nan_to_num(np.asarray(picture, dtype=float), posinf=0, neginf=0)
    return np.asarray(values.reshape(-1, *values.shape[-2:]))


def _painted_input(values: Tile) -> Tile:
    if len(values) == 3:
        span = np.ptp(values) or 1.0
        return np.moveaxis((values - values.min()) / span, 0, -1)
    return np.asarray(colormaps["gray"](0.5 + 0.5 * values[0] / (np.abs(values).max() or 1.0)))[..., :3]
