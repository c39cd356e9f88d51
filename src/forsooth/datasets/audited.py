"""Two constructions of "known" truth, as [anonymous2023evaluation] made them to audit whether the truth is true."""

from collections.abc import Sequence
from itertools import pairwise, product

import torch
from torch import Tensor

from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator


def irrelevant_region(base: Dataset, *, grid: int = 4, seed: int) -> tuple[Dataset, Tensor]:
    """Each image with one region of grid x grid replaced by a patch from an image of another class (Fig. 3).

    base     x (n, channels, height, width)
    returns  the dataset, whose truth (n, height, width) is False on the replaced region and True elsewhere; and the
             number of that region (n,), row by row from the top left

    The patch is as large as the region, and cut at a random place of a random image of the same split. A side that grid
    does not divide has regions that differ by one pixel.
    """
    height, width = _images(base)
    if not 1 < grid <= min(height, width):
        raise UsageError(f"`grid` must lie in [2, {min(height, width)}] for {height} x {width} px, got {grid}")
    n = len(base.x)
    draws = generator(seed, "irrelevant")
    region = torch.randint(0, grid * grid, (n,), generator=draws)
    donor = donors(base, generator=draws)
    chance = torch.rand(n, 2, generator=draws)
    all_regions = regions(height, width, grid)
    x, truth = _replaced(base.x, [all_regions[k] for k in region.tolist()], donor, chance)
    facts = {**base.facts, "grid": grid, "base": base.name}
    return Dataset(f"{base.name}-irrelevant", x, base.y, truth, base.splits, facts), region


def _replaced(
    images: Tensor, places: Sequence[tuple[slice, slice]], donor: Tensor, chance: Tensor
) -> tuple[Tensor, Tensor]:
    """Images (n, channels, height, width), each with a patch of its donor (n,) at its place; and where there is none.

    chance  (n, 2) in [0, 1): where the patch is cut from
    """
    x = images.clone()
    truth = torch.ones_like(images[:, 0], dtype=torch.bool)
    for i, (rows, columns) in enumerate(places):
        x[i, :, rows, columns] = _patch(images[donor[i]], rows, columns, chance[i].tolist())
        truth[i, rows, columns] = False
    return x, truth


def _patch(image: Tensor, rows: slice, columns: slice, chance: Sequence[float]) -> Tensor:
    """A part of image (channels, height, width) as large as the region, at the place that two draws in [0, 1) say."""
    _, height, width = image.shape
    part_height = rows.stop - rows.start
    part_width = columns.stop - columns.start
    top = int(chance[0] * (height - part_height + 1))
    left = int(chance[1] * (width - part_width + 1))
    return image[:, top : top + part_height, left : left + part_width]


def regions(height: int, width: int, grid: int) -> list[tuple[slice, slice]]:
    """Rows and columns of each of grid x grid regions, row by row from the top left."""
    tops = edges(height, grid)
    lefts = edges(width, grid)
    rows = [slice(start, stop) for start, stop in pairwise(tops)]
    columns = [slice(start, stop) for start, stop in pairwise(lefts)]
    return list(product(rows, columns))


