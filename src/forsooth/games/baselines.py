"""What stands for an absent player, from words: a mean of the data, zeros, or a blurred input."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from forsooth.games.players import spatial
from forsooth.games.values import absent
from forsooth.names import unknown
from forsooth.records import UsageError

KINDS = ("mean", "channel_mean", "zero", "blur")


def baseline(kind: str | Tensor, x: Tensor, data: Tensor | None = None) -> Tensor:
    """The baseline of a game on x.

    kind     `mean`: over the data, entry by entry; `channel_mean`: one number for each channel, over data and places;
             `zero`; `blur`: each input blurred, for images; or a tensor (*shape) or (n, *shape) of the user's own
    x        (n, *shape)
    data     (k, *shape), what the means are taken over
    returns  (*shape), or (n, *shape) where every input has its own; dtype and device of x

    [anonymous2023evaluation] takes the mean over all inputs, as in [ancona2019explaining], and does not say whether
    for each pixel or for each channel.
    """
    if isinstance(kind, Tensor):
        absent(x, kind)
        return kind.to(x)
    if kind == "zero":
        return torch.zeros_like(x[0])
    if kind == "blur":
        return blurred(x)
    if kind not in KINDS:
        raise unknown(kind, KINDS, argument="baseline")
    mean = mean_input(kind, x, data)
    if kind == "channel_mean":
        mean = channel_mean(mean)
    return mean.to(x)


def mean_input(kind: str, x: Tensor, data: Tensor | None) -> Tensor:
    """The mean (*shape) of the data (k, *shape), float64; an error where they are not like x (n, *shape)."""
    expected = ("k", *x.shape[1:])
    if data is None:
        raise UsageError(f"`data` must have shape {expected} with k > 0 for the baseline {kind}, got none")
    if len(data) == 0 or data.shape[1:] != x.shape[1:]:
        came = tuple(data.shape)
        raise UsageError(f"`data` must have shape {expected} with k > 0 for the baseline {kind}, got {came}")
    return data.mean(dim=0, dtype=torch.float64)


def channel_mean(mean: Tensor) -> Tensor:
    """The mean of each channel at all its places, from the mean of each entry (*shape)."""
    if mean.ndim < 2:
        raise UsageError(f"`baseline` channel_mean needs images, got inputs of shape {tuple(mean.shape)}; take mean")
    axes = tuple(range(mean.ndim - len(spatial(mean.shape)), mean.ndim))
    return mean.mean(dim=axes, keepdim=True).expand_as(mean).contiguous()


def blurred(x: Tensor, *, sigma: float | None = None) -> Tensor:
    """Every image blurred by a Gaussian cut off at three sigma; beyond the border the last pixel goes on.

    x        (n, h, w) or (n, channels, h, w)
    sigma    in pixels; None: 10 pixels in 224, as in [fong2017interpretable]
    returns  like x
    """
    if x.ndim not in (3, 4):
        raise UsageError(f"`baseline` blur needs images, got inputs of shape {tuple(x.shape[1:])}; take mean or zero")
    if sigma is None:
        sigma = max(x.shape[-2:]) * 10 / 224
    if sigma <= 0:
        raise UsageError(f"`sigma` must be positive, got {sigma}")
    kernel = gaussian(sigma, x)
    turned = smeared(x.reshape(-1, 1, *x.shape[-2:]), kernel)
    return smeared(turned, kernel).reshape(x.shape)


def smeared(rows: Tensor, kernel: Tensor) -> Tensor:
    """rows (m, 1, h, w), blurred along their last axis by a kernel (odd,) and turned: (m, 1, w, h)."""
    reach = len(kernel) // 2
    padded = F.pad(rows, (reach, reach, 0, 0), mode="replicate")
    return F.conv2d(padded, kernel.view(1, 1, 1, -1)).transpose(2, 3)


def gaussian(sigma: float, like: Tensor) -> Tensor:
    """Weights (2 · reach + 1,) of sum one at whole pixels up to three sigma away, with dtype and device of `like`."""
    reach = math.ceil(3 * sigma)
    places = torch.arange(-reach, reach + 1, device=like.device, dtype=like.dtype)
    weights = torch.exp(-0.5 * (places / sigma) ** 2)
    return weights / weights.sum()
