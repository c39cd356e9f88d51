"""What share of the Shapley values lies inside a region, without the noise of their estimates."""

from dataclasses import dataclass

import torch
from torch import Tensor

from forsooth.games.shapley import Estimate
from forsooth.records import UsageError
from forsooth.scores.jackknife import jackknife

SPLITS = 64


@dataclass(frozen=True)
class Mass:
    """Share of Σ|Shapley value| inside a region, of every sample; nan where undefined.

    value  (n,) freed of noise; may lie a little outside [0, 1], as an estimate without bias must
    error  (n,) its standard error from the sampling of permutations; 0 where the Shapley values are exact
    plain  (n,) the moduli of the estimates as they are
    """

    value: Tensor
    error: Tensor
    plain: Tensor


def mass_inside(shapley: Estimate, inside: Tensor) -> Mass:
    """Share of the Shapley mass of players inside a region.

    inside  (players,) or (n, players) bool

    The modulus of an estimate is never below zero: a player that does nothing adds 0.8 standard errors to the plain
    sum, and there are many such players outside a pattern. Here the permutations are split into two halves, which are
    independent: one brings the values and the other their signs, then the other way round, and the mean over many
    splits is taken. A player that does nothing then adds nothing on average, and another |φ| (1 - 2 P(wrong sign)):
    exact where φ is well above its error, and never too much.
    """
    if inside.shape[-1] != shapley.values.shape[1]:
        raise UsageError(f"`inside` must have {shapley.values.shape[1]} players, got {tuple(inside.shape)}")
    size = shapley.values.abs()
    plain = (size * inside).sum(1) / size.sum(1)
    if not shapley.permutations:
        return Mass(plain, torch.zeros_like(plain), plain)
    if len(shapley.sizes) < 2:
        unknown = torch.full_like(plain, torch.nan)
        return Mass(unknown, unknown, plain)
    return Mass(*signed_mass(shapley, inside), plain)


def signed_mass(shapley: Estimate, inside: Tensor) -> tuple[Tensor, Tensor]:
    """The share freed of noise and its standard error, (n,) each; arguments as in `mass_inside`."""
    signed, left = signed_sums(shapley.sizes[:, None] * shapley.groups)
    value = share(signed, inside)
    if inside.ndim == 2:
        inside = inside[:, None]  # the same in every group
    return value, jackknife(value, share(left, inside), shapley.sizes)


def relative_attribution(values: Tensor, region: Tensor) -> Tensor:
    """|A_k| / mean |A| of one region k among all: 0 if it did not matter, 1 if as much as the others.

    values   (n, regions) Shapley values
    region   (n,) int64, k
    returns  (n,) nan where all values are zero

    [anonymous2023evaluation], Fig. 3.
    """
    size = values.abs()
    return size.gather(1, region[:, None])[:, 0] / size.mean(1)


def signed_sums(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Σ of one half times the sign of the other, over both orders and many splits of the groups (n, g, players).

    returns  (n, players) from all groups, and (n, g, players) without each of them
    """
    signed = torch.zeros_like(groups[:, 0])
    left = torch.zeros_like(groups)
    for half in halves(groups.shape[1]):
        first = groups * half.to(groups)[:, None]
        second = groups - first
        one = first.sum(1)
        other = second.sum(1)
        signed += crossed(one, other)
        left += crossed(one[:, None] - first, other[:, None] - second)
    return signed, left


def crossed(one: Tensor, other: Tensor) -> Tensor:
    """The values of each half with the signs of the other, added."""
    return one * other.sign() + other * one.sign()


def halves(groups: int) -> list[Tensor]:
    """The same `SPLITS` random halves of so many groups at every call, each (groups,) bool."""
    drawn = torch.Generator().manual_seed(0)
    return [torch.randperm(groups, generator=drawn) < groups // 2 for _ in range(SPLITS)]


def share(signed: Tensor, inside: Tensor) -> Tensor:
    """Sum over the players inside over that of all, (…, players) -> (…); nan where the whole is not positive."""
    whole = signed.sum(-1)
    return (signed * inside).sum(-1) / whole.masked_fill(~(whole > 0), torch.nan)
