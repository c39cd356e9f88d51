"""Shapley values as cells, and what maps are worth beside them."""

import numpy as np
import pytest
import torch
from torch import Tensor

from forsooth import seeds
from forsooth.games import game, permutation
from forsooth.games.shapley import Estimate
from forsooth.records import Cell, Row
from forsooth.scores.bias import m_bias, relative_bias
from forsooth.suites.bias import anchor as anchors

TEMPLATE = Row("bias", "scores", method="x")


def an_anchor(n: int = 3, players: int = 10, permutations: int = 6) -> Estimate:
    weights = torch.arange(1.0, players + 1)
    drawn = torch.randn(n, players, generator=torch.Generator().manual_seed(0))

    def model(x: Tensor) -> Tensor:
        value = (x * weights).sum(1) + x[:, 0] * x[:, 1]
        return torch.stack([value, -value], 1)

    played = game(model, drawn, torch.zeros(n, dtype=torch.int64))
    return permutation(played, permutations=permutations, generator=seeds.generator(0))


def cell_of(estimate: Estimate, samples: list[int]) -> Cell:
    return Cell(tensors=anchors.packed(estimate, torch.tensor(samples)), facts={"permutations": estimate.permutations})


def test_parts_of_an_anchor_are_joined_in_their_order() -> None:
    one = an_anchor(2)
    other = an_anchor(3)
    joined = anchors.joined([cell_of(one, [5, 3]), Cell(facts={"status": "ok"}), cell_of(other, [8, 1, 2])])
    assert joined.samples == [5, 3, 8, 1, 2] and len(joined.noise) == 5
    assert joined.estimate.values.equal(torch.cat([one.values, other.values]))
    assert joined.estimate.groups.dtype == torch.float64 and joined.estimate.permutations == one.permutations


def test_what_a_method_says_comes_from_its_map_or_from_games() -> None:
    estimate = an_anchor(2)
    assert anchors.players_of([cell_of(estimate, [0, 1])]).equal(estimate.values)
    said = torch.rand(2, 10)
    assert anchors.players_of([Cell(tensors={"players": said})]).equal(said)


def test_rows_have_an_end_a_fraction_a_metric_and_a_sample_in_this_order() -> None:
    rows = anchors.biases(
        TEMPLATE, torch.randn(3, 10).double(), an_anchor(), ends=("top", "bottom"), fractions=(0.1, 0.5), ties="share"
    )
    flat = [row.flat() for row in rows]
    order = [(row["end"], row["fraction"], row["metric"], row["sample"]) for row in flat]
    assert len(order) == 2 * 2 * 3 * 3 == len(set(order))
    assert order[:4] == [("top", 0.1, "relative_bias", k) for k in range(3)] + [("top", 0.1, "m_bias", 0)]
    assert order[-1] == ("bottom", 0.5, "m_bias_split", 2)
    assert {row["players"] for row in flat} == {10} and {row["method"] for row in flat} == {"x"}


@pytest.mark.parametrize("norm", ["plain", "split"])
def test_values_are_those_of_the_metrics(norm: str) -> None:
    attribution = torch.randn(3, 10, generator=torch.Generator().manual_seed(1)).double()
    anchor = an_anchor()
    rows = anchors.biases(TEMPLATE, attribution, anchor, ends=("top",), fractions=(0.3,), ties="share")
    name = {"plain": "m_bias", "split": "m_bias_split"}[norm]
    expected = m_bias(attribution, anchor, fraction=0.3, end="top", norm=norm)
    own = [row for row in rows if row.metric == name]
    np.testing.assert_array_equal([row.value for row in own], expected.value.numpy())
    np.testing.assert_array_equal([row.columns["error"] for row in own], expected.error.numpy())
    relative = relative_bias(attribution, anchor, fraction=0.3, end="top").value.tolist()
    assert [row.value for row in rows if row.metric == "relative_bias"] == pytest.approx(relative)


def test_an_input_without_an_anchor_is_no_failure_of_a_map_of_zeros() -> None:
    still = game(lambda x: x[:, :2] * 0 + 0.1, torch.randn(1, 10), torch.zeros(1, dtype=torch.int64))
    anchor = permutation(still, permutations=4, generator=seeds.generator(0))
    rows = anchors.biases(TEMPLATE, torch.zeros(1, 10).double(), anchor, ends=["top"], fractions=[0.5], ties="share")
    assert {row.status for row in rows} == {"no anchor"}
    assert {row.message for row in rows} == {"the Shapley values are all zero, or all noise"}


@pytest.mark.parametrize("by", [1e200, 1e-200])
def test_shapley_values_of_any_size_are_an_anchor(by: float) -> None:
    values = torch.randn(2, 10, generator=seeds.generator(0)).double()
    anchor = Estimate(by * values, 0 * values, by * values[:, None], torch.ones(1).double(), 0)
    rows = anchors.biases(TEMPLATE, values, anchor, ends=["top"], fractions=[0.5], ties="share")
    assert {row.status for row in rows} == {"ok"}
    assert [row.value for row in rows] == pytest.approx([0.0] * len(rows))


def test_fewer_than_ten_players_leave_the_tenth_out() -> None:
    anchor = an_anchor(2, players=4)
    rows = anchors.biases(
        TEMPLATE, torch.randn(2, 4).double(), anchor, ends=["top"], fractions=[0.1, 0.5], ties="share"
    )
    few = [row for row in rows if row.columns["fraction"] == 0.1]
    assert {row.status for row in few} == {"too few players"}
    assert all("it takes at least 10" in row.message for row in few)
    assert {row.status for row in rows if row.columns["fraction"] == 0.5} == {"ok"}


def test_a_map_is_zero_not_finite_or_fine() -> None:
    maps = torch.ones(4, 3)
    maps[0] = 0
    maps[1, 2] = torch.inf
    maps[3] = 0
    square = torch.tensor([1.0, 1.0, 1.0, -0.1])
    assert anchors.states(maps, square) == ["zero map", "not finite", "ok", "no anchor"]
