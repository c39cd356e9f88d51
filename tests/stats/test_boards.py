"""Boards from panels and from plain means, against comparisons made one by one."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from forsooth.stats import boards
from forsooth.stats.differences import differing, pairs
from forsooth.stats.panels import Panel, panel_of
from forsooth.stats.spread import half_widths, spread_of

ALL = np.ones(4, dtype=bool)


def panels(*, missing: tuple[int, ...] = ()) -> list[Panel]:
    """Three panels of four methods, each better than the one before; `missing` took no part in the last panel."""
    rng = np.random.default_rng(0)
    found = []
    for dataset in range(3):
        scores = rng.normal(0, 0.05, (4, 30, 4)) + np.arange(4)[:, None, None]
        if dataset == 2:
            scores[list(missing)] = np.nan
        found.append(panel_of(scores, dataset=dataset, network=dataset))
    return found


def test_a_board_of_methods_that_are_far_apart() -> None:
    board = boards.standings(panels(), sign=1, rival=ALL)
    assert board.groups == ["D", "C", "B", "A"] and board.order.tolist() == [3, 2, 1, 0]
    assert board.ranks.tolist() == [[4, 3, 2, 1]] * 3
    assert board.score == pytest.approx(np.arange(4), abs=0.05)
    assert board.panels.tolist() == [3] * 4
    turned = boards.standings(panels(), sign=-1, rival=ALL)
    assert turned.groups == ["A", "B", "C", "D"] and turned.order.tolist() == [0, 1, 2, 3]


def test_intervals_and_pairs_of_whole_boards_are_those_of_all_panels() -> None:
    half = half_widths(spread_of(panels()))[:-1, -1]
    np.testing.assert_array_equal(boards.board_half_widths(panels()), half)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_array_equal(boards.board_pvalues(panels(), rival=ALL)[off], pairs(panels())[off])


def test_who_missed_a_panel_is_compared_where_both_took_part() -> None:
    board = boards.standings(panels(missing=(3,)), sign=1, rival=ALL)
    assert board.groups == ["C", "B", "A", ""] and board.panels.tolist() == [3, 3, 3, 2]
    assert board.order.tolist() == [2, 1, 0, 3]  # below the others, though the best
    assert board.ranks[:, 3].tolist() == [1, 1, 1] and board.ranks[0, :3].tolist() == [3, 2, 1]
    own = half_widths(spread_of([panel.take([3]) for panel in panels()[:2]]))[0, 1]
    assert board.half[3] == own
    two = pairs(panels()[:2])
    found = boards.board_pvalues(panels(missing=(3,)), rival=ALL)
    np.testing.assert_array_equal(found[3, :3], two[3, :3])
    np.testing.assert_array_equal(found[:3, 3], two[3, :3])


def test_the_oracle_is_no_rival() -> None:
    rival = np.array([True, True, True, False])
    board = boards.standings(panels(), sign=1, rival=rival)
    assert board.groups == ["C", "B", "A", ""] and np.isnan(board.ranks[:, 3]).all()
    assert board.ranks[0, :3].tolist() == [3, 2, 1] and board.order.tolist() == [3, 2, 1, 0]
    assert np.isnan(boards.board_pvalues(panels(), rival=rival)[3]).all()


def test_what_an_interval_is_over() -> None:
    scores = np.random.default_rng(0).random((2, 5, 2))
    scores[1, :, 1] = np.nan  # one training
    assert boards.interval_sources([panel_of(scores)]) == ["samples and trainings", "samples"]
    assert boards.interval_sources([panel_of(scores[:, :, :1])]) == ["samples", "samples"]


def test_rows_become_panels() -> None:
    rows = pd.DataFrame(
        [(0, "a", 7, 1, 0.1), (0, "a", 3, 1, 0.5), (0, "b", 7, 1, 0.9), (1, "b", 3, 0, 0.2)],
        columns=["panel", "method", "sample", "model_seed", "value"],
    )
    one, two = boards.panels_of(rows, methods=("b", "a"), datasets=np.array([4, 4]), networks=np.array([5, 6]))
    assert one.samples.tolist() == [3, 7] and one.seeds.tolist() == [1]
    assert one.value.tolist() == pytest.approx([0.9, 0.3])
    assert two.value[0] == 0.2 and np.isnan(two.value[1])
    assert (one.dataset, one.network, two.dataset, two.network) == (4, 5, 4, 6)


def test_panels_that_differ_in_some_factors_alone_share() -> None:
    factors = pd.DataFrame({"data": ["a", "a", "b"], "model": ["x", "y", "x"]})
    assert boards.shared_by(factors, whatever=("model", "end")).tolist() == [0, 0, 1]
    assert boards.shared_by(factors, whatever=("data", "model")).tolist() == [0, 0, 0]


def test_columns_beside_a_score() -> None:
    rows = pd.DataFrame(
        [("a", 0, seed, value) for seed, value in enumerate([0.1, 0.3])] + [("b", 0, 0, 0.5)],
        columns=["method", "panel", "model_seed", "value"],
    )
    assert boards.quartiles(rows).loc["a"].tolist() == pytest.approx([0.15, 0.2, 0.25])
    spread = boards.spread_of_trainings(rows)
    assert spread["a"] == pytest.approx(np.std([0.1, 0.3], ddof=1)) and np.isnan(spread["b"])


def test_means_have_students_intervals_and_paired_differences() -> None:
    values = np.random.default_rng(0).random((3, 20))
    values[2] = values[1] + 0.01 + np.linspace(0, 1e-3, 20)  # a small difference, but of all samples alike
    half, differ = boards.compared_means(values)
    for own, line in zip(half, values, strict=True):
        ends = stats.ttest_1samp(line, 0).confidence_interval()
        assert 2 * own == pytest.approx(ends.high - ends.low)
    assert differ[1, 2] and not differ[0, 1] and not differ.diagonal().any()
    alone = boards.compared_means(values, rivals=np.array([True, True, False]))[1]
    assert not alone.any()


def test_a_common_error_widens_the_interval() -> None:
    values = np.random.default_rng(0).random((2, 20))
    parts = np.full((2, 30), 0.05)
    wide = boards.compared_means(values, parts)[0]
    assert (wide > boards.compared_means(values)[0] * 2).all()
    scaled = boards.compared_means(values, parts, scale=4.0)[0]
    np.testing.assert_allclose(scaled, wide)


def test_of_no_sample_nothing_is_known() -> None:
    half, differ = boards.compared_means(np.empty((3, 0)))
    assert np.isnan(half).all() and not differ.any() and differ.shape == (3, 3)


def test_better_means_against_scipy() -> None:
    values = np.random.default_rng(0).random((3, 25)) + np.array([[0.0], [0.2], [0.1]])
    mean, half, better = boards.better_means(values)
    np.testing.assert_allclose(mean, values.mean(1))
    assert better[1, 0] == pytest.approx(stats.ttest_rel(values[1], values[0], alternative="greater").pvalue)
    assert better[0, 1] == 1.0
    ends = stats.ttest_1samp(values[0], 0).confidence_interval()
    assert 2 * half[0] == pytest.approx(ends.high - ends.low)


def test_tie_groups_of_equal_methods() -> None:
    good = np.array([0.2, 0.9, 0.5])
    none = differing(np.ones((3, 3)))
    every = ~np.eye(3, dtype=bool)
    assert boards.tie_groups(good, none, ranked=np.ones(3, dtype=bool)) == ["A", "A", "A"]
    assert boards.tie_groups(good, every, ranked=np.array([True, False, True])) == ["B", "", "A"]
