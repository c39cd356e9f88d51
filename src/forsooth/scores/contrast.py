"""Is a concept attributed more by the model that needs it, and with the input that needs it? [yang2019benchmarking]

All scores read saliency in [0, 1] without a channel axis, made by `reduced`, and the pixels of a concept c.
"""

from typing import Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from forsooth.records import Metric, UsageError
from forsooth.scores.maps import check_maps

THRESHOLD = 0.1  # a change of g_c that the authors could see

Floats = NDArray[np.float64]
Array = TypeVar("Array", Tensor, Floats)


def reduced(maps: Tensor, *, percentile: float = 99.0, lowest: Literal["minimum", "zero"] = "minimum") -> Tensor:
    """Saliency in [0, 1]: the positive part, its mean over channels, cut at a percentile and scaled, image by image.

    maps        (n, c, *space) real
    percentile  of the pixels of one image, interpolated linearly
    lowest      what becomes 0: the image's own "minimum", or "zero"
    returns     (n, *space); nan for a map that is not finite, or without two different values to scale between

    [yang2019benchmarking], appendix E, after [smilkov2017smoothgrad]; only what is positive counts, since the work is
    on false positives. The released code sums over channels, which is the same after scaling. With "zero" a constant
    positive map is 1 everywhere and so is defined. Where the percentile is the minimum itself, though some pixels are
    above it, those are 1, as they are in the limit.
    """
    if maps.ndim < 3:
        raise UsageError(f"`maps` must be (n, channels, *space), got {tuple(maps.shape)}")
    if not 0 < percentile <= 100:
        raise UsageError(f"`percentile` must lie in (0, 100], got {percentile}")
    _known("lowest", lowest, ("minimum", "zero"))
    flat = _positive(maps)
    low = flat.amin(1, keepdim=True)
    if lowest == "zero":
        low = torch.zeros_like(low)
    scaled = _scaled(flat, low, _percentile(flat, percentile))
    bad = ~maps.flatten(1).isfinite().all(1) | ~(flat.amax(1) > low[:, 0])
    return scaled.masked_fill(bad[:, None], torch.nan).unflatten(1, maps.shape[2:])


def _positive(maps: Tensor) -> Tensor:
    """The mean over channels of the positive part of maps (n, c, *space), the largest value 1. (n, pixels)"""
    positive = maps.detach().clamp(min=0).flatten(2)
    top = positive.amax((1, 2), keepdim=True)
    return (positive / top).mean(1)  # divided first: no sum grows too large, whatever the scale of the map


