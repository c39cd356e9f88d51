"""The bootstraps of the BAM figures against pencils, and against the same draws one after the other."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from forsooth.scores.contrast import pearson
from forsooth.suites.bam import chance as bam_chance
from forsooth.suites.bam.chance import Draws, means
from forsooth.suites.verdicts import crossed, share_of


def test_means_by_hand():
    """Two trainings, three images; the last has a value in the second training only."""
    values = np.array([[0.0, 0.2, np.nan], [0.4, 0.6, 1.0]])[:, :, None]
    images, trainings = [[1, 1, 1], [2, 0, 1], [0, 0, 3], [1, 1, 1]], [[1, 1], [2, 0], [2, 0], [0, 2]]
    found = means(values, Draws(np.array(images, dtype=float), np.array(trainings, dtype=float)))[:, 0]
    np.testing.assert_allclose(found, [(0.2 + 0.4 + 1.0) / 3, 0.0, np.nan, (0.4 + 0.6 + 1.0) / 3])
    assert means(values, bam_chance.whole(values))[0, 0] == pytest.approx(1.6 / 3)


def test_means_are_those_of_copies():
    rng = np.random.default_rng(1)
    values = np.where(rng.random((3, 5, 2)) < 0.2, np.nan, rng.random((3, 5, 2)))
    draws = bam_chance.draw(5, 3)
    assert (draws.images.sum(1) == 5).all() and (draws.trainings.sum(1) == 3).all()
    for line in range(20):
        images, trainings = (
            np.repeat(np.arange(len(one)), one.astype(int)) for one in (draws[0][line], draws[1][line])
        )
        frame = pd.DataFrame(values[trainings][:, images, 0]).mean()
        assert means(values, draws)[line, 0] == pytest.approx(frame.mean(), nan_ok=True)


def test_rho_of_one_training_is_the_literal_bootstrap():
    """What one training gave before there were several: image by image, draw by draw."""
    rng = np.random.default_rng(2)
    values, accuracy, n = rng.random((12, 4)), np.array([[0.9, 0.8, 0.9, 0.8], [0.3, 0.5, 0.6, 0.8]]), 40
    values[3, 1] = np.nan
    found, dice = [], np.random.default_rng(0)
    for _ in range(bam_chance.DRAWS):
        part = values[dice.integers(0, 12, 12)]
        with_, without = dice.binomial(n, accuracy) / n
        found.append(pearson(torch.tensor(np.nanmean(part, axis=0)), torch.tensor(with_ - without)))
    ours = bam_chance.rho_interval(values[None], accuracy[None], n)
    assert (ours.low, ours.high) == pytest.approx(tuple(np.nanquantile(found, [0.025, 0.975])))
    point = pearson(torch.tensor(np.nanmean(values, axis=0)), torch.tensor(accuracy[0] - accuracy[1]))
    assert ours.mean == pytest.approx(point) and ours.n == 12


def test_rho_of_trainings_that_disagree_is_wider():
    accuracy = np.array([[[1.0, 1.0, 1.0], [0.1, 0.5, 0.9]]] * 2)
    up = np.tile([0.9, 0.5, 0.1], (1, 6, 1))
    sure = bam_chance.rho_interval(np.concatenate([up, up]), accuracy, 1000)
    torn = bam_chance.rho_interval(np.concatenate([up, 0.5 - up]), accuracy + 0.0, 1000)
    assert sure.low > 0.9 and torn.low < -0.9 and torn.high > 0.9


def test_crossed_by_hand():
    inputs, sets = pd.Series([0.2, 0.4, 0.6]), pd.Series([0.3, 0.5])
    found = crossed(inputs, sets, bounds=(-1, 1))
    half = stats.t.ppf(0.975, 1) * np.sqrt(0.04 / 3 + 0.02 / 2)
    assert found == pytest.approx((0.4, max(0.4 - half, -1), min(0.4 + half, 1), 3)) and (found.low, found.high) == (
        -1,
        1,
    )
    narrow = crossed(inputs, pd.Series([0.4] * 30), bounds=(-1, 1))
    assert narrow.high == pytest.approx(0.4 + stats.t.ppf(0.975, 2) * np.sqrt(0.04 / 3))
    assert np.isnan(crossed(inputs, sets[:1], bounds=(-1, 1)).low)


def test_a_rate_of_one_training_is_wilsons():
    for hits in ([1.0] * 7 + [0.0] * 3, [0.0] * 5, [1.0] * 5):
        ours, known = bam_chance.rate_of(pd.Series(hits)), share_of(np.array(hits) > 0.5)
        assert ours == pytest.approx(known)
    assert bam_chance.rate_of(pd.Series([0.5, 1.0, 0.0])).mean == 0.5 and bam_chance.rate_of(pd.Series([])).n == 0


def test_concept_means_add_the_shifts_of_inputs_and_sets():
    values, sets = np.array([[[0.2], [0.4]]]), np.array([[[0.3], [0.3], [0.3]]])
    draws = Draws(np.array([[2.0, 0.0], [1.0, 1.0]]), np.ones((2, 1)))
    three = np.ones((2, 3))
    flat = means(values, draws) + means(sets, Draws(three, np.ones((2, 1)))) - 0.3
    whole = Draws(bam_chance.tally(2, 0), np.ones((bam_chance.DRAWS, 1)))
    assert flat[:, 0].tolist() == pytest.approx([0.2, 0.3])
    np.testing.assert_allclose(bam_chance.concept_means(values, sets, whole), means(values, whole))  # sets all alike


def test_correlations_against_scipy():
    one, two = np.random.default_rng(3).integers(0, 4, (2, 30, 6)).astype(float)
    one[0] = 2.0
    with np.errstate(invalid="ignore"):
        known = [
            stats.spearmanr(a, b).statistic if np.ptp(a) and np.ptp(b) else np.nan
            for a, b in zip(one, two, strict=True)
        ]
    np.testing.assert_allclose(bam_chance.rank_correlations(one, two), known)
    two[1, 2] = np.nan
    assert np.isnan(bam_chance.rank_correlations(one, two)[:2]).all()
    assert np.isnan(bam_chance.correlations(one, two)[:2]).all()


def test_ranks_by_hand():
    made = np.array([[0.1, 0.3, 0.3], [0.5, 0.2, 0.1], [0.1, np.nan, 0.2]])
    assert bam_chance.ranks(made, 0)[:2].tolist() == [3, 1] and bam_chance.ranks(made, 1)[:2].tolist() == [1, 2]
    assert np.isnan(bam_chance.ranks(made, 0)[2])


def test_series_share_their_draws():
    """A map and its double have the same ρ in every draw, so that their difference has no width."""
    rng = np.random.default_rng(4)
    values, accuracy = rng.random((2, 8, 3)), np.array([[[0.9, 0.9, 0.9], [0.2, 0.4, 0.8]]] * 2)
    known = {"one": bam_chance.Series([0.1, 0.5, 1.0], values), "two": bam_chance.Series([0.1, 0.5, 1.0], 2 * values)}
    rhos, widths = bam_chance.series_draws(known, accuracy, [0.1, 0.5, 1.0], 50)
    np.testing.assert_allclose(rhos["one"], rhos["two"])
    np.testing.assert_allclose(2 * widths["one"], widths["two"])
    assert len(rhos) == bam_chance.DRAWS and rhos["one"].std() > 0
