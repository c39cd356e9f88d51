"""Table 13 and Fig. 8: exact Shapley values of a few features."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import forsooth
from forsooth.games.shapley import Estimate
from forsooth.records import Cell, Choice, Judgement, Outcome
from forsooth.scores.bias import deep_shap_distance, m_bias
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import reproduce_tabular as tabular
from forsooth.suites.bias.data import data_spec
from forsooth.suites.bias.stage import Panel

TABLE_13 = tabular.TABLE_13

PANEL = Panel(data_spec("interactions", None, seed=0, side=32), "mlp5")
ONLY = {"dataset": "interactions"}


def a_table(place: Path) -> None:
    drawn = np.random.default_rng(0)
    frame = pd.DataFrame(drawn.normal(size=(60, 4)), columns=list("abcd"))
    frame["label"] = (frame["a"] > 0).astype(int)
    frame.to_csv(place, index=False)


def test_all_tables_at_hand_are_played(tmp_path: Path) -> None:
    assert tabular.tables_here(Choice()) == ["interactions"]
    for name in ("one", "two", "three"):
        a_table(tmp_path / f"{name}.csv")
    here = tabular.tables_here(Choice(data=str(tmp_path)))
    assert here[0] == "interactions" and set(here) == {"interactions", "one", "two", "three"}
    assert tabular.tables_here(Choice(data=str(tmp_path), only={"dataset": ("two",)})) == ["two"]


def test_every_table_is_compared_once(tmp_path: Path) -> None:
    a_table(tmp_path / "one.csv")
    planned = tabular.plan_table_13(TABLE_13, Choice(data=str(tmp_path)))
    compared = [task for task in planned.tasks if task.id == "bias.rivals"]
    assert [task.arguments["panel"]["source"]["name"] for task in compared] == ["interactions", "one"]
    by_key = {task.key: task for task in planned.tasks}
    games = [by_key[key].arguments["spec"]["exact_up_to"] for key in compared[0].needs[:-1]]
    assert sorted(set(games)) == [0, 12] and games == sorted(games)


def an_estimate(values: torch.Tensor) -> Estimate:
    groups = values[:, None] + 0.01 * torch.randn(len(values), 2, values.shape[1], generator=torch.manual_seed(0))
    return Estimate(values, 0.01 * torch.ones_like(values), groups.double(), torch.tensor([2.0, 2.0]).double(), 4)


def test_exact_values_are_judged_by_both_metrics() -> None:
    values = torch.randn(3, 10, generator=torch.Generator().manual_seed(1)).double()
    sampled = an_estimate(values + 0.05)
    exact = an_estimate(values)
    deep = torch.rand(5, 10).double()
    cells = [
        Cell(tensors=anchors.packed(estimate, torch.arange(3)), facts={"permutations": 4})
        for estimate in (sampled, exact)
    ]
    rows = tabular.rivals(*cells, Cell(tensors={"players": deep}), panel=PANEL, parts=1).rows
    frame = pd.DataFrame([row.flat() for row in rows]).set_index(["fraction", "metric"])
    assert set(frame.index) == {(f, name) for f in (0.1, 0.3, 0.5, 0.7, 0.9) for name in tabular.RIVALS}
    ours = m_bias(values, sampled, fraction=0.5, end="top").value
    theirs = deep_shap_distance(values, deep[:3], fraction=0.5, end="top")
    assert frame.loc[(0.5, "m_bias"), "value"].tolist() == pytest.approx(ours.tolist(), rel=1e-5)
    assert frame.loc[(0.5, "deep_shap_distance"), "value"].tolist() == pytest.approx(theirs.tolist())
    assert (rows[0].part, rows[0].dataset, rows[0].method, rows[0].sample) == ("rivals", "interactions", "shapley", 0)
    nothing = tabular.rivals(*cells, Cell(tensors={"players": 0 * deep}), panel=PANEL, parts=1).rows
    assert all(np.isnan(row.value) for row in nothing if row.metric == "deep_shap_distance")


def outcome_of(rows: pd.DataFrame) -> Outcome:
    return Outcome(rows=rows, facts={}, settings=TABLE_13, choice=Choice())


def judged(m_bias: list[float], distance: list[float]) -> Judgement:
    """Table 13 of two columns, from the values of each input."""
    values = {"m_bias": m_bias, "deep_shap_distance": distance}
    rows = [
        {"fraction": fraction, "metric": metric, "sample": k, "value": value}
        for fraction in (0.1, 0.5)
        for metric, own in values.items()
        for k, value in enumerate(own)
    ]
    beside = pd.DataFrame({"part": ["training"], "dataset": "mine", "value": 0.9})
    rivals = pd.DataFrame(rows).assign(part="rivals", dataset="mine")
    return tabular.judge_table_13(outcome_of(pd.concat([beside, rivals]).assign(status="ok")))


@pytest.mark.parametrize(("m_bias", "words"), [(0.001, "at least 10 times"), (0.002, "only 5 times")])
def test_the_least_ratio_of_a_table_is_told(m_bias: float, words: str) -> None:
    judgement = judged([m_bias, m_bias], [0.005, 0.015])
    assert f"mine: M_bias of the exact Shapley values is {words} below" in judgement.words
    assert judgement.words.endswith("in every column (published: 19).\n")
    assert len(judgement.table) == 2 and judgement.table["published_m_bias"].tolist() == [0.0102, 0.0024]
    assert judgement.table[["m_bias_failed", "deep_shap_distance_failed"]].eq(0).all(axis=None)


def test_an_input_without_a_score_counts_as_the_worst_and_is_told() -> None:
    judgement = judged([0.001, 0.003, np.nan, 0.002], [0.02, 0.02, 0.02, 0.04])
    line = judgement.table.iloc[0]
    assert line["m_bias"] == pytest.approx((0.001 + 0.003 + 0.003 + 0.002) / 4, abs=1e-5)
    assert (line["m_bias_failed"], line["m_bias_defined"], line["deep_shap_distance_failed"]) == (0.25, 0.002, 0)
    assert line["times"] == pytest.approx(0.025 / 0.00225, abs=1e-4) and line["times_defined"] == pytest.approx(12.5)
    told = "Inputs without a score count as the worst: m_bias 25%. Left out: at least 12 times."
    assert judgement.words.strip().endswith(told)


def test_where_the_shapley_values_are_zero_there_is_nothing_to_judge() -> None:
    own = pd.DataFrame({"dataset": "mine", "fraction": 0.1, "metric": "m_bias", "value": [0.1, np.nan]})
    means = tabular.rival_means(own.assign(status=["ok", "no anchor"]), "m_bias")
    assert means.iloc[0].tolist() == [0.1, 0, 0.1]


@pytest.mark.usefixtures("one_epoch")
def test_table_13_judges_the_exact_values_twice(shelf: Path) -> None:
    few = {"samples": 8, "permutations": 400}
    table, words = forsooth.reproduce("bias/table-13", only=ONLY, out=shelf, settings=few)
    assert table["fraction"].tolist() == [0.1, 0.3, 0.5, 0.7, 0.9] and "interactions" in words
    assert (table["m_bias"] < table["deep_shap_distance"]).all()
    assert table["published_m_bias"].tolist() == [0.0102, 0.0030, 0.0024, 0.0018, 0.0015]


@pytest.mark.usefixtures("one_epoch")
def test_figure_8_names_the_least_biased(shelf: Path) -> None:
    few = {"samples": 3, "permutations": 20}
    table, words = forsooth.reproduce("bias/figure-8", only=ONLY, out=shelf, settings=few)
    means = table[~table["method"].isin(["shapley", "random", "constant", "rectified_input"])]
    best = means.groupby("method")["ours"].mean().idxmin()
    assert f"least biased are {best}" in words and set(table["dataset"]) == {"interactions"}


def test_the_published_winners_are_recognised() -> None:
    values = {"deep_shap": 0.1, "integrated_gradients": 0.05, "gradient": 0.3, "shapley": 0.0, "constant": 0.01}
    table = pd.DataFrame({"method": list(values), "ours": list(values.values())})
    assert tabular.on_least_biased(table).startswith("least biased are integrated_gradients (0.0500) and deep_shap")
    assert "; as in the paper" in tabular.on_least_biased(table)
    assert "; not as in the paper" in tabular.on_least_biased(table[table["method"].ne("deep_shap")])
