"""Trainings of several cells at once leave the cells that each leaves alone."""

import tiny
import torch

from forsooth import group
from forsooth.engine import execute, typed
from forsooth.progress import Silent
from forsooth.records import Choice
from forsooth.settings import configured
from forsooth.store import Store
from forsooth.suites import SUITES
from forsooth.suites.xaitris import training
from forsooth.suites.xaitris.plan import plan

ONLY = {"scenario": ("LIN", "XOR"), "background": ("WHITE",), "model": ("mlp",)}


def tasks(device):
    suite = next(suite for suite in SUITES if suite.name == "xaitris")
    settings = configured(suite, "quick", {**tiny.SETTINGS, "trainings": 2})
    planned = plan(settings, Choice(only=ONLY, device=device, methods=("saliency",)))
    return [task for task in planned.tasks if task.id == "xaitris.train"]


def arguments(task):
    return typed(task.function, task.arguments)


def test_cells_made_at_once_are_those_made_one_by_one(tmp_path):
    todo = tasks("cpu")
    store = Store(tmp_path)
    execute(todo, store, workers=1, progress=Silent())
    for task, cell in zip(todo, training.work([arguments(task) for task in todo], lambda _: None), strict=True):
        alone = store.read(task.key)
        assert alone.rows == cell.rows and alone.facts == cell.facts
        assert alone.tensors.keys() == cell.tensors.keys()
        for name, value in alone.tensors.items():
            torch.testing.assert_close(cell.tensors[name], value, rtol=1e-3, atol=1e-4)


def test_what_is_trained_at_once():
    """Both datasets in one group on an accelerator, and none on a processor, where every number stays as it was."""
    assert group.groups(tasks("cpu"), arguments) == []
    todo = tasks("cuda")
    assert group.groups(todo, arguments) == [todo]
    assert group.groups(todo[:1], arguments) == []
