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
    return x if kind == "flip" else _shifted(x, generator)


def _shifted(x: Tensor, generator: torch.Generator) -> Tensor:
    n, _, h, w = x.shape
    down, right = h // REACH, w // REACH
    top = torch.randint(0, 2 * down + 1, (n, 1), generator=generator).to(x.device)
    left = torch.randint(0, 2 * right + 1, (n, 1), generator=generator).to(x.device)
    rows, columns = top + torch.arange(h, device=x.device), left + torch.arange(w, device=x.device)  # (n, h), (n, w)
    which = torch.arange(n, device=x.device).view(n, 1, 1)
    padded = F.pad(x, (right, right, down, down))
    return padded[which, :, rows.unsqueeze(2), columns.unsqueeze(1)].permute(0, 3, 1, 2).contiguous()
