import itertools
import math
from collections.abc import Callable

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx, mark, raises
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from forsooth.games.players import patches
from forsooth.games.shapley import Estimate, all_coalitions, exact, exact_of, permutation
from forsooth.games.values import Game, game
from forsooth.records import UsageError
from forsooth.seeds import generator

# a random game as (players, seed of its table of values)
games = st.tuples(st.integers(1, 10), st.integers(0, 2**31))


def table(players: int, *names: object, n: int = 1) -> Tensor:
    """Values of all coalitions, (n, 2^players), in the order of `all_coalitions`."""
    return torch.randn(n, 2**players, generator=generator(0, *names), dtype=torch.float64) * 10


def played(values: Tensor, *, chunk: int | None = None, seen: Callable[[int], None] | None = None) -> Game:
    """The game of each table of values (n, 2^p), as a model of inputs that carry the number of their table."""
    count = values.shape[1].bit_length() - 1
    bits = 2 ** torch.arange(count)

    def model(x: Tensor) -> Tensor:
        if seen is not None:
            seen(len(x))
        inside = ((x[:, 0, 0] > 0).long() * bits).sum(dim=1)
        return values[x[:, 1, 0, 0].long(), inside][:, None]

    number = torch.arange(float(len(values)), dtype=torch.float64)[:, None].expand(-1, count)
    x = torch.stack([torch.ones_like(number), number], dim=1)[:, :, None]  # (n, 2, 1, players)
    baseline = torch.stack([torch.zeros_like(number), number], dim=1)[:, :, None]
    return game(model, x, torch.zeros(len(x), dtype=torch.int64), baseline=baseline, chunk=chunk)


def literal(worth: list[float], players: int) -> list[float]:
    """The weighted sum over all subsets, as printed in equation 1 (with the right denominator)."""
    phi = []
    for player in range(players):
        others = [other for other in range(players) if other != player]
        total = 0.0
        for size in range(players):
            weight = math.factorial(size) * math.factorial(players - size - 1) / math.factorial(players)
            for subset in itertools.combinations(others, size):
                inside = sum(1 << member for member in subset)
                total += weight * (worth[inside | 1 << player] - worth[inside])
        phi.append(total)
    return phi


def over_all_orders(worth: list[float], players: int) -> list[float]:
    phi = [0.0] * players
    for order in itertools.permutations(range(players)):
        inside = 0
        for player in order:
            phi[player] += (worth[inside | 1 << player] - worth[inside]) / math.factorial(players)
            inside |= 1 << player
    return phi


@settings(max_examples=60, deadline=None, derandomize=True)
@given(games)
def test_exact_equals_the_sum_over_subsets(drawn: tuple[int, int]) -> None:
    values = table(*drawn)
    assert exact_of(values)[0].tolist() == approx(literal(values[0].tolist(), drawn[0]), abs=1e-10)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.tuples(st.integers(1, 6), st.integers(0, 2**31)))
def test_exact_equals_the_mean_over_all_orders(drawn: tuple[int, int]) -> None:
    values = table(*drawn)
    assert exact_of(values)[0].tolist() == approx(over_all_orders(values[0].tolist(), drawn[0]), abs=1e-10)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(games, st.floats(-5, 5))
def test_linearity(drawn: tuple[int, int], factor: float) -> None:
    one, other = table(*drawn, "one"), table(*drawn, "other")
    expected = exact_of(one) + factor * exact_of(other)
    torch.testing.assert_close(exact_of(one + factor * other), expected, rtol=0, atol=1e-10)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(games, st.integers(0, 9), st.floats(-10, 10))
def test_dummy(drawn: tuple[int, int], place: int, alone: float) -> None:
    """A player that adds the same to every coalition gets just that."""
    players, dummy = drawn[0], place % drawn[0]
    masks, values = all_coalitions(players), table(*drawn)
    without = torch.arange(2**players) & ~(1 << dummy)
    values = values[:, without] + alone * masks[:, dummy].double()
    assert exact_of(values)[0, dummy].item() == approx(alone, abs=1e-10)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.tuples(st.integers(2, 10), st.integers(0, 2**31)), st.data())
