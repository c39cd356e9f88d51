"""The words of the BAM figures, and the numbers in them, worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from forsooth.report import bam as drawn
from forsooth.suites import bam_claims, bam_figures


def test_the_premise_by_hand():
    drops = pd.DataFrame({"k": [0.1, 0.2, 0.3, 0.4], "value": [0.9, 0.5, 0.6, 0.0]})
    (said,) = bam_claims.premise(drops)
    assert ": holds. Ours -0.80" in said
    said, why = bam_claims.premise(drops.assign(value=[0.1, 0.5, 0.6, 0.0]))
    assert ": does not hold. Ours -0.20" in said and "cannot follow" in why


def test_rho_by_hand():
    accuracy = np.array([[1.0, 1.0, 1.0], [0.1, 0.5, 0.9]])
    values = np.array([[0.9, 0.5, 0.1], [0.7, 0.3, -0.1], [0.9, np.nan, 0.1]])
    found = bam_figures.rho_interval(values, accuracy, n=1000)
    assert found.mean == pytest.approx(1.0, abs=0.02) and 0.9 < found.low <= found.high <= 1
    few = bam_figures.rho_interval(values, accuracy, n=3)
    assert few.mean == found.mean and few.low < found.low  # a drop over three images is mostly chance
    assert np.isnan(bam_figures.spread(pd.Series([0.5])))
    assert bam_figures.spread(pd.Series([0.5] * 8)) == 0


def test_the_interval_of_a_rate_is_wilsons():
    values = np.array([1.0] * 7 + [0.0] * 3)
    known = stats.binomtest(7, 10).proportion_ci(method="wilson")
    assert drawn._interval(values, rate=True) == pytest.approx((known.low, known.high), abs=1e-3)
    assert drawn._interval(values, rate=False) == pytest.approx((0.7 - 0.2994, 0.7 + 0.2994), abs=1e-3)
    series = pd.Series([0.9, 0.4, 0.1], index=[0.1, 0.5, 1.0])
    assert drawn.correlation(series, 2 * series) == pytest.approx(1) and np.isnan(drawn.correlation(series, 0 * series))
