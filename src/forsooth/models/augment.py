"""Small changes of training images that leave their label alone."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from forsooth.records import UsageError

Augment = Literal["none", "flip", "flip_shift"]
KINDS: tuple[Augment, ...] = ("none", "flip", "flip_shift")
REACH = 8  # a shift goes at most one eighth of a side, 4 of 32 pixels, as is usual on CIFAR-10


def augmented(x: Tensor, kind: Augment, *, generator: torch.Generator) -> Tensor:
    """Each image mirrored left to right with probability one half and, for "flip_shift", moved along both axes.

    x        (n, channels, h, w)
    returns  (n, channels, h, w); what a shift uncovers is zero, the mean where x is standardised

    Every image has its own draw. Draws are made by the CPU's `generator` and moved, so that devices agree.
    """
    if kind == "none":
        return x
    if x.ndim != 4:
        raise UsageError(f"`augment` must be 'none' where x is not (n, channels, h, w), got {kind!r} and {x.ndim} axes")
    mirrored = torch.rand(len(x), generator=generator) < 0.5
    x = torch.where(mirrored.to(x.device).view(-1, 1, 1, 1), x.flip(3), x)
    if kind == "flip":
        return x
    return _shifted(x, generator)


def _shifted(x: Tensor, generator: torch.Generator) -> Tensor:
    """x (n, channels, h, w), each image moved by its own draw; cut out of a copy with a margin of zeros."""
    n, _, height, width = x.shape
    margin_rows = height // REACH
    margin_columns = width // REACH
    rows = _window(height, margin_rows, n, generator).to(x.device)  # (n, h)
    columns = _window(width, margin_columns, n, generator).to(x.device)  # (n, w)
    padded = F.pad(x, (margin_columns, margin_columns, margin_rows, margin_rows))
    image = torch.arange(n, device=x.device).view(n, 1, 1)
    shifted = padded[image, :, rows.unsqueeze(2), columns.unsqueeze(1)]  # (n, h, w, channels)
    return shifted.permute(0, 3, 1, 2).contiguous()


def _window(length: int, margin: int, n: int, generator: torch.Generator) -> Tensor:
    """(n, length) int: the places that each image takes from an axis with a margin at both ends."""
    first = torch.randint(0, 2 * margin + 1, (n, 1), generator=generator)
    return first + torch.arange(length)
