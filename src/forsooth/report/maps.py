"""Figures of heat maps: examples, global maps, explanation strategies."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure
from numpy.typing import NDArray

from forsooth.records import NO_MODEL
from forsooth.report.aggregate import Results, in_order, levels, panel_names
from forsooth.report.drawing import INK, MUTED, Drawing, Tables, outer_groups, roles, sheet
from forsooth.report.medians import CEILING
from forsooth.wording import number, text

Tile = NDArray[np.float64]  # (height, width, 3) in [0, 1]
PLAIN = ("input", "truth")  # columns that are no method's map
BLANK = 0.93  # grey of a tile that does not exist
INCH, CELL, MARGIN = 0.37, 70, 3  # edge of a tile in inches and in pixels, and its white border


def examples(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Maps of one sample per dataset, as Fig. 2 of [clark2024xaitris], one figure per model."""
    caption = (
        "Each row is one test sample: the input, the truth, and |attribution| of every method for the {model}, each "
        "scaled to its own largest value. A dash: no map; a 0: a map of zeros."
    )
    return _per_model(results, kind="example", title="What the methods point at: {model}", caption=caption)


def global_maps(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """Mean |map| over all samples, as Fig. B4 of [clark2024xaitris], one figure per model."""
    caption = (
        "|Attribution| of every method for the {model}, averaged over all explained samples, each scaled to its own "
        "largest value. Data whose truth moves from sample to sample have no row."
    )
    return _per_model(results, kind="global", title="What the methods point at on average: {model}", caption=caption)


def _per_model(results: Results, *, kind: str, title: str, caption: str) -> tuple[Drawing, ...]:
    pictures, drawings = _pictures(results), []
    chosen = pictures[pictures["kind"].isin([kind, *PLAIN]) & ~pictures["method"].isin(CEILING)]
    for name, group in outer_groups(results, chosen):
        for model in levels(results, "model"):
            own = group[group["model"].isin([model, NO_MODEL, ""]) | group["kind"].isin(PLAIN)]
            if own["model"].eq(model).any():
                drawings.append(
                    Drawing(
                        name="_".join([f"{kind}s", *name, model]),
                        title=" · ".join([title.format(model=model), *name]),
                        caption=caption.format(model=model),
                        alt=f"Grid of heat maps of the {model}: a row per dataset, a column per method",
                        figure=_grid(results, own, kind=kind, model=model),
                    )
                )
    return tuple(drawings)


def _pictures(results: Results) -> pd.DataFrame:
    """run.json's list of pictures, with factors as text and one line per picture that is there."""
    factors = results.run["factors"]
    frame = pd.DataFrame(results.run["pictures"], columns=["tensor", "kind", "method", "label", *factors])
    frame = frame.assign(**{name: frame[name].map(text) for name in (*factors, "label", "method")})
    return frame[frame["tensor"].isin(results.pictures)]


def _grid(results: Results, pictures: pd.DataFrame, *, kind: str, model: str) -> Figure:
    """A row per dataset (and label) that has a map of the model, a column per method."""
    key = [factor for factor in results.run["factors"] if factor != "model"]
    maps = pictures[pictures["kind"].eq(kind)]
    rows = maps[maps["model"].eq(model)][[*key, "label"]].drop_duplicates()
    rows = in_order(results, rows).reset_index(drop=True)
    names = panel_names(results, rows)
    if rows.duplicated(key).any():  # several samples of one dataset
        names = [f"{name} y={label}" for name, label in zip(names, rows["label"], strict=True)]
    shown = set(maps["method"])
    methods = [method for method in results.run["methods"] if method in shown]
    blocks = [[plain for plain in PLAIN if kind == "example" or plain == "truth"]]
    for null in (False, True):
        blocks.append([name for name in methods if bool(results.run["methods"][name].get("null")) == null])
    lines = [_line(results, pictures, row, key=key, kind=kind) for _, row in rows.iterrows()]
    return _tiled(lines, names=names, blocks=[block for block in blocks if block])


def _line(
    results: Results, pictures: pd.DataFrame, row: pd.Series, *, key: Sequence[str], kind: str
) -> dict[str, NDArray[Any]]:
    """Column -> picture of one row."""
    here = pictures[(pictures[list(key)] == row[list(key)]).all(axis=1)]
    plain = here[here["kind"].isin(PLAIN)]
    same = plain[plain["label"].eq(row["label"])]
    found: dict[str, NDArray[Any]] = {}
    for entry in pd.concat([same, plain]).itertuples():  # the sample's own, or else any of the dataset
        found.setdefault(entry.kind, results.pictures[entry.tensor])
    for entry in here[here["kind"].eq(kind) & here["label"].isin([row["label"], ""])].itertuples():
        found[entry.method] = results.pictures[entry.tensor]
    return found


def _tiled(
    lines: Sequence[Mapping[str, NDArray[Any]]], *, names: Sequence[str], blocks: Sequence[Sequence[str]]
) -> Figure:
    """Tiles in rows, columns in blocks with a gap between them, names to the left and above."""
    columns = [
        (name, k + 0.35 * b)
        for k, (b, name) in enumerate((b, name) for b, block in enumerate(blocks) for name in block)
    ]
    across, down = columns[-1][1] + 1, len(lines)
    left = 0.2 + 0.075 * max(map(len, names))  # inches for the names of rows and, slanted, of columns
    top = 0.3 + 0.06 * max(len(name) for name, _ in columns)
    right = 0.1 + 0.045 * max(len(name) for name, _ in columns[-4:])
    figure = sheet(left + right + INCH * across, top + 0.1 + INCH * down)
    width, height = figure.get_size_inches()
    axis = figure.add_axes((left / width, 0.1 / height, INCH * across / width, INCH * down / height))
    axis.imshow(_canvas(lines, columns), extent=(0, across, down, 0), aspect="auto")
    axis.set_axis_off()
    for k, line in enumerate(lines):
        axis.text(-0.25, k + 0.5, names[k], ha="right", va="center", fontsize=8)
        for name, x in columns:
            axis.text(x + 0.5, k + 0.5, _mark(line.get(name)), ha="center", va="center", color=MUTED, fontsize=8)
    faint = blocks[-1] if len(blocks) > 2 else ()
    for name, x in columns:
        words = axis.text(x + 0.45, -0.15, name, rotation=55, rotation_mode="anchor", va="bottom", fontsize=8)
        words.set(color=MUTED if name in faint else INK, fontstyle="italic" if name in faint else "normal")
        words.set_fontweight("bold" if name in PLAIN else "normal")
    return figure


def _mark(picture: NDArray[Any] | None) -> str:
    """What to write where there is nothing to see: a dash for no map or no number in it, a 0 for a map of zeros."""
    if picture is None or not np.isfinite(picture).any():
        return "–"
    return "" if np.nan_to_num(picture, posinf=0, neginf=0).any() else "0"


def _canvas(lines: Sequence[Mapping[str, NDArray[Any]]], columns: Sequence[tuple[str, float]]) -> Tile:
    """All tiles in one picture, CELL pixels a tile: one image draws faster than five hundred."""
    canvas = np.ones((CELL * len(lines), round(CELL * (columns[-1][1] + 1)), 3))
    inner = CELL - 2 * MARGIN
    for k, line in enumerate(lines):
        for name, x in columns:
            picture = line.get(name)
            tile = np.full((1, 1, 3), BLANK) if picture is None or _mark(picture) else _painted(picture, name)
            down, right = (np.arange(inner) * edge // inner for edge in tile.shape[:2])  # nearest pixel
            y, left = CELL * k + MARGIN, round(CELL * x) + MARGIN
            canvas[y : y + inner, left : left + inner] = tile[down[:, None], right]
    return canvas


def _painted(picture: NDArray[Any], name: str) -> Tile:
    """Colours of a picture (height, width) or (channels, height, width).

    An input is grey or, with three channels, in colour; a map is |map| summed over channels, over its largest.
    """
    values = np.nan_to_num(np.asarray(picture, dtype=float), posinf=0, neginf=0)
    values = values.reshape(-1, *values.shape[-2:])
    if name == "input" and len(values) == 3:
        span = np.ptp(values) or 1.0
        return np.moveaxis((values - values.min()) / span, 0, -1)
    if name == "input":
        return colormaps["gray"](0.5 + 0.5 * values[0] / (np.abs(values).max() or 1.0))[..., :3]
    mass = np.abs(values).sum(axis=0)
    return colormaps["magma"](mass / (mass.max() or 1.0))[..., :3]


def strategies(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """What the scores say of maps drawn by hand, as Fig. B3 of [clark2024xaitris]."""
    pictures, drawings = _pictures(results), []
    rows = results.rows[results.rows["part"].eq("strategies")]
    for name, group in outer_groups(results, rows):
        shown = pictures[pictures["kind"].eq("strategy") & pictures["method"].isin(group["method"])]
        shown = shown.merge(group[[*roles(results)[0]]].drop_duplicates()) if roles(results)[0] else shown
        if len(shown):
            drawings.append(
                Drawing(
                    name="_".join(["strategies", *name]),
                    title=" · ".join(["What the scores reward", *name]),
                    caption="Maps drawn by hand and what the scores make of them.",
                    alt="Hand-made maps with their scores: " + ", ".join(shown["method"].unique()),
                    figure=_row_of_maps(results, shown.drop_duplicates("method"), group),
                )
            )
    return tuple(drawings)


def _row_of_maps(results: Results, pictures: pd.DataFrame, rows: pd.DataFrame) -> Figure:
    """The pictures side by side, each with its name above and its scores below."""
    figure = sheet(1.75 * len(pictures), 2.85)
    axes = figure.subplots(1, len(pictures), squeeze=False)[0]
    for axis, picture in zip(axes, pictures.itertuples(), strict=True):
        axis.imshow(_painted(results.pictures[picture.tensor], picture.method), interpolation="nearest")
        axis.set_axis_off()
        axis.set_title("\n".join(wrap(picture.method, 18)), fontsize=9)
        scores = rows[rows["method"].eq(picture.method)].groupby("metric", sort=False)["value"].mean()
        words = "\n".join(f"{metric} {number(value, digits=2)}" for metric, value in scores.items())
        axis.text(0.5, -0.06, words, transform=axis.transAxes, ha="center", va="top", fontsize=8.5, linespacing=1.4)
    figure.subplots_adjust(left=0.02, right=0.98, top=0.84, bottom=0.27, wspace=0.12)
    return figure
