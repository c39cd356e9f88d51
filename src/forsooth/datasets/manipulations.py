"""Five artefacts of pictures, each confined to a region that is known before any picture is seen [zhou2022feature].

All lengths are px of a picture with a side of 224, as the paper prints them. They are scaled to the picture at hand:
rows by its height, columns by its width, radii, blur and letters by its shorter side.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from forsooth.datasets import glyphs
from forsooth.datasets.pixels import blur_matrix, check_pictures, in_bytes, shifted, stretch
from forsooth.names import unknown
from forsooth.records import UsageError
from forsooth.seeds import generator

UNIT = 224  # px
CHUNK = 16  # pictures edited at once, to bound the memory


@dataclass(frozen=True)
class Manipulation:
    """One artefact: plain values, so that a recipe can carry it as JSON, and `Manipulation(**values)` brings it back.

    visibility  of blur, its standard deviation (px); of brightness, how much HSV value the centre loses; of hue, the
                largest shift; of noise, the share of pixels replaced; of the watermark, the size of its letters (px)
    radius      of the circle round the centre: peripheral_blur acts outside of it, center_brightness inside
    top to right  first and last row and column of the box, inclusive; of the stripes only the rows count

    Where the paper's text and the released code part:
    anchor      striped_hue. "image": the sine starts at the middle row of the picture, as released, and jumps at the
                edge of the band; "band": at the top of the band, as printed
    characters  watermark. "hex" as released, "digits" as printed
    colours     watermark. "either": IMG white and the number black, or the reverse, with equal chance, as released;
                "fixed": IMG white, as printed
    leak        center_brightness, striped_hue. True: the whole picture goes to HSV and back and bytes are truncated,
                as released. Then bytes change outside the region too
    """

    name: str
    visibility: float
    radius: float = 0
    top: float = 0
    bottom: float = UNIT - 1
    left: float = 0
    right: float = UNIT - 1
    anchor: Literal["image", "band"] = "image"
    characters: Literal["hex", "digits"] = "hex"
    colours: Literal["either", "fixed"] = "either"
    leak: bool = False


@dataclass(frozen=True)
class Range:
    """What one experiment draws from: least and largest value, inclusive, and the levels of visibility in order."""

    levels: tuple[float, ...]
    radius: tuple[int, int] | None = None
    height: tuple[int, int] | None = None
    width: tuple[int, int] | None = None


# Experiments 1 to 4 are sections 5.1 to 5.4 of the paper; the second explains checkpoints of the first.
RANGES: dict[int, dict[str, Range]] = {
    1: {
        "peripheral_blur": Range(levels=(2,), radius=(80, 130)),
        "center_brightness": Range(levels=(0.3,), radius=(40, 112)),
        "striped_hue": Range(levels=(0.04,), height=(20, 224)),
        "striped_noise": Range(levels=(0.02,), height=(20, 224)),
        "watermark": Range(levels=(13,), height=(40, 200), width=(100, 200)),
    },
    3: {
        "peripheral_blur": Range(levels=(2, 4, 6, 8, 10), radius=(80, 120)),
        "center_brightness": Range(levels=(0.1, 0.15, 0.2, 0.25, 0.3), radius=(40, 112)),
        "striped_hue": Range(levels=(0.05, 0.1, 0.15, 0.2, 0.25), height=(50, 100)),
        "striped_noise": Range(levels=(0.02, 0.04, 0.06, 0.08, 0.1), height=(50, 100)),
        "watermark": Range(levels=(7, 9, 11, 13, 15), height=(40, 100), width=(100, 200)),
    },
}
RANGES[2] = RANGES[1]
FIXED = (  # experiment 4
    Manipulation("peripheral_blur", 10, radius=80),
    Manipulation("center_brightness", 0.3, radius=60),
    Manipulation("striped_hue", 0.15, top=80, bottom=130),
    Manipulation("striped_noise", 0.03, top=80, bottom=130),
    Manipulation("watermark", 13, top=150, bottom=200, left=30, right=194),
)
NAMES = tuple(m.name for m in FIXED)
ROUND = ("peripheral_blur", "center_brightness")
LEAKY = ("center_brightness", "striped_hue")


def levels(name: str, experiment: int) -> tuple[float, ...]:
    """The visibility levels of an experiment, from the least visible to the most."""
    if name not in NAMES:
        raise unknown(name, NAMES, argument="name")
    if experiment not in (1, 2, 3, 4):
        raise UsageError(f"`experiment` must be 1, 2, 3 or 4, got {experiment}")
    if experiment == 4:
        return (FIXED[NAMES.index(name)].visibility,)
    return RANGES[experiment][name].levels


def draw(name: str, experiment: int, *, seed: int, level: int = 0) -> Manipulation:
    """A manipulation of one of the paper's experiments 1 to 4, at one of its visibility levels (0 is the least).

    The region depends on name, experiment and seed only. Departure: the paper does not say how a band or a rectangle of
    drawn size is placed, nor whether lengths are whole; ours are whole px, uniform over what fits the picture.
    """
    count = len(levels(name, experiment))
    if not 0 <= level < count:
        raise UsageError(f"`level` must be 0 to {count - 1} in experiment {experiment}, got {level}")
    if experiment == 4:
        return FIXED[NAMES.index(name)]
    span = RANGES[experiment][name]
    drawn_in = {1: 1, 2: 1, 3: 3}[experiment]  # the second explains checkpoints of the first: its draws are the same
    draws = generator(seed, "manipulation", name, drawn_in)
    radius = 0
    if span.radius:
        radius = _uniform(*span.radius, draws)
    top, bottom = _placed(span.height, draws)
    left, right = _placed(span.width, draws)
    return Manipulation(name, span.levels[level], radius=radius, top=top, bottom=bottom, left=left, right=right)


def _placed(lengths: tuple[int, int] | None, draws: torch.Generator) -> tuple[int, int]:
    """First and last px of a stretch of random length at a random place; without lengths, of the whole side."""
    if lengths is None:
        return 0, UNIT - 1
    length = _uniform(*lengths, draws)
    first = _uniform(0, UNIT - length, draws)
    return first, first + length - 1


def _uniform(least: int, largest: int, draws: torch.Generator) -> int:
    """A whole number between the two, both included."""
    return int(torch.randint(least, largest + 1, (), generator=draws))


def region(manipulation: Manipulation, *, size: tuple[int, int]) -> Tensor:
    """The effective region: all pixels that the manipulation could change in any picture, whatever its visibility.

    size     rows and columns of the picture
    returns  (h, w) bool; UsageError where it is empty
    """
    m = manipulation
    _check(m)
    if m.name == "peripheral_blur":
        inside = ~(distance(size) <= m.radius)
    elif m.name == "center_brightness":
        inside = distance(size) <= m.radius
    else:
        inside = _box(m, size)
    if not inside.any():
        raise UsageError(f"`size` must leave pixels in the region of {m}, got {size[0]} x {size[1]}")
    return inside


def _box(m: Manipulation, size: tuple[int, int]) -> Tensor:
    """(h, w) bool: the pixels whose middles lie in the box; stripes go from side to side."""
    y, x = (centres(length) for length in size)
    rows = (y >= m.top) & (y < m.bottom + 1)
    columns = torch.ones_like(x, dtype=torch.bool)
    if m.name == "watermark":
        columns = (x >= m.left) & (x < m.right + 1)
    return rows[:, None] & columns


def joint_region(manipulations: Iterable[Manipulation | None], *, size: tuple[int, int]) -> Tensor:
    """(h, w) bool: the union of the regions; None stands for the blank manipulation, whose region is empty."""
    regions = [region(m, size=size) for m in manipulations if m is not None]
    return torch.stack([torch.zeros(size, dtype=torch.bool), *regions]).any(0)


def centres(length: int) -> Tensor:
    """(length,) float64: where the middles of the pixels lie on a line of 224."""
    return (torch.arange(length, dtype=torch.float64) + 0.5) * UNIT / length


def distance(size: tuple[int, int]) -> Tensor:
    """(h, w) float64: from the middle of each pixel to the middle of the picture, the shorter side being 224."""
    y, x = ((centres(length) - UNIT / 2) * length / min(size) for length in size)
    return torch.hypot(y[:, None], x)


@dataclass(frozen=True)
class Grid:
    """The box of a x b pixels that is edited."""

    rows: slice  # of the picture
    columns: slice
    inside: Tensor  # (a, b) bool, the effective region
    reach: Tensor  # (a, b) bool, the pixels that may change: more than the region where the manipulation leaks
    y: Tensor  # (a,), see `centres`
    away: Tensor  # (a, b), see `distance`
    scale: float  # px of the picture for each of the 224


def apply(manipulation: Manipulation, x: Tensor, *, seed: int, which: Sequence[int] | None = None) -> Tensor:
    """The pictures with the artefact. Outside of its region nothing changes, to the bit (`leak` apart).

    x        (n, 3, h, w) float in [0, 1]
    which    (n,) numbers of the pictures in their dataset: noise and text depend on `seed` and on this number, and
             not on who else is in the batch; None: 0 to n - 1
    returns  (n, 3, h, w); what was changed is a multiple of 1/255
    """
    check_pictures(x)
    grid = _grid(manipulation, (x.shape[-2], x.shape[-1]), device=x.device)
    numbers: Sequence[int] = range(len(x))
    if which is not None:
        numbers = [int(k) for k in which]
    edited = x.clone()
    for start in range(0, len(x), CHUNK):
        part = edited[start : start + CHUNK, :, grid.rows, grid.columns]
        streams = [generator(seed, manipulation.name, k) for k in numbers[start : start + CHUNK]]
        changed = EDITS[manipulation.name](part, manipulation, grid, streams)
        part.copy_(torch.where(grid.reach, changed, part))
    return edited


def _grid(m: Manipulation, size: tuple[int, int], *, device: torch.device) -> Grid:
    """The box around what may change in pictures of this size."""
    inside = region(m, size=size)
    reach = inside
    if m.leak and m.name in LEAKY:
        reach = torch.ones_like(inside)
    rows = stretch(reach.any(1))
    columns = stretch(reach.any(0))
    return Grid(
        rows,
        columns,
        inside=inside[rows, columns].to(device),
        reach=reach[rows, columns].to(device),
        y=centres(size[0])[rows].to(device),
        away=distance(size)[rows, columns].to(device),
        scale=min(size) / UNIT,
    )


def _check(m: Manipulation) -> None:
    """UsageError unless the manipulation has a meaning."""
    if m.name not in NAMES:
        raise unknown(m.name, NAMES, argument="name")
    if not m.visibility > 0 or (m.name == "striped_noise" and m.visibility > 1):
        raise UsageError(f"`visibility` must be positive (a share for striped_noise), got {m.visibility} in {m.name}")
    if m.name in ROUND and not m.radius > 0:
        raise UsageError(f"`radius` must be positive, got {m.radius} in {m.name}")
    if not m.top < m.bottom:
        raise UsageError(f"`top` must be less than `bottom`, got {m.top} and {m.bottom} in {m.name}")
    if not m.left < m.right:
        raise UsageError(f"`left` must be less than `right`, got {m.left} and {m.right} in {m.name}")


def peripheral_blur(x: Tensor, m: Manipulation, grid: Grid, streams: Sequence[torch.Generator]) -> Tensor:
    """(n, 3, h, w), blurred. Departure: a true Gaussian, cut at 4 sigma; Pillow's is three box filters."""
    h, w = x.shape[-2:]
    kernels = {length: blur_matrix(length, m.visibility * grid.scale).to(x) for length in {h, w}}
    return in_bytes(kernels[h] @ x @ kernels[w].T)


