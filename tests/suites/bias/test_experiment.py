"""One network on one dataset, and the rows that an experiment leaves."""

import dataclasses
from pathlib import Path

import pandas as pd

from forsooth.records import Choice, Outcome
from forsooth.suites.bias.experiment import ON_LENET, experiment_on_images, part_rows, photographs_or_leaves, title_of

FEW = dataclasses.replace(ON_LENET, samples=3, permutations=5, grid=8)


def test_photographs_come_first_where_they_are_at_hand(tmp_path: Path) -> None:
    assert photographs_or_leaves(Choice()) == "leaves"
    (tmp_path / "mine.csv").write_text("a,label\n1,0\n2,1\n")
    assert photographs_or_leaves(Choice(data=str(tmp_path))) == "leaves"


def test_tasks_of_an_experiment_take_its_changes() -> None:
    experiment = experiment_on_images(FEW, Choice())
    assert experiment.title == "leaves, lenet" and len(experiment.trained) == 1
    changed = experiment.having(permutations=9, grid=4)
    (game,) = changed.play("anchor")
    assert game.arguments["spec"]["permutations"] == 9 and game.arguments["spec"]["grid"] == 4
    assert game.needs == (experiment.trained[0].key,)
    (other,) = changed.play("draw 1")
    assert other.arguments["seed"] != game.arguments["seed"]
    asked = experiment.having(grid=2).explain("gradient")
    assert asked.arguments["method"] == "gradient" and asked.arguments["spec"]["grid"] == 2


def test_an_experiment_has_all_trainings_of_its_network() -> None:
    experiment = experiment_on_images(dataclasses.replace(FEW, trainings=3), Choice())
    assert len(experiment.trained) == 3 and experiment.panel.trainings == 3 and experiment.panel.training == 0


def test_counts_are_whole_numbers_beside_rows_that_have_none() -> None:
    rows = pd.DataFrame({"part": ["training", "any", "any"], "size": [None, 3, 4], "value": [0.5, 1.0, 2.0]})
    own = part_rows(Outcome(rows, {}, None, Choice()), "any", counts=("size",))
    assert own["size"].tolist() == [3, 4] and own["size"].dtype.kind == "i"
    assert own["value"].dtype.kind == "f" and list(own.index) == [0, 1]


def test_a_title_has_dataset_and_network() -> None:
    assert title_of(pd.DataFrame({"dataset": ["leaves"] * 2, "model": ["lenet"] * 2})) == "leaves, lenet"
