"""Is the attribution where the truth is?"""

import torch
from torch import Tensor

from forsooth.records import Metric, UsageError
from forsooth.scores.maps import check_maps


def magnitude(attribution: Tensor, truth: Tensor) -> Tensor:
    """The absolute map, one row per sample, as every score against a mask reads it.

    attribution  (n, *map) real, without a channel axis
    truth        (n, *map) bool
    returns      (n, pixels) float64; a row is nan where no score is defined: a map that is all zero or not finite,
                 a truth without any pixel
    """
    check_maps(attribution)
    if attribution.shape != truth.shape:
        raise UsageError(
            f"`truth` must have the shape of the attribution {tuple(attribution.shape)}, got {tuple(truth.shape)}"
        )
    if truth.dtype != torch.bool:
        raise UsageError(f"`truth` must be a mask of type torch.bool, got {truth.dtype}")
    size = attribution.detach().flatten(1).abs().to(torch.float64)
    defined = size.isfinite().all(1) & (size > 0).any(1) & truth.flatten(1).any(1)
    return size.masked_fill(~defined[:, None], torch.nan)


def precision(attribution: Tensor, truth: Tensor) -> Tensor:
    """Share of the k = |F+| pixels with the largest absolute attribution that lie in the truth F+.

    attribution  (n, *map) real; the absolute value is taken here
    truth        (n, *map) bool
    returns      (n,) float64 in [0, 1]; nan where undefined, see `magnitude`

    [clark2024xaitris], section 2.4. Pixels with the value zero are never among the k, the denominator stays k: so does
    the released code. Departure: pixels tied at the k-th value share the places that are left, which is the mean over
    all orders of the tied pixels. A constant map scores k / pixels, not an accident of the sort order.
    """
    hits, k = top_hits(attribution, truth)
    return hits / k


def top_hits(attribution: Tensor, region: Tensor, *, share: float | None = None) -> tuple[Tensor, Tensor]:
    """How many of the k pixels with the largest absolute attribution lie in the region.

    attribution  (n, *map) real
    region       (n, *map) bool
    share        k as a share of all pixels, at least one pixel; None: k is the size of the region
    returns      hits (n,) float64, nan where undefined see `magnitude`; k (n,) int

    Pixels tied at the k-th value share the places that are left: the mean over all orders of the tied pixels. Pixels
    with the value zero are never selected, and leave their places empty.
    """
    size = magnitude(attribution, region)
    inside = region.flatten(1)
    k = places(inside, share)
    descending = size.sort(dim=1, descending=True).values
    last = descending.gather(1, (k[:, None] - 1).clamp(min=0))  # (n, 1), the k-th largest value
    above = size > last
    tied = (size == last) & (last > 0)
    left = (k - above.sum(1)).to(size)
    shared = left * (tied & inside).sum(1) / tied.sum(1).clamp(min=1)
    hits = (above & inside).sum(1) + shared
    return hits.masked_fill(last[:, 0].isnan(), torch.nan), k


def places(inside: Tensor, share: float | None) -> Tensor:
    """How many pixels are selected of each map: k of `top_hits`, for a region inside (n, pixels). (n,) int"""
    if share is None:
        return inside.sum(1)
    if not 0 < share <= 1:
        raise UsageError(f"`share` must lie in (0, 1], got {share}")
    count, pixels = inside.shape
    return torch.full((count,), max(1, round(share * pixels)), device=inside.device)


def ima(attribution: Tensor, truth: Tensor) -> Tensor:
    """Importance mass accuracy: the share of the absolute attribution that lies in the truth.

    attribution  (n, *map) real; the absolute value is taken here
    truth        (n, *map) bool
    returns      (n,) float64 in [0, 1]; nan where undefined, see `magnitude`

    [clark2024xaitris], eq. 6, after the relevance mass accuracy of [arras2022clevr]. With a region of the input in the
    place of the truth this is Attr% of [zhou2022feature].
    """
    size = magnitude(attribution, truth)
    size = size / size.amax(1, keepdim=True)  # keeps the sums finite whatever the scale of the map
    return (size * truth.flatten(1)).sum(1) / size.sum(1)


def nonzero_pixels(maps: Tensor, truth: Tensor) -> dict[str, Tensor]:
    """Of maps (n, side, side): pixels that are not zero, and the share of them in the truth, nan where none is. (n,)"""
    named = maps.flatten(1) != 0
    count = named.sum(1).double()
    right = (named & truth.flatten(1)).sum(1).double()
    return {"nonzero": count, "own right": torch.where(count > 0, right / count, torch.nan)}


PRECISION = Metric(
    name="precision",
    function=precision,
    reads=("truth",),
    better="higher",
    bounds=(0.0, 1.0),
    cite="clark2024xaitris",
    version=1,
)
IMA = Metric(
    name="ima",
    function=ima,
    reads=("truth",),
    better="higher",
    bounds=(0.0, 1.0),
    cite="clark2024xaitris",
    version=1,
)
