"""Does a method keep what it promises?"""

import torch
from torch import Tensor

from forsooth.records import Metric, UsageError
from forsooth.scores.maps import check_maps

FLOOR = 1e-3  # of the sum of absolute values, below which a promised total counts as zero


def completeness_gap(attribution: Tensor, total: Tensor) -> Tensor:
    """How far the sum of a map is from the total that its method promises, relative to that total.

    attribution  (n, *shape) real, signed
    total        (n,) what the map must sum to: f(x) - f(baseline) for completeness, f(x) for conservation
    returns      (n,) float64, 0 where the promise is kept, 1 for a map of zeros; nan where map or total is not finite

    |sum of s - total| / max(|total|, 0.001 sum of |s|). The second scale holds where the contributions cancel and the
    total is near zero: there a division by the total would turn harmless rounding into any number. With it, single
    precision stays below about 0.001, and each sample is judged by itself, whatever batch it comes in. A total
    of zero met by a map of zeros is a promise kept.

    Completeness [sundararajan2017axiomatic], conservation [bach2015pixelwise].
    """
    check_maps(attribution)
    if total.shape != attribution.shape[:1]:
        raise UsageError(f"`total` must have the shape {tuple(attribution.shape[:1])}, got {tuple(total.shape)}")
    values = attribution.detach().flatten(1).to(torch.float64)
    total = total.detach().to(torch.float64)
    gap = (values.sum(1) - total).abs()
    scale = torch.maximum(total.abs(), FLOOR * values.abs().sum(1))
    defined = gap.isfinite() & scale.isfinite()
    return torch.where(scale > 0, gap / scale, 0.0).masked_fill(~defined, torch.nan)


GAP = Metric(
    name="gap",
    function=completeness_gap,
    reads=("total",),
    better="lower",
    bounds=(0.0, float("inf")),
    cite="sundararajan2017axiomatic",
    version=1,
)
