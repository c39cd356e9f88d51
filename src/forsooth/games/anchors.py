"""Shapley values by least squares over paired coalitions, with standard errors: an anchor at a tenth of the price."""

from typing import NamedTuple

import torch
from torch import Tensor

from forsooth.games.chains import prepared
from forsooth.games.coalitions import coalitions, inner_layers, solved
from forsooth.games.cubic import POWERS, guessed
from forsooth.games.shapley import Estimate, rounding_only
from forsooth.games.values import Game, ends, values_of
from forsooth.records import UsageError

GROUPS = 50  # most groups of the jackknife: with as many, its errors are as good as those of a normal law
FOLDS = 5  # of pairs, each guessed from the others
MOST_PAIRS = 4_000  # of which interactions are guessed: it takes a system of as many equations
Sides = list[tuple[Tensor, Tensor]]  # of the normal equations, of parts of the coalitions
ROWS = 2**14  # coalitions whose products are made at once


def leverage(played: Game, *, samples: int, generator: torch.Generator, groups: int = GROUPS) -> Estimate:
    """Shapley values from a least squares over about `samples` coalitions, in pairs of complements.

    samples  coalitions beside the empty and the full one: so many forwards for each input
    groups   most groups for the jackknife

    [musco2025provably], [covert2021improving]: coalitions of all sizes are drawn alike, which is by their leverage,
    each with its complement, which takes away what interactions of any even number of players could do to the values.
    Small layers are taken whole. What the size of a coalition does by itself is fitted beside the players (`sums`), and
    what interactions of three and five players do is guessed from other coalitions and taken off, as control variates
    are (`cubic`). All inputs play the same coalitions. The standard errors are those of the delete-a-group jackknife:
    each group is left out and the system solved again, so that they hold for the least squares as it is. `groups` of
    the estimate are the pseudo-values of these, one for each group.
    """
    check(played, samples, groups)
    played = prepared(played, len(played.x) * samples)
    both = ends(played)
    masks, weights = (t.to(played.x.device) for t in coalitions(played.count, samples, generator))
    values = values_of(played, masks)
    largest = torch.stack([*both, values.abs().amax(1).to(both[0].dtype)]).abs().amax(0).to(values.dtype)
    group = groups_of(played.count, samples, len(masks), groups).to(masks.device)
    gains = values.double() - both[0].double()[:, None]
    phi, left = fitted(masks, weights, gains, both[1].double() - both[0].double(), group)
    return estimated(phi.masked_fill(rounding_only(phi, largest)[:, None], 0), left, samples)


