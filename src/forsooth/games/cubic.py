"""What interactions of three and five players do to a game, guessed from coalitions in pairs: it need not be drawn.

A coalition is a row z of signs, +1 for who takes part. The odd part of a game, (v(S) - v(not S)) / 2, is all that
Shapley values see; it is written as Σ c_T Π_{i in T} z_i over sets T of one, three, … players, and a set gives each of
its players 2 c_T / |T|. Sums over all sets of a size have closed forms, so that they are never listed.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

SIZES = (3, 5)  # of the sets that are guessed
RIDGES = (0.03, 0.3, 3.0)  # what is left over, as a share of what sets of three explain …
POWERS = (1, 3, 5, 7)  # of the size of a coalition, by which its worth may leave an even share
FIVES = (0.0, 1.0)  # … and what sets of five do beside these; the best pair is taken


@dataclass(frozen=True)
class Prior:
    """How much is left over, and how much sets of five do."""

    ridge: float
    fives: float

    def weight(self, size: int) -> float:
        if size == 3:
            return 1.0
        return self.fives


PRIORS = tuple(Prior(ridge, fives) for ridge in RIDGES for fives in FIVES)


def elementary(total: Tensor, count: int, size: int) -> Tensor:
    """Σ over all sets of that size of the product of their signs, for `count` signs that sum to the total.

    Newton's identities, where odd powers of signs sum to the total and even ones to the count.

    >>> elementary(torch.tensor([3.0, 1.0, -1.0]), 3, 2).tolist()
    [3.0, -1.0, -1.0]
    """
    sums = [torch.ones_like(total)]
    for k in range(1, size + 1):
        powers = [total if j % 2 else torch.full_like(total, count) for j in range(1, k + 1)]
        terms = [sums[k - j] * power * (1 if j % 2 else -1) for j, power in enumerate(powers, start=1)]
        sums.append(torch.stack(terms).sum(0) / k)
    return sums[size]


def sets(signs: Tensor, other: Tensor, prior: Prior) -> Tensor:
    """The mean over sets T of Π_{i in T} z_i z'_i, weighed by the prior: (m, k) of signs (m, p) and (k, p).

    Two rows matter by how many signs they share alone, so there are only p + 1 such means: they are looked up.
    """
    count = signs.shape[1]
    shared = (signs.float() @ other.float().T + count) / 2  # whole numbers, which floats hold
    return means_by_shared(count, prior, signs)[shared.long()]


def means_by_shared(count: int, prior: Prior, like: Tensor) -> Tensor:
    """The mean of `sets` for rows of `count` signs that share none, one, … all of them: (count + 1,)."""
    same = torch.arange(-count, count + 1, 2).to(like)
    means = [prior.weight(size) * elementary(same, count, size) / math.comb(count, size) for size in SIZES]
    return torch.stack(means).sum(0)


def shares(signs: Tensor, dual: Tensor, prior: Prior) -> Tensor:
    """The Shapley values (n, p) of Σ_j a_j sets(z, z_j) for weights a (n, m) of signs (m, p)."""
    count = signs.shape[1]
    others = signs.sum(dim=1, keepdim=True) - signs
    values = dual.new_zeros(len(dual), count)
    for size in SIZES:
        with_player = signs * elementary(others, count - 1, size - 1)  # Σ over sets that have the player
        values += prior.weight(size) * 2 / size * dual @ with_player / math.comb(count, size)
    return values


def guessed(signs: Tensor, odd: Tensor, fold: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    """For each coalition what such sets do to it, as guessed from the pairs of other folds; None of too few.

    signs    (m + k, players) float64: one coalition of each pair, and k others
    odd      (n, m) float64, half of the difference within each pair
    fold     (m + k,) of each pair; -1 of the others, which get the mean of all guesses
    returns  (n, m + k) guesses, the mean Shapley values of the guesses (n, players), and half of what all players
             together are worth in these (n,)

    A guess is a ridge regression on sets of three and five, with single players free. Since no pair helps to guess
    itself, what is left of it is as honest a sample as it was, only smaller where there are such interactions.
    """
    count = signs.shape[1]
    pairs = odd.shape[1]
    folds = int(fold.max()) + 1
    if count < 6 or folds < 2 or pairs < 2 * count:
        return None
    drawn = signs[:pairs]
    best = best_priors(drawn, odd, fold[:pairs])
    guess = odd.new_zeros(len(odd), len(signs))
    values = odd.new_zeros(len(odd), count)
    ends = odd.new_zeros(len(odd))
    for prior in set(best):
        own = torch.tensor([prior == one for one in best], device=odd.device)
        guess[own], values[own], ends[own] = by_folds(signs, odd[own], fold, prior)
    return guess, values, ends


def by_folds(signs: Tensor, odd: Tensor, fold: Tensor, prior: Prior) -> tuple[Tensor, Tensor, Tensor]:
    """`guessed` with one prior."""
    pairs = odd.shape[1]
    folds = int(fold.max()) + 1
    everyone = torch.ones_like(signs[:1])
    guess = odd.new_zeros(len(odd), len(signs))
    values = odd.new_zeros(len(odd), signs.shape[1])
    ends = odd.new_zeros(len(odd))
    for own in range(folds):
        known = fold[:pairs] != own
        others = signs[:pairs][known]
        dual, _ = fitted(others, odd[:, known], prior)
        there = dual @ sets(others, signs, prior)
        guess[:, fold == own] = there[:, fold == own]
        guess[:, fold < 0] += there[:, fold < 0] / folds
        values += shares(others, dual, prior) / folds
        ends += (dual @ sets(others, everyone, prior))[:, 0] / folds
    return guess, values, ends


def best_priors(signs: Tensor, odd: Tensor, fold: Tensor) -> list[Prior]:
    """For each game the prior that guesses the first fold best from the others."""
    known = fold != 0
    errors = []
    for prior in PRIORS:
        dual, slope = fitted(signs[known], odd[:, known], prior)
        rest = odd[:, ~known] - dual @ sets(signs[known], signs[~known], prior) - slope @ free(signs[~known]).T
        errors.append(rest.square().mean(dim=1))
    return [PRIORS[place] for place in torch.stack(errors).argmin(dim=0).tolist()]


def fitted(signs: Tensor, odd: Tensor, prior: Prior) -> tuple[Tensor, Tensor]:
    """The weights (n, m) of the ridge regression of odd parts (n, m), and the slopes (n, columns) of what is `free`.

    Games in which players only add up, or in which they count, are left with nothing to guess.
    """
    both = sets(signs, signs, prior)
    both.diagonal().add_(prior.ridge)
    factor = torch.linalg.cholesky(both)
    columns = free(signs)
    weighted = torch.cholesky_solve(columns, factor)  # (m, columns)
    gram = columns.T @ weighted
    gram.diagonal().add_(1e-10 * gram.diagonal().mean())
    slope = torch.linalg.solve(gram, weighted.T @ odd.T).T
    return torch.cholesky_solve((odd - slope @ columns.T).T, factor).T, slope


def free(signs: Tensor) -> Tensor:
    """What is fitted without a prior, (m, columns): the players (m, players), and odd powers of how many they are."""
    size = signs.mean(dim=1)
    powers = torch.stack([size**power for power in POWERS if power > 1], dim=1)  # the first is a sum of players
    return torch.cat([signs, powers], dim=1)
