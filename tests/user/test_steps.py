"""Work is the same here and in tasks, and a task carries all that it needs."""

from functools import partial

import own_models
import pytest
import torch

from forsooth.adapters import methods
from forsooth.attributions import METHODS
from forsooth.engine import task
from forsooth.progress import Silent
from forsooth.records import Cell
from forsooth.user import steps
from forsooth.user.steps import Step


class Lines(Silent):
    def __init__(self):
        self.said = []

    def start(self, total, done):
        self.said.append((total, done))

    def step(self, name):
        self.said.append(name)


@task("test.part")
def part(*, words, value):
    return Cell(tensors={"value": torch.tensor([value * words["by"]])})


@task("test.sum")
def total(*cells, words):
    return Cell(tensors={"value": torch.stack([cell.tensors["value"] for cell in cells]).sum(0)})


SHARED = {"words": {"by": 10}}
STEPS = {
    ("part", 0): Step("one", partial(part, **SHARED, value=1), part, {"value": 1}),
    ("part", 1): Step("two", partial(part, **SHARED, value=2), part, {"value": 2}),
    ("method", "sum"): Step("sum", partial(total, **SHARED), total, {}, needs=(("part", 0), ("part", 1))),
}


@pytest.mark.parametrize("kept", [False, True])
def test_steps_are_done_in_their_order_with_what_they_need(kept, tmp_path):
    lines = Lines()
    folder = tmp_path if kept else None
    cells = steps.carry_out(STEPS, SHARED, folder, workers=1, progress=lines)
    assert list(cells) == list(STEPS) and cells["method", "sum"].tensors["value"].item() == 30
    assert lines.said == [(3, 0), "one", "two", "sum"]
    assert (tmp_path / "store").exists() == kept


def test_finished_steps_are_not_done_again(tmp_path):
    steps.carry_out(STEPS, SHARED, tmp_path, workers=1, progress=None)
    lines = Lines()
    cells = steps.carry_out(STEPS, SHARED, tmp_path, workers=1, progress=lines)
    assert lines.said == [(3, 3)] and cells["part", 1].tensors["value"].item() == 20


def test_what_lives_in_memory_is_done_here(tmp_path):
    steps.carry_out(STEPS, None, tmp_path, workers=1, progress=None)
    assert not (tmp_path / "store").exists()
    named = [methods.named(one, METHODS) for one in ("gradient", own_models.says_x)]
    assert steps.shared_arguments({"seed": 0}, "d", named[:1]) == {"words": {"seed": 0}, "digest": "d"}
    assert steps.shared_arguments({"seed": 0}, "d", named) is None
    assert steps.shared_arguments(None, "d", named[:1]) is None
