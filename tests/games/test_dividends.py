import itertools

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx, raises
from torch import Tensor

from forsooth.games.dividends import dividends, shapley_of
from forsooth.games.shapley import exact_of
from forsooth.records import UsageError
from forsooth.seeds import generator

games = st.tuples(st.integers(1, 10), st.integers(0, 2**31))


def table(players: int, *names: object) -> Tensor:
    return torch.randn(2, 2**players, generator=generator(0, *names), dtype=torch.float64) * 10


def literal(worth: list[float], players: int) -> list[float]:
    """By the definition: all subsets of all coalitions, with their signs."""
    found = []
    for inside in range(2**players):
        members = [player for player in range(players) if inside >> player & 1]
        subsets = itertools.chain.from_iterable(itertools.combinations(members, k) for k in range(len(members) + 1))
        found.append(sum((-1) ** (len(members) - len(s)) * worth[sum(1 << player for player in s)] for s in subsets))
    return found


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.tuples(st.integers(1, 7), st.integers(0, 2**31)))
def test_equals_the_definition(drawn: tuple[int, int]) -> None:
    values = table(*drawn)
    assert dividends(values)[1].tolist() == approx(literal(values[1].tolist(), drawn[0]), abs=1e-10)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(games)
def test_interaction_distribution_axiom(drawn: tuple[int, int]) -> None:
    """Theorem 1: the Shapley value shares every dividend evenly among those who make it."""
    values = table(*drawn)
    torch.testing.assert_close(shapley_of(dividends(values)), exact_of(values), rtol=0, atol=1e-10)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(games)
def test_dividends_of_subsets_add_up_to_the_value(drawn: tuple[int, int]) -> None:
    values, inside = table(*drawn), drawn[1] % 2 ** drawn[0]
    subsets = [s for s in range(2 ** drawn[0]) if s & ~inside == 0]
    total = dividends(values)[:, subsets].sum(dim=1)
    torch.testing.assert_close(total, values[:, inside], rtol=0, atol=1e-10)


def test_a_game_of_one_pair() -> None:
    values = torch.tensor([[5.0, 5.0, 5.0, 9.0]])  # 4 more if both are there
    assert dividends(values).tolist() == [[5.0, 0.0, 0.0, 4.0]]
    assert shapley_of(dividends(values)).tolist() == [[2.0, 2.0]]
    assert values.tolist() == [[5.0, 5.0, 5.0, 9.0]]


def test_bad_input_is_named() -> None:
    with raises(UsageError, match=r"`values` must have shape \(n, 2\^players\), got \(1, 6\)"):
        dividends(torch.zeros(1, 6))
