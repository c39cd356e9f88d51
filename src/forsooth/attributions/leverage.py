"""Leverage SHAP: Shapley values by least squares over coalitions drawn without replacement by their leverage."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from forsooth.attributions.shapley import KERNEL_SHAP
from forsooth.games.coalitions import constrained_least_squares, kernel_weights, subsets, whole_layer
from forsooth.games.draws import shuffled
from forsooth.games.values import Model, ends, game, values_of
from forsooth.records import UsageError


def leverage_shap(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generator: torch.Generator,
    generators: Sequence[torch.Generator] | None = None,
    samples: int | None = None,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
) -> Tensor:
    """Shapley values from a least squares over coalitions drawn by their leverage, each at most once.

    x           (n, *shape)
    target      (n,) int64, the explained class
    generators  one for each input, for the roles of its players; None: all inputs play the same coalitions
    samples     coalitions beside the empty and the full one; None: 10 · players
    players     (*spatial) or (*shape) integer labels; None: each pixel
    baseline    (*shape), what stands for an absent player; None: zeros
    returns     (n, *shape), summing to f(x) - f(baseline)

    [musco2025provably]: the leverage of a coalition is one over the number of its size, so that sizes are drawn alike;
    pairs of complements, none twice. Departures: how many of each size is fixed, not drawn; coalitions are of roles, as
    in `kernel_shap`, which draws with replacement and spends 2,048 more.
    """
    played = game(model, x, target, players=players, baseline=baseline)
    if samples is None:
        samples = 10 * played.count
    if samples < 2:
        raise UsageError(f"`samples` must be at least 2, got {samples}")
    first, last = (v.double() for v in ends(played))  # (n,)
    if played.count == 1:
        return played.map((last - first)[:, None])
    masks = leverage_coalitions(played.count, samples, generator).to(x.device)
    if len(masks) < 2**played.count - 2:  # else nothing is left to chance
        played = shuffled(played, generators)
    gains = values_of(played, masks).double() - first[:, None]  # (n, m)
    weights = kernel_weights(masks)
    return played.map(constrained_least_squares(masks, weights, gains, last - first))


def leverage_coalitions(count: int, samples: int, generator: torch.Generator) -> Tensor:
    """At most about `samples` different coalitions (m, count) bool, with the complement of each."""
    masks: list[Tensor] = []
    for size, share in layer_shares(count, samples).items():
        if share >= pairs_of_size(count, size):
            masks.extend(whole_layer(count, size))
            continue
        drawn = distinct(count, size, share, generator)
        masks.extend((drawn, ~drawn))
    return torch.cat(masks)


def pairs_of_size(count: int, size: int) -> int:
    """How many pairs of complements have a coalition of that size, at most half of `count`."""
    whole = math.comb(count, size)
    if 2 * size == count:
        return whole // 2
    return whole


def layer_shares(count: int, samples: int) -> dict[int, int]:
    """How many pairs of each size up to half of `count`: alike for all, and no more than there are."""
    shares: dict[int, int] = {}
    left = samples // 2
    sizes = range(1, count // 2 + 1)
    for place, size in enumerate(sizes):  # from the smallest layers on, which hand on what they cannot use
        layers = sum(1 + (2 * other != count) for other in sizes[place:])  # the middle one is half as heavy
        even = left * (1 + (2 * size != count)) / layers
        shares[size] = min(pairs_of_size(count, size), max(1, math.floor(even)))
        left = max(0, left - shares[size])
    return shares


def distinct(count: int, size: int, pairs: int, generator: torch.Generator) -> Tensor:
    """Different coalitions (pairs, count) bool of one size, none the complement of another."""
    found: dict[bytes, Tensor] = {}
    while len(found) < pairs:
        for mask in subsets(count, torch.full((pairs,), size), generator):
            if 2 * size == count and not mask[0]:
                mask = ~mask  # of two complements of the same size the one with the first player
            found.setdefault(mask.numpy().tobytes(), mask)
    return torch.stack(list(found.values())[:pairs])


LEVERAGE_SHAP = replace(
    KERNEL_SHAP,
    name="leverage_shap",
    function=leverage_shap,
    cite="musco2025provably",
    version=1,
)
LEVERAGE = (LEVERAGE_SHAP,)