def test_symmetry(drawn: tuple[int, int], data: st.DataObject) -> None:
    """Players that can be exchanged get the same."""
    players, values = drawn[0], table(*drawn)
    one, other = data.draw(st.permutations(range(players)))[:2]
    masks = all_coalitions(players)
    masks[:, [one, other]] = masks[:, [other, one]]
    exchanged = (masks.long() * 2 ** torch.arange(players)).sum(dim=1)
    phi = exact_of(values + values[:, exchanged])[0]
    assert phi[one].item() == approx(phi[other].item(), abs=1e-10)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(games)
def test_efficiency(drawn: tuple[int, int]) -> None:
    values = table(*drawn)
    torch.testing.assert_close(exact_of(values).sum(dim=1), values[:, -1] - values[:, 0], rtol=0, atol=1e-10)


def test_coalitions_are_in_binary_order() -> None:
    masks = all_coalitions(5)
    assert masks.shape == (32, 5) and masks.dtype == torch.bool
    assert torch.equal((masks.long() * 2 ** torch.arange(5)).sum(dim=1), torch.arange(32))


def test_exact_games_ask_the_model() -> None:
    values = table(6, "asked", n=3)
    found = exact(played(values))
    torch.testing.assert_close(found.values, exact_of(values))
    assert not found.error.any() and found.permutations == 0
    assert torch.equal(found.groups, found.values[:, None]) and found.sizes.tolist() == [1.0]


def test_exact_games_are_cut_into_slices(monkeypatch) -> None:
    values = table(5, "slices", n=5)
    monkeypatch.setattr("forsooth.games.shapley.TABLE", 64)
    torch.testing.assert_close(exact(played(values)).values, exact_of(values))


@mark.parametrize("antithetic", [False, True])
def test_estimates_lie_within_four_standard_errors(antithetic: bool) -> None:
    """At least 99 of 100, in 1,000 checks: 200 games of 5 players."""
    values = table(5, "four", n=200)
    found = permutation(played(values), permutations=400, generator=generator(3), antithetic=antithetic)
    miss = (found.values - exact_of(values)).abs() > 4 * found.error
    assert miss.numel() == 1000 and miss.double().mean() <= 0.01
    assert (found.error > 0).all()


@mark.parametrize("antithetic", [False, True])
def test_the_standard_error_is_that_of_many_runs(antithetic: bool) -> None:
    truth, runs = exact_of(VALUES), many(40, 200, antithetic=antithetic)
    squares = torch.stack([(run.values - truth).square() for run in runs]).mean(dim=0)
    claimed = torch.stack([run.error.square() for run in runs]).mean(dim=0)
    assert (claimed / squares).log().abs().max() < math.log(1.6)  # a mean of 200 squares is right to some 10 %
    assert (claimed.mean() / squares.mean()).item() == approx(1, rel=0.1)


VALUES = table(6, "variance", n=2)


def many(permutations: int, runs: int, *, antithetic: bool = False) -> list[Estimate]:
    play = played(VALUES)
    return [
        permutation(play, permutations=permutations, generator=generator(seed, "many"), antithetic=antithetic)
        for seed in range(runs)
    ]


def test_variance_falls_as_one_over_m() -> None:
    truth, spread = exact_of(VALUES), []
    for permutations in (8, 32, 128):
        found = torch.stack([run.values for run in many(permutations, 200)])
        spread.append((found - truth).square().mean().item())
    assert spread[0] / spread[1] == approx(4, rel=0.15)
    assert spread[1] / spread[2] == approx(4, rel=0.15)


