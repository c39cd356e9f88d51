from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forsooth.records import UsageError
from forsooth.scores.planted import attr_percent, precision_top, recall_top, shapley_range
from forsooth.seeds import generator

NAN = float("nan")


def test_attr_percent_by_hand():
    maps = torch.tensor([[[3.0, -1.0], [4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[1.0, NAN], [1.0, 1.0]]])
    region = torch.tensor([[True, False], [True, False]]).expand(3, 2, 2)
    got = attr_percent(maps, region)
    torch.testing.assert_close(got, torch.tensor([7 / 8, NAN, NAN], dtype=torch.float64), equal_nan=True)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.01, 1), st.floats(1e-30, 1e30), st.integers(0, 10**6))
def test_oracle_constant_and_random_maps(h, w, share, value, seed):
    region = torch.rand(h, w, generator=generator(seed)) < share
    region[0, 0] = True
    batch, er = region.expand(200, h, w), region.double().mean()
    assert attr_percent(torch.full((200, h, w), value, dtype=torch.float64), batch).tolist() == [er.item()] * 200
    assert (attr_percent(region[None].double() * value, region[None]) == 1).all()
    scores = attr_percent(torch.rand(200, h, w, generator=generator(seed, "maps")), batch)
    # a share of a sum of uniforms is fair: its mean is the share of the region
    assert (scores.mean() - er).abs() <= 5 * scores.std() / 200**0.5 + 1e-12


def mean_over_orders(values, region, k):
    """Hits of the top k, averaged over every order in which a sort could have met the pixels."""
    hits = []
    for order in permutations(range(len(values))):
        top = sorted(order, key=lambda i: -abs(values[i]))[:k]
        hits.append(sum(region[i] for i in top if values[i] != 0))
    return sum(hits) / len(hits)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=5), st.integers(1, 5))
def test_top_k_is_the_mean_over_all_orders(pixels, k):
    values, region = [p[0] for p in pixels], [p[1] for p in pixels]
    k = min(k, len(values))
    maps, mask = torch.tensor([values]), torch.tensor([region])
    share = k / len(values)
    if not any(values) or not any(region):
        assert precision_top(maps, mask, share=share).isnan() and recall_top(maps, mask, share=share).isnan()
        return
    hits = mean_over_orders(values, region, k)
    assert precision_top(maps, mask, share=share).item() == pytest.approx(hits / k, abs=1e-12)
    assert recall_top(maps, mask, share=share).item() == pytest.approx(hits / sum(region), abs=1e-12)


def test_top_k_of_the_constant_map_and_the_oracle():
    region = torch.zeros(1, 10, 10, dtype=torch.bool)
    region[:, :2, :10] = True  # 20 of 100 pixels
    constant, oracle = torch.ones(1, 10, 10), region.double()
    assert precision_top(constant, region).item() == pytest.approx(0.2)
    assert recall_top(constant, region, share=0.5).item() == pytest.approx(0.5)
    assert precision_top(oracle, region).item() == 1 and recall_top(oracle, region).item() == 0.5
    assert precision_top(oracle, region, share=1.0).item() == 0.2 and recall_top(oracle, region, share=1.0).item() == 1


@settings(deadline=None, max_examples=40)
@given(st.floats(0.5, 1), st.floats(0.75, 1), st.floats(0, 1))
def test_shapley_range_holds_the_shapley_value_of_the_game(r, accuracy, where):
    """Two players, the game of appendix C.5, the value as the mean gain over both orders."""
    original = 0.5 + where * (r - 0.5)
    game = {(): 0.5, ("M",): accuracy, ("O",): original, ("M", "O"): accuracy}
    gains = []
    for order in permutations("MO"):
        before = tuple(sorted(order[: order.index("M")]))
        gains.append(game[tuple(sorted((*before, "M")))] - game[before])
    share = sum(gains) / 2 / (game["M", "O"] - game[()])
    low, high = shapley_range(r, accuracy=accuracy)
    assert low - 1e-9 <= share <= high + 1e-9
    if where == 1:
        assert share == pytest.approx(low)


def test_shapley_range_of_the_paper():
    for r in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        assert shapley_range(r) == (pytest.approx(1.5 - r), 1.0)
    assert shapley_range(0.2) == shapley_range(0.8)  # labels mostly flipped tell as much


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: shapley_range(1.5), r"`r` must lie in \[0, 1\], got 1.5"),
        (lambda: shapley_range(0.6, accuracy=0.5), r"`accuracy` must lie in \(0.5, 1\], got 0.5"),
        (lambda: precision_top(torch.ones(1, 4), torch.ones(1, 4).bool(), share=0), r"`share` must lie in \(0, 1\]"),
        (lambda: attr_percent(torch.ones(1, 4), torch.ones(1, 4)), "must be a mask of type torch.bool"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(UsageError, match=message):
        call()
