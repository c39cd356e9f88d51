"""Maps as one table per run and kind that can be looked at closely: small pictures in one sheet, every pixel a value.

The sheet is a PNG whose colours are the 256 of magma, so that the page's script reads a pixel's value back from its
colour, and a page without script still shows the maps. Several samples of a panel are in it; the table shows the first.
"""

import io
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from pandas import DataFrame
from PIL import Image

from forsooth.frames import only
from forsooth.report.aggregate import Picture, Results, Values, Written, nulls_in, panel_names
from forsooth.report.drawing import png_url
from forsooth.report.maps import Bytes, mark, mass, painted
from forsooth.report.walls import ANY, PLAIN, blocks, compared, wall_of
from forsooth.stats.panels import Floats

Shape = tuple[int, int]  # height and width
Tile = tuple[int, str]  # the place of a picture in its sheet, and its largest value in words
WIDEST = 56  # pixels of a side; larger pictures are averaged down
ACROSS = 40  # pictures in a line of the sheet
BUDGET = 500_000  # pixels of all maps; above it pictures are smaller, then fewer samples are kept
WORDS = {
    "example": (
        "What the methods point at",
        "Each row is one test sample of a panel: the input, the truth, and |attribution| of every method, each scaled "
        "to its own largest value. A dash: no map; a 0: a map of zeros.",
    ),
    "global": (
        "What the methods point at on average",
        "|Attribution| of every method, averaged over all explained samples, each scaled to its own largest value. "
        "Data whose truth moves from sample to sample have no row.",
    ),
}


@dataclass(frozen=True)
class Scale:
    """How much of the pictures is kept: samples of a panel, and pixels of a side."""

    samples: int
    side: int


SCALES = (Scale(4, WIDEST), Scale(4, 40), Scale(4, 32), Scale(2, 32), Scale(1, 32), Scale(1, 14))


def galleries(results: Results) -> list[Values]:
    """What the template shows of the run's maps: a gallery of examples and one of mean maps, where there are any."""
    shown = compared(results)
    drawable = shown["tensor"].map(lambda name: results.pictures[name].ndim in (2, 3)).astype(bool)
    shown = shown[drawable]
    wanted = [kind for kind in WORDS if f"{kind}s" in results.run["exhibits"] and shown["kind"].eq(kind).any()]
    made = [_gallery(results, shown, kind) for kind in wanted]
    return [gallery for gallery in made if gallery["rows"]]


def _gallery(results: Results, shown: DataFrame, kind: str) -> Values:
    """The gallery at the largest scale whose pixels stay within the budget, or else at the smallest.

    rows  name, and samples: label, and for each column the place of its picture in the sheet (NO_MAP, ZEROS: of none)
          and its largest value
    """
    shown = only(shown, kind=(kind, *PLAIN))
    for scale in SCALES:
        maps = only(shown[shown["place"].lt(scale.samples)], kind=kind)
        sheet = Sheet(shape_of([results.pictures[name] for name in maps["tensor"]], scale.side))
        if len(maps) * math.prod(sheet.shape) <= BUDGET:
            break
    columns = list(itertools.chain(*blocks(results, maps, kind)))
    rows = _rows(results, shown, kind, sheet, columns, scale.samples)
    return {
        **_words(kind, sheet),
        "columns": columns,
        "rows": rows,
        "nulls": sorted(set(nulls_in(results)) & set(columns)),
        "samples": max((len(row["samples"]) for row in rows), default=0),
        "sheets": {"maps": sheet.maps(), "inputs": sheet.inputs()},
        "lines": sheet.lines(),
        "shape": sheet.shape,
        "across": ACROSS,
    }


def _words(kind: str, sheet: "Sheet") -> Written:
    title, caption = WORDS[kind]
    if sheet.averaged:
        caption += f" Pictures are averaged down to {sheet.shape[0]}×{sheet.shape[1]} pixels."
    return {"kind": kind, "title": title, "caption": caption}


def shape_of(tensors: Sequence[Picture], side: int) -> Shape:
    """Height and width of all pictures of a sheet: the largest that there is, within that many pixels a side."""
    height = max((tensor.shape[-2] for tensor in tensors), default=1)
    width = max((tensor.shape[-1] for tensor in tensors), default=1)
    shrink = min(1.0, side / max(height, width))
    return max(1, round(height * shrink)), max(1, round(width * shrink))


