import numpy as np
import pytest
from report.by_hand import run_of, scores
from report.made_up import row

from forsooth.report.aggregate import Results
from forsooth.report.bootstrap import interval
from forsooth.report.leaderboard import leaderboard
from forsooth.report.medians import Medians, medians, where


def test_draws_are_the_same_at_every_call(results: Results, tables: dict[str, Medians]) -> None:
    np.testing.assert_array_equal(medians(results, "ima").draws, tables["ima"].draws)


def test_all_methods_and_models_meet_the_same_samples() -> None:
    values = np.random.default_rng(0).random(9)
    table = medians(run_of([*scores("a", values), *scores("b", values), *scores("a", values, model="MLP")]), "m")
    assert table.panels["model"].tolist() == ["CNN", "MLP"]
    a, b = table.draws[0]
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(a, table.draws[1, 0])
    assert a.std() > 0


def test_datasets_are_drawn_apart() -> None:
    values = np.random.default_rng(0).random(9)
    table = medians(run_of([*scores("a", values), *scores("a", values, data="b")]), "m")
    assert (table.draws[0] != table.draws[1]).any()


def test_seeds_are_drawn_whole() -> None:
    """Two trainings, each with one value for all samples: a draw holds the one, the other or both evenly."""
    rows = [*scores("a", [0.2] * 6), *scores("a", [0.8] * 6, seed=1), *scores("random", [0.3] * 6, model="none")]
    table = medians(run_of(rows), "m")
    drawn, times = np.unique(np.round(table.draws[0, 0], 6), return_counts=True)
    assert drawn.tolist() == [0.2, 0.5, 0.8]
    np.testing.assert_allclose(times / times.sum(), [0.25, 0.5, 0.25], atol=0.05)
    assert (table.draws[0, 1] == 0.3).all()  # a null has no training to draw


def test_interval_covers_the_true_score_and_is_no_wider_than_it_must() -> None:
    """The score is a mean of two medians of normal samples, so that its standard error is known."""
    rng, covered, widths = np.random.default_rng(5), [], []
    for _ in range(80):
        rows = [*scores("a", rng.normal(0.4, 0.1, 41)), *scores("a", rng.normal(0.6, 0.1, 41), data="b")]
        low, high = interval(medians(run_of(rows), "m", draws=200).draws[:, 0].mean(axis=0))
        covered.append(low <= 0.5 <= high)
        widths.append(high - low)
    error = 0.1 * np.sqrt(np.pi / 2 / 41) / np.sqrt(2)
    assert np.mean(covered) >= 0.9
    assert np.mean(widths) == pytest.approx(2 * 1.96 * error, rel=0.2)


@pytest.mark.parametrize("shift, tied", [(0.0, True), (0.1, False)])
def test_equal_methods_tie_and_unequal_ones_do_not(shift: float, tied: bool) -> None:
    rng, same = np.random.default_rng(7), 0
    for _ in range(25):
        ease = rng.normal(0.5, 0.2, 60)  # what samples have in common; pairing takes it away
        rows = [*scores("a", ease + rng.normal(0, 0.05, 60)), *scores("b", ease + shift + rng.normal(0, 0.05, 60))]
        same += leaderboard(run_of(rows, metric={"better": "higher"}), "m")["group"].tolist() == ["A", "A"]
    assert same >= 22 if tied else same <= 1


def test_where_keeps_some_panels(tables: dict[str, Medians]) -> None:
    table = tables["emd"]
    llr = where(table, table.panels["model"].eq("LLR").to_numpy())
    assert set(llr.panels["model"]) == {"LLR"}
    assert "guided_grad_cam" in table.methods and "guided_grad_cam" not in llr.methods
    assert set(llr.rows["model"]) == {"LLR"}
    assert llr.value.shape == (2, len(llr.methods)) == llr.draws.shape[:2]


def test_a_method_unknown_to_the_run_takes_part() -> None:
    made = run_of(scores("a", [0.1, 0.2]))
    made.run["methods"].clear()
    assert medians(made, "m").methods == ("a",)


def test_no_scores_no_panels() -> None:
    made = run_of([row("training", data="a", model="CNN", metric="accuracy", value=0.6, status="below gate")])
    assert len(medians(made, "m").panels) == 0


def test_of_one_value_nothing_is_drawn_and_nothing_is_clear() -> None:
    made = run_of([*scores("a", [0.9]), *scores("sobel", [0.1], model="none")])
    table = medians(made, "m")
    assert table.value.tolist() == [[0.9, 0.1]] and np.isnan(table.draws).all()
    line = leaderboard(made, "m").set_index("method").loc["a"]
    assert line["wins"] == 0 and np.isnan(line["low"]) and (line["rank_low"], line["rank_high"]) == (1, 1)
    assert set(leaderboard(made, "m")["group"]) == {"A"}
