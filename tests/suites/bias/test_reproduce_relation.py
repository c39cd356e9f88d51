"""Fig. 6: M_bias beside the accurate bias."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from suites.bias.anchored import an_anchor, cell_of, maps_of

from forsooth.records import Cell, Choice, Outcome, UsageError
from forsooth.scores import bias as scores
from forsooth.suites.bias import reproduce_relation as relation
from forsooth.suites.bias.data import data_spec
from forsooth.suites.bias.experiment import ON_LENET
from forsooth.suites.bias.stage import Panel

PANEL = Panel(data_spec("leaves", None, seed=0, side=32), "lenet")


def test_every_network_is_compared_with_a_surer_anchor() -> None:
    base = dataclasses.replace(ON_LENET, permutations=3, samples=2, grid=4)
    planned = relation.plan_figure_6(base, Choice())
    specs = [task.arguments["spec"] for task in planned.tasks if task.id == "bias.play"]
    assert sorted((spec["permutations"], spec["exact_up_to"]) for spec in specs) == [(3, 0), (60, 16)]
    with pytest.raises(UsageError, match="`models` must name a network for leaves"):
        relation.plan_figure_6(dataclasses.replace(base, models=("lenet", "resnet20")), Choice())


def test_both_biases_stand_in_one_row() -> None:
    anchor = an_anchor(0)
    sure = an_anchor(1)
    about = {"panel": PANEL, "parts": 1, "methods": ("a",)}
    rows = relation.both_biases(cell_of(anchor), cell_of(sure), maps_of(2), **about).rows  # type: ignore[arg-type]
    maps = maps_of(2).tensors["players"]
    ours = scores.m_bias(maps, anchor, fraction=0.1, end="top").value.tolist()
    accurate = scores.accurate_bias(maps, sure, fraction=0.1, end="top").tolist()
    assert [row.sample for row in rows] == [5, 6, 7] and {row.columns["size"] for row in rows} == {2}
    assert [row.value for row in rows] == pytest.approx(ours, rel=1e-5)
    assert [row.columns["accurate"] for row in rows] == pytest.approx(accurate)


def test_a_map_of_zeros_and_a_method_without_maps_are_rows_with_their_status() -> None:
    anchor = cell_of(an_anchor(0))
    zero = maps_of(2).tensors["players"].clone()
    zero[1] = 0
    refused = Cell(facts={"status": "error", "message": "no rule"})
    about = {"panel": PANEL, "parts": 1, "methods": ("a", "b")}
    cells = [anchor, anchor, Cell(tensors={"players": zero}), refused]
    rows = relation.both_biases(*cells, **about).rows  # type: ignore[arg-type]
    assert [row.status for row in rows] == ["ok", "zero map", "ok", "error", "error", "error"]
    assert [row.sample for row in rows[3:]] == [5, 6, 7] and all(np.isnan(row.value) for row in rows[3:])


def biases(ours: np.ndarray, accurate: np.ndarray) -> pd.DataFrame:
    rows = pd.DataFrame({"method": list("abcabc"), "sample": [0] * 3 + [1] * 3, "value": ours, "accurate": accurate})
    about = {"part": "accurate_bias", "players": 64.0, "size": 6.0, "dataset": "leaves", "model": "lenet"}
    return rows.assign(**about, status="ok")


RISING = np.arange(1.0, 7.0)


@pytest.mark.parametrize(("sign", "words"), [(1, "holds"), (-1, "is weak here")])
def test_the_relation_is_told_for_each_network(sign: int, words: str) -> None:
    rows = biases(RISING, sign * RISING)
    both = pd.concat([rows, rows.assign(model="resnet20")])
    judgement = relation.judge_figure_6(Outcome(both, {}, None, Choice()))
    first, second = judgement.words.splitlines()
    assert first.startswith("Fig. 6 on leaves, lenet: over 6 maps of 3 methods, with 6 of 64 players in S")
    assert f"Pearson's r {sign:.2f}" in first and first.endswith(f"relation {words}.")
    assert "leaves, resnet20" in second and len(judgement.table) == 12 and not judgement.table["failed"].any()


def test_maps_that_say_nothing_count_as_the_worst_and_the_relation_must_hold_without_them() -> None:
    rows = biases(RISING, np.array([1.0, 2.0, 1.0, 1.0, 1.0, 1.0]))
    silent = rows.iloc[:3].assign(value=np.nan, accurate=np.nan, status="zero map", sample=2)
    nobody = rows.iloc[:3].assign(value=np.nan, accurate=np.nan, status="no anchor", sample=3)
    judgement = relation.judge_figure_6(Outcome(pd.concat([rows, silent, nobody]), {}, None, Choice()))
    last = judgement.table.iloc[-1]
    assert len(judgement.table) == 9 and (last["m_bias"], last["accurate"], last["failed"]) == (6, 2, True)
    with_all = np.corrcoef(judgement.table["m_bias"], judgement.table["accurate"])[0, 1]
    assert with_all > relation.POSITIVE and f"have Pearson's r {with_all:.2f}" in judgement.words
    assert "3 maps (33%) say nothing and count as the worst in both" in judgement.words
    assert "without them Pearson's r -0.39" in judgement.words and "is weak here." in judgement.words
