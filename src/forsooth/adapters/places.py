"""Where the user's patches are: a mask of theirs, a cell of a grid or a square, drawn for each input."""

from typing import Any

import torch
from torch import Tensor

from forsooth import seeds
from forsooth.adapters import inputs
from forsooth.games import players
from forsooth.records import UsageError


def placed(patch: Any, x: Tensor, *, seed: int) -> tuple[Tensor, str]:
    """Where the patches of x (n, *shape) are, (n, *spatial) bool, and what they are called.

    patch  grid:N (a cell of an N × N grid), size:S (a square of S pixels a side), or a mask, in memory or in a file
    """
    if not isinstance(patch, str) or inputs.is_file(patch):
        return own_mask(patch, x), "your own mask"
    kind, _, number = patch.partition(":")
    if kind not in ("grid", "size") or not number.isdecimal() or int(number) < 1:
        raise UsageError(f"`patch` must be grid:N, size:S or a file with a mask, got {patch!r}")
    generator = seeds.generator(seed, "places")
    if kind == "grid":
        return grid_cells(int(number), x, generator), f"one cell of a grid of {number} along each axis"
    return squares(int(number), x, generator), f"a square of {number} a side"


def own_mask(patch: Any, x: Tensor) -> Tensor:
    """The user's own places, the same for all inputs or one mask for each. (n, *spatial)"""
    spatial = players.spatial(tuple(x.shape[1:]))
    mask = inputs.numbers(patch, "patch")[0].bool().to(x.device)
    if tuple(mask.shape) not in (spatial, (len(x), *spatial)):
        shapes = f"{spatial} or {(len(x), *spatial)}"
        raise UsageError(f"`patch` must have the shape {shapes}, got {tuple(mask.shape)}")
    mask = mask.expand(len(x), *spatial)
    if not bool(mask.flatten(1).any(1).all()):
        raise UsageError("`patch` must hold at least one place of every input, got an empty one")
    return mask


def grid_cells(count: int, x: Tensor, generator: torch.Generator) -> Tensor:
    """A cell of the grid, drawn for each input. (n, *spatial)"""
    labels = players.patches(tuple(x.shape[1:]), count)
    cell = torch.randint(int(labels.max()) + 1, (len(x),), generator=generator)
    return (labels == cell.view(-1, *[1] * labels.ndim)).to(x.device)


def squares(side: int, x: Tensor, generator: torch.Generator) -> Tensor:
    """A square, anywhere, drawn for each input. (n, *spatial)"""
    shape = tuple(x.shape[1:])
    spatial = players.spatial(shape)
    if side > min(spatial):
        raise UsageError(f"`patch` size must be at most {min(spatial)} for inputs of shape {shape}, got {side}")
    mask = torch.ones(len(x), *spatial, dtype=torch.bool)
    for axis, length in enumerate(spatial, start=1):
        first = torch.randint(length - side + 1, (len(x),), generator=generator)
        offset = torch.arange(length)[None] - first[:, None]
        inside = (offset >= 0) & (offset < side)
        along = [1] * len(spatial)
        along[axis - 1] = length
        mask &= inside.view(len(x), *along)
    return mask.to(x.device)
