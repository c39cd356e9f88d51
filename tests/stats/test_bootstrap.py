"""Bootstraps against pencils, and against the same draws one after the other."""

import numpy as np
import pandas as pd
import pytest
import torch

from forsooth import seeds
from forsooth.stats import bootstrap
from forsooth.stats.bootstrap import Draws, resampled_means


def test_counts_are_those_of_copies() -> None:
    picked = np.random.default_rng([0, 1, 2]).integers(0, 5, (bootstrap.DRAWS, 5))
    literal = [[(line == k).sum() for k in range(5)] for line in picked]
    np.testing.assert_array_equal(bootstrap.resampled_counts(5, 1, 2), literal)
    assert (bootstrap.resampled_counts(5, 1, 3) != literal).any()


def test_means_by_hand() -> None:
    """Two trainings, three images; the last has a value in the second training only."""
    values = np.array([[0.0, 0.2, np.nan], [0.4, 0.6, 1.0]])[:, :, None]
    samples = np.array([[1, 1, 1], [2, 0, 1], [0, 0, 3], [1, 1, 1]], dtype=float)
    trainings = np.array([[1, 1], [2, 0], [2, 0], [0, 2]], dtype=float)
    found = resampled_means(values, Draws(samples, trainings))[:, 0]
    np.testing.assert_allclose(found, [(0.2 + 0.4 + 1.0) / 3, 0.0, np.nan, (0.4 + 0.6 + 1.0) / 3])
    assert resampled_means(values, bootstrap.everything_once(values))[0, 0] == pytest.approx(1.6 / 3)


def test_means_are_those_of_copies() -> None:
    rng = np.random.default_rng(1)
    values = np.where(rng.random((3, 5, 2)) < 0.2, np.nan, rng.random((3, 5, 2)))
    draws = bootstrap.draw(5, 3)
    assert (draws.samples.sum(1) == 5).all() and (draws.trainings.sum(1) == 3).all()
    for line in range(20):
        samples = np.repeat(np.arange(5), draws.samples[line].astype(int))
        trainings = np.repeat(np.arange(3), draws.trainings[line].astype(int))
        copies = pd.DataFrame(values[trainings][:, samples, 0]).mean()
        assert resampled_means(values, draws)[line, 0] == pytest.approx(copies.mean(), nan_ok=True)


def test_pools_share_trainings_and_no_samples() -> None:
    one = bootstrap.draw(5, 3)
    two = bootstrap.draw(5, 3, pool=1)
    np.testing.assert_array_equal(one.trainings, two.trainings)
    assert (one.samples != two.samples).any()


def test_concept_means_add_the_shifts_of_inputs_and_sets() -> None:
    values = np.array([[[0.2], [0.4]]])
    same_sets = np.array([[[0.3], [0.3], [0.3]]])
    draws = Draws(bootstrap.resampled_counts(2, 0), np.ones((bootstrap.DRAWS, 1)))
    np.testing.assert_allclose(bootstrap.concept_means(values, same_sets, draws), resampled_means(values, draws))
    sets = np.array([[[0.1], [0.5]]])
    of_sets = resampled_means(sets, Draws(bootstrap.resampled_counts(2, 3), draws.trainings))
    expected = resampled_means(values, draws) + of_sets - 0.3
    np.testing.assert_allclose(bootstrap.concept_means(values, sets, draws), expected, atol=1e-12)


def test_drops_spread_as_binomials_do() -> None:
    accuracy = np.array([[[0.9, 0.8], [0.4, 0.8]]] * 3)
    draws, drops = bootstrap.accuracy_drops(6, accuracy, 50)
    assert (draws.samples.sum(1) == 6).all() and (draws.trainings.sum(1) == 3).all()
    np.testing.assert_allclose(drops.mean(0), [0.5, 0.0], atol=0.01)
    # of 3 trainings drawn with replacement a binomial is met 5 / 3 times: (3 + 6 / 3) / 3
    error = np.sqrt((0.09 + 0.24) / 50 / 3 * 5 / 3)
    assert drops[:, 0].std() == pytest.approx(error, rel=0.05)
    assert bootstrap.accuracy_drops(6, accuracy[:1], 50)[0].trainings.tolist() == [[1.0]] * bootstrap.DRAWS