def center_brightness(x: Tensor, m: Manipulation, grid: Grid, streams: Sequence[torch.Generator]) -> Tensor:
    """(n, 3, a, b), dimmed: HSV value less visibility * cos^2(pi / 2 * r / R), but not below 0."""
    dim = m.visibility * torch.cos(torch.pi / 2 * grid.away / m.radius).square()
    return in_bytes(shifted(x, value=(-dim * grid.inside).to(x)), truncate=m.leak)


def striped_hue(x: Tensor, m: Manipulation, grid: Grid, streams: Sequence[torch.Generator]) -> Tensor:
    """(n, 3, a, b): hue plus visibility * sign(s) s^2 with s one period of a sine over the height of the band."""
    start = m.top
    if m.anchor == "image":
        start = UNIT / 2
    s = torch.sin(2 * torch.pi * (grid.y - 0.5 - start) / (m.bottom - m.top))
    shift = m.visibility * (s * s.abs())[:, None] * grid.inside
    return in_bytes(shifted(x, hue=shift.to(x)), truncate=m.leak)


def striped_noise(x: Tensor, m: Manipulation, grid: Grid, streams: Sequence[torch.Generator]) -> Tensor:
    """(n, 3, a, b): each pixel replaced by a uniform colour with probability `visibility`."""
    edited = x.clone()
    for image, g in zip(edited, streams, strict=True):
        hit = torch.rand(x.shape[-2:], generator=g) < m.visibility
        image[:, hit.to(x.device)] = torch.randint(0, 256, (3, int(hit.sum())), generator=g).to(x) / 255
    return edited


def watermark(x: Tensor, m: Manipulation, grid: Grid, streams: Sequence[torch.Generator]) -> Tensor:
    """(n, 3, a, b) with IMG and four characters in opaque white and black, joined at a random place."""
    face = glyphs.font(m.visibility * grid.scale)
    pen = glyphs.Pen(face, grid.scale, characters=m.characters, colours=m.colours)
    edited = torch.stack([glyphs.written(image, pen, generator=g) for image, g in zip(x, streams, strict=True)])
    return torch.where(edited == x, x, in_bytes(edited))


Edit = Callable[[Tensor, Manipulation, Grid, Sequence[torch.Generator]], Tensor]
EDITORS: tuple[Edit, ...] = (peripheral_blur, center_brightness, striped_hue, striped_noise, watermark)
EDITS = dict(zip(NAMES, EDITORS, strict=True))
