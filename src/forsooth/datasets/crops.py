"""Backgrounds cut from photographs."""

import torch
from torch import Tensor

from forsooth.datasets.folders import Photos
from forsooth.records import UsageError
from forsooth.seeds import generator

CHUNK = 1000


def crops(photos: Photos, n: int, *, size: int, seed: int) -> Tensor:
    """n backgrounds, each with mean zero: one per photograph if there are enough, else random crops and flips.

    returns  (n, size, size) float32

    With enough photographs, n of them are drawn and the whole square of each is resized. With fewer, every one is used
    equally often (within one), at random places, half of them mirrored left to right.
    """
    images, out = photos.images, torch.empty(n, size, size)
    k, side = len(images), images.shape[-1]
    if side < size:
        raise UsageError(f"`photos` must be at least {size} px wide, got {side} px")
    g = generator(seed, "crops")
    which = torch.cat([torch.randperm(k, generator=g) for _ in range(-(-n // k))])[:n]
    which = which[torch.randperm(n, generator=g)]
    corner = torch.randint(0, side - size + 1, (n, 2), generator=g)
    mirrored = torch.randint(0, 2, (n, 1), generator=g) == 1
    step = torch.arange(size)
    rows = corner[:, :1] + step  # (n, size)
    columns = corner[:, 1:] + torch.where(mirrored, size - 1 - step, step)
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        if k >= n:
            out[part] = _resized(images[which[part]], size)
        else:
            out[part] = images[which[part, None, None], rows[part, :, None], columns[part, None, :]] / 255
        out[part] -= out[part].mean((1, 2), keepdim=True)
    return out


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
