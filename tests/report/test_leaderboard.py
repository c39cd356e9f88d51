import numpy as np
import pandas as pd
import pytest
from report.by_hand import run_of, scores
from report.made_up import row

from forsooth.records import UsageError
from forsooth.report import Results
from forsooth.report.leaderboard import leaderboard


def line(made: Results, method: str) -> pd.Series:
    return leaderboard(made, "m").set_index("method").loc[method]


def test_score_is_the_mean_over_panels_of_the_median_over_seeds_and_samples() -> None:
    rows = [
        *scores("a", [0.1, 0.2, 0.9]),
        *scores("a", [0.3, 0.3, 0.4], seed=1),  # panel CNN: 0.1 0.2 0.3 0.3 0.4 0.9 -> 0.3
        *scores("a", [0.5, 0.7], model="MLP"),  # panel MLP: 0.6
    ]
    found = line(run_of(rows), "a")
    assert found["score"] == pytest.approx(0.45)
    assert found["median"] == pytest.approx(0.35)  # of all eight samples
    assert (found["q1"], found["q3"]) == pytest.approx((0.275, 0.55))
    assert found["low"] <= 0.45 <= found["high"]
    assert found["spread"] == pytest.approx(np.std([0.2, 0.3], ddof=1))  # MLP has one training
    assert (found["panels"], found["of"]) == (2, 2)


def test_a_lost_sample_earns_the_worst_value() -> None:
    lost = [
        *scores("a", [0.8, 0.8]),
        *[row("scores", method="a", metric="m", model="CNN", data="a", sample=k, status=status, value=value)
          for k, (status, value) in enumerate([("zero map", np.nan), ("error", 0.9), ("ok", np.nan)], start=2)],
    ]  # fmt: skip
    found = line(run_of(lost), "a")
    assert found["failed"] == pytest.approx(0.6)
    assert found["score"] == 0
    down = line(run_of(lost, metric={"better": "lower", "bounds": [0.0, 5.0]}), "a")
    assert down["score"] == 5
    unbounded = line(
        run_of([*lost, *scores("b", [-2.0] * 5)], metric={"better": "higher", "bounds": [None, None]}), "a"
    )
    assert unbounded["score"] == -2  # the worst that anyone got


def test_an_error_of_the_whole_cell_is_an_error_of_each_sample() -> None:
    error = row("scores", method="b", model="CNN", data="a", status="error", message="boom")
    found = line(run_of([*scores("a", [0.4, 0.6]), error]), "b")
    assert (found["score"], found["failed"], found["rank"]) == (0, 1, 2)


def test_skipped_rows_take_no_part() -> None:
    skip = row("scores", method="b", model="CNN", data="a", status="skipped", message="needs a convolution")
    assert leaderboard(run_of([*scores("a", [0.4]), skip]), "m")["method"].tolist() == ["a"]


def test_nulls_stand_in_every_panel_of_their_dataset_and_in_no_other() -> None:
    rows = [
        *scores("a", [0.4, 0.6]),
        *scores("a", [0.4, 0.6], model="MLP"),
        *scores("sobel", [0.9, 0.9], model="none"),
        *scores("sobel", [0.1, 0.1], model="none", data="no model passed its gate here"),
    ]
    found = line(run_of(rows), "sobel")
    assert (found["score"], found["panels"], found["of"], found["rank"], bool(found["null"])) == (0.9, 2, 2, 1, True)
    assert line(run_of(rows), "a")["wins"] == 0


def test_less_is_better_where_the_metric_says_so() -> None:
    rows = [*scores("a", [0.4] * 12), *scores("b", [0.1] * 12), *scores("random", [0.3] * 12, model="none")]
    board = leaderboard(run_of(rows, metric={"better": "lower", "bounds": [0.0, 1.0]}), "m")
    assert board["method"].tolist() == ["b", "random", "a"]
    assert board["rank"].tolist() == [1, 2, 3]
    assert board["wins"].tolist() == [1, 0, 0]
    assert board["group"].tolist() == ["A", "B", "C"]


def test_the_oracle_stands_on_top_without_a_rank() -> None:
    rows = [*scores("a", [0.4]), *scores("oracle", [1.0], model="none")]
    board = leaderboard(run_of(rows), "m")
    assert board["method"].tolist() == ["oracle", "a"]
    assert board["rank"].isna().tolist() == [True, False]
    assert board["group"].tolist() == ["", "A"]
    assert board["rank"].iloc[1] == 1


def test_ties_share_a_group_and_a_rank() -> None:
    rows = [*scores("a", [0.4, 0.5, 0.6] * 8), *scores("b", [0.4, 0.5, 0.6] * 8), *scores("c", [0.1, 0.2, 0.3] * 8)]
    board = leaderboard(run_of(rows), "m").set_index("method")
    assert board["group"].to_dict() == {"a": "A", "b": "A", "c": "B"}
    assert board["rank"].to_dict() == {"a": 1, "b": 1, "c": 3}
    assert board[["rank_low", "rank_high"]].loc["c"].tolist() == [3, 3]
    assert board[["rank_low", "rank_high"]].loc["b"].tolist() == [1, 2]  # either of the two may be the better


