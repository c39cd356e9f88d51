import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from forsooth.stats import holm


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
