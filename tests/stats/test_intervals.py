"""Intervals against scipy, against pencils, and against what they claim."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from forsooth.stats.intervals import (
    AT_LEAST_0,
    SHARE,
    Interval,
    crossed_interval,
    mean_interval,
    no_interval,
    pooled_share_interval,
    samples_and_trainings,
    share_interval,
    variance_ratio_interval,
    wilson_interval,
)


def test_an_interval_as_text() -> None:
    assert str(Interval(0.5, 0.25, 1.0, 7)) == "0.50 [0.25, 1.00], n = 7"
    assert str(no_interval()) == "nan [nan, nan], n = 0"


def test_a_mean_has_students_interval() -> None:
    values = np.random.default_rng(0).normal(2, 3, 16)
    ends = stats.ttest_1samp(values, 0).confidence_interval()
    assert mean_interval(values) == pytest.approx((values.mean(), ends.low, ends.high, 16))
    assert mean_interval(pd.Series([*values, np.nan, np.inf])) == pytest.approx(mean_interval(values))


def test_one_value_says_nothing_of_the_spread() -> None:
    assert mean_interval([0.3])[0::3] == (0.3, 1) and np.isnan(mean_interval([0.3])[1:3]).all()
    assert np.isnan(mean_interval([])[:3]).all() and mean_interval([np.nan]).n == 0


def test_an_interval_ends_where_no_value_can_be() -> None:
    assert mean_interval([0.0, 1.0], bounds=SHARE)[1:3] == (0.0, 1.0)
    assert mean_interval([0.0, 1.0], bounds=AT_LEAST_0).low == 0.0 < 1.0 < mean_interval([0.0, 1.0]).high


def test_crossed_by_hand() -> None:
    inputs = pd.Series([0.2, 0.4, 0.6])
    sets = pd.Series([0.3, 0.5])
    half = stats.t.ppf(0.975, 1) * np.sqrt(0.04 / 3 + 0.02 / 2)
    assert crossed_interval(inputs, sets) == pytest.approx((0.4, 0.4 - half, 0.4 + half, 3))
    assert crossed_interval(inputs, sets, bounds=(-1, 1))[1:3] == (-1, 1)
    narrow = crossed_interval(inputs, pd.Series([0.4] * 30))
    assert narrow.high == pytest.approx(0.4 + stats.t.ppf(0.975, 2) * np.sqrt(0.04 / 3))
    single = crossed_interval(inputs, sets[:1])
    assert np.isnan(single.low) and single.mean == pytest.approx(0.4)
    assert np.isnan(crossed_interval([], []).mean)


def table(*trainings: list[float]) -> pd.DataFrame:
    """Rows of a value for each training and sample."""
    rows = []
    for seed, values in enumerate(trainings):
        rows += [{"model_seed": seed, "sample": sample, "value": value} for sample, value in enumerate(values)]
    return pd.DataFrame(rows)


def test_of_one_training_the_interval_is_over_samples() -> None:
    own = [0.1, 0.5, 0.9, 0.2]
    assert samples_and_trainings(table(own), bounds=SHARE) == mean_interval(own, bounds=SHARE)
    assert samples_and_trainings(table([1.0, 0.0, 1.0]), share=True) == share_interval([True, False, True])


def test_of_several_trainings_the_interval_is_over_both() -> None:
    rows = table([0.1, 0.5, 0.9], [0.3, 0.5, 0.7], [0.2, 0.2, np.nan])
    by_sample = [(0.1 + 0.3 + 0.2) / 3, (0.5 + 0.5 + 0.2) / 3, (0.9 + 0.7) / 2]
    by_training = [0.5, 0.5, 0.2]
    expected = crossed_interval(by_sample, by_training, bounds=SHARE)
    assert samples_and_trainings(rows, bounds=SHARE) == pytest.approx(expected)
    assert samples_and_trainings(rows.sample(frac=1, random_state=0), bounds=SHARE) == pytest.approx(expected)
    assert samples_and_trainings(rows.assign(value=rows["value"].round()), bounds=SHARE, share=True).n == 3


def test_documents_of_many_trainings_are_no_independent_values() -> None:
    """Eleven trainings that agree on ten documents know ten documents, not 110."""
    own = np.random.default_rng(0).random(10).tolist()
    together = samples_and_trainings(table(*[own] * 11))
    assert together.n == 10
    assert together.high - together.low == pytest.approx(np.subtract(*mean_interval(own)[2:0:-1]))


@pytest.mark.parametrize("hits", [[True] * 7 + [False] * 3, [False] * 5, [True] * 5, [True]])
def test_a_share_has_wilsons_interval(hits: list[bool]) -> None:
    ends = stats.binomtest(sum(hits), len(hits)).proportion_ci(method="wilson")
    assert share_interval(hits) == pytest.approx((np.mean(hits), ends.low, ends.high, len(hits)))


def test_a_share_ends_exactly_at_0_and_1() -> None:
    assert share_interval([False] * 7).low == 0.0 and share_interval([True] * 7).high == 1.0
    assert share_interval([]).n == 0 and np.isnan(share_interval([]).mean)


def test_a_hit_in_some_trainings_counts_in_part() -> None:
    """Wilson (1927), equation by equation: (p + z²/2n ± z √(p (1 - p) / n + z²/4n²)) / (1 + z²/n)."""
    z = stats.norm.ppf(0.975)
    middle = (0.5 + z**2 / 6) / (1 + z**2 / 3)
    half = z * np.sqrt(0.25 / 3 + z**2 / 36) / (1 + z**2 / 3)
    assert share_interval([0.5, 1.0, 0.0]) == pytest.approx((0.5, middle - half, middle + half, 3))


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_wilsons_interval_holds_its_share_and_stays_a_share(share: float, n: int) -> None:
    found = wilson_interval(share, n)
    assert 0 <= found.low <= share + 1e-12 and share - 1e-12 <= found.high <= 1


def test_pooled_shares_by_hand() -> None:
    assert pooled_share_interval([0.3], [10]) == pytest.approx(wilson_interval(0.3, 10))
    found = pooled_share_interval([0.2, 0.5], [10, 20])
    half = stats.t.ppf(0.975, 1) * np.sqrt(0.045 / 2 + 0.4 * 0.6 / 15)
    assert half > 1 and found == pytest.approx((0.4, 0.0, 1.0, 30))
    steady = pooled_share_interval([0.5] * 4, [400] * 4)
    assert steady.high == pytest.approx(0.5 + stats.t.ppf(0.975, 3) * np.sqrt(0.25 / 400))


def test_a_ratio_of_variances_covers() -> None:
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):
        found = variance_ratio_interval(rng.normal(0, 2, 11), rng.normal(0, 1, 8))
        covered.append(found.low <= 4 <= found.high)
    assert 0.92 <= np.mean(covered) <= 0.98
    one = variance_ratio_interval([1.0, 2.0, 3.0], [1.0, 3.0, 5.0])
    law = stats.f(2, 2)
    assert one == pytest.approx((0.25, 0.25 / law.ppf(0.975), 0.25 / law.ppf(0.025), 3))
