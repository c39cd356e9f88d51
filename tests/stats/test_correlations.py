"""Correlations against scipy and against the literal bootstrap."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from forsooth.stats import bootstrap, correlations
from forsooth.stats.correlations import Accuracies, Series, drop_correlation, pearson, spearman

THREE = [0.1, 0.5, 1.0]  # ks
FOUR = [0.1, 0.3, 0.6, 1.0]


def test_lines_against_scipy() -> None:
    one, two = np.random.default_rng(3).integers(0, 4, (2, 30, 6)).astype(float)
    one[0] = 2.0
    two[1, 2] = np.nan
    ranked = correlations.spearman_of_lines(one, two)
    plain = correlations.pearson_of_lines(one, two)
    assert np.isnan(ranked[:2]).all() and np.isnan(plain[:2]).all()
    for line in range(2, 30):
        assert ranked[line] == pytest.approx(stats.spearmanr(one[line], two[line]).statistic)
        assert plain[line] == pytest.approx(stats.pearsonr(one[line], two[line]).statistic)


def test_single_correlations_against_scipy() -> None:
    one, two = np.random.default_rng(0).random((2, 7))
    known = stats.spearmanr(one, two)
    assert spearman(pd.Series(one), pd.Series(two)) == pytest.approx((known.statistic, known.pvalue, 7))
    assert pearson(one, two) == pytest.approx(stats.pearsonr(one, two).statistic)


def test_what_does_not_vary_has_no_correlation() -> None:
    flat = [0.1 + 0.2, 0.3, 0.3]  # differ by rounding
    assert np.isnan(pearson(flat, [1.0, 2.0, 3.0])) and np.isnan(pearson([1.0], [2.0]))
    assert np.isnan(spearman([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).rho)
    assert np.isnan(spearman([1.0, 2.0], [2.0, 1.0]).rho) and spearman([1.0, 2.0], [2.0, 1.0]).n == 2


def test_slope_against_scipy() -> None:
    x, y = np.random.default_rng(0).random((2, 9))
    assert correlations.slope(x, y) == pytest.approx(stats.linregress(x, y).slope)


def test_rho_of_one_training_is_the_literal_bootstrap() -> None:
    """Image by image, draw by draw."""
    values = np.random.default_rng(2).random((12, 4))
    values[3, 1] = np.nan
    accuracy = np.array([[0.9, 0.8, 0.9, 0.8], [0.3, 0.5, 0.6, 0.8]])
    rng = np.random.default_rng(0)
    rhos = []
    for _ in range(bootstrap.DRAWS):
        part = values[rng.integers(0, 12, 12)]
        with_feature, without = rng.binomial(40, accuracy) / 40
        rhos.append(np.corrcoef(np.nanmean(part, axis=0), with_feature - without)[0, 1])
    found = drop_correlation(Series(FOUR, values[None]), Accuracies(FOUR, accuracy[None], 40))
    assert found[1:3] == pytest.approx(tuple(np.nanquantile(rhos, [0.025, 0.975])))
    point = np.corrcoef(np.nanmean(values, axis=0), accuracy[0] - accuracy[1])[0, 1]
    assert found.mean == pytest.approx(point) and found.n == 12


def test_rho_of_trainings_that_disagree_is_wider() -> None:
    accuracy = np.array([[[1.0, 1.0, 1.0], [0.1, 0.5, 0.9]]] * 2)
    up = np.tile([0.9, 0.5, 0.1], (1, 6, 1))
    sure = drop_correlation(Series(THREE, np.concatenate([up, up])), Accuracies(THREE, accuracy, 1000))
    torn = drop_correlation(Series(THREE, np.concatenate([up, 0.5 - up])), Accuracies(THREE, accuracy, 1000))
    assert sure.low > 0.9 and torn.low < -0.9 and torn.high > 0.9


def test_random_sets_widen_rho() -> None:
    rng = np.random.default_rng(0)
    accuracy = np.array([[[0.9, 0.9, 0.9], [0.2, 0.4, 0.8]]])
    values = np.tile([0.9, 0.5, 0.1], (1, 6, 1))
    accuracies = Accuracies(THREE, accuracy, 1000)
    alike = drop_correlation(Series(THREE, values, values), accuracies)
    unlike = drop_correlation(Series(THREE, values, values + rng.normal(0, 0.5, (1, 6, 3))), accuracies)
    assert alike == pytest.approx(drop_correlation(Series(THREE, values), accuracies))
    assert unlike.high - unlike.low > 2 * (alike.high - alike.low)


def test_series_share_their_draws() -> None:
    """A map and its double have the same ρ in every draw, so that their difference has no width."""
    values = np.random.default_rng(4).random((2, 8, 3))
    accuracy = np.array([[[0.9, 0.9, 0.9], [0.2, 0.4, 0.8]]] * 2)
    series = {"one": Series(THREE, values), "two": Series(THREE, 2 * values)}
    series["few"] = Series(THREE[1:], values[:, :, 1:])
    rhos, ranges = correlations.series_draws(series, Accuracies(THREE, accuracy, 50))
    np.testing.assert_allclose(rhos["one"], rhos["two"])
    np.testing.assert_allclose(2 * ranges["one"], ranges["two"])
    assert len(rhos) == bootstrap.DRAWS and rhos["one"].std() > 0
    assert set(rhos["few"].dropna().round(9)) <= {-1.0, 1.0}  # of two ks


def test_orders_that_every_image_agrees_on_are_sure() -> None:
    rows = []
    for kind in ("as_built", "moved"):
        for place, method in enumerate("abcd"):
            rows += [
                {"kind": kind, "method": method, "model_seed": 0, "sample": sample, "value": place + sample / 100}
                for sample in range(9)
            ]
    found = correlations.order_correlation(pd.DataFrame(rows), ("as_built", "moved"), list("abcd"), 1.0)
    assert found.interval == pytest.approx((1.0, 1.0, 1.0, 9))
