"""Maps as a picture, for a notebook or a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import Normalize
from numpy.typing import NDArray

from forsooth.records import UsageError
from forsooth.report.drawing import rendered, sheet

SIDE = 2.4  # inches of a map
COLOURS = "RdBu_r"  # red speaks for the target, blue against it, white is nothing


@dataclass(frozen=True)
class Picture:
    """A drawn map: a notebook shows it, `save` keeps it."""

    png: bytes

    def __repr__(self) -> str:
        return f"Picture of {len(self.png):,} bytes: a notebook shows it, save(file) keeps it"

    def _repr_png_(self) -> bytes:
        return self.png

    def save(self, file: str | Path) -> Path:
        """Write it as a PNG file."""
        path = Path(file)
        path.write_bytes(self.png)
        return path


def show(*maps: Any, image: Any = None, titles: Sequence[str] = ()) -> Picture:
    """Attribution maps side by side, each on its own scale around zero: red for, blue against, white nothing.

    maps    (height, width); (channels, height, width), whose channels are summed; or (features,): tensors or arrays
    image   (height, width) or (channels, height, width), drawn first
    titles  one for each map
    """
    if not maps:
        raise UsageError("`maps` must be at least one map, got none")
    if titles and len(titles) != len(maps):
        raise UsageError(f"`titles` must be one for each of {len(maps)} maps, got {len(titles)}")
    names = list(titles) or [""] * len(maps)
    panels = [(name, _flat(one), COLOURS) for name, one in zip(names, maps, strict=True)]
    if image is not None:
        panels.insert(0, ("input", _flat(image), "gray"))
    figure = sheet(SIDE * len(panels), SIDE)
    for place, (name, values, colours) in enumerate(panels):
        axis = figure.add_axes((place / len(panels), 0.0, 0.96 / len(panels), 0.9))
        axis.set_axis_off()
        axis.set_title(name, fontsize=9)
        axis.imshow(values, cmap=colours, norm=_scale(values, colours))
    return Picture(rendered(figure, "png"))


def _scale(values: NDArray[np.float64], colours: str) -> Normalize:
    """From value to colour: zero is in the middle of a map."""
    if colours != COLOURS:
        return Normalize()
    largest = float(np.abs(np.nan_to_num(values, posinf=0, neginf=0)).max()) or 1.0
    return Normalize(-largest, largest)


def _flat(values: Any) -> NDArray[np.float64]:
    """(height, width) of whatever came: channels are summed, features stand in a row."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        array = np.asarray(values, dtype=float)
    except (ValueError, TypeError) as error:  # rows of several lengths, or whatever holds no numbers
        raise UsageError(f"`maps` must be arrays of numbers, got {type(values).__name__}: {error}") from error
    if array.ndim == 1:
        return array[None]
    if array.ndim == 3:
        return np.asarray(array.sum(axis=0))
    if array.ndim != 2:
        raise UsageError(f"`maps` must be (height, width), (channels, height, width) or (features,), got {array.shape}")
    return array
