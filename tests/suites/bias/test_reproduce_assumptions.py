"""Fig. 4b, Tables 14 and 15: what the metric takes for granted."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from forsooth.records import Cell, Choice, Outcome, Row
from forsooth.scores.masking import order_dependence
from forsooth.suites.bias import reproduce_assumptions as assumptions
from forsooth.suites.bias.data import data_spec
from forsooth.suites.bias.experiment import ON_LENET
from forsooth.suites.bias.stage import Panel

PANEL = Panel(data_spec("leaves", None, seed=0, side=32), "lenet")
SETTINGS = dataclasses.replace(ON_LENET, samples=9, permutations=5)


def outcome_of(rows: pd.DataFrame) -> Outcome:
    training = pd.DataFrame({"part": ["training"], "dataset": "leaves", "model": "lenet", "value": 0.9})
    return Outcome(pd.concat([training, rows.assign(dataset="leaves", model="lenet")]), {}, SETTINGS, Choice())


def test_a_player_that_always_adds_the_same_depends_on_no_order() -> None:
    gains = torch.tensor([[1.0, 1.0], [1.0, 3.0], [1.0, -1.0], [1.0, 1.0]]).double()
    still, moving = assumptions.player_rows(Row("bias", "contexts", sample=4), gains)
    assert (still.value, still.columns) == (1.0, {"place": 0, "median": 1.0, "largest": 1.0})
    assert moving.sample == 4 and moving.columns["largest"] == 3.0
    assert moving.value == pytest.approx(order_dependence(gains[None])[0, 1].item())


def test_players_far_above_their_mean_are_counted() -> None:
    rows = pd.DataFrame(
        {"sample": 1, "place": [0.0, 1.0], "value": [2.0, np.inf], "median": 1.5, "largest": [2.0, 9.0]}
    )
    judgement = assumptions.judge_figure_4b(outcome_of(rows.assign(part="contexts")))
    assert list(judgement.table) == ["sample", "player", "mean", "median", "largest"]
    assert judgement.table["player"].tolist() == [0, 1]
    assert "is 1.5 for the middle player" in judgement.words and "is 2.0. 50% of the players" in judgement.words


def test_table_14_asks_a_method_and_table_15_plays() -> None:
    fourteen = assumptions.plan_regions(SETTINGS, Choice(), number=14)
    fifteen = assumptions.plan_regions(SETTINGS, Choice(), number=15)
    assert [task.id for task in fourteen.tasks] == ["bias.train", "bias.explain", "bias.regions"]
    assert [task.id for task in fifteen.tasks] == ["bias.train", "bias.play", "bias.play", "bias.regions"]
    assert fourteen.tasks[1].arguments["method"] == "gradient_x_input"
    regions = fourteen.tasks[-1]
    assert regions.arguments["side"] == 32
    assert regions.arguments["seed"] == fifteen.tasks[-1].arguments["seed"]  # the same regions


@pytest.mark.parametrize("name", ["players", "values"])
def test_moments_are_those_of_the_pixels_of_three_regions(name: str) -> None:
    drawn = torch.randn(8, 64, generator=torch.Generator().manual_seed(0)).double()
    tensors = {name: drawn}
    if name == "values":
        zeros = torch.zeros(8, 64).double()
        tensors |= {"error": zeros, "groups": zeros[:, None], "samples": torch.arange(8), "noise": torch.zeros(8)}
        tensors["sizes"] = torch.ones(1)
    cell = Cell(tensors=tensors, facts={"permutations": 0})
    rows = assumptions.regions(cell, panel=PANEL, side=8, seed=3).rows
    assert [row.columns["region"] for row in rows] == [1, 2, 3] and {row.columns["values"] for row in rows} == {200}
    images = drawn.view(8, 8, 8)
    everywhere = [images[:, top : top + 5, left : left + 5] for top in range(3) for left in range(3)]
    variances = [part.var().item() for part in everywhere]
    for row in rows:
        assert min(abs(row.value - variance) for variance in variances) < 1e-9
    again = assumptions.regions(cell, panel=PANEL, side=8, seed=3).rows
    assert [row.value for row in again] == [row.value for row in rows]


@pytest.mark.parametrize(
    ("tails", "words"), [(0.2, "near Gaussian by its fourth moment"), (5.0, "far from Gaussian, with heavy tails")]
)
def test_variances_and_tails_are_told_beside_the_published(tails: float, words: str) -> None:
    rows = pd.DataFrame({"region": [1.0, 2.0, 3.0], "values": 50.0, "mean": 0.0, "value": [1.0, 2.0, 4.0]})
    rows = rows.assign(part="regions", excess_kurtosis=tails)
    judgement = assumptions.judge_regions(outcome_of(rows), number=14)
    assert judgement.words.startswith(
        "Table 14 on leaves, lenet: the variances of three regions differ by a factor of 4.00"
    )
    assert "(published 1.12)" in judgement.words and f"so the distribution is {words};" in judgement.words
    assert judgement.table["region"].tolist() == [1, 2, 3] and judgement.table["values"].dtype.kind == "i"


def test_photographs_are_asked_with_more_permutations_and_another_network() -> None:
    table_14 = next(record for record in assumptions.REPRODUCTIONS if record.name == "bias/table-14")
    assert table_14.settings.permutations == 20 and table_14.settings.models == ("lenet",)
    assert table_14.with_data.permutations == 1000 and table_14.with_data.models[0] == "resnet20"
    assert table_14.settings.samples == table_14.with_data.samples == 50
