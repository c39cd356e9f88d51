"""Who is explained and who is background in planted: every class, evenly, from its own split."""

from dataclasses import replace

import pandas as pd
import pytest
import torch

from forsooth.datasets.class_pairs import of_pair
from forsooth.datasets.manipulations import draw
from forsooth.datasets.plain_images import Images
from forsooth.datasets.planted import kinds_of, plant
from forsooth.records import Choice, Dataset
from forsooth.suites import SUITES
from forsooth.suites.bam import SUITE as BAM
from forsooth.suites.planted import SUITE as PLANTED
from forsooth.suites.planted import data as planted
from forsooth.suites.planted.data import DataSpec
from forsooth.suites.planted.plan import panels
from forsooth.suites.planted.questions import learned_from

CHOICE = Choice(methods=("constant",))


def even(labels: torch.Tensor, classes: int) -> bool:
    counts = torch.bincount(labels, minlength=classes)
    return int(counts.max() - counts.min()) <= 1


def sorted_by_class(classes: int = 4, each: int = 60) -> Dataset:
    """Pictures as a folder gives them: one class after the other, and so in every split."""
    y = torch.arange(classes).repeat_interleave(each)
    place = torch.arange(len(y)) % 3
    splits = {name: (place == k).nonzero()[:, 0] for k, name in enumerate(("train", "val", "test"))}
    x = torch.rand(len(y), 3, 32, 32, generator=torch.Generator().manual_seed(0))
    return Dataset("folder", x, y, None, splits, {"classes": [f"c{k}" for k in range(classes)]})


def test_images_of_a_sorted_folder_are_explained_evenly_and_stand_behind_each_other_evenly():
    mark = draw("watermark", 1, seed=0)
    spec = DataSpec(Images(None, None, 4, 60, 32, 0), None, mark, 0.5, None, seed=3)
    dataset = plant(of_pair(sorted_by_class(), None), [None, mark], r=0.5, seed=3)
    for presence, rows in planted.explained_rows(dataset, spec, samples=8).items():
        assert even(kinds_of(dataset)[rows], 4) and set(dataset.y[rows].tolist()) == {int(presence == "with")}
        assert torch.isin(rows, dataset.splits["test"]).all() and len(rows.unique()) == 8
    for role, rows in learned_from(replace(dataset, facts={**dataset.facts, "seed": 3})).items():
        assert torch.isin(rows, dataset.splits["train"]).all(), role
        assert even(dataset.strata[rows].unique(return_inverse=True)[1], 8) or len(rows) == len(dataset.splits["train"])
    rows = torch.cat([*planted.explained_rows(dataset, spec, samples=8).values()])
    table = pd.DataFrame(planted.class_counts(dataset, {"explained": rows}, where={}))
    assert table["count"].tolist() == [2] * 8 and set(table["class"]) >= {"c0, with", "c3, without"}


@pytest.mark.parametrize("preset", ["demo", "quick", "paper", "released"])
def test_planted_presets(preset):
    settings = replace(PLANTED.presets[preset], side=32, manipulations=("watermark",), trainings=2)
    settings = replace(settings, per_class=min(settings.per_class, 400), experiments=("5.1",))
    for panel in panels(settings, CHOICE):
        dataset = planted.dataset(panel.spec)
        strata = dataset.strata.unique(return_inverse=True)[1]
        assert all(even(strata[rows], 4) for rows in learned_from(dataset).values())
        for rows in planted.explained_rows(dataset, panel.spec, samples=settings.samples).values():
            pair = kinds_of(dataset)[rows].unique(return_inverse=True)[1]
            assert even(pair, 2) or settings.samples is None  # all of the test split


@pytest.mark.parametrize(("suite", "preset"), [(suite, preset) for suite in SUITES for preset in suite.presets])
def test_presets_that_print_a_board_have_two_trainings(suite, preset):
    """Every preset does. The paper's own number, where it is one, is a matter of --set trainings=1."""
    numbers = {name: value for name, value in vars(suite.presets[preset]).items() if name.endswith("trainings")}
    assert "trainings" in numbers and min(numbers.values()) >= 2, numbers


def test_weights_of_bam_from_a_folder_are_one_training(tmp_path):
    """Two would be the same network twice, and would seem to agree."""
    for given, trainings in ((None, 2), (str(tmp_path), 1)):
        settings = replace(BAM.presets["demo"], trainings=2, weights=given)
        seeds = {task.arguments["panel"]["model_seed"] for task in BAM.plan(settings, CHOICE).tasks}
        assert seeds == set(range(trainings))
