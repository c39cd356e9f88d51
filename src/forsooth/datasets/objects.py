"""Objects with alpha: ten generated silhouettes, and cut-outs of the user from a folder or a zip.

What fills a generated object says nothing of its class.
"""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from forsooth.datasets.folders import Reader, check_pixels, failure, opened, printable
from forsooth.datasets.labelled import index_bytes
from forsooth.datasets.scenes import rgb
from forsooth.names import unknown
from forsooth.records import UsageError
from forsooth.seeds import generator

FINE = 4  # each pixel is sampled at 4 x 4 points, so alpha has 17 steps
GROUP = 64  # objects drawn at once, to bound the memory
TURN = 0.4  # radians: objects stand upright but for this, as in photographs
FILLS = 4  # plain, shaded, striped, spotted
FAINT = 0.5 / 255  # alpha below this is 0 in eight bits


@dataclass(frozen=True)
class Cutouts:
    """Objects with alpha, each trimmed to the box in which it is seen.

    images      each (4, height, width), red, green, blue, alpha: uint8, or float in [0, 1]
    y           (m,) int
    splits      name -> indices (k,) into the m cut-outs
    unreadable  "file: reason" for each image file that could not be used
    """

    name: str
    images: tuple[Tensor, ...]
    y: Tensor
    classes: tuple[str, ...]
    splits: Mapping[str, Tensor]
    unreadable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for k, image in enumerate(self.images):
            if image.ndim != 3 or len(image) != 4:
                raise UsageError(f"`images` must each be (4, height, width), got {tuple(image.shape)} at {k}")
            if not (image[3] > 0).any():
                raise UsageError(f"`images` must each show something, but alpha is 0 everywhere at {k}")


def _wedge(u: Tensor, v: Tensor, points: int) -> tuple[Tensor, Tensor]:
    """(u, v) folded into one of `points` equal sectors: how far along its middle, and how far beside it."""
    turn = 2 * math.pi / points
    angle = torch.atan2(u, v)
    angle = (angle - turn * (angle / turn).round()).abs()
    away = torch.hypot(u, v)
    return away * angle.cos(), away * angle.sin()


def _arrow(u: Tensor, v: Tensor) -> Tensor:
    shaft = (v.abs() < 0.24) & (u > -0.95) & (u < 0.2)
    return shaft | ((u > 0.05) & (u < 1) & (v.abs() < 0.8 * (1 - u) / 0.95))


def _bow(u: Tensor, v: Tensor) -> Tensor:
    return (u.abs() < 0.82) & (v.abs() < 0.08 + 0.58 * u.abs())


def _crescent(u: Tensor, v: Tensor) -> Tensor:
    return (u**2 + v**2 < 1) & ((u - 0.45) ** 2 + v**2 > 0.72**2)


def _cross(u: Tensor, v: Tensor) -> Tensor:
    longer = torch.maximum(u.abs(), v.abs())
    shorter = torch.minimum(u.abs(), v.abs())
    return (longer < 0.95) & (shorter < 0.28)


def _disc(u: Tensor, v: Tensor) -> Tensor:
    return u**2 + v**2 < 0.95**2


def _heart(u: Tensor, v: Tensor) -> Tensor:
    s = 1.35 * u
    t = 0.15 - 1.3 * v
    return (s**2 + t**2 - 1) ** 3 < s**2 * t**3


def _ring(u: Tensor, v: Tensor) -> Tensor:
    away = torch.hypot(u, v)
    return (away < 1) & (away > 0.55)


def _square(u: Tensor, v: Tensor) -> Tensor:
    return torch.maximum(u.abs(), v.abs()) < 0.7


def _star(u: Tensor, v: Tensor) -> Tensor:
    along, beside = _wedge(u, v, 5)
    inner = 0.42  # radius of the dents: the edge runs from (1, 0) to the dent, half a sector away
    x = inner * math.cos(math.pi / 5)
    y = inner * math.sin(math.pi / 5)
    return (1 - along) * y > beside * (1 - x)


def _triangle(u: Tensor, v: Tensor) -> Tensor:
    return _wedge(-u, -v, 3)[0] < 0.5


