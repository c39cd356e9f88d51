"""Shapley values of games: exactly, from all coalitions, and by random orders of joining, with standard errors."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from forsooth.games.values import Game, ends, evenly, masked_values, own_values, owners, part_of, refuse, values_of
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


def exact(played: Game) -> Estimate:
    """Shapley values from all 2^p coalitions of at most 20 players. [shapley1953value]"""
    if played.count > MOST_PLAYERS:
        raise UsageError(f"`players` must be at most {MOST_PLAYERS} to be enumerated exactly, got {played.count}")
    masks, parts = all_coalitions(played.count), []
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
    eps = torch.finfo(largest.dtype).eps if largest.is_floating_point() else torch.finfo(torch.float32).eps
    return values.square().sum(1).sqrt() <= ROUNDING * eps * largest.double()


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
    count, values = players_of(values), values.double()
    if count == 0:
        return values[:, :0]
    by_size = [1 / (count * math.comb(count - 1, size)) for size in range(count)]
    sizes = all_coalitions(count - 1).sum(dim=1)  # of the coalitions without the player
    weights = torch.tensor(by_size, dtype=torch.float64)[sizes].to(values.device)
    phi = []
    for player in range(count):
        without, joined = values.view(len(values), -1, 2, 2**player).unbind(dim=2)  # others above, others below
        phi.append((joined - without).flatten(1) @ weights)
    return torch.stack(phi, dim=1)


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

    All inputs walk the same permutations, of players or of their roles. Memory does not grow with `permutations`:
    what stays are sums and sums of squares, taken about the gains of the first unit, so that a game without
    interactions has error 0.
    """
    units = units_of(permutations, antithetic=antithetic, groups=groups)
    count = min(groups, units)
    sums = torch.zeros(len(played.x), count, played.count, dtype=torch.float64, device=played.x.device)
    squares, shift, sizes = torch.zeros_like(sums[:, 0]), torch.zeros_like(sums[:, :1]), sums.new_zeros(count)
    both = ends(played)
    largest = torch.stack(both).abs().amax(0)
    done = 0
    for gains in walks(played, units, generator, antithetic=antithetic, both=both):  # (n, some units, players)
        largest = torch.maximum(largest, gains.abs().amax((1, 2)).to(largest))  # a gain is at most twice a value
        if done == 0:
            shift.copy_(gains[:, :1])
        squares += gains.sub_(shift).square().sum(dim=1)
        group = torch.arange(done, done + gains.shape[1]) * count // units  # in which each unit falls, ascending
        add_by_group(sums, sizes, gains, group)
        done += gains.shape[1]
    total = sums.sum(dim=1)
    variance = ((squares - total.square() / units) / (units - 1)).clamp(min=0)  # nan from a single unit
    means = shift + sums / sizes[:, None]
    values = shift[:, 0] + total / units
    idle = rounding_only(values, largest) & rounding_only(means.flatten(1), largest)  # and not values that cancel
    values = values.masked_fill(idle[:, None], 0)
    error = (variance / units).sqrt().masked_fill(idle[:, None], 0)
    return Estimate(values, error, means.masked_fill(idle[:, None, None], 0), sizes, permutations)


def units_of(permutations: int, *, antithetic: bool, groups: int) -> int:
    """How many independent units there are: permutations, or pairs of them."""
    if permutations < 1:
        raise UsageError(f"`permutations` must be at least 1, got {permutations}")
    if antithetic and permutations % 2:
        raise UsageError(f"`permutations` must be even to make antithetic pairs, got {permutations}")
    if groups < 1:
        raise UsageError(f"`groups` must be at least 1, got {groups}")
    return permutations // 2 if antithetic else permutations


def add_by_group(sums: Tensor, sizes: Tensor, gains: Tensor, group: Tensor) -> None:
    """Add the gains (n, units, players) of each unit to the sums (n, g, players) and sizes (g,) of its group (units,).

    The groups ascend, so a group is a slice; `index_add_` would leave the order of adding to chance on a GPU.
    """
    start = 0
    for name, size in zip(*(t.tolist() for t in group.unique_consecutive(return_counts=True)), strict=True):
        sums[:, name] += gains[:, start : start + size].sum(dim=1)
        sizes[name] += size
        start += size


