"""Share of Shapley mass on games whose values are known."""

import pytest
import torch
from torch import Tensor

from forsooth.games import game, permutation
from forsooth.games.shapley import exact
from forsooth.records import UsageError
from forsooth.scores.mass import mass_inside, relative_attribution

PATTERN, PAIRS = 4, 15


def outputs(x: Tensor) -> Tensor:
    """Four players that add 1, 2, 3, 4, and pairs that add ±1 by whether they agree: each of these is worth 0.

    (2j - 1)(2k - 1) = 4jk - 2j - 2k + 1, and half of 4jk is what a player of the pair has of it: 2 - 2 = 0.
    """
    pattern = x[:, :PATTERN] @ torch.arange(1.0, PATTERN + 1, dtype=x.dtype)
    pairs = (2 * x[:, PATTERN:] - 1).unflatten(1, (-1, 2)).prod(2).sum(1)
    return (pattern + pairs)[:, None]


def drawn(permutations: int, seed: int):
    x = torch.ones(1, PATTERN + 2 * PAIRS, dtype=torch.float64)
    played = game(outputs, x, torch.zeros(1, dtype=torch.int64), baseline=torch.zeros_like(x[0]))
    return permutation(played, permutations=permutations, generator=torch.Generator().manual_seed(seed))


INSIDE = torch.arange(PATTERN + 2 * PAIRS) < PATTERN


def test_noise_counts_as_mass_in_the_plain_share_and_not_in_ours() -> None:
    found = [mass_inside(drawn(100, seed), INSIDE) for seed in range(40)]
    plain, value, error = (torch.cat([getattr(mass, name) for mass in found]) for name in ("plain", "value", "error"))
    assert plain.max() < 0.8  # the truth is 1: each of 30 idle players adds 0.8 standard errors
    mean_error = value.std() / len(found) ** 0.5
    assert abs(value.mean() - 1) < 3 * mean_error and mean_error < 0.03
    within = ((value - 1).abs() < 2 * error).double().mean()
    assert within > 0.9 and 0.5 < error.mean() / value.std() < 2


def test_exact_values_have_the_plain_share() -> None:
    x = torch.ones(1, 4, dtype=torch.float64)
    weights = torch.tensor([1.0, -2.0, 3.0, -4.0], dtype=torch.float64)
    played = game(
        lambda z: (z @ weights)[:, None], x, torch.zeros(1, dtype=torch.int64), baseline=torch.zeros(4).double()
    )
    mass = mass_inside(exact(played), torch.tensor([True, True, False, False]))
    assert mass.value.tolist() == pytest.approx([0.3]) and mass.error.tolist() == [0] and mass.plain.equal(mass.value)


def test_more_permutations_bring_the_plain_share_to_ours() -> None:
    few, many = mass_inside(drawn(50, 0), INSIDE), mass_inside(drawn(5000, 0), INSIDE)
    assert few.plain < many.plain < many.value + 3 * many.error
    assert abs(many.value - 1) < 3 * many.error


def test_another_number_of_players_is_refused() -> None:
    with pytest.raises(UsageError, match=r"`inside` must have 34 players, got \(3,\)"):
        mass_inside(drawn(4, 0), torch.ones(3, dtype=torch.bool))


def test_relative_attribution_by_hand() -> None:
    values = torch.tensor([[1.0, -3.0, 0.0, 4.0], [0.0, 0.0, 0.0, 0.0], [2.0, 2.0, -2.0, 2.0]], dtype=torch.float64)
    ratio = relative_attribution(values, torch.tensor([1, 0, 2]))
    assert ratio[0] == 3 / 2 and ratio[1].isnan() and ratio[2] == 1
