"""A part of a run has the levels that were asked for, and every null."""

import pytest
from report import made_up

import forsooth


def test_a_board_of_one_model_keeps_the_nulls(folder):
    run = forsooth.Run(folder)
    board = run.leaderboard("ima", only={"model": "mlp", "scenario": ["LIN", "XOR"]})
    assert set(made_up.NULLS) <= set(board["method"]) and "saliency" in set(board["method"])
    assert set(board["of"]) == {2 * 2}  # scenarios × backgrounds
    rows = run.rows
    mine = rows[rows["model"].eq("MLP") & rows["scenario"].isin(["LIN", "XOR"]) & rows["metric"].eq("ima")]
    saliency = mine[mine["method"].eq("saliency")]
    by_hand = saliency.groupby(["scenario", "background"])["value"].median().mean()
    assert board.set_index("method")["score"]["saliency"] == pytest.approx(by_hand)


def test_rows_of_a_part_keep_the_nulls_too(folder):
    part = forsooth.Run(folder).part({"model": "MLP"})
    assert set(part["model"]) == {"MLP", "none"} and "seconds" in part


def test_scores_have_the_nulls_in_every_panel_and_no_strategies(folder):
    scores = forsooth.Run(folder).scores("ima", only={"scenario": "LIN", "background": "WHITE"})
    assert set(scores.loc[scores["method"].eq("random"), "model"]) == set(made_up.MODELS)
    assert not set(made_up.STRATEGIES) & set(scores["method"])
    assert scores.loc[scores["failed"], "value"].eq(0).all() and scores["failed"].any()


@pytest.mark.parametrize(
    "only, message",
    [({"modle": "MLP"}, "`only` must be a known name, got 'modle'; did you mean model"), ({"model": "MPL"}, "'MPL'")],
)
def test_what_is_not_there_is_refused(folder, only, message):
    with pytest.raises(forsooth.UsageError, match=message):
        forsooth.Run(folder).leaderboard(only=only)


def test_a_run_knows_its_metrics_and_settings_and_shows_itself(folder):
    run = forsooth.Run(str(folder))
    assert run.metrics == ("emd", "ima", "precision")
    assert isinstance(run.settings, dict) and len(run.rows) > 0
    shown = run._repr_html_()
    assert "pattern_attribution" in shown and "report.html" in shown and shown.count("<table") == 1
