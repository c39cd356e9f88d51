"""Differences between two runs: exact where they share draws, with honest intervals where they do not."""

import numpy as np
import pytest

from forsooth.stats.boards import board_half_widths
from forsooth.stats.panels import panel_of
from forsooth.stats.two_runs import independent_change, paired_change


def drawn(rng: np.random.Generator, *, shift: float = 0.0, samples: int = 60, trainings: int = 5) -> np.ndarray:
    """(1, samples, trainings) scores with what samples and what trainings do."""
    by_sample = rng.normal(0, 1, (samples, 1))
    by_training = rng.normal(0, 0.3, trainings)
    return shift + (by_sample + by_training + rng.normal(0, 0.5, (samples, trainings)))[None]


def test_the_same_draws_differ_by_the_shift_and_nothing_else():
    scores = drawn(np.random.default_rng(0))
    change = paired_change([panel_of(np.concatenate([scores, scores + 0.25]))])
    assert change.second - change.first == pytest.approx(0.25)
    assert change.half == pytest.approx(0.0, abs=1e-9) and change.pvalue < 0.001


def test_variances_of_independent_runs_add():
    rng = np.random.default_rng(1)
    first, second = ([panel_of(drawn(rng, samples=400, trainings=30))] for _ in range(2))
    change = independent_change(first, second)
    alone = [board_half_widths(panels)[0] for panels in (first, second)]
    assert change.half == pytest.approx(np.hypot(*alone), rel=0.03)  # fewer degrees of freedom alone
    assert change.first == pytest.approx(float(first[0].value[0]))


def test_intervals_of_independent_runs_hold_the_truth():
    rng = np.random.default_rng(2)
    changes = [independent_change([panel_of(drawn(rng))], [panel_of(drawn(rng, shift=0.4))]) for _ in range(300)]
    held = [abs(change.second - change.first - 0.4) <= change.half for change in changes]
    assert 0.91 <= np.mean(held) <= 0.99


def test_equal_runs_are_rarely_told_apart_and_different_ones_often():
    rng = np.random.default_rng(3)

    def found(shift: float) -> float:
        pairs = [([panel_of(drawn(rng))], [panel_of(drawn(rng, shift=shift))]) for _ in range(200)]
        return float(np.mean([independent_change(first, second).pvalue <= 0.05 for first, second in pairs]))

    assert found(0.0) <= 0.08
    assert found(2.0) >= 0.9
