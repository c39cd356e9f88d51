"""What happens when players are hidden one after the other, and how much that depends on the order."""

from dataclasses import replace

import torch
from torch import Tensor

from forsooth.games.chains import prepared
from forsooth.games.values import Game, values_of
from forsooth.records import UsageError


def order_dependence(gains: Tensor, *, centre: str = "mean") -> Tensor:
    """V of Fig. 4b: how far what a player contributes depends on who was hidden before it.

    gains    (n, contexts, players), the drop Δ of the output when the player is hidden too; see `hidden_gains`
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


def hidden_gains(played: Game, who: Tensor, *, contexts: int, generator: torch.Generator) -> Tensor:
    """What hiding a player takes from the output when t others are hidden already, t uniform in 0 … players - 1.

    who        (k,) int64, the players to look at
    contexts   random orders of hiding; all k players and all inputs share them, as they share the cost of drawing
    generator  on the CPU
    returns    (n, contexts, k); costs 2 · contexts · k forwards per input
    """
    if contexts < 1:
        raise UsageError(f"`contexts` must be at least 1, got {contexts}")
    ranks = torch.rand(contexts, played.count, generator=generator).argsort(dim=1)  # (contexts, players)
    after = ranks[:, None, :] > ranks[:, who.cpu()][..., None]  # (contexts, k, players), who is still there
    itself = torch.arange(played.count) == who.cpu()[:, None]  # (k, players)
    before, then = (values_of(played, masks.flatten(0, 1)) for masks in (after | itself, after))  # (n, contexts · k)
    return (before - then).reshape(len(before), contexts, len(who))


def deletion(played: Game, attribution: Tensor, *, steps: int) -> Tensor:
    """Mean output while players are hidden from the highest to the lowest value: lower is better. [petsiuk2018rise]

    attribution  (n, players) real, signed
    steps        equal steps of the walk, as far as the players allow
    returns      (n,) area under the output against the share of hidden players; nan where a map is not finite

    Tied players go by their number. Pixel flipping [samek2017evaluating] is the same walk. Departure: the output is
    what the game's model says, logits as a rule, where the paper has probabilities.
    """
    return area(curve(played, attribution, steps=steps, hide=True), counts(played.count, steps))


def insertion(played: Game, attribution: Tensor, *, steps: int) -> Tensor:
    """Mean output while players come back from the highest to the lowest value: higher is better; as `deletion`."""
    return area(curve(played, attribution, steps=steps, hide=False), counts(played.count, steps))


def curve(played: Game, attribution: Tensor, *, steps: int, hide: bool) -> Tensor:
    """The output along the walk that hides (or brings back) players from the highest to the lowest value.

    attribution  (n, players)
    returns      (n, steps + 1), on the device of x; rows of nan where a map is not finite
    """
    expected = (len(played.x), played.count)
    if tuple(attribution.shape) != expected:
        raise UsageError(f"`attribution` must have shape (n, players) {expected}, got {tuple(attribution.shape)}")
    ranks = ranks_of(attribution)
    if played.roles is not None:
        ranks = ranks.gather(1, played.roles)
    reached = torch.arange(played.count) < counts(played.count, steps)[:, None]  # (steps + 1, ranks)
    # with its rank as its role every player of every input reads the same masks, and one forward takes many inputs
    played = prepared(replace(played, roles=ranks), len(ranks) * len(reached))
    values = values_of(played, reached ^ hide)
    return values.masked_fill(~attribution.isfinite().all(1, keepdim=True), torch.nan)


def ranks_of(attribution: Tensor) -> Tensor:
    """The place of every player of attribution (n, players) from the highest, 0, to the lowest; ties by number."""
    return attribution.detach().argsort(dim=1, descending=True, stable=True).argsort(dim=1)


def counts(players: int, steps: int) -> Tensor:
    """How many players are reached after each step. (steps + 1,) int64, from 0 to `players`"""
    if not 1 <= steps <= players:
        raise UsageError(f"`steps` must lie in [1, {players}] for {players} players, got {steps}")
    return torch.arange(steps + 1) * players // steps


def area(values: Tensor, at: Tensor) -> Tensor:
    """Mean height of the curve through values (n, steps + 1) at the places (steps + 1,), by the trapezoid rule. (n,)"""
    at = at.to(values.device, torch.float64)
    return torch.trapezoid(values.to(torch.float64), at) / (at[-1] - at[0])