def fitted(masks: Tensor, weights: Tensor, gains: Tensor, total: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """`leaving_out` for gains (n, m) of coalitions (m, players), weights and groups (m,), with the guess taken off."""
    guess = interactions(masks, gains, group)
    if guess is None:
        return leaving_out(sides_of(masks, weights, gains, total, group), total)
    rest = total - guess.total
    phi, left = leaving_out(sides_of(masks, weights, gains - guess.gains, rest, group), rest)
    return phi + guess.values, left + guess.values[:, None]


def sides_of(
    masks: Tensor, weights: Tensor, gains: Tensor, total: Tensor, group: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """Of the normal equations, of the whole layers and of each group.

    A group is coalitions and behind them their complements, which see the same rows with the other sign: one row of the
    difference says what both do, and halves the work.
    """
    whole = group < 0
    sides = [sums(masks[whole], weights[whole], gains[:, whole], total)]
    for one in range(int(group.max()) + 1):
        ours, theirs = (group == one).nonzero()[:, 0].chunk(2)
        odd = (gains[:, ours] - gains[:, theirs] + total[:, None]) / 2
        sides.append(sums(masks[ours], 2 * weights[ours], odd, total))
    return sides


def check(played: Game, samples: int, groups: int) -> None:
    """UsageError unless there are coalitions for at least two groups."""
    if played.count < 2:
        raise UsageError(f"`players` must be at least 2, got {played.count}")
    if groups < 2 or samples < 2 * played.count:
        expected = f"`samples` must be at least two for each of {played.count} players, and `groups` at least 2"
        raise UsageError(f"{expected}, got {samples} and {groups}")


def groups_of(count: int, samples: int, rows: int, groups: int) -> Tensor:
    """The group of every coalition that `coalitions` gives, (rows,): -1 of layers that are whole, else 0, 1, …

    Complements stay together, and as sizes ascend, each group has all of them.
    """
    low, left = inner_layers(count, samples)
    pairs = left // 2
    if 2 * low > count or pairs == 0:
        return torch.full((rows,), -1)
    whole = rows - 2 * pairs
    number = torch.arange(pairs) % max(2, min(groups, pairs // 4))
    return torch.cat([torch.full((whole,), -1), number, number])


class Guess(NamedTuple):
    """What interactions of three and five players are thought to do: to the coalitions (n, m), to the Shapley values
    (n, players), and to the worth of all players together (n,)."""

    gains: Tensor
    values: Tensor
    total: Tensor


def interactions(masks: Tensor, gains: Tensor, group: Tensor) -> Guess | None:
    """The guess for coalitions (m, players), whose drawn pairs have groups (m,); None of too few or too many of them.

    The whole layers, which come first, are no pairs in order, so they are guessed but help with nothing.
    """
    drawn = group >= 0
    pairs = int(drawn.sum()) // 2
    if not 0 < pairs <= MOST_PAIRS:
        return None
    ours = masks[drawn][:pairs]
    odd = (gains[:, drawn][:, :pairs] - gains[:, drawn][:, pairs:]) / 2
    whole = masks[~drawn]
    signs = 2.0 * torch.cat([ours, whole]).double() - 1
    fold = torch.cat([group[drawn][:pairs] % FOLDS, torch.full((len(whole),), -1).to(group)])
    found = guessed(signs, odd, fold)
    if found is None:
        return None
    guess, values, ends = found
    by_mask = gains.new_zeros(gains.shape)
    by_mask[:, drawn] = torch.cat([guess[:, :pairs], -guess[:, :pairs]], dim=1)
    by_mask[:, ~drawn] = guess[:, pairs:]
    return Guess(by_mask + ends[:, None], values, 2 * ends)  # above the empty coalition, as gains are


def sums(masks: Tensor, weights: Tensor, gains: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """Both sides of the normal equations, a part of the masks at a time: the players, and behind them the size.

    Among coalitions of one size all players take part equally often, so no function of the size says anything of
    Shapley values; but left in, it is noise to a least squares that draws few of each size. Pairs see odd powers alone.
    """
    count = masks.shape[1] + len(POWERS)
    gram = gains.new_zeros(count, count)
    rest = gains.new_zeros(len(gains), count)
    for rows in torch.arange(len(masks), device=masks.device).split(ROWS):
        share = masks[rows].double().mean(dim=1)
        sizes = torch.stack([(2 * share - 1) ** power for power in POWERS], dim=1)
        design = torch.cat([masks[rows].double() - share[:, None], sizes], dim=1)
        weighted = design * weights[rows, None]
        gram += design.T @ weighted
        rest += (gains[:, rows] - total[:, None] * share) @ weighted
    return gram, rest


def without_size(gram: Tensor, rest: Tensor, total: Tensor) -> Tensor:
    """The solution for the players (n, players) of both sides that `sums` gives."""
    players = slice(None, -len(POWERS))
    sizes = slice(-len(POWERS), None)
    mixed = gram[players, sizes] @ torch.linalg.pinv(gram[sizes, sizes], hermitian=True)
    own = gram[players, players] - mixed @ gram[sizes, players]
    return solved(own, rest[:, players] - rest[:, sizes] @ mixed.T, total)


def leaving_out(sides: Sides, total: Tensor) -> tuple[Tensor, Tensor]:
    """The solution (n, players) and those without each group, (n, g, players); g is 0 where nothing was drawn.

    sides  of the normal equations, of the whole layers and of each group
    """
    gram = torch.stack([side[0] for side in sides]).sum(0)
    rest = torch.stack([side[1] for side in sides]).sum(0)
    phi = without_size(gram, rest, total)
    without = [without_size(*others(sides, gram, rest, place), total) for place in range(1, len(sides))]
    if not without:
        return phi, phi[:, None][:, :0]
    return phi, torch.stack(without, dim=1)


def others(sides: Sides, gram: Tensor, rest: Tensor, place: int) -> tuple[Tensor, Tensor]:
    """Both sides of all without one group: what is left of a layer stands for all of it."""
    kept = sides[0]
    own = sides[place]
    more = (len(sides) - 1) / max(1, len(sides) - 2)
    return kept[0] + more * (gram - kept[0] - own[0]), kept[1] + more * (rest - kept[1] - own[1])


def estimated(phi: Tensor, left: Tensor, samples: int) -> Estimate:
    """The values phi (n, players) with the errors that the solutions without each group (n, g, players) tell."""
    count = left.shape[1]
    if count == 0:
        return Estimate(phi, torch.zeros_like(phi), phi[:, None], phi.new_ones(1), 0)
    idle = (phi == 0).all(dim=1)
    apart = (left - left.mean(dim=1, keepdim=True)).masked_fill(idle[:, None, None], 0)
    error = (apart.square().sum(dim=1) * (count - 1) / count).sqrt()
    return Estimate(phi, error, phi[:, None] - (count - 1) * apart, phi.new_ones(count), samples)
