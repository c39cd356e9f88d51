"""Backgrounds cut from photographs."""

from collections.abc import Sequence

import torch
from torch import Tensor

from forsooth.datasets.folders import Photos
from forsooth.records import UsageError
from forsooth.seeds import generator

CHUNK = 1000


def crops(photos: Photos, splits: Sequence[Tensor], *, size: int, seed: int) -> Tensor:
    """n backgrounds, each with mean zero: one per photograph if there are enough, else random crops and flips.

    splits   indices (k,) of the samples of train, val and test, n in all: a photograph belongs to one of them alone
    returns  (n, size, size) float32

    With enough photographs, n of them are drawn and the whole square of each is resized. With fewer, those of a split
    are used equally often (within one), at random places, half of them mirrored left to right.
    """
    images = photos.images
    _check_width(images, size)
    n = sum(len(rows) for rows in splits)
    draws = generator(seed, "crops")
    backgrounds = torch.empty(n, size, size)
    if len(images) >= n:
        which = torch.randperm(len(images), generator=draws)[:n]
        _shrink(backgrounds, images, which)
    else:
        which = shared_out(len(images), splits, generator=draws)
        _cut(backgrounds, images, which, generator=draws)
    for part in backgrounds.split(CHUNK):
        part -= part.mean((1, 2), keepdim=True)
    return backgrounds


def _check_width(images: Tensor, size: int) -> None:
    side = images.shape[-1]
    if side < size:
        raise UsageError(f"`photos` must be at least {size} px wide, got {side} px")


def _shrink(backgrounds: Tensor, images: Tensor, which: Tensor) -> None:
    """Fill backgrounds (n, size, size) with the whole of each of images[which], (k, side, side) uint8 and (n,) int."""
    for part, own in zip(backgrounds.split(CHUNK), which.split(CHUNK), strict=True):
        part.copy_(_resized(images[own], backgrounds.shape[-1]))


def _cut(backgrounds: Tensor, images: Tensor, which: Tensor, *, generator: torch.Generator) -> None:
    """Fill backgrounds (n, size, size) with random parts of images[which], half of them mirrored.

    images  (k, side, side) uint8
    which   (n,) int
    """
    n, size, _ = backgrounds.shape
    corner = torch.randint(0, images.shape[-1] - size + 1, (n, 2), generator=generator)
    mirrored = torch.randint(0, 2, (n, 1), generator=generator) == 1
    step = torch.arange(size)
    rows = corner[:, :1] + step  # (n, size)
    columns = corner[:, 1:] + torch.where(mirrored, size - 1 - step, step)
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        pixels = images[which[part, None, None], rows[part, :, None], columns[part, None, :]]
        backgrounds[part] = pixels / 255


def shared_out(k: int, splits: Sequence[Tensor], *, generator: torch.Generator) -> Tensor:
    """Which of k photographs each of n samples is cut from, none for two splits: a copy there would be no test.

    splits   indices (m,) of the samples of each split, n in all; each gets photographs by its share of the samples,
             and at least one
    returns  (n,) int64
    """
    if k < len(splits):
        raise UsageError(f"`photos` must be at least {len(splits)}, one for each of train, val and test, got {k}")
    which = torch.empty(sum(len(rows) for rows in splits), dtype=torch.int64)
    shares = torch.randperm(k, generator=generator).split(_share_sizes(k, splits))
    for rows, own in zip(splits, shares, strict=True):
        which[rows] = _in_rounds(own, len(rows), generator=generator)
    return which


def _share_sizes(k: int, splits: Sequence[Tensor]) -> list[int]:
    """How many of k photographs each split gets."""
    sizes = torch.tensor([len(rows) for rows in splits])
    spare = (sizes / sizes.sum() * (k - len(splits))).floor().long()
    counts = 1 + spare
    counts[sizes.argmax()] += k - counts.sum()  # what rounding leaves over goes to the largest
    shares: list[int] = counts.tolist()
    return shares


def _in_rounds(own: Tensor, count: int, *, generator: torch.Generator) -> Tensor:
    """(count,) of the photographs `own` (m,), each once before any comes twice, and all of this in random order."""
    rounds = -(-count // len(own))
    turns = [own[torch.randperm(len(own), generator=generator)] for _ in range(rounds)]
    return torch.cat(turns)[:count][torch.randperm(count, generator=generator)]


def _resized(images: Tensor, size: int) -> Tensor:
    """(n, size, size) float in [0, 1] from (n, side, side) uint8."""
    whole = images[:, None].float() / 255
    return torch.nn.functional.interpolate(whole, (size, size), mode="bilinear", antialias=True)[:, 0]


def provenance(photos: Photos, n: int) -> str:
    """One line on what `crops` does with these photographs for n samples."""
    photographs = f"{len(photos.images):,} photographs from {photos.name}"
    if len(photos.images) >= n:
        return f"{photographs}, one centre crop each for {n:,} samples"
    return f"{photographs}, random crops and flips because {n:,} samples were asked"
