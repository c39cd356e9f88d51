import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from forsooth.stats.bootstrap import drawn
from forsooth.stats.claims import (
    directions,
    holm,
    holm_by_name,
    mcnemar_more_often,
    surely_above,
    surely_below,
    t_test,
    t_test_above,
)
from forsooth.stats.intervals import Estimate, Share, crossed_estimate, mean_estimate


def test_holm_by_hand() -> None:
    """Of four claims: 4 × 0.005, 3 × 0.01, 2 × 0.03, and 0.04 may not be smaller than 0.06 before it."""
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).shape == (0,)


def test_what_was_not_tested_is_no_member_of_the_family() -> None:
    np.testing.assert_allclose(holm([[0.01, np.nan], [0.04, 0.03]]), [[0.03, np.nan], [0.06, 0.06]])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_lies_between_no_correction_and_bonferroni_and_keeps_the_order(pvalues: list[float]) -> None:
    adjusted = holm(pvalues)
    assert (adjusted >= pvalues).all() and (adjusted <= np.minimum(1, len(pvalues) * np.array(pvalues))).all()
    assert (np.diff(adjusted[np.argsort(pvalues, kind="stable")]) >= 0).all()


def test_of_many_true_nulls_any_is_rejected_in_at_most_one_run_of_twenty() -> None:
    rng = np.random.default_rng(0)
    runs = [holm(2 * stats.norm.sf(np.abs(rng.normal(size=30) + 0.5 * rng.normal()) / 1.25**0.5)) for _ in range(2000)]
    assert np.mean([(run <= 0.05).any() for run in runs]) <= 0.06


def test_t_tests_against_scipy() -> None:
    values = np.random.default_rng(0).normal(0.3, 1, 12)
    assert t_test_above(values) == pytest.approx(stats.ttest_1samp(values, 0, alternative="greater").pvalue)
    assert t_test_above(-values) == pytest.approx(stats.ttest_1samp(values, 0, alternative="less").pvalue)
    assert t_test([*values, np.nan]) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


def test_t_tests_of_values_without_spread() -> None:
    assert (t_test_above([0.1, 0.1]), t_test_above([-0.1, -0.1])) == (0.0, 1.0)
    assert np.isnan([t_test_above([0.0, 0.0]), t_test_above([0.1]), t_test([])]).all()


def test_mcnemar_by_hand() -> None:
    """Of 10 samples the second alone hits 6, the first alone 1: twice P(at most 1 of 7 heads) = 2 · 8 / 128."""
    one = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 0], dtype=bool)
    two = np.array([1, 1, 1, 1, 1, 1, 0, 1, 1, 0], dtype=bool)
    assert mcnemar_more_often(one, two) == pytest.approx(2 * 8 / 128)
    assert mcnemar_more_often(two, one) == 1.0 and mcnemar_more_often(one, one) == 1.0


def test_named_claims_are_one_family() -> None:
    assert holm_by_name({("a", "b"): 0.01, ("a", "c"): 0.03}) == pytest.approx({("a", "b"): 0.02, ("a", "c"): 0.03})
    assert holm_by_name({}) == {}


def test_directions_of_a_family() -> None:
    rng = np.random.default_rng(0)
    up = rng.normal(5, 1, 8)
    assert directions([mean_estimate(own) for own in (up, -up, up - up.mean(), [0.5])]).tolist() == [1, -1, 0, 0]
    alone = rng.normal(0, 1, 10)
    alone += stats.t.isf(0.02, 9) * alone.std(ddof=1) / 10**0.5 - alone.mean()  # p is 0.02
    assert directions([mean_estimate(alone)]).tolist() == [1]
    assert directions([mean_estimate(alone), mean_estimate(alone - 0.1)]).tolist() == [0, 0]


def test_each_claim_of_a_family_may_have_a_limit_of_its_own() -> None:
    shares = [Share(0.9, 200), Share(0.9, 200)]
    assert surely_above(shares, [0.8, 0.89]).tolist() == [True, False]
    assert surely_below(shares, 0.95).tolist() == [True, True]
    assert directions([], 0.5).shape == (0,)


@pytest.mark.parametrize(
    "estimate",
    [mean_estimate([0.2, 0.5, 0.9, 0.4]), Share(0.3, 40), crossed_estimate([0.1, 0.4, 0.5], [0.3, 0.4])],
)
def test_one_claim_alone_is_sure_just_outside_of_its_interval(estimate: Estimate) -> None:
    interval = estimate.interval
    assert surely_above([estimate], interval.low - 1e-6).all() and not surely_above([estimate], interval.low + 1e-6)
    assert surely_below([estimate], interval.high + 1e-6).all() and not surely_below([estimate], interval.high - 1e-6)


def test_draws_are_a_law_too() -> None:
    estimate = drawn(499, np.arange(999), 9)
    assert estimate.above(-1) == 1 / 1000 and estimate.below(499) == (1 + 500) / 1000
    assert np.isnan([drawn(0.5, [0.5, 0.6], 1).above(), drawn(np.nan, [], 5).below()]).all()


def test_of_many_equal_shares_and_means_any_is_called_sure_in_at_most_one_run_of_twenty() -> None:
    """Eight means of 12 and eight shares of 2,000, each claimed to both sides: alone, a third of the runs name one."""
    rng = np.random.default_rng(1)
    families = []
    for _ in range(500):
        families.append([mean_estimate(values) for values in rng.normal(size=(8, 12))])
    assert np.mean([directions(own).any() for own in families]) <= 0.07  # and two errors of 500 runs
    assert np.mean([any(directions([one]).any() for one in own) for own in families]) > 0.25
    shares = [[Share(hits / 2000, 2000) for hits in rng.binomial(2000, 0.8, 8)] for _ in range(500)]
    assert np.mean([directions(own, 0.8).any() for own in shares]) <= 0.07