def walks(
    played: Game,
    units: int,
    generator: torch.Generator,
    *,
    antithetic: bool,
    both: tuple[Tensor, Tensor] | None = None,
) -> Iterator[Tensor]:
    """What every player adds when it joins, in each of the random walks. Each (n, some units, players) float64.

    both  the `ends` of the walks, where they are known already
    """
    n, count, ways = len(played.x), played.count, 1 + antithetic
    first, last = both or ends(played)  # (n,)
    at_once = max(1, played.masks_at_once() // max(1, count - 1) // ways)
    room = played.x.new_empty(played.masks_at_once(), *played.labels.shape)  # for masks, made once as that of inputs
    for block in orders(count, units, generator, played.x.device):
        total = torch.zeros((), dtype=torch.float64, device=played.x.device)
        for part in block.split(evenly(len(block), at_once)):
            ranks = there_and_back(part) if antithetic else part  # (walks, players)
            start, goal = (end[:, None, None].expand(-1, len(ranks), 1) for end in (first, last))
            inner = walk_values(played, ranks, room)
            total += inner.sum()
            gains = torch.cat([start, inner, goal], dim=2).double().diff(dim=2)  # in the order of joining
            gains = gains.gather(2, ranks.expand(n, -1, -1))  # by player
            yield gains.unflatten(1, (2, -1)).mean(dim=1) if antithetic else gains
        if not total.isfinite():  # asked once in a block, since waiting for the device is slow
            ranks = there_and_back(block) if antithetic else block
            parts = [walk_values(played, part, room).isfinite() for part in ranks.split(at_once)]
            refuse(sum(int((~part).sum()) for part in parts), sum(part.numel() for part in parts))


def there_and_back(ranks: Tensor) -> Tensor:
    """The permutations (walks, players) and then their reverses, (2 · walks, players)."""
    return torch.cat([ranks, ranks.shape[1] - 1 - ranks])


def orders(count: int, permutations: int, generator: torch.Generator, device: torch.device) -> Iterator[Tensor]:
    """Uniform random permutations, drawn in blocks whose size depends on nothing. Each (block, count) int64.

    The numbers are drawn on the processor, so that devices agree, and sorted on the device.
    """
    for start in range(0, permutations, 256):
        size = min(256, permutations - start)
        yield torch.rand(size, count, generator=generator, dtype=torch.float64).to(device).argsort(dim=1)


def walk_values(played: Game, ranks: Tensor, room: Tensor) -> Tensor:
    """The target's output at the inner steps of walks in which the players join by rank.

    ranks    (walks, players) int64, each row a permutation of 0 … players - 1
    room     (masks, *shape of the labels), dtype of x
    returns  (n, walks, players - 1); at step s, counted from 1, the players of rank below s take part
    """
    x = played.x
    if played.count == 1:
        return x.new_empty(len(x), len(ranks), 0)
    if len(ranks) > len(room):
        return torch.cat([walk_values(played, part, room) for part in ranks.split(len(room))], dim=1)
    steps = torch.arange(1.0, played.count, device=x.device)
    parts = steps.split(evenly(len(steps), len(room) // len(ranks)))
    columns = [step_values(played, ranks.float(), part, room).view(len(x), len(ranks), -1) for part in parts]
    return torch.cat(columns, dim=2)


def step_values(played: Game, ranks: Tensor, steps: Tensor, room: Tensor) -> Tensor:
    """The target's output at some steps (s,) of walks by ranks (walks, players) float. Returns (n, walks · s)."""
    masks = len(ranks) * len(steps)

    def compare(joins: Tensor, out: Tensor) -> None:
        # 1 where the rank is below the step, written as numbers at once: bools would have to be turned into them
        step = steps.view(-1, *[1] * (joins.ndim - 1))
        torch.lt(joins[:, None], step, out=out.view(len(ranks), len(steps), *joins.shape[1:]))

    def write(some: Game, out: Tensor) -> None:
        entries = owners(some)  # (n, *shape)
        compare(ranks.index_select(1, entries.flatten()).view(-1, *entries.shape), out)

    if played.roles is not None:
        return own_values(played, masks, write)
    keep = room[:masks]
    compare(ranks[:, played.labels], keep)
    return masked_values(played, keep)
