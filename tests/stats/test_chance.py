"""Small versions of `benchmarks/chance.py`: are we as sure as we say?"""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from forsooth.stats.differences import differing, pairs


@pytest.fixture(scope="module")
def chance() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "chance.py"
    spec = importlib.util.spec_from_file_location("chance", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "panels, samples, trainings, spread, kept",
    [
        (1, 10, 2, 0.05, 0.5),  # the percentile bootstrap: 0.81
        (1, 100, 3, 0.05, 0.0),  # 0.88
        (1, 20, 5, 0.15, 0.5),  # 0.87
        (4, 20, 2, 0.03, 1.0),
        (1, 200, 10, 0.0, 0.5),
        (1, 5, 10, 0.0, 0.5),  # 0.92 where five samples are asked for their kurtosis
        (1, 5, 5, 0.03, 1.0),
        (1, 8, 10, 0.03, 0.5),
        (1, 10, 10, 0.03, 1.0),
        (1, 12, 10, 0.05, 1.0),
        (1, 20, 10, 0.03, 1.0),
    ],
)
def test_intervals_cover(
    chance: ModuleType, panels: int, samples: int, trainings: int, spread: float, kept: float
) -> None:
    rng = np.random.default_rng(1)
    size = {"panels": panels, "methods": 1, "samples": samples, "trainings": trainings, "spread": spread, "kept": kept}
    covered = np.mean([chance.covered(chance.scores(rng, **size)) for _ in range(400)])
    assert 0.92 <= covered <= 0.98


def test_ten_and_twelve_samples_cover_as_well_as_many(chance: ModuleType) -> None:
    """Where ten samples are asked for their kurtosis, 0.927 of these intervals hold the truth, and 0.949 now."""
    rng = np.random.default_rng(1)
    size = {"panels": 1, "methods": chance.ALONE, "trainings": 10, "kept": 1.0, "alike": 0.0}
    shares = [
        chance.share_of(chance.covered, 60, rng, samples=samples, spread=spread, **size)
        for samples in (10, 12)
        for spread in (0.03, 0.05)
    ]
    assert 0.937 <= np.mean(shares) <= 0.97  # of 12,000 intervals: ± 0.004


@pytest.mark.parametrize(
    "panels, samples, trainings, spread", [(1, 50, 1, 0.0), (1, 50, 3, 0.15), (4, 20, 2, 0.05), (2, 20, 1, 0.0)]
)
def test_boards_of_equal_methods_name_no_difference(
    chance: ModuleType, panels: int, samples: int, trainings: int, spread: float
) -> None:
    """Without a correction more than half of these boards name one."""
    rng = np.random.default_rng(2)
    size = {"panels": panels, "methods": 24, "samples": samples, "trainings": trainings, "spread": spread}
    named = [chance.any_named(chance.scores(rng, **size)) for _ in range(30)]
    assert np.mean(named) <= 0.1  # 4 of 30 come in 6 of 100 tests where the truth is 0.05


def test_a_panel_with_unsteady_trainings_is_not_taken_for_the_others(chance: ModuleType) -> None:
    """Where all panels are taken to spread alike, a third of these boards name a difference."""
    rng = np.random.default_rng(5)
    size = {"panels": 8, "methods": 24, "samples": 200, "trainings": 2, "spread": chance.UNEVEN}
    assert np.mean([chance.any_named(chance.scores(rng, **size)) for _ in range(20)]) <= 0.1


@pytest.mark.parametrize("samples", [2, 3, 5])
def test_few_samples_never_tell_equal_methods_apart(chance: ModuleType, samples: int) -> None:
    rng = np.random.default_rng(3)
    size = {"panels": 1, "methods": 2, "samples": samples, "trainings": 1, "spread": 0.0}
    assert not any(differing(pairs(chance.scores(rng, **size))).any() for _ in range(100))


def test_a_true_difference_is_named(chance: ModuleType) -> None:
    rng = np.random.default_rng(4)
    size = {"panels": 8, "methods": 8, "samples": 40, "trainings": 3, "spread": 0.03, "ahead": 0.2}
    named = [differing(pairs(chance.scores(rng, **size))) for _ in range(20)]
    assert np.mean([found[0, 1:].all() for found in named]) >= 0.9
    assert np.mean([found[1:, 1:].any() for found in named]) <= 0.1
