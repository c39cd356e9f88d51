import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forsooth.report.bootstrap import counts, exceeds, interval, letters, ranks, weighted_median


def test_counts_draw_n_of_n_with_replacement() -> None:
    drawn = counts(7, draws=4000, rng=np.random.default_rng(0))
    assert drawn.shape == (7, 4000)
    assert (drawn.sum(axis=0) == 7).all()
    np.testing.assert_allclose(drawn.mean(axis=1), 1, atol=0.06)
    np.testing.assert_allclose((drawn == 0).mean(), (6 / 7) ** 7, atol=0.02)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.sampled_from([-1.5, 0.0, 0.25, 0.5, 1.0, 7.0]), min_size=1, max_size=9),
    seed=st.integers(0, 2**31),
)
def test_weighted_median_is_the_median_of_the_repeated_values(values: list[float], seed: int) -> None:
    weights = np.random.default_rng(seed).integers(0, 4, (len(values), 20)).astype(np.int16)
    expected = [np.median(np.repeat(values, column)) if column.sum() else np.median(values) for column in weights.T]
    np.testing.assert_allclose(weighted_median(np.array(values), weights), expected)


def test_interval_of_the_median_covers_the_true_median() -> None:
    rng, covered = np.random.default_rng(3), []
    for _ in range(500):
        sample = rng.normal(0.3, 1, 61)
        low, high = interval(weighted_median(sample, counts(61, draws=400, rng=rng)))
        covered.append(low <= 0.3 <= high)
    assert 0.92 <= np.mean(covered) <= 0.98


def test_interval_by_hand() -> None:
    low, high = interval(np.arange(101.0)[None])
    assert (low.item(), high.item()) == pytest.approx((2.5, 97.5))


def test_rounding_and_nan_are_no_difference() -> None:
    assert not exceeds(np.full(100, 1e-9))
    assert not exceeds(np.full(100, np.nan))
    assert exceeds(np.full(100, 1e-3))
    assert not exceeds(np.where(np.arange(100) < 5, -1.0, 1.0))
    assert exceeds(np.where(np.arange(100) < 2, -1.0, 1.0))


def test_ranks_by_hand() -> None:
    assert ranks(np.array([0.5, 0.9, 0.5 + 1e-9, 0.1])).tolist() == [2, 1, 2, 4]


def test_letters_compare_with_the_first_of_the_group() -> None:
    """Neighbours differ by 0.1, within the noise; second neighbours by 0.2, beyond it."""
    noise = np.random.default_rng(0).normal(0, 0.04, (4, 4000))
    assert letters(np.array([[1.0], [0.9], [0.8], [0.7]]) + noise) == ["A", "A", "B", "B"]
    assert letters(np.ones((3, 50))) == ["A", "A", "A"]


def test_letters_go_on_after_z() -> None:
    assert letters(-np.arange(28.0)[:, None] * np.ones(9))[25:] == ["Z", "AA", "BB"]
