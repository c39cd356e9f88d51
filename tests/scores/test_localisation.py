from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scores.tetrominoes import masks
from torch import Tensor

from forsooth.records import UsageError
from forsooth.scores.localisation import ima, precision
from forsooth.seeds import generator

NAN = float("nan")
SIZES = {"both_64": 862, "rigid_64": 156, "both_8": 8, "rigid_8": 4}


def assert_equal(got: Tensor, expected: list[float]) -> None:
    assert got.dtype == torch.float64
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-15, equal_nan=True)


def test_precision_by_hand():
    attribution = torch.tensor([[5.0, -4.0, 3.0, 0.0], [1.0, 5.0, -9.0, 2.0], [-1.0, 0.0, 0.0, 0.0]])
    truth = torch.tensor([[1, 1, 0, 0], [1, 0, 1, 1], [1, 1, 0, 0]]).bool()
    # third row: the second place would go to a zero, which never counts
    assert_equal(precision(attribution, truth), [1.0, 2 / 3, 1 / 2])


def test_tied_pixels_share_the_places_left():
    attribution = torch.tensor([[2.0, 2.0, 2.0, 2.0], [9.0, 1.0, -1.0, 1.0]])
    truth = torch.tensor([[1, 0, 0, 0], [0, 1, 1, 0]]).bool()
    # second row: one place left for three tied pixels, two of them in the truth
    assert_equal(precision(attribution, truth), [1 / 4, (1 * 2 / 3) / 2])


def mean_over_orders(attribution: list[int], truth: list[bool]) -> float:
    """Precision averaged over every order in which a sort could have met the pixels."""
    k, scores = sum(truth), []
    for order in permutations(range(len(truth))):
        top = sorted(order, key=lambda i: -abs(attribution[i]))[:k]
        scores.append(sum(truth[i] for i in top if attribution[i] != 0) / k)
    return sum(scores) / len(scores)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=5))
def test_precision_is_the_mean_over_all_orders(pixels):
    attribution, truth = [p[0] for p in pixels], [p[1] for p in pixels]
    got = precision(torch.tensor([attribution]), torch.tensor([truth]))
    if any(truth) and any(attribution):
        assert got.item() == pytest.approx(mean_over_orders(attribution, truth), abs=1e-12)
    else:
        assert got.isnan()


def test_ima_by_hand():
    attribution = torch.tensor([[3.0, 1.0, -4.0], [0.0, -1.0, 0.0]])
    truth = torch.tensor([[1, 0, 1], [1, 0, 0]]).bool()
    assert_equal(ima(attribution, truth), [7 / 8, 0.0])


@pytest.mark.parametrize("score", [precision, ima])
def test_undefined_is_nan_and_touches_no_other_row(score):
    attribution = torch.tensor([[0.0, 0.0], [NAN, 1.0], [float("inf"), 1.0], [1.0, 1.0], [1.0, 0.0]])
    truth = torch.tensor([[1, 0], [1, 0], [1, 0], [0, 0], [1, 0]]).bool()
    assert_equal(score(attribution, truth), [NAN, NAN, NAN, NAN, 1.0])
    assert score(attribution[:0], truth[:0]).shape == (0,)


@pytest.mark.parametrize("score", [precision, ima])
def test_bad_truth_is_named(score):
    with pytest.raises(UsageError, match=r"`truth` must have the shape of the attribution \(2, 3\), got \(2, 4\)"):
        score(torch.ones(2, 3), torch.ones(2, 4).bool())
    with pytest.raises(UsageError, match=r"`truth` must be a mask of type torch.bool, got torch.float32"):
        score(torch.ones(2, 3), torch.ones(2, 3))


@pytest.mark.parametrize("score", [precision, ima])
@pytest.mark.parametrize("name", SIZES)
def test_oracle_scores_one(score, name):
    truth = masks()[name][None]
    assert score(-0.3 * truth, truth).item() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("score", [precision, ima])
@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_random_maps_score_the_share_of_the_mask(score, name, size):
    mask = masks()[name]
    assert mask.sum() == size
    n = 300
    maps = 2 * torch.rand(n, *mask.shape, generator=generator(0, score.__name__, name), dtype=torch.float64) - 1
    values = score(maps, mask.expand(n, -1, -1))
    assert (values.mean() - size / mask.numel()).abs() < 4 * values.std() / n**0.5


def test_scale_of_the_map_does_not_matter():
    mask = masks()["both_8"].expand(5, 8, 8)
    maps = torch.randn(5, 8, 8, generator=generator(1), dtype=torch.float64)
    for factor in (-1.0, 1e300, 1e-300):
        torch.testing.assert_close(ima(factor * maps, mask), ima(maps, mask), rtol=1e-12, atol=0)
        assert torch.equal(precision(factor * maps, mask), precision(maps, mask))


def test_any_shape_and_precision_of_input():
    maps = torch.randn(3, 4, 5, 6, generator=generator(2))
    truth = torch.rand(3, 4, 5, 6, generator=generator(3)) < 0.2
    for score in (precision, ima):
        torch.testing.assert_close(score(maps, truth), score(maps.double().reshape(3, -1), truth.reshape(3, -1)))