def test_antithetic_is_unbiased_and_not_worse_with_pair_interactions() -> None:
    """In a game of pairs, a walk and its way back give a player each of its pairs once: the pair of walks is exact."""
    players = 7
    masks = all_coalitions(players).double()
    pairs = torch.randn(players, players, generator=generator(0, "pairs"), dtype=torch.float64)
    values = torch.einsum("si,ij,sj->s", masks, pairs, masks)[None]
    play, truth = played(values), exact_of(values)
    plain = permutation(play, permutations=40, generator=generator(0))
    paired = permutation(play, permutations=40, generator=generator(0), antithetic=True)
    torch.testing.assert_close(paired.values, truth, rtol=0, atol=1e-12)
    assert paired.error.max() < 1e-12 < plain.error.min()
    found = torch.stack([run.values for run in many(16, 300, antithetic=True)])  # a game of all orders
    error = found.std(dim=0) / 300**0.5
    assert ((found.mean(dim=0) - exact_of(VALUES)).abs() < 4 * error).all()


@mark.parametrize(("permutations", "antithetic", "groups"), [(60, False, 25), (62, True, 25), (10, False, 25)])
def test_groups_recombine(permutations: int, antithetic: bool, groups: int) -> None:
    found = permutation(
        played(VALUES), permutations=permutations, generator=generator(1), antithetic=antithetic, groups=groups
    )
    units = permutations // 2 if antithetic else permutations
    assert found.groups.shape == (2, min(groups, units), 6)
    assert found.sizes.sum() == units and found.sizes.max() - found.sizes.min() <= 1
    assert found.permutations == permutations
    again = (found.groups * found.sizes[:, None]).sum(dim=1) / found.sizes.sum()
    torch.testing.assert_close(again, found.values)


def test_groups_of_one_give_the_standard_error() -> None:
    """With every permutation its own group, the jackknife of the mean is the ordinary standard error."""
    found = permutation(played(VALUES), permutations=20, generator=generator(1), groups=20)
    torch.testing.assert_close(found.groups.std(dim=1) / 20**0.5, found.error)


def test_groups_are_those_of_the_walks() -> None:
    """The first group holds the first permutations that are drawn."""
    found = permutation(played(VALUES), permutations=20, generator=generator(1), groups=4)
    first = permutation(played(VALUES), permutations=5, generator=generator(1))
    torch.testing.assert_close(found.groups[:, 0], first.values)


def test_games_without_interactions_have_no_error() -> None:
    values = (all_coalitions(6).double() @ torch.linspace(1e6, 1e7, 6, dtype=torch.float64))[None]
    found = permutation(played(values), permutations=9, generator=generator(0))
    assert found.error.max() == 0
    torch.testing.assert_close(found.values, exact_of(values))


def test_a_single_permutation_has_an_unknown_error() -> None:
    assert permutation(played(VALUES), permutations=1, generator=generator(0)).error.isnan().all()


def test_one_player_takes_all() -> None:
    play = played(table(1, "one"))
    for found in (exact(play), permutation(play, permutations=4, generator=generator(0))):
        torch.testing.assert_close(found.values, table(1, "one").diff(dim=1))
        assert found.error.max() == 0


def test_inputs_do_not_depend_on_their_neighbours() -> None:
    together = permutation(played(VALUES), permutations=12, generator=generator(0))
    alone = permutation(played(VALUES[1:]), permutations=12, generator=generator(0))
    torch.testing.assert_close(together.values[1:], alone.values)
    torch.testing.assert_close(together.error[1:], alone.error)


@mark.parametrize("antithetic", [False, True])
def test_forwards_are_bounded_and_counted(antithetic: bool) -> None:
    rows: list[int] = []
    values = table(8, "rows", n=3)
    play = played(values, chunk=5, seen=rows.append)
    found = permutation(play, permutations=30, generator=generator(0), antithetic=antithetic)
    assert max(rows) <= 5
    assert sum(rows) == 3 * (30 * 7 + 2)
    whole = permutation(played(values), permutations=30, generator=generator(0), antithetic=antithetic)
    torch.testing.assert_close(found.values, whole.values)
    torch.testing.assert_close(found.error, whole.error)


