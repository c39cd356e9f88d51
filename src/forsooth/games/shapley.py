"""Shapley values of games: exactly, from all coalitions, and by random orders of joining, with standard errors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from forsooth.games.chains import prepared
from forsooth.games.values import Game, ends, part_of, values_of
from forsooth.games.walks import walks as walks
from forsooth.records import UsageError

MOST_PLAYERS = 20  # of an exact game: a million coalitions
TABLE = 2**24  # most values of coalitions held at once
ROUNDING = 4  # units in the last place of the largest value that Shapley values must exceed to be more than rounding


@dataclass(frozen=True)
class Estimate:
    """Shapley values of n games, and how sure they are.

    values        (n, players) float64
    error         (n, players) float64, standard error of each value; 0 where exact, nan from a single unit
    groups        (n, g, players) float64, means over g disjoint groups of permutations: the error of anything
                  computed from the values comes from a weighted delete-a-group jackknife over them; exact:
                  (n, 1, players)
    sizes         (g,) float64, permutations (pairs if antithetic) in each group
    permutations  walks made; 0: exact
    """

    values: Tensor
    error: Tensor
    groups: Tensor
    sizes: Tensor
    permutations: int


def joined(parts: Sequence[Estimate]) -> Estimate:
    """The Shapley values of all games, from estimates of some of them that were made alike."""
    return replace(
        parts[0],
        values=torch.cat([part.values for part in parts]),
        error=torch.cat([part.error for part in parts]),
        groups=torch.cat([part.groups for part in parts]),
    )


def of_players(estimate: Estimate, roles: Tensor) -> Estimate:
    """The Shapley values of players from those of the roles that they went by; roles (n, players) as in `Game`."""
    return replace(
        estimate,
        values=estimate.values.gather(1, roles),
        error=estimate.error.gather(1, roles),
        groups=estimate.groups.gather(2, roles[:, None].expand_as(estimate.groups)),
    )


def exact(played: Game) -> Estimate:
    """Shapley values from all 2^p coalitions of at most 20 players. [shapley1953value]"""
    if played.count > MOST_PLAYERS:
        raise UsageError(f"`players` must be at most {MOST_PLAYERS} to be enumerated exactly, got {played.count}")
    masks = all_coalitions(played.count)
    parts = []
    rows = max(1, TABLE // len(masks))
    for start in range(0, len(played.x), rows):
        values = values_of(part_of(played, start, start + rows), masks)  # (rows, 2^p)
        phi = exact_of(values)
        parts.append(phi.masked_fill(rounding_only(phi, values.abs().amax(1))[:, None], 0))
    phi = torch.cat(parts)
    return Estimate(phi, torch.zeros_like(phi), phi[:, None], phi.new_ones(1), 0)


def rounding_only(values: Tensor, largest: Tensor) -> Tensor:
    """Which Shapley values (n, players) are zero but for rounding. (n,) bool

    largest  (n,) the largest |value| of a coalition, in the precision of the model

    Where all that the players do cancels, sums in floating point leave a number like 3e-17 instead of 0. Who divides by
    its norm makes a direction of it, and whoever is rightly silent there looks wrong.
    """
    precision = torch.float32
    if largest.is_floating_point():
        precision = largest.dtype
    return values.square().sum(1).sqrt() <= ROUNDING * torch.finfo(precision).eps * largest.double()


def all_coalitions(count: int) -> Tensor:
    """Every coalition once: bit i of a row's number says whether player i takes part. (2^count, count) bool

    >>> all_coalitions(2).int().tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    return (torch.arange(2**count)[:, None] >> torch.arange(count)) & 1 == 1


def exact_of(values: Tensor) -> Tensor:
    """Shapley values from a table of what every coalition is worth.

    values   (n, 2^p), coalitions in the order of `all_coalitions`
    returns  (n, p) float64

    phi_i = Σ_{S without i} |S|! (p - |S| - 1)! / p! · (v(S + i) - v(S)): equation 1 of [anonymous2023evaluation], with
    the denominator |Ω|!. For each player the table is read once as pairs of coalitions without and with it.
    """
    count = players_of(values)
    values = values.double()
    if count == 0:
        return values[:, :0]
    weights = shapley_weights(count).to(values.device)
    phi = []
    for player in range(count):
        without, joined = values.view(len(values), -1, 2, 2**player).unbind(dim=2)  # others above, others below
        phi.append((joined - without).flatten(1) @ weights)
    return torch.stack(phi, dim=1)


def shapley_weights(count: int) -> Tensor:
    """|S|! (p - |S| - 1)! / p! of every coalition S without one player, of `count` = p: (2^(p - 1),) float64."""
    by_size = [1 / (count * math.comb(count - 1, size)) for size in range(count)]
    sizes = all_coalitions(count - 1).sum(dim=1)
    return torch.tensor(by_size, dtype=torch.float64)[sizes]