def _rows(
    results: Results, shown: DataFrame, kind: str, sheet: "Sheet", columns: Sequence[str], samples: int
) -> list[Values]:
    """Every row with its samples, whose pictures are added to the sheet."""
    wall = wall_of(results, shown, kind)
    labels = {(wall.where(line), line["place"]): line["label"] for line in shown.to_dict("records")[::-1]}
    rows = []
    for name, line in zip(panel_names(results, wall.lines), wall.lines.to_dict("records"), strict=True):
        found = []
        for place in range(samples):
            own = wall.hung(line, columns, place)
            if set(own) - set(PLAIN):  # there is a map of it
                label = line["label"] if wall.labelled else ANY
                known = label or labels.get((wall.where(line), place), ANY)
                found.append({"label": known, **sheet.added(own, columns)})
        rows.append({"name": wall.title(name, line) or "all", "panel": name, "samples": found})
    return rows


class Sheet:
    """Pictures of one shape, one after the other: maps as magma's colours, inputs as they look."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.averaged = False
        self._maps: list[Bytes] = []
        self._inputs: list[Bytes] = []
        self._known: dict[int, Tile] = {}

    def added(self, pictures: Mapping[str, Picture], columns: Sequence[str]) -> dict[str, list[Any]]:
        """The places of the pictures of these columns in their sheets, and their largest values in words."""
        both = [self.add(pictures.get(column), column) for column in columns]
        return {"tiles": [tile for tile, _ in both], "peaks": [peak for _, peak in both]}

    def add(self, picture: Picture | None, column: str) -> Tile:
        """The place of the picture in its sheet, and its largest value in words."""
        words = mark(picture)
        if picture is None or words:
            return NO_PLACE[words], ""
        if id(picture) not in self._known:
            self._known[id(picture)] = self._drawn(picture, column)
        return self._known[id(picture)]

    def _drawn(self, picture: Picture, column: str) -> Tile:
        if column == "input":
            return self._placed(painted(picture, "input"), self._inputs), ""
        values = mass(picture)
        return self._placed(values / values.max(), self._maps), f"{values.max():.3g}"

    def _placed(self, values: Floats, tiles: list[Bytes]) -> int:
        """The place of one more among the tiles, in the sheet's shape; values (h, w) or (h, w, 3) from 0 to 1."""
        if values.shape[:2] != self.shape:
            self.averaged = self.averaged or is_larger(values, self.shape)
            values = resized(values, self.shape)
        tiles.append(np.round(255 * values).astype(np.uint8))
        return len(tiles) - 1

    def lines(self) -> list[int]:
        """Lines of the sheet of maps and of that of inputs."""
        return [-(-len(tiles) // ACROSS) for tiles in (self._maps, self._inputs)]

    def maps(self) -> str:
        return self._png(self._maps, magma())

    def inputs(self) -> str:
        return self._png(self._inputs, None)

    def _png(self, tiles: Sequence[Bytes], palette: Bytes | None) -> str:
        """The pictures in lines of ACROSS as one PNG, as a data URL; empty of none."""
        if not tiles:
            return ""
        blanks = [np.zeros_like(tiles[0])] * (-len(tiles) % ACROSS)
        filled = [*tiles, *blanks]
        lines = [np.concatenate(filled[k : k + ACROSS], axis=1) for k in range(0, len(filled), ACROSS)]
        image = Image.fromarray(np.concatenate(lines))
        if palette is not None:
            image.putpalette(palette.tobytes())
        buffer = io.BytesIO()
        image.save(buffer, format="png", optimize=True)
        return png_url(buffer.getvalue())


def is_larger(values: Floats, shape: Shape) -> bool:
    """Whether values (h, w) or (h, w, 3) have more pixels a side than the shape."""
    return bool(values.shape[0] > shape[0] or values.shape[1] > shape[1])


def resized(values: Floats, shape: Shape) -> Floats:
    """Values (h, w) or (h, w, 3) in another shape: averaged down, or every pixel the nearest."""
    how = Image.Resampling.BOX if is_larger(values, shape) else Image.Resampling.NEAREST
    layers = np.moveaxis(np.atleast_3d(values).astype(np.float32), -1, 0)
    parts = [np.asarray(Image.fromarray(layer).resize(shape[::-1], how)) for layer in layers]
    fitted = np.stack(parts, axis=-1).reshape(*shape, *values.shape[2:])
    return np.asarray(np.clip(fitted, 0, 1), dtype=float)


NO_MAP = -1
ZEROS = -2
NO_PLACE = {"–": NO_MAP, "0": ZEROS}  # by their marks


def magma() -> Bytes:
    """The 256 colours of a map, the largest value last. (256, 3)"""
    return np.round(255 * np.asarray(colormaps["magma"](np.arange(256)))[:, :3]).astype(np.uint8)
