"""Work over slices of a batch; when the device runs out of memory, slices are halved and the work goes on."""

from collections.abc import Callable

import torch
from torch import Tensor


def over(function: Callable[..., Tensor], *tensors: Tensor, size: int) -> Tensor:
    """Concatenate `function(*slices)` over slices of at most `size` along the first axis.

    tensors  each (n, ...)
    returns  (n, ...) of what function gives

    On out of memory the slice is halved, down to one sample, and stays halved.
    """
    if size < 1:
        raise ValueError(f"`size` must be at least 1, got {size}")
    parts: list[Tensor] = []
    start = 0
    while start < len(tensors[0]):
        try:
            parts.append(function(*(t[start : start + size] for t in tensors)))
            start += size
        except torch.OutOfMemoryError:
            if size == 1:
                raise
            size = max(1, size // 2)
            torch.cuda.empty_cache()
    if not parts:
        return function(*tensors)
    if len(parts) == 1:
        return parts[0]
    return torch.cat(parts)


def of_one_length(lengths: Tensor, *, alone: bool) -> list[Tensor]:
    """Places of the sequences of each length in lengths (n,), each by itself if `alone`; without empty ones."""
    if alone:
        return list(lengths.nonzero())
    return [(lengths == length).nonzero()[:, 0] for length in sorted(set(lengths.tolist()) - {0})]