def edges(length: int, parts: int) -> list[int]:
    """parts + 1 whole numbers from 0 to length, evenly apart within one.

    >>> edges(10, 4)
    [0, 2, 5, 7, 10]
    """
    return [k * length // parts for k in range(parts + 1)]


def donors(base: Dataset, *, generator: torch.Generator) -> Tensor:
    """(n,) for each sample one of another class, in its own split; samples of no split make a split of their own."""
    part = torch.full((len(base.y),), -1)
    for k, rows in enumerate(base.splits.values()):
        part[rows.cpu()] = k
    y = base.y.cpu()
    chance = torch.rand(len(y), generator=generator).double()
    donor = torch.empty_like(part)
    for k in part.unique().tolist():
        rows = (part == k).nonzero().squeeze(1)
        for label in y[rows].unique().tolist():
            own = rows[y[rows] == label]
            others = rows[y[rows] != label]
            if not len(others):
                name = [*base.splits, "none"][k]  # -1, those of no split, is the last
                raise UsageError(f"`base` must have two classes or more in split {name!r}, got only {label}")
            donor[own] = others[(chance[own] * len(others)).long()]
    return donor


def pasted_pattern(base: Dataset, *, pattern: Tensor | None = None, side: int | None = None, seed: int) -> Dataset:
    """A new task with two classes: is the pattern in the image (appendix N)?

    base     x (n, channels, height, width)
    pattern  (channels, side, side); without it, `logo`, stretched to the range of base.x
    side     px; a quarter of the shorter side of the image without it (56 of 224 in the paper)
    returns  y (n,) 1 where the pattern is, by the toss of a coin; truth (n, height, width) the pixels of the pattern

    The pattern replaces what it covers, at a uniform place.
    """
    height, width = _images(base)
    stamp = _stamp(base, pattern, side)
    k = stamp.shape[-1]
    if not 1 <= k <= min(height, width):
        raise UsageError(f"`side` must lie in [1, {min(height, width)}] for {height} x {width} px, got {k}")
    n = len(base.x)
    draws = generator(seed, "pattern")
    positive = torch.rand(n, generator=draws) < 0.5
    room = torch.tensor([height - k + 1, width - k + 1])
    corner = (torch.rand(n, 2, generator=draws).double() * room).long()
    x, truth = _stamped(base.x, stamp, positive, corner)
    facts = {**base.facts, "classes": ["without", "with"], "side": k, "base": base.name}
    y = positive.long().to(base.y.device)
    return Dataset(f"{base.name}-pattern", x, y, truth, base.splits, facts)


def _stamped(images: Tensor, stamp: Tensor, positive: Tensor, corner: Tensor) -> tuple[Tensor, Tensor]:
    """Images (n, channels, height, width) with the stamp (channels, k, k) on the positive ones (n,); and where it is.

    corner  (n, 2) top row and left column
    """
    x = images.clone()
    truth = torch.zeros_like(images[:, 0], dtype=torch.bool)
    k = stamp.shape[-1]
    for i in positive.nonzero().squeeze(1).tolist():
        top, left = corner[i].tolist()
        x[i, :, top : top + k, left : left + k] = stamp
        truth[i, top : top + k, left : left + k] = True
    return x, truth


def _stamp(base: Dataset, pattern: Tensor | None, side: int | None) -> Tensor:
    """The pattern (channels, side, side) as it is put into base.x."""
    channels = base.x.shape[1]
    if pattern is None:
        return _drawn_stamp(base, side)
    k = side or pattern.shape[-1]
    if tuple(pattern.shape) != (channels, k, k):
        raise UsageError(f"`pattern` must have the shape {(channels, k, k)}, got {tuple(pattern.shape)}")
    return pattern.to(base.x)


def _drawn_stamp(base: Dataset, side: int | None) -> Tensor:
    """`logo` in the range and with the channels of base.x."""
    channels = base.x.shape[1]
    if channels not in (1, 3):
        raise UsageError(f"`pattern` must be given for images of {channels} channels; the drawn one has 1 or 3")
    if side is None:
        side = min(_images(base)) // 4
    if side < 4:
        raise UsageError(f"`side` must be at least 4 px for the drawn pattern, got {side}")
    drawn = logo(side).to(base.x)
    if channels == 1:
        drawn = drawn.mean(0, keepdim=True)
    low = base.x.min()
    high = base.x.max()
    return low + (high - low) * drawn


def logo(side: int) -> Tensor:
    """(3, side, side) float32 in [0, 1]: a white tile with a blue frame, a red disc and a dark bar across.

    Departure: [anonymous2023evaluation] used the logo of Pascal VOC, which is not ours to ship.
    """
    at = (torch.arange(side) + 0.5) / side * 2 - 1
    down, right = torch.meshgrid(at, at, indexing="ij")
    colours = torch.tensor([[1.0, 1.0, 1.0], [0.1, 0.2, 0.8], [0.9, 0.1, 0.1], [0.1, 0.1, 0.1]])
    kind = (torch.maximum(down.abs(), right.abs()) > 0.78).long()
    kind[down**2 + right**2 < 0.55**2] = 2
    kind[((down + right).abs() < 0.18) & (kind == 2)] = 3
    return colours[kind].permute(2, 0, 1).contiguous()


def _images(base: Dataset) -> tuple[int, int]:
    """Height and width of the images of a dataset."""
    if base.x.ndim != 4:
        raise UsageError(f"`base` must hold images (n, channels, height, width), got x {tuple(base.x.shape)}")
    return base.x.shape[-2], base.x.shape[-1]