class Largest(TorchDispatchMode):
    """Watches every operation and keeps the number of entries of the largest tensor that was made."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.entries = max(self.entries, made.numel())
        return made


def test_memory_does_not_grow_with_permutations() -> None:
    largest = []
    for permutations in (300, 3000):
        with Largest() as watch:
            permutation(played(table(6, "memory", n=2), chunk=50), permutations=permutations, generator=generator(0))
        largest.append(watch.entries)
    assert largest[0] == largest[1] > 0


def test_per_input_baselines_and_patches() -> None:
    """Against a game of its own for every input."""
    x, own = (torch.randn(3, 2, 4, 4, generator=generator(0, name), dtype=torch.float64) for name in ("x", "own"))
    weight = torch.randn(32, 2, generator=generator(0, "weight"), dtype=torch.float64)
    target, players = torch.tensor([0, 1, 1]), patches((2, 4, 4), 2)

    def model(x: Tensor) -> Tensor:
        return torch.sin(x.flatten(1) @ weight)

    together = game(model, x, target, players=players, baseline=own, chunk=7)
    for i in range(3):
        alone = game(model, x[i : i + 1], target[i : i + 1], players=players, baseline=own[i])
        torch.testing.assert_close(exact(together).values[i], exact(alone).values[0])
        both = [permutation(play, permutations=6, generator=generator(0)).values for play in (together, alone)]
        torch.testing.assert_close(both[0][i], both[1][0])


def test_bad_input_is_named() -> None:
    x, target = torch.zeros(1, 21), torch.tensor([0])
    with raises(UsageError, match="`players` must be at most 20 to be enumerated exactly, got 21"):
        exact(game(lambda x: x, x, target))
    with raises(UsageError, match="`permutations` must be at least 1, got 0"):
        permutation(played(VALUES), permutations=0, generator=generator(0))
    with raises(UsageError, match="`permutations` must be even to make antithetic pairs, got 5"):
        permutation(played(VALUES), permutations=5, generator=generator(0), antithetic=True)
    with raises(UsageError, match="`groups` must be at least 1, got 0"):
        permutation(played(VALUES), permutations=5, generator=generator(0), groups=0)
    with raises(UsageError, match=r"`values` must have shape \(n, 2\^players\), got \(2, 3\)"):
        exact_of(torch.zeros(2, 3))


def test_nan_is_refused() -> None:
    values = table(4, "nan")
    values[0, 5] = math.nan
    with raises(UsageError, match="`model` must give finite numbers, got nan or inf in 1 of 16 outputs"):
        exact(played(values))
    with raises(UsageError, match=r"got nan or inf in \d+ of 60 outputs of the explained class"):
        permutation(played(values), permutations=20, generator=generator(0))
    with raises(UsageError, match="got nan or inf in 1 of 6 outputs"):  # nan on the way back alone
        permutation(played(values), permutations=2, generator=generator(2), antithetic=True)
    values[0, 0] = math.inf
    with raises(UsageError, match="got nan or inf in 1 of 2 outputs"):
        permutation(played(values), permutations=20, generator=generator(0))


def test_values_that_are_rounding_alone_are_zero() -> None:
    """Worth 0.1, 0.3, 0.7, 0.2, 0.6 and 0.1 by number of players: all values are 0 by symmetry and efficiency."""
    steps = torch.tensor([0.1, 0.3, 0.7, 0.2, 0.6, 0.1], dtype=torch.float64)
    played = game(lambda x: steps[x.sum(1).long()][:, None], torch.ones(1, 5).double(), torch.zeros(1).long())
    assert exact(played).values.tolist() == [[0.0] * 5]
    assert exact_of(steps[all_coalitions(5).sum(1)][None]).abs().max() > 0  # which sums in floating point do not give


def test_sampled_values_of_a_game_that_does_nothing_are_zero_and_others_stay() -> None:
    x = torch.ones(2, 6).double()
    x[1] *= 1e-6  # a small part of a large output is more than rounding

    def model(x: Tensor) -> Tensor:
        return (0.7 + (x * (x < 0.5)) @ torch.arange(6.0).double())[:, None]

    found = permutation(game(model, x, torch.zeros(2).long()), permutations=6, generator=generator(0))
    assert found.values[0].eq(0).all() and found.groups[0].eq(0).all() and found.error[0].eq(0).all()
    assert torch.allclose(found.values[1], 1e-6 * torch.arange(6.0).double(), atol=1e-12)