def players_of(values: Tensor) -> int:
    """The number of players p of a table of values (n, 2^p)."""
    count = values.shape[-1].bit_length() - 1
    if values.ndim != 2 or values.shape[1] != 2**count:
        raise UsageError(f"`values` must have shape (n, 2^players), got {tuple(values.shape)}")
    return count


def permutation(
    played: Game, *, permutations: int, generator: torch.Generator, antithetic: bool = False, groups: int = 25
) -> Estimate:
    """Mean gain when a player joins, over random orders of joining. [castro2009polynomial]

    permutations  walks from the empty to the full coalition, of `players` - 1 forwards each
    antithetic    walk every order also backwards [mitchell2022sampling]; the pair is then the unit of the error
    groups        most groups for the jackknife

    All inputs walk the same permutations, of players or, in a shuffled game, of their roles: then the values are of
    roles, see `of_players`. Memory does not grow with `permutations`: what stays are sums and sums of squares, taken
    about the gains of the first unit, so that a game without interactions has error 0.
    """
    units = units_of(permutations, antithetic=antithetic, groups=groups)
    played = prepared(played, len(played.x) * permutations * played.count)
    both = ends(played)
    totals = Totals(played, both, units=units, groups=min(groups, units))
    for gains in walks(played, units, generator, antithetic=antithetic, both=both):
        totals.add(gains)
    return totals.estimate(permutations)


class Totals:
    """Sums over units of what every player adds, about the gains of the first unit.

    sums     (n, g, players) of each group
    sizes    (g,) units in each group
    squares  (n, players)
    shift    (n, 1, players), the gains of the first unit
    largest  (n,) the largest value or gain, in the precision of the model
    done     units so far
    """

    def __init__(self, played: Game, both: tuple[Tensor, Tensor], *, units: int, groups: int) -> None:
        x = played.x
        self.units = units
        self.done = 0
        self.sums = torch.zeros(len(x), groups, played.count, dtype=torch.float64, device=x.device)
        self.sizes = self.sums.new_zeros(groups)
        self.squares = torch.zeros_like(self.sums[:, 0])
        self.shift = torch.zeros_like(self.sums[:, :1])
        self.largest = torch.stack(both).abs().amax(0)

    def add(self, gains: Tensor) -> None:
        """Add the gains (n, some units, players), which are overwritten."""
        top = gains.abs().amax((1, 2)).to(self.largest)  # a gain is at most twice a value
        self.largest = torch.maximum(self.largest, top)
        if self.done == 0:
            self.shift.copy_(gains[:, :1])
        self.squares += gains.sub_(self.shift).square().sum(dim=1)
        number = torch.arange(self.done, self.done + gains.shape[1])
        group = number * len(self.sizes) // self.units  # in which each unit falls, ascending
        add_by_group(self.sums, self.sizes, gains, group)
        self.done += gains.shape[1]

    def estimate(self, permutations: int) -> Estimate:
        """The values with their errors, 0 where they are nothing but rounding."""
        total = self.sums.sum(dim=1)
        values = self.shift[:, 0] + total / self.units
        means = self.shift + self.sums / self.sizes[:, None]
        # the means as well, since values may cancel
        idle = rounding_only(values, self.largest) & rounding_only(means.flatten(1), self.largest)
        values = values.masked_fill(idle[:, None], 0)
        error = self.error(total).masked_fill(idle[:, None], 0)
        means = means.masked_fill(idle[:, None, None], 0)
        return Estimate(values, error, means, self.sizes, permutations)

    def error(self, total: Tensor) -> Tensor:
        """Standard errors (n, players) of the means, from the sums over all units; nan of a single unit."""
        variance = ((self.squares - total.square() / self.units) / (self.units - 1)).clamp(min=0)
        return (variance / self.units).sqrt()


def units_of(permutations: int, *, antithetic: bool, groups: int) -> int:
    """How many independent units there are: permutations, or pairs of them."""
    if permutations < 1:
        raise UsageError(f"`permutations` must be at least 1, got {permutations}")
    if antithetic and permutations % 2:
        raise UsageError(f"`permutations` must be even to make antithetic pairs, got {permutations}")
    if groups < 1:
        raise UsageError(f"`groups` must be at least 1, got {groups}")
    if antithetic:
        return permutations // 2
    return permutations


def add_by_group(sums: Tensor, sizes: Tensor, gains: Tensor, group: Tensor) -> None:
    """Add the gains (n, units, players) of each unit to the sums (n, g, players) and sizes (g,) of its group (units,).

    The groups ascend, so a group is a slice; `index_add_` would leave the order of adding to chance on a GPU.
    """
    start = 0
    for name, size in zip(*(t.tolist() for t in group.unique_consecutive(return_counts=True)), strict=True):
        sums[:, name] += gains[:, start : start + size].sum(dim=1)
        sizes[name] += size
        start += size
