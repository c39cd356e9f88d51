"""Two constructions of "known" truth, as [anonymous2023evaluation] made them to audit whether the truth is true."""

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
    n, (height, width) = len(base.x), _images(base)
    if not 1 < grid <= min(height, width):
        raise UsageError(f"`grid` must lie in [2, {min(height, width)}] for {height} x {width} px, got {grid}")
    g = generator(seed, "irrelevant")
    region = torch.randint(0, grid * grid, (n,), generator=g)
    donor = donors(base, generator=g)
    chance = torch.rand(n, 2, generator=g).tolist()
    rows, columns = edges(height, grid), edges(width, grid)
    x, truth = base.x.clone(), torch.ones(n, height, width, dtype=torch.bool, device=base.x.device)
    for i, (where, other) in enumerate(zip(region.tolist(), donor.tolist(), strict=True)):
        (top, bottom), (left, right) = (e[k : k + 2] for e, k in zip((rows, columns), divmod(where, grid), strict=True))
        down = int(chance[i][0] * (height - (bottom - top) + 1))
        along = int(chance[i][1] * (width - (right - left) + 1))
        patch = base.x[other, :, down : down + bottom - top, along : along + right - left]
        x[i, :, top:bottom, left:right] = patch
        truth[i, top:bottom, left:right] = False
    facts = {**base.facts, "grid": grid, "base": base.name}
    return Dataset(f"{base.name}-irrelevant", x, base.y, truth, base.splits, facts), region


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
    y, chance = base.y.cpu(), torch.rand(len(base.y), generator=generator).double()
    donor = torch.empty_like(part)
    for k in part.unique():
        for label in y[part == k].unique():
            own, others = (((part == k) & chosen).nonzero().squeeze(1) for chosen in (y == label, y != label))
            if not len(others):
                name = list(base.splits)[int(k)] if k >= 0 else "none"
                raise UsageError(f"`base` must have two classes or more in split {name!r}, got only {int(label)}")
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
    n, (height, width) = len(base.x), _images(base)
    stamp = _stamp(base, pattern, side)
    k = stamp.shape[-1]
    if not 1 <= k <= min(height, width):
        raise UsageError(f"`side` must lie in [1, {min(height, width)}] for {height} x {width} px, got {k}")
    g = generator(seed, "pattern")
    positive = torch.rand(n, generator=g) < 0.5
    corner = (torch.rand(n, 2, generator=g).double() * torch.tensor([height - k + 1, width - k + 1])).long()
    x, truth = base.x.clone(), torch.zeros(n, height, width, dtype=torch.bool, device=base.x.device)
    for i in positive.nonzero().squeeze(1).tolist():
        top, left = corner[i].tolist()
        x[i, :, top : top + k, left : left + k] = stamp
        truth[i, top : top + k, left : left + k] = True
    facts = {**base.facts, "classes": ["without", "with"], "side": k, "base": base.name}
    return Dataset(f"{base.name}-pattern", x, positive.long().to(base.y.device), truth, base.splits, facts)


def _stamp(base: Dataset, pattern: Tensor | None, side: int | None) -> Tensor:
    """The pattern (channels, side, side) as it is put into base.x."""
    channels = base.x.shape[1]
    if pattern is not None:
        expected = (channels, side or pattern.shape[-1], side or pattern.shape[-1])
        if tuple(pattern.shape) != expected:
            raise UsageError(f"`pattern` must have the shape {expected}, got {tuple(pattern.shape)}")
        return pattern.to(base.x)
    if channels not in (1, 3):
        raise UsageError(f"`pattern` must be given for images of {channels} channels; the drawn one has 1 or 3")
    side = min(_images(base)) // 4 if side is None else side
    if side < 4:
        raise UsageError(f"`side` must be at least 4 px for the drawn pattern, got {side}")
    drawn = logo(side).to(base.x)
    low, high = base.x.min(), base.x.max()
    return low + (high - low) * (drawn if channels == 3 else drawn.mean(0, keepdim=True))


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
