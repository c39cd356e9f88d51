"""Shapley values by paired least squares: exact where they must be, right on average, and as sure as they say."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from forsooth.games.anchors import groups_of, leverage, sides_of, sums
from forsooth.games.coalitions import coalitions
from forsooth.games.cubic import Prior, elementary, sets, shares
from forsooth.games.shapley import exact
from forsooth.games.values import Game, game
from forsooth.records import UsageError
from forsooth.seeds import derive, generator

COUNT = 9


def interacting(order: int):
    """A sum of products of that many players, with weights of their own."""
    draw = generator(0, "weights")
    groups = torch.stack([torch.randperm(COUNT, generator=draw)[:order] for _ in range(25)])
    weights = torch.randn(25, generator=draw, dtype=torch.float64)

    def model(x: Tensor) -> Tensor:
        total = x[:, groups].prod(2) @ weights + x.sum(1)
        return torch.stack([total, -total], 1)

    return model


def rough(x: Tensor) -> Tensor:
    """A number that has little to do with that of any other coalition."""
    number = ((x > 0).double() @ (2.0 ** torch.arange(COUNT).double())).long()
    total = torch.randn(2**COUNT, generator=generator(0, "rough"), dtype=torch.float64)[number]
    return torch.stack([total, -total], 1)


def played(model, inputs: int = 2) -> Game:
    return game(model, torch.ones(inputs, COUNT, dtype=torch.float64), torch.arange(inputs) % 2)


@pytest.mark.parametrize("order", [1, 2])
def test_pairs_take_away_interactions_of_two(order):
    one = played(interacting(order))
    estimate = leverage(one, samples=60, generator=generator(0, "a"))
    torch.testing.assert_close(estimate.values, exact(one).values, atol=1e-7, rtol=0)
    assert estimate.error.max() < 1e-7 and estimate.permutations == 60


def test_all_coalitions_are_exact_and_know_it():
    one = played(rough)
    estimate = leverage(one, samples=2**COUNT, generator=generator(0, "a"))
    torch.testing.assert_close(estimate.values, exact(one).values, atol=1e-7, rtol=0)
    assert not estimate.error.any() and estimate.permutations == 0


@pytest.mark.parametrize("model", [rough, interacting(3)], ids=["rough", "three"])
def test_values_are_right_on_average_and_errors_say_how_far_they_are(model):
    one = played(model, 1)
    truth = exact(one).values
    draws = [leverage(one, samples=140, generator=generator(derive(k, "draw"), "a")) for k in range(60)]
    values = torch.stack([draw.values for draw in draws])
    said = torch.stack([draw.error.square() for draw in draws]).mean()
    found = (values - truth).square().mean()
    assert (values.mean(0) - truth).abs().max() < 5 * (found / 60) ** 0.5
    assert 0.6 < found / said < 1.6
    torch.testing.assert_close(values.sum(2), truth.sum(1).expand(60, 1))


def test_groups_are_what_the_jackknife_needs():
    estimate = leverage(played(rough), samples=140, generator=generator(0, "a"))
    count = estimate.groups.shape[1]
    assert len(estimate.sizes) == count >= 2
    torch.testing.assert_close(estimate.groups.mean(1), estimate.values)
    torch.testing.assert_close((estimate.groups.var(1) / count).sqrt(), estimate.error)


def test_a_pair_is_one_row_of_the_normal_equations():
    masks, weights = coalitions(COUNT, 140, generator(0, "a"))
    group = groups_of(COUNT, 140, len(masks), 50)
    gains = torch.randn(2, len(masks), generator=generator(0, "gains"), dtype=torch.float64)
    total = torch.tensor([3.0, -1.0], dtype=torch.float64)
    sides = sides_of(masks, weights, gains, total, group)
    for one in range(-1, int(group.max()) + 1):
        own = group == one
        literal = sums(masks[own], weights[own], gains[:, own], total)
        torch.testing.assert_close(sides[one + 1], literal, rtol=1e-12, atol=1e-12)


def test_what_the_size_alone_does_is_no_noise():
    """Without a word for it the least squares would be 0.05 off here, and with 30 times the coalitions still 0.01."""
    weights = torch.randn(40, generator=generator(0, "weights"), dtype=torch.float64)

    def model(x: Tensor) -> Tensor:
        worth = x @ weights + 3 * (2 * x.mean(1) - 1) ** 3
        return torch.stack([worth, -worth], 1)

    one = game(model, torch.ones(1, 40, dtype=torch.float64), torch.zeros(1, dtype=torch.long))
    estimate = leverage(one, samples=200, generator=generator(0, "a"))
    torch.testing.assert_close(estimate.values[0], weights + 6 / 40, atol=1e-7, rtol=0)
    assert estimate.error.max() < 1e-7


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_sums_over_sets_are_those_of_all_sets_listed(size):
    signs = torch.tensor([1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, -1.0], dtype=torch.float64)
    listed = sum(math.prod(group) for group in itertools.combinations(signs.tolist(), size))
    assert elementary(signs.sum(), 8, size).item() == pytest.approx(listed)


def test_means_over_sets_are_those_of_all_sets_listed():
    signs = torch.randint(2, (3, 7), generator=generator(0, "signs")).double() * 2 - 1
    by_hand = [
        [
            sum(
                weight
                * sum(math.prod(group) for group in itertools.combinations((a * b).tolist(), size))
                / math.comb(7, size)
                for size, weight in ((3, 1.0), (5, 0.5))
            )
            for b in signs
        ]
        for a in signs
    ]
    torch.testing.assert_close(sets(signs, signs, Prior(1.0, 0.5)), torch.tensor(by_hand, dtype=torch.float64))


@pytest.mark.parametrize("fives", [0.0, 1.0])
def test_values_of_a_guess_are_those_of_its_game(fives):
    """The game of the guess, played out over all coalitions."""
    draw = generator(0, "guess")
    signs = torch.randint(2, (6, COUNT), generator=draw).double() * 2 - 1
    dual = torch.randn(1, 6, generator=draw, dtype=torch.float64)
    prior = Prior(1.0, fives)

    def model(x: Tensor) -> Tensor:
        worth = (dual @ sets(signs, 2 * x - 1, prior))[0]
        return torch.stack([worth, -worth], 1)

    torch.testing.assert_close(shares(signs, dual, prior), exact(played(model, 1)).values)


def test_too_few_coalitions_are_refused():
    with pytest.raises(UsageError, match="`samples` must be at least two for each of 9 players"):
        leverage(played(rough), samples=17, generator=generator(0, "a"))
