"""What every score of a map demands of it."""

import torch
from torch import Tensor

from forsooth.records import UsageError


def check_maps(maps: Tensor, argument: str = "attribution") -> None:
    """UsageError unless maps are (n, *map) of real numbers, with something in each."""
    wrong = not isinstance(maps, Tensor) or maps.is_complex() or maps.dtype == torch.bool
    if wrong or maps.ndim < 2 or 0 in maps.shape[1:]:
        came = type(maps).__name__
        if isinstance(maps, Tensor):
            came = f"{maps.dtype} of shape {tuple(maps.shape)}"
        raise UsageError(f"`{argument}` must be real numbers of shape (n, *map), with no empty map, got {came}")
