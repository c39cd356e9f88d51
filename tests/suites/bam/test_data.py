"""The scenes and cut-outs of the BAM suite: which classes, in which order, in which split."""

import dataclasses

import pytest
import torch

from forsooth.records import UsageError
from forsooth.suites.bam import data as worlds
from forsooth.suites.bam import plan as bam


def test_ten_classes_of_objects_at_most():
    images = tuple(torch.ones(4, 3, 3) for _ in range(26))
    y = torch.tensor([*range(12), *range(12), 1, 2])
    names = tuple("abcdefghijkl")
    many = worlds.Cutouts("many", images, y, names, worlds.objects.by_place(y))
    few = worlds.few_classes(many, "l")
    assert len(few.classes) == 10 and {"b", "c", "l"} <= set(few.classes) and list(few.classes) == sorted(few.classes)
    assert torch.bincount(few.y).tolist()[few.classes.index("b")] == 3


def test_the_scene_that_always_has_the_feature_can_be_chosen():
    about = {"side": 16, "scenes": 10, "cutouts": 10, "feature": "", "seed": 0}
    plain, led = (worlds.world(worlds.spec(None, **about, first=name)).scenes for name in ("", "reeds"))
    names, order = list(plain.facts["classes"]), list(led.facts["classes"])
    assert order == ["reeds", *(name for name in names if name != "reeds")]
    assert [names[k] for k in plain.y.tolist()] == [order[k] for k in led.y.tolist()] and torch.equal(plain.x, led.x)
    with pytest.raises(UsageError, match="`first` must be a known name, got 'moon'"):
        worlds.spec(None, **about, first="moon")
    with pytest.raises(UsageError, match="`first` must be a known name, got 'moon'"):
        worlds.led_by(plain, "moon")


@pytest.mark.parametrize("same", [False, True])
def test_cut_outs_of_the_test_are_new_unless_asked_otherwise(same):
    about = worlds.spec(None, side=16, scenes=10, cutouts=10, feature="", seed=0, same_objects=same)
    table = worlds.table(about, bam.sizes(dataclasses.replace(bam.QUICK, train=2, val=1, test=1)), None)
    seen = {name: set(table.cutout[rows].tolist()) for name, rows in table.splits.items()}
    assert bool(seen["train"] & seen["test"]) == same
    scenes = {name: set(table.scene[rows].tolist()) for name, rows in table.splits.items()}
    assert not scenes["train"] & scenes["test"]
