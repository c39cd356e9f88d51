"""How much what a player adds depends on the order in which players are hidden."""

import torch
from torch import Tensor

from forsooth.records import UsageError


def order_dependence(gains: Tensor, *, centre: str = "mean") -> Tensor:
    """V of Fig. 4b: how far what a player contributes depends on who was hidden before it.

    gains    (n, contexts, players), the drop Δ of the output when the player is hidden too
    centre   "mean": V_i = E[max(|Δ / Δ̄|, |Δ̄ / Δ|)] over contexts, Δ̄ the mean gain; "median" of the same ratios
    returns  (n, players) at least 1; nan where a gain is not finite

    [anonymous2023evaluation], section 3. A gain of zero beside a mean that is not makes the ratio infinite, and it
    stays infinite: a clamp would only report itself. Equal sizes give 1, so a player that never changes anything has
    V = 1. 1 / Δ has a heavy tail, so the mean is often set by one context; read the median beside it. Both ignore the
    sign: a gain of -Δ̄ counts as 1.
    """
    if gains.ndim != 3 or gains.shape[1] < 1:
        raise UsageError(f"`gains` must have shape (n, contexts, players), got {tuple(gains.shape)}")
    if centre not in ("mean", "median"):
        raise UsageError(f"`centre` must be one of mean, median, got {centre!r}")
    gains = gains.detach().to(torch.float64)
    size = gains.abs()
    usual = gains.mean(1, keepdim=True).abs()
    ratio = torch.maximum(size / usual, usual / size).masked_fill(size == usual, 1.0)
    if centre == "mean":
        return ratio.mean(1)
    return median(ratio)


def median(ratio: Tensor) -> Tensor:
    """The median over contexts of ratio (n, contexts, players), of an even number the mean of the middle two."""
    contexts = ratio.shape[1]
    ordered = ratio.sort(dim=1).values
    middle = (ordered[:, (contexts - 1) // 2] + ordered[:, contexts // 2]) / 2
    return middle.masked_fill(ratio.isnan().any(1), torch.nan)