def test_a_method_of_some_panels_is_ranked_among_those_who_have_them_too() -> None:
    """`cam` knows the CNN alone, where all do badly: its score is low and its rank is first."""
    rows = [
        *scores("a", [0.9] * 12, model="MLP"),
        *scores("b", [0.8] * 12, model="MLP"),
        *[entry for name, value in {"a": 0.1, "b": 0.2, "cam": 0.3}.items() for entry in scores(name, [value] * 12)],
    ]
    board = leaderboard(run_of(rows), "m").set_index("method")
    assert board.index.tolist() == ["a", "b", "cam"]
    assert board["score"].tolist() == pytest.approx([0.5, 0.5, 0.3])
    assert board.loc["cam", ["rank", "rank_low", "rank_high", "group", "panels", "of"]].tolist() == [1, 1, 1, "", 1, 2]
    by = leaderboard(run_of(rows), "m", by="model").set_index(["model", "method"])
    assert by["rank"].loc["CNN"].to_dict() == {"cam": 1, "b": 2, "a": 3}
    assert by["rank"].loc["MLP"].to_dict() == {"a": 1, "b": 2}
    assert by["group"].loc["CNN"].tolist() == ["A", "B", "C"]


def test_wins_need_every_null_beaten() -> None:
    rows = [
        *scores("a", [0.5] * 12),
        *scores("random", [0.1] * 12, model="none"),
        *scores("sobel", [0.1] * 12, model="none"),
        *scores("oracle", [1.0] * 12, model="none"),
        *scores("a", [0.5] * 12, data="b"),
        *scores("random", [0.1] * 12, model="none", data="b"),
        *scores("sobel", [0.6] * 12, model="none", data="b"),
        *scores("oracle", [1.0] * 12, model="none", data="b"),
    ]
    assert line(run_of(rows), "a")["wins"] == 1


def test_gap_is_the_median_of_the_stored_gaps() -> None:
    gaps = [{**entry, "metric": "gap"} for entry in scores("a", [-3.0, 1.0, 2.0])]
    made = run_of([*scores("a", [0.4] * 3), *scores("b", [0.4] * 3), *gaps])
    assert line(made, "a")["gap"] == 2
    assert np.isnan(line(made, "b")["gap"])


def test_without_a_model_factor() -> None:
    made = run_of([*scores("a", [0.4]), *scores("b", [0.5], data="b")], factors=["data"])
    assert leaderboard(made, "m")["panels"].tolist() == [1, 1]


def test_unknown_names_offer_the_nearest() -> None:
    made = run_of(scores("a", [0.4]))
    with pytest.raises(UsageError, match=r"`metric` must be a known name, got 'mm'; did you mean m\?"):
        leaderboard(made, "mm")
    with pytest.raises(UsageError, match=r"`by` must be a known name, got 'modle'; did you mean model\?"):
        leaderboard(made, "m", by="modle")


def test_the_made_up_run(results: Results) -> None:
    board = leaderboard(results, "emd").set_index("method")
    assert board.index[0] == "oracle"
    assert (board["low"] <= board["score"]).all() and (board["score"] <= board["high"]).all()
    ranked = board[board["group"].ne("")]
    assert ranked["score"].is_monotonic_decreasing
    assert ranked["rank"].is_monotonic_increasing
    assert (board["rank_low"].dropna() <= board["rank"].dropna()).all()
    assert (board["rank"].dropna() <= board["rank_high"].dropna()).all()
    maps = 17 * 2 * 12 + 12  # two trainings in 18 panels, less one below its gate
    assert board.loc["pfi", "failed"] == pytest.approx(2 * 2 * 12 / maps)
    assert board.loc["guided_grad_cam", "panels"] == 8


def test_few_samples_tell_nothing_apart() -> None:
    """Five signs of one kind come by chance in 1 of 16 cases: that is not clear, however far apart the numbers are."""
    rows = [*scores("a", [0.9] * 5), *scores("b", [0.1] * 5), *scores("random", [0.2] * 5, model="none")]
    board = leaderboard(run_of(rows), "m")
    assert set(board["group"]) == {"A"} and board["wins"].sum() == 0
    assert board[["rank_low", "rank_high"]].to_numpy().tolist() == [[1, 3]] * 3


def test_two_trainings_of_one_network_tell_nothing_apart() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for method, height in {"a": 0.8, "b": 0.3}.items():
        for seed in (0, 1):
            rows += scores(method, rng.normal(height + 0.02 * seed, 0.05, 40), seed=seed)
    made = run_of(rows)
    assert set(leaderboard(made, "m")["group"]) == {"A"}
    alone = leaderboard(run_of([entry for entry in rows if entry["model_seed"] == 0]), "m")
    assert alone["group"].tolist() == ["A", "B"]  # of this network it is clear
    assert set(alone["over"]) == {"samples"} and set(leaderboard(made, "m")["over"]) == {"samples and trainings"}


def test_intervals_end_where_scores_do() -> None:
    rng = np.random.default_rng(0)
    rows = [entry for seed in (0, 1) for entry in scores("a", rng.normal(0.5 + 0.2 * seed, 0.05, 9), seed=seed)]
    line_ = line(run_of(rows), "a")
    assert (line_["low"], line_["high"]) == (0, 1)
