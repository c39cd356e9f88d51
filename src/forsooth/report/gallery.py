"""Maps as one table per run and kind that can be looked at closely: small pictures in one sheet, every pixel a value.

The sheet is a PNG whose colours are the 256 of magma, so that the page's script reads a pixel's value back from its
colour, and a page without script still shows the maps. Several samples of a panel are in it; the table shows the first.
"""

import base64
import io
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray
from pandas import DataFrame
from PIL import Image

from forsooth.frames import only, without
from forsooth.records import NO_MODEL
from forsooth.report.aggregate import Results, in_order, panel_names
from forsooth.report.maps import BEFORE, PLAIN, blocks, compared, mark, mass, nulls, painted

Bytes = NDArray[np.uint8]
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


def galleries(results: Results) -> list[dict[str, Any]]:
    """What the template shows of the run's maps: a gallery of examples and one of mean maps, where there are any."""
    shown = compared(results)
    shown = shown[shown["tensor"].map(lambda name: results.pictures[name].ndim in (2, 3)).astype(bool)]
    wanted = {"example": "examples", "global": "globals"}
    kinds = [kind for kind, exhibit in wanted.items() if exhibit in results.run["exhibits"]]
    made = [_gallery(results, shown, kind) for kind in kinds if shown["kind"].eq(kind).any()]
    return [gallery for gallery in made if gallery["rows"]]


def _gallery(results: Results, shown: DataFrame, kind: str) -> dict[str, Any]:
    """At the largest scale whose pixels stay within the budget, or else at the smallest."""
    shown = only(shown, kind=(kind, *PLAIN))
    for scale in SCALES:
        own = only(shown[shown["place"].lt(scale.samples)], kind=kind)
        height, width = shape_of([results.pictures[name] for name in own["tensor"]], scale.side)
        if len(own) * height * width <= BUDGET:
            break
    return _at_scale(results, shown, kind, scale)


def _at_scale(results: Results, shown: DataFrame, kind: str, scale: Scale) -> dict[str, Any]:
    """The gallery with so many samples of a panel and pictures of this size.

    rows  name, and samples: label, and for each column the place of its picture in the sheet (NO_MAP, ZEROS: of none)
          and its largest value
    """
    maps = only(shown[shown["place"].lt(scale.samples)], kind=kind)
    columns = [name for block in [*BEFORE[kind], *blocks(results, set(maps["method"]))] for name in block]
    sheet = Sheet(shape_of([results.pictures[name] for name in maps["tensor"]], scale.side))
    rows = _wall(results, shown, kind).rows(results, sheet, columns, scale.samples)
    return {
        **_words(kind, sheet),
        "columns": columns,
        "rows": rows,
        "nulls": sorted(nulls(results) & set(columns)),
        "samples": max((len(row["samples"]) for row in rows), default=0),
        "sheets": {"maps": sheet.maps(), "inputs": sheet.inputs()},
        "lines": [sheet.lines("maps"), sheet.lines("inputs")],
        "shape": sheet.shape,
        "across": ACROSS,
    }


def _words(kind: str, sheet: "Sheet") -> dict[str, str]:
    title, caption = WORDS[kind]
    if sheet.averaged:
        caption += f" Pictures are averaged down to {sheet.shape[0]}×{sheet.shape[1]} pixels."
    return {"kind": kind, "title": title, "caption": caption}


def shape_of(tensors: Sequence[NDArray[Any]], side: int) -> tuple[int, int]:
    """Height and width of all pictures of a sheet: the largest that there is, within that many pixels a side."""
    height = max((tensor.shape[-2] for tensor in tensors), default=1)
    width = max((tensor.shape[-1] for tensor in tensors), default=1)
    shrink = min(1.0, side / max(height, width))
    return max(1, round(height * shrink)), max(1, round(width * shrink))


@dataclass(frozen=True)
class Wall:
    """Where every picture is found: (factors but the model, model, column, label, place) -> tensor.

    labelled  whether panels have rows of several labels: samples with and without an artefact, say
    lines     factors and label of every row
    """

    tensors: dict[tuple[Any, ...], str]
    labels: dict[tuple[Any, ...], str]
    labelled: bool
    lines: DataFrame
    key: list[str]

    def rows(self, results: Results, sheet: "Sheet", columns: Sequence[str], samples: int) -> list[dict[str, Any]]:
        names = panel_names(results, self.lines)
        rows = []
        for name, line in zip(names, self.lines.to_dict("records"), strict=True):
            title = name or "all"
            if self.labelled:
                title = f"{name} y={line['label']}" if name else line["label"]
            found = [self._sample(results, sheet, columns, line, place) for place in range(samples)]
            rows.append({"name": title, "panel": name, "samples": [sample for sample in found if sample]})
        return rows

    def _sample(
        self, results: Results, sheet: "Sheet", columns: Sequence[str], line: dict[str, Any], place: int
    ) -> dict[str, Any] | None:
        """The pictures of one sample of a row, or None where there is no map of it."""
        where = tuple(line[name] for name in self.key)
        label = line["label"] if self.labelled else ANY
        model = line.get("model", NO_MODEL)
        tensors = {column: self._tensor(where, model, column, label, place) for column in columns}
        if not any(tensor for column, tensor in tensors.items() if column not in PLAIN):
            return None
        tiles = [sheet.add(results.pictures.get(str(name)), column) for column, name in tensors.items()]
        shown = label or self.labels.get((where, place), ANY)
        return {"label": shown, "tiles": [tile for tile, _ in tiles], "peaks": [peak for _, peak in tiles]}

    def _tensor(self, where: tuple[Any, ...], model: str, column: str, label: str, place: int) -> str | None:
        models = (ANY,) if column in PLAIN else (model, NO_MODEL)
        for known in models:
            for wanted in (label, ANY):
                name = self.tensors.get((where, known, column, wanted, place))
                if name and (wanted == label or column in PLAIN):
                    return name
        return None


