"""`forsooth independence` stopped and asked again: finished work is kept, and other work is not mistaken for it."""

import itertools
import shutil
from pathlib import Path

import numpy as np
import own_models
import pandas as pd
import pytest
import torch
from torch import nn

import forsooth
from forsooth.progress import Silent
from forsooth.records import UsageError
from forsooth.user.independence import IndependenceRequest, answer, patches, work

IMAGES = np.random.default_rng(0).random((7, 1, 6, 6), dtype=np.float32)
WORDS = {"methods": ("gradient", "smooth_grad", "own_models:asked_of_image"), "patch": "size:2", "bounds": (0, 1)}
PIECES, METHODS = 3, 5  # of 3, 3 and 1 inputs; two nulls beside the methods


class Killed(BaseException):
    """No Exception, so that nothing on the way can go on after it."""


class Stops(Silent):
    """Ends the work after some cells."""

    def __init__(self, after: int) -> None:
        self.left = after

    def step(self, name: str) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


class Lines(Silent):
    def __init__(self) -> None:
        self.said: list[tuple[int, int] | str] = []

    def start(self, total: int, done: int) -> None:
        self.said.append((total, done))

    def step(self, name: str) -> None:
        self.said.append(name)


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(patches.AT_ONCE, "cpu", 3)
    np.save("x.npy", IMAGES)


@pytest.fixture
def calls(monkeypatch):
    """What was searched and asked, in order."""
    made, search, ask = [], patches.search, work.ask

    def searched(case, settings, *, start, stop):
        made.append((start, stop))
        return search(case, settings, start=start, stop=stop)

    def told(case, patched, asker):
        made.append(asker.name)
        return ask(case, patched, asker)

    monkeypatch.setattr(patches, "search", searched)
    monkeypatch.setattr(work, "ask", told)
    return made


def asked(out="answer", model="own_models:net", progress=None, **change):
    found = forsooth.independence(model, "x.npy", out=out, progress=progress, **{**WORDS, **change})
    return found, Path(out, "independence.csv").read_bytes(), Path(out, "independence.md").read_bytes()


@pytest.mark.parametrize("after", [1, PIECES, PIECES + 2])
def test_stopped_work_goes_on_and_ends_with_the_same_bytes(after, calls):
    _, *unbroken = asked("unbroken")
    every = calls.copy()
    assert len(every) == len(set(every)) == PIECES + METHODS
    calls.clear()
    with pytest.raises(Killed):
        asked(progress=Stops(after))
    assert calls == every[:after] and not Path("answer/independence.csv").exists()
    lines = Lines()
    _, *continued = asked(progress=lines)
    assert calls == every and continued == unbroken
    assert lines.said[0] == (PIECES + METHODS, after) and len(lines.said) == 1 + PIECES + METHODS - after
    calls.clear()
    _, *repeated = asked()
    assert calls == [] and repeated == unbroken


def test_progress_names_the_work():
    lines = Lines()
    asked(progress=lines)
    assert lines.said[:4] == [(PIECES + METHODS, 0)] + [
        f"functionless patches: inputs {words}" for words in ("0 to 2", "3 to 5", "6 to 6")
    ]
    assert lines.said[4] == "explain: gradient"


def test_one_lost_cell_is_made_again_alone(calls):
    _, *first = asked()
    lost = sorted(Path("answer/store/cells").glob("*/*"))[2]
    calls.clear()
    shutil.rmtree(lost)
    _, *again = asked()
    assert len(calls) == 1 and again == first


def test_other_processes_give_the_same_bytes():
    request = IndependenceRequest(
        model="own_models:net", inputs="x.npy", methods=("gradient", "smooth_grad"), patch="size:2", bounds=(0, 1)
    )
    for workers in (1, 2):
        answer(request, out=Path(str(workers)), workers=workers)
    assert Path("1/independence.csv").read_bytes() == Path("2/independence.csv").read_bytes()


def test_kept_work_and_work_in_memory_agree(calls):
    kept, *_ = asked()
    here = forsooth.independence(own_models.net(), IMAGES, **WORDS)
    pd.testing.assert_frame_equal(kept.rows, here.rows)
    assert kept.words == here.words and calls[: len(calls) // 2] == calls[len(calls) // 2 :]


def test_without_a_folder_nothing_is_written(tmp_path):
    forsooth.independence("own_models:net", "x.npy", **WORDS)
    assert [file.name for file in tmp_path.iterdir()] == ["x.npy"]


def other_weights():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return own_models.Net()


@pytest.mark.parametrize("what", ["weights", "inputs", "mask", "seed", "bounds", "target"])
def test_another_model_and_other_inputs_are_other_work(what, calls, monkeypatch):
    np.save("mask.npy", np.eye(6))
    words = {"patch": "mask.npy" if what == "mask" else "size:2", "target": 0}
    _, first, _ = asked(**words)
    made, changes = calls.copy(), {"seed": {"seed": 1}, "bounds": {"bounds": (-1, 2)}, "target": {"target": 1}}
    calls.clear()
    if what == "weights":
        monkeypatch.setattr(own_models, "net", other_weights)
    if what == "inputs":
        np.save("x.npy", IMAGES[::-1])
    if what == "mask":
        np.save("mask.npy", np.eye(6)[::-1])
    _, second, _ = asked(**{**words, **changes.get(what, {})})
    assert calls == made and second != first


def test_words_that_touch_no_patch_leave_the_patches_alone(calls):
    found, *_ = asked(methods=("gradient", "grad_cam"))
    calls.clear()
    strict, *_ = asked(methods=("gradient", "grad_cam"), threshold=0.9)
    assert calls == [] and not strict.table["attention"].equals(found.table["attention"])
    asked(methods=("gradient", "grad_cam"), layer="conv")
    assert calls == ["grad_cam"]
    calls.clear()
    asked(methods=("saliency",))
    assert calls == ["saliency"]


def test_an_edited_method_and_one_that_failed_are_asked_again(calls, monkeypatch):
    asked()
    calls.clear()
    monkeypatch.setattr("forsooth.plugins.fingerprint", lambda thing: "edited")
    asked()
    assert calls == ["own_models:asked_of_image"]
    calls.clear()
    for _ in range(2):
        found, *_ = asked(seed=1, methods=("gradient", "smooth_grad", "own_models:divides_by_zero"))
    assert found.table.set_index("method").loc["own_models:divides_by_zero", "status"] == "error"
    assert len(calls) == PIECES + METHODS + 1


def test_a_model_that_is_built_differently_each_time_is_refused(monkeypatch):
    widths = itertools.count(2)
    monkeypatch.setattr(own_models, "anew", lambda: nn.Sequential(nn.Flatten(), nn.Linear(36, next(widths))), False)
    with pytest.raises(UsageError, match="`model` must be the same whenever it is built, but own_models:anew gave"):
        asked(model="own_models:anew", methods=("gradient",))


def test_words_are_what_a_task_can_carry():
    carried = IndependenceRequest(model="a:b", inputs="x.npy", bounds=(0, 1), layer="conv", threshold=0.5).words()
    assert carried["inputs"] == str(Path("x.npy").resolve()) and carried["bounds"] == [0.0, 1.0]
    assert not {"layer", "threshold"} & set(carried)
    assert IndependenceRequest(model="a:b", inputs=IMAGES).words() is None
    assert IndependenceRequest(model=own_models.net(), inputs="x.npy").words() is None
    assert IndependenceRequest(model="a:b", inputs="x.npy", patch=np.eye(6)).words() is None
