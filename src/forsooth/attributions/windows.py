"""Occlusion by a sliding window: windows may overlap, unlike the players of `occlusion`."""

import torch
from torch import Tensor

from forsooth.games.values import Model, evenly, rows_at_once, target_outputs
from forsooth.records import Method, UsageError


def occlusion_windows(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    window: int | None = None,
    stride: int | None = None,
    baseline: float = 0.0,
) -> Tensor:
    """Mean drop of the target's output over the windows that hide a pixel.

    x         (n, channels, h, w)
    target    (n,) int64, the explained class
    window    its side in pixels; None: a quarter of the shorter side, at least 2
    stride    pixels between two windows; None: half the window
    baseline  what stands in a hidden pixel
    returns   (n, channels, h, w), the same in each channel

    [zeiler2014visualizing]. The last windows are cut at the border. Cost: a forward for each window.
    """
    if x.ndim != 4:
        raise UsageError(f"`x` must be images (n, channels, h, w), got {tuple(x.shape)}")
    if window is None:
        window = max(2, min(x.shape[2:]) // 4)
    if stride is None:
        stride = max(1, window // 2)
    if window > min(x.shape[2:]) or not 1 <= stride <= window:
        came = f"{window} and {stride}"
        raise UsageError(f"`window` must fit the image and `stride` lie in [1, window], got {came}")
    masks = sliding(tuple(x.shape[2:]), window, stride).to(x)  # (m, h, w)
    drops = [hidden_drops(model, image, target[row], masks, baseline) for row, image in enumerate(x)]
    maps = torch.tensordot(torch.stack(drops).to(x), masks, dims=1) / masks.sum(0)  # (n, h, w)
    return maps[:, None].expand_as(x).contiguous()


def sliding(sides: tuple[int, ...], window: int, stride: int) -> Tensor:
    """Masks (m, h, w) float64, 1 in a window, row by row."""
    rows = along(sides[0], window, stride)
    columns = along(sides[1], window, stride)
    return (rows[:, None, :, None] * columns[None, :, None, :]).flatten(0, 1)


def along(side: int, window: int, stride: int) -> Tensor:
    """Masks (m, side) float64 of the windows along one axis; the last one ends at the border or is cut by it."""
    count = -(-(side - window) // stride) + 1
    first = torch.arange(count)[:, None] * stride
    place = torch.arange(side)
    return ((place >= first) & (place < first + window)).double()


def hidden_drops(model: Model, image: Tensor, target: Tensor, masks: Tensor, baseline: float) -> Tensor:
    """How far the target's output falls when each of the windows (m, h, w) of an image (channels, h, w) is hidden."""
    before = target_outputs(model, image[None], target[None])
    after = []
    for some in masks.split(evenly(len(masks), rows_at_once(image[None], model))):
        hidden = torch.lerp(image, image.new_tensor(baseline), some[:, None])
        after.append(target_outputs(model, hidden, target.expand(len(some))))
    return before - torch.cat(after)


OCCLUSION_WINDOWS = Method(
    name="occlusion_windows",
    function=occlusion_windows,
    needs=(),
    random=False,
    signed=True,
    cite="zeiler2014visualizing",
    version=1,
    inputs=("image",),
    cost="forwards",
    hides=True,
)
WINDOWS = (OCCLUSION_WINDOWS,)
