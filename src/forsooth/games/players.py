"""Who plays: integer labels over the entries of an input, one label for each player."""

import torch
from torch import Tensor

from forsooth.records import UsageError


def spatial(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of an input without its channels: (channels, *axes) gives axes, one or two axes stay.

    >>> spatial((3, 8, 8)), spatial((5,))
    ((8, 8), (5,))
    """
    return tuple(shape[1:]) if len(shape) > 2 else tuple(shape)


def pixels(shape: tuple[int, ...]) -> Tensor:
    """Every pixel, or every feature of a table, is a player; the channels of a pixel play together.

    shape    of one input
    returns  (*spatial) int64 labels 0, 1, …
    """
    axes = spatial(shape)
    return torch.arange(torch.Size(axes).numel()).reshape(axes)


def patches(shape: tuple[int, ...], grid: int) -> Tensor:
    """`grid` near-equal pieces along each axis; a piece is a player. An 8x8 image with grid 4 has 16 of 2x2.

    shape    of one input
    returns  (*spatial) int64 labels 0, 1, …, row by row
    """
    axes = spatial(shape)
    if not 1 <= grid <= min(axes):
        raise UsageError(f"`grid` must lie in [1, {min(axes)}] for inputs of shape {tuple(shape)}, got {grid}")
    labels = torch.zeros((), dtype=torch.int64)
    for size in axes:
        piece = torch.arange(size) * grid // size  # (size,)
        labels = labels[..., None] * grid + piece
    return labels


def seats(x: Tensor, players: Tensor | None) -> tuple[Tensor, int]:
    """The labels made ready to broadcast against one input, and the number of players.

    x        (n, *shape)
    players  (*spatial) or (*shape) integer labels 0 … p - 1; None for `pixels`
    returns  labels with as many axes as one input, on the device of x; p
    """
    shape = tuple(x.shape[1:])
    labels = (pixels(shape) if players is None else players).to(x.device)
    if tuple(labels.shape) not in (spatial(shape), shape):
        raise UsageError(f"`players` must have shape {spatial(shape)} or {shape}, got {tuple(labels.shape)}")
    if labels.is_floating_point() or labels.is_complex():
        raise UsageError(f"`players` must be integer labels, got {labels.dtype}")
    low, count = int(labels.min()), int(labels.max()) + 1
    if low != 0 or bool((torch.bincount(labels.flatten()) == 0).any()):
        raise UsageError(f"`players` must be labels 0, 1, … without gaps, got labels from {low} to {count - 1}")
    return labels.reshape((1,) * (len(shape) - labels.ndim) + tuple(labels.shape)), count


def spread(values: Tensor, labels: Tensor, x: Tensor) -> Tensor:
    """A map from the values of players: each shares its value evenly among its entries, so that sums are kept.

    values   (n, players)
    labels   from `seats`
    returns  (n, *shape) like x
    """
    entries = labels.expand(x.shape[1:])
    sizes = torch.bincount(entries.flatten(), minlength=values.shape[1])  # (players,)
    return (values / sizes)[:, entries].to(x.dtype)
