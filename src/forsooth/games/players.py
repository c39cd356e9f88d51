"""Who plays: integer labels over the entries of an input, one label for each player."""

from typing import Literal

import numpy
import torch
from skimage import segmentation
from torch import Tensor

from forsooth.records import UsageError


def spatial(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of an input without its channels: (channels, *axes) gives axes, one or two axes stay.

    >>> spatial((3, 8, 8)), spatial((5,))
    ((8, 8), (5,))
    """
    if len(shape) > 2:
        return tuple(shape[1:])
    return tuple(shape)


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


def superpixels(image: Tensor, *, kernel_size: float = 4, max_dist: float = 200, ratio: float = 0.2) -> Tensor:
    """Connected regions of like colour are the players of one image, with the settings of LIME's package.

    image    (channels, h, w) of any range: it is scaled to [0, 1] first, all channels together
    returns  (h, w) int64 labels 0, 1, … without gaps

    Quick shift [vedaldi2008quick] as in [ribeiro2016why]. One channel is taken as grey and three as red, green and
    blue, which are compared in Lab; any other number of channels is compared as it is.
    """
    if image.ndim != 3:
        raise UsageError(f"`image` must have shape (channels, h, w), got {tuple(image.shape)}")
    pixels_last = unit_range(image).permute(1, 2, 0).cpu().numpy()
    if len(image) == 1:
        pixels_last = pixels_last.repeat(3, axis=2)
    colour = pixels_last.shape[2] == 3
    segments = segmentation.quickshift(
        pixels_last, kernel_size=kernel_size, max_dist=max_dist, ratio=ratio, convert2lab=colour
    )
    labels = numpy.unique(segments, return_inverse=True)[1].reshape(segments.shape)
    return torch.from_numpy(labels).long().to(image.device)


def unit_range(image: Tensor) -> Tensor:
    """The image (channels, h, w) with its least value at 0 and its largest at 1, float64; one value alone is 0."""
    low, high = (float(end) for end in image.aminmax())
    above = image.double() - low
    if high > low:
        above = above / (high - low)
    return above


def parse(text: str, shape: tuple[int, ...]) -> Tensor:
    """The labels for the words of the terminal.

    text     `pixels`: places, channels together; `features`: every entry by itself; `grid:8`: 8 pieces along each axis;
             `words`: the places of (length, dims), all dims together
    shape    of one input
    returns  (*spatial) or (*shape) int64 labels

    >>> parse("grid:2", (3, 4, 4)).max().item(), parse("features", (3, 4, 4)).max().item()
    (3, 47)
    """
    word, _, number = text.partition(":")
    if text == "pixels":
        return pixels(shape)
    if text == "features":
        return torch.arange(torch.Size(shape).numel()).reshape(shape)
    if word == "grid" and number.isdecimal():
        return patches(shape, int(number))
    if text == "words":
        if len(shape) != 2:
            raise UsageError(f"`players` words must be those of inputs (n, length, dims), got one of shape {shape}")
        return torch.arange(shape[0])[:, None].expand(shape)
    expected = "pixels, features, words or grid:N with a number N, as in grid:8"
    raise UsageError(f"`players` must be {expected}, got {text!r}")


def seats(x: Tensor, players: Tensor | None) -> tuple[Tensor, int]:
    """The labels made ready to broadcast against one input, and the number of players.

    x        (n, *shape)
    players  (*spatial) or (*shape) integer labels 0 … p - 1; None for `pixels`
    returns  labels with as many axes as one input, on the device of x; p
    """
    shape = tuple(x.shape[1:])
    if players is None:
        players = pixels(shape)
    labels = players.to(x.device)
    if tuple(labels.shape) not in (spatial(shape), shape):
        raise UsageError(f"`players` must have shape {spatial(shape)} or {shape}, got {tuple(labels.shape)}")
    count = count_of(labels)
    return labels.reshape((1,) * (len(shape) - labels.ndim) + tuple(labels.shape)), count


def count_of(labels: Tensor) -> int:
    """The number of players with these labels; an error unless they are 0, 1, … without gaps."""
    if labels.is_floating_point() or labels.is_complex():
        raise UsageError(f"`players` must be integer labels, got {labels.dtype}")
    low, high = (int(end) for end in labels.aminmax())
    if low != 0 or bool((torch.bincount(labels.flatten()) == 0).any()):
        raise UsageError(f"`players` must be labels 0, 1, … without gaps, got labels from {low} to {high}")
    return high + 1


def spread(values: Tensor, labels: Tensor, x: Tensor) -> Tensor:
    """A map from the values of players: each shares its value evenly among its entries, so that sums are kept.

    values   (n, players)
    labels   from `seats`
    returns  (n, *shape) like x
    """
    entries = labels.expand(x.shape[1:])
    sizes = torch.bincount(entries.flatten(), minlength=values.shape[1])  # (players,)
    return (values / sizes)[:, entries].to(x.dtype)


Channels = Literal["sum", "max_abs", "signed_max"]


def collect(maps: Tensor, labels: Tensor, count: int, *, channels: Channels = "sum") -> Tensor:
    """The values of players from maps: the channels of an entry become one number, the entries of a player are summed.

    maps      (n, *shape)
    labels    from `seats`
    channels  the sum; the largest magnitude; or the value of largest magnitude, with its sign (the first of equals)
    returns   (n, count) float64

    Without a channel axis, or where the channels of an entry are different players, only the entries are summed.
    """
    if channels not in ("sum", "max_abs", "signed_max"):
        raise UsageError(f"`channels` must be sum, max_abs or signed_max, got {channels!r}")
    if labels.shape not in (maps.shape[1:], (1, *maps.shape[2:])):
        raise UsageError(f"`maps` must fit labels of shape {tuple(labels.shape)}, got maps {tuple(maps.shape)}")
    values = maps.double()
    if maps.ndim > 3 and len(labels) == 1:
        values = of_channels(values, channels)
    return summed(values.flatten(1), labels.flatten().to(maps.device), count)


def of_channels(values: Tensor, channels: Channels) -> Tensor:
    """One number (n, 1, *space) for each entry of values (n, channels, *space); see `collect`."""
    if channels == "sum":
        return values.sum(dim=1, keepdim=True)
    strongest = values.abs().argmax(dim=1, keepdim=True)
    signed = values.gather(1, strongest)
    if channels == "max_abs":
        return signed.abs()
    return signed


def summed(values: Tensor, owners: Tensor, count: int) -> Tensor:
    """The sums (n, count) of values (n, entries) by owner, (entries,) below `count`."""
    order = owners.argsort(stable=True)  # so that the sums are made in the same order on every device
    lengths = torch.bincount(owners, minlength=count)
    return torch.segment_reduce(values.T[order], "sum", lengths=lengths, axis=0).T.contiguous()
