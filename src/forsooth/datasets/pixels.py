"""Pixels of pictures: shifts of hue and brightness, blur, and rounding to bytes."""

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d
from torch import Tensor

from forsooth.records import UsageError


def blur_matrix(length: int, sigma: float) -> Tensor:
    """(length, length) matrix of a Gaussian filter that goes on beyond the border with the last pixel."""
    return torch.from_numpy(gaussian_filter1d(np.eye(length), sigma, axis=0, mode="nearest", truncate=4.0))


def shifted(x: Tensor, *, hue: Tensor | float = 0.0, value: Tensor | float = 0.0) -> Tensor:
    """(n, 3, h, w): colours in [0, 1] with a shift of hue, which goes round, and of value, which is clamped."""
    most = x.amax(1)
    chroma = most - x.amin(1)
    turn = _turn(x, most, chroma) + hue
    new_value = (most + value).clamp(0, 1)
    new_chroma = new_value * (chroma / (most + (most == 0)))  # saturation is chroma / value
    channels = []
    for offset in (0, 4, 2):  # a channel is full within 1/6 of its own hue, and none beyond 1/3
        t = turn + offset / 6
        away = ((t - t.floor()) * 6 - 3).abs()
        channels.append(new_value - new_chroma * (2 - away).clamp(0, 1))
    return torch.stack(channels, 1)


def _turn(x: Tensor, most: Tensor, chroma: Tensor) -> Tensor:
    """(n, h, w): the hue of x (n, 3, h, w), in turns from red; most and chroma (n, h, w) as in `shifted`."""
    red, green, blue = x.unbind(1)
    safe = chroma + (chroma == 0)  # grey has no hue: then both differences are 0
    not_red = torch.where(most == green, (blue - red) / safe + 2, (red - green) / safe + 4)
    return torch.where(most == red, (green - blue) / safe, not_red) / 6


def in_bytes(x: Tensor, *, truncate: bool = False) -> Tensor:
    """Multiples of 1/255, the nearest or those below."""
    scaled = x.clamp(0, 1).mul_(255)
    if truncate:
        return scaled.floor_().div_(255)
    return scaled.round_().div_(255)


def check_pictures(x: Tensor) -> None:
    """UsageError unless x is (n, 3, h, w) in [0, 1]."""
    if x.dim() != 4 or x.shape[1] != 3 or not x.is_floating_point():
        raise UsageError(f"`x` must be floating-point of shape (n, 3, h, w), got {x.dtype} of shape {tuple(x.shape)}")
    if x.numel() and not (x.amin() >= 0 and x.amax() <= 1):
        raise UsageError(f"`x` must lie in [0, 1], got {x.amin():g} to {x.amax():g}")


def stretch(any_in: Tensor) -> slice:
    """From the first to the last True of (k,) bool."""
    places = any_in.nonzero()
    return slice(int(places[0]), int(places[-1]) + 1)
