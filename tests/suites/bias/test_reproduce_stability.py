"""Fig. 5 and Proposition 1: the anchor and what it is worth."""

import dataclasses

import pandas as pd
import pytest
import torch
from suites.bias.anchored import an_anchor, cell_of, maps_of

from forsooth.records import Choice, Outcome
from forsooth.scores import bias as scores
from forsooth.scores import convergence
from forsooth.scores.convergence import anchor_instability
from forsooth.suites.bias import reproduce_stability as stability
from forsooth.suites.bias.data import data_spec
from forsooth.suites.bias.experiment import ON_LENET
from forsooth.suites.bias.stage import Panel

PANEL = Panel(data_spec("leaves", None, seed=0, side=32), "lenet")
FIGURE_5 = stability.Figure5Settings(dataclasses.replace(ON_LENET, samples=4, grid=8), (5, 9), (2, 4), 7, 3)


def test_each_number_of_permutations_and_patches_has_its_draws() -> None:
    planned = stability.plan_figure_5(FIGURE_5, Choice())
    compared = [task for task in planned.tasks if task.id == "bias.unstable"]
    about = [(task.arguments["varied"], task.arguments["permutations"]) for task in compared]
    assert about == [("samples", 5), ("samples", 9), ("variables", 7), ("variables", 7)]
    by_key = {task.key: task for task in planned.tasks}
    draws = [by_key[key] for key in compared[0].needs if by_key[key].id == "bias.play"]
    assert len({task.arguments["seed"] for task in draws}) == 3
    assert {task.arguments["spec"]["permutations"] for task in draws} == {5}
    grids = {by_key[key].arguments["spec"]["grid"] for key in compared[-1].needs}
    assert grids == {4}


def test_instabilities_are_those_of_values_and_of_their_means_over_groups() -> None:
    draws = [an_anchor(seed) for seed in (0, 1)]
    maps = [maps_of(seed) for seed in (2, 3)]
    about = {"panel": PANEL, "draws": 2, "parts": 1, "varied": "samples", "permutations": 4}
    (row,) = stability.unstable(*(cell_of(draw) for draw in draws), *maps, **about).rows  # type: ignore[arg-type]
    values = torch.stack([scores.unit(draw.values) for draw in draws])
    assert row.columns["values"] == pytest.approx(convergence.instability(values).mean().item())
    assert row.columns["players"] == 20 and row.columns["varied"] == "samples"
    assert 0 < row.value < row.columns["values"]  # means over groups vary less than single values


def test_the_same_draw_twice_is_perfectly_stable() -> None:
    values = scores.unit(an_anchor(0).values)
    same = torch.stack([values, values])
    assert anchor_instability(same, [maps_of(2).tensors["players"]]) == pytest.approx(0, abs=1e-12)


def stability_rows(values: list[float], anchor: list[float]) -> Outcome:
    rows = pd.DataFrame({"values": values, "value": anchor, "permutations": [10.0, 1000.0], "players": [64.0, 64.0]})
    rows = rows.assign(part="stability", varied="samples", dataset="leaves", model="lenet")
    training = pd.DataFrame({"part": ["training"], "dataset": "leaves", "model": "lenet", "value": 0.9})
    return Outcome(pd.concat([training, rows]), {}, FIGURE_5, Choice())


@pytest.mark.parametrize(("anchor", "words"), [(0.1, "does not hold everywhere"), (0.01, "holds")])
def test_the_anchor_must_be_much_more_stable(anchor: float, words: str) -> None:
    judgement = stability.judge_figure_5(stability_rows([0.3, 0.15], [anchor, anchor]))
    assert judgement.words.startswith("Fig. 5 on leaves, lenet: the anchor is")
    assert judgement.words.endswith(f"much the more stable one, {words}.\n")
    assert "From 10 to 1000 permutations the instability of the values falls from 0.300 to 0.150" in judgement.words
    assert judgement.table["times"].tolist() == [round(0.3 / anchor, 1), round(0.15 / anchor, 1)]


def test_factors_are_measured_for_every_group() -> None:
    anchor = an_anchor(0)
    about = {"panel": PANEL, "parts": 1, "methods": ("a", "b")}
    rows = stability.ratios(cell_of(anchor), maps_of(1), maps_of(2), **about).rows  # type: ignore[arg-type]
    assert len(rows) == 2 * len(scores.PAIRS) and {row.method for row in rows} == {"a", "b"}
    assert sorted({row.columns["size"] for row in rows}) == [2, 6, 10, 14, 18]
    first = rows[0]
    maps = maps_of(1).tensors["players"]
    expected = convergence.variance_ratio(maps, anchor, fraction=0.1, end="top").nanmedian()
    assert first.value == pytest.approx(expected.item(), rel=1e-5)


def test_the_proposition_is_judged_by_the_smallest_and_the_largest_groups() -> None:
    rows = pd.DataFrame({"fraction": [0.1, 0.9], "size": [2.0, 18.0], "value": [2.2, 90.0], "method": "a"})
    rows = rows.assign(part="proposition_1", end="top", dataset="leaves", model="lenet")
    judgement = stability.judge_proposition_1(Outcome(rows, {}, None, Choice()))
    assert "2 for |S| = 2, 90 for |S| = 18" in judgement.words
    assert "holds within 10% for the smallest groups; for the largest the factor is 5.0 times |S|" in judgement.words
    assert list(judgement.table) == ["method", "end", "fraction", "size", "factor"]