# A silhouette says which points of the disc of radius 1 are inside: (u, v) -> bool of their shape; v points down.
SILHOUETTES: tuple[tuple[str, Callable[[Tensor, Tensor], Tensor]], ...] = (
    ("arrow", _arrow),
    ("bow", _bow),
    ("crescent", _crescent),
    ("cross", _cross),
    ("disc", _disc),
    ("heart", _heart),
    ("ring", _ring),
    ("square", _square),
    ("star", _star),
    ("triangle", _triangle),
)
NAMES = tuple(name for name, _ in SILHOUETTES)


def objects(n: int, *, side: int, seed: int, classes: int = 10) -> tuple[Tensor, Tensor]:
    """n objects of the first `classes` silhouettes, turned a little, from seven tenths to all of the side wide.

    returns  (n, 4, side, side) float32 in [0, 1], red, green, blue and alpha; and labels (n,), i modulo `classes`

    The colour is not multiplied by alpha, and goes on where alpha is 0.
    """
    _check(n, side, classes)
    labels = torch.arange(n) % classes
    rgba = torch.empty(n, 4, side, side)
    for k, name in enumerate(NAMES[:classes]):
        draws = generator(seed, "object", name, side)
        for part in rgba[k::classes].split(GROUP):
            part[:, 3] = alpha(name, len(part), side=side, generator=draws)
            part[:, :3] = fill(len(part), side=side, generator=draws)
    return rgba, labels


def _check(n: int, side: int, classes: int) -> None:
    if not 1 <= classes <= len(SILHOUETTES):
        raise UsageError(f"`classes` must lie in [1, {len(SILHOUETTES)}], got {classes}")
    if n < 1 or side < 8:
        raise UsageError(f"`n` must be at least 1 and `side` at least 8 px, got {n} and {side}")


def alpha(name: str, n: int, *, side: int, generator: torch.Generator) -> Tensor:
    """(n, side, side) in [0, 1]: the share of each pixel that the silhouette covers."""
    inside = _silhouette(name)
    u = torch.rand(2, n, 1, 1, generator=generator)
    turn = TURN * (2 * u[0] - 1)
    radius = 0.7 + 0.28 * u[1]
    at = (torch.arange(side * FINE) + 0.5) / (side * FINE) * 2 - 1
    points = inside(*_turned(at[:, None] / radius, at[None, :] / radius, turn))
    return points.reshape(n, side, FINE, side, FINE).float().mean((2, 4))


