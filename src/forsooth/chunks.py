"""Work over slices of a batch; when the device runs out of memory, slices are halved and the work goes on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

# How libraries on an accelerator say that there is no memory: some when they begin, and not by name.
FULL = (
    "out of memory",
    "STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "CUDNN_STATUS_NOT_INITIALIZED",
    "CUDNN_STATUS_INTERNAL_ERROR",
    "unable to find an engine to execute this computation",
)
LARGE_PIECE = 32_000_000  # bytes, see `keep_freed_memory`


@dataclass
class Pressure:
    """What came of too little memory in this process.

    halved  how often slices were halved
    again   whether what does not fit at all is tried again by those who asked for it
    """

    halved: int = 0
    again: bool = False


PRESSURE = Pressure()


@contextmanager
def tried_again() -> Iterator[None]:
    """What finds no memory inside is to raise, since it will be tried again: later, with fewer beside it, elsewhere."""
    before = PRESSURE.again
    PRESSURE.again = True
    try:
        yield
    finally:
        PRESSURE.again = before


def keep_freed_memory() -> None:
    """Have the C library keep up to 64 MB that were freed, instead of giving them back to the system after every step.

    It keeps twice the largest piece that was given back so far, if that was below 32 MiB. Without it a step that needs
    30 MB waits for thousands of fresh pages, up to a third of its time. Elsewhere than on Linux nothing happens.
    """
    torch.empty(LARGE_PIECE, dtype=torch.uint8)


def is_full(error: BaseException) -> bool:
    """Whether an accelerator had no memory left."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in FULL)


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
        slices = [t[start : start + size] for t in tensors]
        part = _tried(function, slices)
        if part is None:
            size = _halved(len(slices[0]))
        else:
            parts.append(part)
            start += size
    if not parts:
        return function(*tensors)
    if len(parts) == 1:
        return parts[0]
    return torch.cat(parts)


def _tried(function: Callable[..., Tensor], slices: Sequence[Tensor]) -> Tensor | None:
    """What function gives; None where there was no memory for it, but may be for less."""
    try:
        return function(*slices)
    except RuntimeError as error:
        if len(slices[0]) == 1 or not is_full(error):
            raise
    return None


def _halved(size: int) -> int:
    """Half the size of a slice for which there was no memory."""
    PRESSURE.halved += 1
    torch.cuda.empty_cache()  # not before the error is gone, which holds what was computed so far
    return max(1, size // 2)


def of_one_length(lengths: Tensor, *, alone: bool) -> list[Tensor]:
    """Places of the sequences of each length in lengths (n,), each by itself if `alone`; without empty ones."""
    if alone:
        return list(lengths.nonzero())
    return [(lengths == length).nonzero()[:, 0] for length in sorted(set(lengths.tolist()) - {0})]