ANY = ""  # of models and of labels


def _wall(results: Results, shown: DataFrame, kind: str) -> Wall:
    factors = list(results.run["factors"])
    lines = _lines(only(shown, kind=kind, place=0), factors)
    labelled = bool(lines.duplicated(factors).any()) if factors else len(lines) > 1
    key = [name for name in factors if name != "model"]
    tensors: dict[tuple[Any, ...], str] = {}
    labels: dict[tuple[Any, ...], str] = {}
    for picture in shown.to_dict("records"):
        where = tuple(picture[name] for name in key)
        model, column = _model_and_column(picture)
        own = picture["label"] if labelled else ANY
        for label in (own, ANY):  # the sample's own, or else any of the dataset
            tensors.setdefault((where, model, column, label, picture["place"]), picture["tensor"])
        labels.setdefault((where, picture["place"]), picture["label"])
    if not labelled:
        lines = lines.drop_duplicates(factors)
    return Wall(tensors, labels, labelled, in_order(results, lines), key)


def _lines(first: DataFrame, factors: list[str]) -> DataFrame:
    """Factors and label of every row, from the maps of first samples: those of models, unless there are none."""
    own = first
    if "model" in factors:
        own = without(first, model=(NO_MODEL, ANY))
    if own.empty:
        own = first
    return own[[*factors, "label"]].drop_duplicates()


def _model_and_column(picture: dict[Hashable, Any]) -> tuple[str, str]:
    if picture["kind"] in PLAIN:
        return ANY, picture["kind"]
    return picture.get("model") or NO_MODEL, picture["method"]


class Sheet:
    """Pictures of one shape, one after the other: maps as magma's colours, inputs as they look."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.averaged = False
        self._maps: list[Bytes] = []
        self._inputs: list[Bytes] = []
        self._known: dict[int, tuple[int, str]] = {}

    def add(self, picture: NDArray[Any] | None, column: str) -> tuple[int, str]:
        """The place of the picture in its sheet, and its largest value in words."""
        if picture is None or picture.ndim < 2 or mark(picture):
            return (ZEROS if picture is not None and mark(picture) == "0" else NO_MAP), ""
        if id(picture) not in self._known:
            self._known[id(picture)] = self._added(picture, column)
        return self._known[id(picture)]

    def _added(self, picture: NDArray[Any], column: str) -> tuple[int, str]:
        if column == "input":
            self._inputs.append(np.round(255 * self._fitted(painted(picture, "input"))).astype(np.uint8))
            return len(self._inputs) - 1, ""
        values = mass(picture)
        peak = values.max()
        self._maps.append(np.round(255 * self._fitted(values / peak)).astype(np.uint8))
        return len(self._maps) - 1, f"{peak:.3g}"

    def _fitted(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Values (h, w) or (h, w, 3) in the sheet's shape."""
        if values.shape[:2] == self.shape:
            return np.asarray(values, dtype=float)
        self.averaged = self.averaged or is_larger(values, self.shape)
        return resized(values, self.shape)

    def lines(self, which: str) -> int:
        """Lines of the sheet of maps or of inputs."""
        return -(-len({"maps": self._maps, "inputs": self._inputs}[which]) // ACROSS)

    def maps(self) -> str:
        return self._png(self._maps, magma())

    def inputs(self) -> str:
        return self._png(self._inputs, None)

    def _png(self, tiles: Sequence[Bytes], palette: Bytes | None) -> str:
        """The pictures in lines as one PNG, as a data URL; empty of none."""
        if not tiles:
            return ""
        image = Image.fromarray(self._laid_out(tiles))
        if palette is not None:
            image.putpalette(palette.tobytes())
        buffer = io.BytesIO()
        image.save(buffer, format="png", optimize=True)
        return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"

    def _laid_out(self, tiles: Sequence[Bytes]) -> Bytes:
        """All pictures in lines of ACROSS."""
        height, width = self.shape
        lines = -(-len(tiles) // ACROSS)
        sheet = np.zeros((lines * height, ACROSS * width, *tiles[0].shape[2:]), dtype=np.uint8)
        for k, tile in enumerate(tiles):
            top = k // ACROSS * height
            left = k % ACROSS * width
            sheet[top : top + height, left : left + width] = tile
        return sheet


def is_larger(values: NDArray[Any], shape: tuple[int, int]) -> bool:
    """Whether values (h, w) or (h, w, 3) have more pixels a side than the shape."""
    return bool(values.shape[0] > shape[0] or values.shape[1] > shape[1])


def resized(values: NDArray[Any], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Values (h, w) or (h, w, 3) in another shape: averaged down, or every pixel the nearest."""
    how = Image.Resampling.NEAREST
    if is_larger(values, shape):
        how = Image.Resampling.BOX
    layers = np.moveaxis(np.atleast_3d(values).astype(np.float32), -1, 0)
    parts = [np.asarray(Image.fromarray(layer).resize(shape[::-1], how)) for layer in layers]
    fitted = np.stack(parts, axis=-1).reshape(*shape, *values.shape[2:])
    return np.asarray(np.clip(fitted, 0, 1), dtype=float)


NO_MAP = -1
ZEROS = -2


def magma() -> Bytes:
    """The 256 colours of a map, the largest value last. (256, 3)"""
    return np.round(255 * np.asarray(colormaps["magma"](np.arange(256)))[:, :3]).astype(np.uint8)
