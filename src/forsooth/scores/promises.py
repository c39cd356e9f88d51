"""Does a method keep what it promises?"""

from collections.abc import Callable

import torch
from torch import Tensor

from forsooth.records import Method, Metric, UsageError

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
    if total.shape != attribution.shape[:1]:
        raise UsageError(f"`total` must have the shape {tuple(attribution.shape[:1])}, got {tuple(total.shape)}")
    values = attribution.detach().flatten(1).to(torch.float64)
    total = total.detach().to(torch.float64)
    gap = (values.sum(1) - total).abs()
    scale = torch.maximum(total.abs(), FLOOR * values.abs().sum(1))
    defined = gap.isfinite() & scale.isfinite()
    return torch.where(scale > 0, gap / scale, 0.0).masked_fill(~defined, torch.nan)


@torch.no_grad()
def promised(
    method: Method, model: Callable[[Tensor], Tensor], x: Tensor, target: Tensor, *, background: Tensor | None = None
) -> Tensor:
    """What the map promises to sum to: f(x), less f(baseline) for a method that explains a difference. (n,)

    The baseline is the one in the settings of the method, (*shape) or (n, *shape); zeros where there is none.
    Where a method conserves, what biases keep (`Method.retained`) is no part of the promise.
    """
    rows = torch.arange(len(x), device=x.device)
    total = model(x)[rows, target]
    if method.promise == "complete":
        given = method.settings.get("baseline")
        absent = given.to(x) if isinstance(given, Tensor) else torch.zeros_like(x[0])
        own = absent.ndim == x.ndim
        empty = model(absent if own else absent[None])
        total = total - empty[rows if own else 0, target]
    elif method.promise == "complete to background":
        if background is None:
            raise UsageError(f"`background` must be given to check what `{method.name}` promises, got none")
        total = total - model(background.to(x))[:, target].mean(0)
    elif method.retained is not None:
        total = total - method.retained(model, x, target, **method.settings).to(total)
    return total


GAP = Metric(
    name="gap",
    function=completeness_gap,
    reads=("total",),
    better="lower",
    bounds=(0.0, float("inf")),
    cite="sundararajan2017axiomatic",
    version=1,
)
