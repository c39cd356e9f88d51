import numpy as np
import pytest
from report.by_hand import run_of, scores
from report.made_up import row

from forsooth.report.leaderboard import board, leaderboard
from forsooth.report.medians import Medians, medians, where


def width(table: Medians, method: str = "a") -> float:
    line = board(table).set_index("method").loc[method]
    return float(line["high"] - line["low"])


def test_models_of_one_dataset_share_samples_and_no_trainings() -> None:
    values = np.random.default_rng(0).random(9)
    rows = [*scores("a", values), *scores("a", values, model="MLP"), *scores("a", values, data="b")]
    chance = medians(run_of(rows), "m").chance
    assert [panel.dataset for panel in chance] == [0, 0, 1]
    assert len({panel.network for panel in chance}) == 3


def test_other_ends_of_one_network_share_samples_and_trainings() -> None:
    rows = [{**entry, "end": end} for end in ("top", "bottom") for entry in scores("a", np.arange(5.0))]
    chance = medians(run_of(rows, factors=["data", "model", "end"]), "m").chance
    assert {(panel.dataset, panel.network) for panel in chance} == {(0, 0)}


def test_the_same_samples_seen_twice_are_no_more_than_once() -> None:
    """Two models that agree on every sample know no more than one; two datasets do."""
    values = np.random.default_rng(0).random(40)
    once = width(medians(run_of(scores("a", values)), "m"))
    twice = width(medians(run_of([*scores("a", values), *scores("a", values, model="MLP")]), "m"))
    apart = width(medians(run_of([*scores("a", values), *scores("a", values, data="b")]), "m"))
    assert twice == pytest.approx(once, rel=0.15)
    assert apart == pytest.approx(once / np.sqrt(2), rel=0.15)


def test_the_seed_of_a_null_is_no_training() -> None:
    """Nulls carry seed -1 in some suites: a method with seeds 0 and 1 has two trainings, not three."""
    rng = np.random.default_rng(0)
    rows = [entry for seed in (0, 1) for entry in scores("a", rng.random(9), seed=seed)]
    rows += scores("random", rng.random(9), model="none", seed=-1)
    (panel,) = medians(run_of(rows), "m").chance
    assert panel.seeds.tolist() == [0, 1]
    assert panel.trainings.shape == (2, 2)
    assert panel.trainings[1].std() == 0 and panel.several.tolist() == [True, False]
    assert leaderboard(run_of(rows), "m").set_index("method")["over"].to_dict() == {
        "a": "samples and trainings",
        "random": "samples",
    }


def test_interval_covers_the_true_score_and_is_no_wider_than_it_must() -> None:
    """The score is a mean of two medians of normal samples, so that its standard error is known."""
    rng = np.random.default_rng(5)
    covered = []
    widths = []
    for _ in range(80):
        rows = [*scores("a", rng.normal(0.4, 0.1, 41)), *scores("a", rng.normal(0.6, 0.1, 41), data="b")]
        line = leaderboard(run_of(rows), "m").iloc[0]
        covered.append(line["low"] <= 0.5 <= line["high"])
        widths.append(line["high"] - line["low"])
    error = 0.1 * np.sqrt(np.pi / 2 / 41) / np.sqrt(2)
    assert np.mean(covered) >= 0.9
    assert np.mean(widths) == pytest.approx(2 * 1.96 * error, rel=0.2)


@pytest.mark.parametrize("shift, tied", [(0.0, True), (0.15, False)])
def test_equal_methods_tie_and_unequal_ones_do_not(shift: float, tied: bool) -> None:
    rng = np.random.default_rng(7)
    same = 0
    for _ in range(25):
        ease = rng.normal(0.5, 0.2, 60)  # what samples have in common; pairing takes it away
        rows = [*scores("a", ease + rng.normal(0, 0.05, 60)), *scores("b", ease + shift + rng.normal(0, 0.05, 60))]
        same += leaderboard(run_of(rows, metric={"better": "higher"}), "m")["group"].tolist() == ["A", "A"]
    assert same >= 24 if tied else same <= 1


def test_where_keeps_some_panels(tables: dict[str, Medians]) -> None:
    table = tables["emd"]
    llr = where(table, table.panels["model"].eq("LLR").to_numpy())
    assert set(llr.panels["model"]) == {"LLR"}
    assert "guided_grad_cam" in table.methods and "guided_grad_cam" not in llr.methods
    assert set(llr.rows["model"]) == {"LLR"}
    assert llr.value.shape == (2, len(llr.methods))
    np.testing.assert_array_equal([panel.value for panel in llr.chance], llr.value)


def test_a_method_unknown_to_the_run_takes_part() -> None:
    made = run_of(scores("a", [0.1, 0.2]))
    made.run["methods"].clear()
    assert medians(made, "m").methods == ("a",)


def test_no_scores_no_panels() -> None:
    made = run_of([row("training", data="a", model="CNN", metric="accuracy", value=0.6, status="below gate")])
    assert len(medians(made, "m").panels) == 0


def test_of_one_value_nothing_is_known_and_nothing_is_clear() -> None:
    made = run_of([*scores("a", [0.9]), *scores("sobel", [0.1], model="none")])
    assert medians(made, "m").value.tolist() == [[0.9, 0.1]]
    line = leaderboard(made, "m").set_index("method").loc["a"]
    assert line["wins"] == 0 and np.isnan(line["low"]) and (line["rank_low"], line["rank_high"]) == (1, 2)
    assert set(leaderboard(made, "m")["group"]) == {"A"}