def test_rows_become_an_array() -> None:
    rows = pd.DataFrame(
        [(1, 4, "a", 0.1), (1, 4, "b", 0.2), (1, 2, "a", 0.3), (3, 4, "b", 0.4)],
        columns=["model_seed", "sample", "method", "value"],
    )
    values, names = bootstrap.value_array(rows, ["method"], trainings=[1, 2, 3], samples=[2, 4])
    assert names == [("a",), ("b",)] and values.shape == (3, 2, 2)
    np.testing.assert_array_equal(values[0], [[0.3, np.nan], [0.1, 0.2]])
    assert np.isnan(values[1]).all() and values[2, 1, 1] == 0.4
    pairs = bootstrap.value_array(rows.assign(kind="x"), ["kind", "method"])
    assert pairs[1] == [("x", "a"), ("x", "b")] and pairs[0].shape == (2, 2, 2)
    assert bootstrap.per_sample(rows).to_dict() == pytest.approx({4: (0.1 + 0.2 + 0.4) / 3, 2: 0.3})


def test_percentiles_leave_out_draws_without_a_value() -> None:
    draws = np.append(np.linspace(0, 1, 1001), np.nan)
    assert bootstrap.percentile_interval(0.4, draws, 9) == pytest.approx((0.4, 0.025, 0.975, 9))
    assert np.isnan(bootstrap.percentile_interval(0.4, draws, 1).low)
    assert np.isnan(bootstrap.percentile_interval(0.4, np.full(5, np.nan), 9).low)


def test_the_bootstrap_of_a_ratio_is_that_of_copies() -> None:
    rng = np.random.default_rng(0)
    below = rng.integers(0, 4, 25)
    above = rng.binomial(below, 0.6)
    times = np.random.default_rng(0).multinomial(25, [1 / 25] * 25, size=bootstrap.RATIO_DRAWS)
    ratios = []
    for line in times:
        copies = np.repeat(np.arange(25), line)
        ratios.append(above[copies].sum() / below[copies].sum())
    low, high = np.quantile(ratios, [0.025, 0.975])
    found = bootstrap.bootstrapped_ratio(above, below)
    assert found == pytest.approx((above.sum() / below.sum(), low, high, 25))


def test_a_ratio_to_nothing_is_unknown() -> None:
    assert np.isnan(bootstrap.bootstrapped_ratio([0, 0], [0, 0]).mean)
    rare = bootstrap.bootstrapped_ratio([1, 0, 0], [1, 0, 0])  # a third of the draws has nothing below
    assert rare == (1.0, 1.0, 1.0, 3)


def test_ranks_by_hand() -> None:
    draws = np.array([[0.1, 0.3, 0.3], [0.5, 0.2, 0.1], [0.1, np.nan, 0.2]])
    assert bootstrap.resampled_ranks(draws, 0)[:2].tolist() == [3, 1]
    assert bootstrap.resampled_ranks(draws, 1)[:2].tolist() == [1, 2]
    assert np.isnan(bootstrap.resampled_ranks(draws, 0)[2])


@pytest.mark.parametrize("count, size", [(2, 1), (50, 25), (400, 100)])
def test_trials_are_those_of_the_metric(count: int, size: int) -> None:
    assert seeds.derive(0, "trials") == bootstrap.TRIALS_SEED
    values = np.random.default_rng(0).random(count)
    generator = seeds.generator(0, "trials")
    draws = [torch.randperm(count, generator=generator)[:size] for _ in range(10)]
    expected = torch.stack([torch.tensor(values)[chosen].mean() for chosen in draws]).std()
    assert bootstrap.spread_over_trials([*values, np.nan]) == pytest.approx(float(expected))
    assert np.isnan(bootstrap.spread_over_trials([0.5]))


def test_the_jackknife_of_a_mean_is_the_variance_of_the_mean() -> None:
    """Where a value is the mean over groups of equal size, the delete-a-group jackknife is exact."""
    groups = np.random.default_rng(0).random((1, 1, 8))
    left = (groups.sum(2, keepdims=True) - groups) / 7
    parts = bootstrap.jackknife_parts(groups.mean(2), left, np.full(8, 5.0))
    assert parts.shape == (1, 8)
    assert (parts**2).sum() == pytest.approx(groups.var(ddof=1) / 8)