def _scaled(flat: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """flat (n, pixels) with low (n, 1) at 0 and high (n, 1) at 1, cut beyond them."""
    between = ((flat - low) / (high - low)).clamp(0, 1)
    return torch.where(high > low, between, (flat > low).to(flat))


def _percentile(flat: Tensor, percentile: float) -> Tensor:
    """(n, 1) of flat (n, pixels), between neighbours linearly; torch.quantile refuses large inputs."""
    place = percentile / 100 * (flat.shape[1] - 1)
    below = min(int(place), flat.shape[1] - 1)
    above = min(below + 1, flat.shape[1] - 1)
    ordered = flat.sort(dim=1).values
    return torch.lerp(ordered[:, below], ordered[:, above], place - below)[:, None]


def g_c(saliency: Tensor, mask: Tensor) -> Tensor:
    """The mean saliency of the pixels of a concept, section 4.1.

    saliency  (n, *map) in [0, 1], see `reduced`
    mask      (n, *map) bool, I_c
    returns   (n,) float64 in [0, 1]; nan where the saliency is nan or the mask is empty
    """
    check_maps(saliency, "saliency")
    if saliency.shape != mask.shape:
        raise UsageError(f"`mask` must have the shape of the saliency {tuple(saliency.shape)}, got {tuple(mask.shape)}")
    if mask.dtype != torch.bool:
        raise UsageError(f"`mask` must be of type torch.bool, got {mask.dtype}")
    values = saliency.detach().flatten(1)
    _within_one(values)
    inside = mask.flatten(1)
    mean = values.masked_fill(~inside, 0).sum(1, dtype=torch.float64) / inside.sum(1)
    return mean.masked_fill(values.isnan().any(1), torch.nan)


def _within_one(values: Tensor) -> None:
    """An error where saliency (n, pixels) leaves [0, 1]."""
    outside = (values < 0) | (values > 1)
    if outside.any():
        came = f"{values[outside].min().item():g} to {values[outside].max().item():g}"
        raise UsageError(f"`saliency` must lie in [0, 1], see `reduced`; got also {came}")


def mcs(attribution: Tensor, anchor: Tensor, truth: Tensor) -> Tensor:
    """Model contrast: g_c of the model that needs the concept more, less that of the one that needs it less.

    attribution  (n, *map) saliency of f_1: f_o against f_s, or f_{s,k} against f_{s,1.0}
    anchor       (n, *map) saliency of f_2 for the same inputs
    truth        (n, *map) bool, the concept
    returns      (n,) float64 in [-1, 1]; nan where one of the two is undefined

    Section 4.2. The mean over the inputs that both models get right is the released MCS; as printed, each model has
    its own correct set, and the two means are no mean of differences.
    """
    return g_c(attribution, truth) - g_c(anchor, truth)


def idr(attribution: Tensor, anchor: Tensor, truth: Tensor) -> Tensor:
    """Input dependence: whether the object is attributed less than the part of the scene that it covers.

    attribution  (n, *map) saliency of x_cf, with the object
    anchor       (n, *map) saliency of x_¬cf, the scene alone, by the same model
    truth        (n, *map) bool, where the object is or would be
    returns      (n,) float64, 1 or 0; nan where one of the two is undefined

    Section 4.3. Strict: equal attributions are 0, in the paper as in the released code.
    """
    there = g_c(attribution, truth)
    without = g_c(anchor, truth)
    return (there < without).to(torch.float64).masked_fill((there + without).isnan(), torch.nan)


def relative_change(attribution: Tensor, anchor: Tensor, truth: Tensor) -> Tensor:
    """|g_c(x + δ) - g_c(x)| / g_c(x), whose mean is the measure of appendix C; lower is better.

    attribution  (n, *map) saliency of x + δ, with the functionless patch
    anchor       (n, *map) saliency of x
    truth        (n, *map) bool, where the patch is or would be
    returns      (n,) float64; inf where g_c(x) is 0 and g_c(x + δ) is not; nan where both are 0 or one is undefined
    """
    return relative_difference(g_c(attribution, truth), g_c(anchor, truth))


def relative_difference(after: Array, before: Array) -> Array:
    """|after - before| / before of g_c, (n,) each: inf where only `before` is 0, nan where both are."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return abs(after - before) / before


def iir(
    attribution: Tensor,
    anchor: Tensor,
    truth: Tensor,
    *,
    threshold: float = THRESHOLD,
    zero: Literal["undefined", "failure"] = "undefined",
) -> Tensor:
    """Input independence: whether a patch without function changes g_c of its place by less than the threshold.

    attribution, anchor, truth  as in `relative_change`
    threshold                   t, a share of g_c(x)
    zero                        what 0 before and 0 after is: "undefined", or "failure" as in the released code
    returns                     (n,) float64, 1 or 0; nan where undefined

    Section 4.4; strict. A place that had no attribution before and has some after is a failure in both.
    """
    return iir_curve(attribution, anchor, truth, thresholds=torch.tensor([threshold]), zero=zero)[:, 0]


def iir_curve(
    attribution: Tensor,
    anchor: Tensor,
    truth: Tensor,
    *,
    thresholds: Tensor,
    zero: Literal["undefined", "failure"] = "undefined",
) -> Tensor:
    """`iir` at every threshold of thresholds (m,); returns (n, m). Each row rises with the threshold."""
    _known("zero", zero, ("undefined", "failure"))
    if thresholds.ndim != 1 or not bool((thresholds > 0).all()):
        raise UsageError(f"`threshold` must be above 0, got {thresholds.tolist()}")
    change = relative_change(attribution, anchor, truth)
    same = change[:, None] < thresholds.to(change)
    undefined = change.isnan()
    if zero == "failure":
        undefined = undefined & (g_c(attribution, truth) + g_c(anchor, truth)).isnan()
    return same.to(torch.float64).masked_fill(undefined[:, None], torch.nan)


def random_masks(masks: Tensor, *, generator: torch.Generator, kind: Literal["moved", "scattered"] = "moved") -> Tensor:
    """Masks of the same sizes elsewhere, for the baselines.

    masks    (n, height, width) bool
    kind     "moved": the same shape, its box uniform inside the image; "scattered": as many pixels, anywhere
    returns  (n, height, width) bool, each with as many pixels as the mask it stands for

    Appendix G says only that I_c is random.
    """
    _known("kind", kind, ("moved", "scattered"))
    if masks.ndim != 3 or masks.dtype != torch.bool:
        raise UsageError(f"`masks` must be (n, height, width) bool, got {tuple(masks.shape)} {masks.dtype}")
    if not len(masks):
        return masks
    if kind == "scattered":
        return _scattered(masks, generator)
    draws = torch.rand(len(masks), 2, generator=generator, dtype=torch.float64).tolist()
    return torch.stack([_moved(mask, at) for mask, at in zip(masks, draws, strict=True)])


def _scattered(masks: Tensor, generator: torch.Generator) -> Tensor:
    """As many pixels as in each of masks (n, height, width), anywhere."""
    order = torch.rand(masks.flatten(1).shape, generator=generator).argsort(dim=1).to(masks.device)
    return (order.argsort(dim=1) < masks.flatten(1).sum(1, keepdim=True)).view_as(masks)


def _moved(mask: Tensor, at: list[float]) -> Tensor:
    """mask (height, width) with its box at the places `at` in [0, 1) of the free room."""
    if not mask.any():
        return mask
    shifts = []
    for axis in (0, 1):
        seen = mask.any(1 - axis).nonzero()[:, 0]
        first = int(seen[0])
        length = int(seen[-1]) - first + 1
        free = mask.shape[axis] - length
        shifts.append(int(at[axis] * (free + 1)) - first)
    return mask.roll(shifts, (0, 1))  # nothing wraps: the box stays inside


def _known(argument: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise UsageError(f"`{argument}` must be one of {', '.join(words)}, got {word!r}")


MCS = Metric("mcs", mcs, ("anchor", "truth"), "higher", (-1.0, 1.0), cite="yang2019benchmarking", version=1)
IDR = Metric("idr", idr, ("anchor", "truth"), "higher", (0.0, 1.0), cite="yang2019benchmarking", version=1)
IIR = Metric("iir", iir, ("anchor", "truth"), "higher", (0.0, 1.0), cite="yang2019benchmarking", version=1)