def _silhouette(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The silhouette of this name."""
    silhouettes = dict(SILHOUETTES)
    if name not in silhouettes:
        raise unknown(name, NAMES, argument="name")
    return silhouettes[name]


def _turned(down: Tensor, right: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
    """The points at `right` and `down` seen from axes that are turned, all tensors of shapes that fit."""
    along = right * turn.cos() + down * turn.sin()
    across = down * turn.cos() - right * turn.sin()
    return along, across


def fill(n: int, *, side: int, generator: torch.Generator) -> Tensor:
    """(n, 3, side, side) in [0, 1]: two vivid colours, in one of four manners: plain, shaded, striped, spotted."""
    u = torch.rand(6, n, generator=generator)
    manner = torch.randint(0, FILLS, (n,), generator=generator)
    first, second = _vivid(u)
    mix = _manners(2 * math.pi * u[5], side=side)[manner, torch.arange(n)][:, None]  # (n, 1, side, side)
    return first[..., None, None] * (1 - mix) + second[..., None, None] * mix


def _vivid(u: Tensor) -> tuple[Tensor, Tensor]:
    """Two colours (n, 3) of different hue from uniform draws (at least 5, n)."""
    saturation = 0.7 + 0.3 * u[1]
    first = rgb(u[0], saturation, 0.75 + 0.25 * u[2])
    second = rgb(u[0] + 0.15 + 0.7 * u[3], saturation, 0.35 + 0.65 * u[4])
    return first, second


def _manners(turn: Tensor, *, side: int) -> Tensor:
    """(FILLS, n, side, side) in [0, 1]: how much of the second colour each manner has, turned by angles (n,)."""
    at = (torch.arange(side) + 0.5) / side - 0.5
    s, t = _turned(at[:, None], at, turn[:, None, None])
    wave_s = torch.sin(2 * math.pi * 6 * s)
    wave_t = torch.sin(2 * math.pi * 6 * t)
    stripes = torch.sigmoid(6 * wave_s)
    spots = torch.sigmoid(8 * (wave_s * wave_t - 0.3))
    return torch.stack([0 * s, s + 0.5, stripes, spots]).clamp_(0, 1)


def drawn(n: int, *, side: int, seed: int, classes: int = 10) -> Cutouts:
    """n generated objects as cut-outs."""
    rgba, y = objects(n, side=side, seed=seed, classes=classes)
    images = tuple(trimmed(image) for image in rgba)
    return Cutouts(f"objects-{side}", images, y, NAMES[:classes], by_place(y), ())


def trimmed(rgba: Tensor) -> Tensor:
    """The part of (4, height, width) in which alpha is not 0."""
    seen = rgba[3] > 0
    if rgba.dtype != torch.uint8:
        seen = rgba[3] > FAINT
    if not seen.any():
        raise UsageError("a cut-out must show something, but its alpha is 0 everywhere")
    rows, columns = (seen.any(axis).nonzero().squeeze(1) for axis in (1, 0))
    return rgba[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].contiguous()


def by_place(y: Tensor) -> dict[str, Tensor]:
    """Indices of train, val and test: of each class the first 80 %, the next 10 % and the last 10 %, as they come.

    The authors too split by index. Neighbours in the order of names often come from one photograph, and stay together.
    """
    place = torch.empty(len(y))
    for k in y.unique():
        own = (y == k).nonzero().squeeze(1)
        place[own] = (torch.arange(len(own)) + 0.5) / len(own)
    parts = {"train": place < 0.8, "val": (place >= 0.8) & (place < 0.9), "test": place >= 0.9}
    return {name: chosen.nonzero().squeeze(1) for name, chosen in parts.items()}


def cutouts(path: str | Path, *, classes: Sequence[str] | None = None, side: int = 128) -> Cutouts:
    """Cut-outs of the user: images with transparency in class folders, in a folder or a zip.

    An `index.csv` with the columns file and class, if there is one, names the class; else the folder that holds the
    file does. Classes are numbered in the order of their names; `classes` chooses some. Larger images are shrunk to
    `side` px. Files without transparency, or with nothing to see, are named in `unreadable`.
    """
    path = Path(path)
    named = _index(path)
    with opened(path) as (readers, _, failed):
        owner = {name: named.get(name, Path(name).parent.name) for name in readers}
        wanted = {name: read for name, read in readers.items() if classes is None or owner[name] in classes}
        images = _readable(wanted, failed, side=side)
    labels = [owner[name] for name in images]
    missing = set(classes or ()) - set(labels)
    if missing:
        raise unknown(min(missing), set(owner.values()), argument="classes")
    if not images:
        raise UsageError(f"`path` must hold images with transparency, but none can be used in {path}")
    names = tuple(sorted(set(labels)))
    y = torch.tensor([names.index(label) for label in labels])
    return Cutouts(printable(path.name), tuple(images.values()), y, names, by_place(y), tuple(failed))


def _readable(readers: Mapping[str, Reader], failed: list[str], *, side: int) -> dict[str, Tensor]:
    """File -> cut-out (4, height, width) uint8 of those that can be used; the others go to `failed`."""
    images: dict[str, Tensor] = {}
    for name, read in readers.items():
        try:
            images[name] = _cutout(read(), side=side)
        except Exception as error:  # a damaged image can raise anything in its decoder; it is named, never dropped
            failed.append(failure(name, error))
    return images


def _index(path: Path) -> dict[str, str]:
    """File -> class from the index.csv of a folder or zip; empty where there is none."""
    text = (index_bytes(path) or b"").decode()
    rows = csv.DictReader(io.StringIO(text))
    return {row["file"]: row["class"] for row in rows if "file" in row and "class" in row}


def _cutout(data: bytes, *, side: int) -> Tensor:
    """(4, height, width) uint8, trimmed."""
    with Image.open(io.BytesIO(data)) as image:
        check_pixels(image)
        if not image.has_transparency_data:
            raise ValueError("no transparency: the object is not cut out")
        solid = image.convert("RGBA")
    solid = solid.crop(solid.getchannel("A").getbbox())
    solid.thumbnail((side, side))
    return trimmed(torch.from_numpy(np.array(solid)).permute(2, 0, 1))
