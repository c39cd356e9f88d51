"""Whatever a user's method leaves behind, the next method's numbers are the same, and the cell says what it was."""

import random
import threading

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from torch import nn

from forsooth import api, surroundings
from forsooth.suites import explain

LEAKS = {
    "default_dtype": "torch's default dtype",
    "default_device": "torch's default device",
    "grad_mode": "torch's grad mode",
    "inference_mode": "torch's inference mode",
    "autocast": "autocast",
    "deterministic": "torch's deterministic algorithms",
    "precision": "the precision of matrix products",
    "threads": "the number of threads",
    "global_hook": "hooks on all modules",
    "environment": "environment variables",
    "folder": "the working folder",
    "warning_filters": "filters of warnings",
    "streams": "sys.stdout or sys.stderr",
    "weights": "the model's weights",
    "train_mode": "the model's mode",
    "requires_grad": "requires_grad of the model's weights",
    "model_hook": "hooks of the model",
}


def question() -> explain.Question:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 2))
    x = torch.randn(3, 1, 2, 2)
    target = torch.tensor([0, 1, 0])
    model.eval().requires_grad_(False)
    return explain.Question(model, x, target, background=x + 1, fit=x - 1, truth=x > 0, layer=None, seed=0)


def next_method(asked: explain.Question) -> torch.Tensor:
    return explain.attribute("integrated_gradients", asked).tensors["maps"]


@pytest.mark.parametrize("change", ["inputs", "targets"])
def test_a_method_that_writes_into_what_it_is_handed_changes_a_copy(change):
    asked = question()
    before = (asked.x.clone(), asked.target.clone())
    explain.attribute(f"leaky_methods:{change}", asked)
    assert torch.equal(asked.x, before[0]) and torch.equal(asked.target, before[1])


@pytest.mark.parametrize("leak", LEAKS)
def test_what_a_method_leaves_behind_is_named_and_reaches_no_other(leak):
    expected = next_method(question())
    asked = question()
    cell = explain.attribute(f"leaky_methods:{leak}", asked)
    assert torch.equal(next_method(asked), expected)
    assert torch.empty(1).dtype == torch.float32 and torch.is_grad_enabled()
    (sentence,) = cell.facts["said"]
    assert sentence.startswith(f"leaky_methods:{leak} left ") and LEAKS[leak] in sentence


def test_a_method_that_raises_is_cleaned_up_after_as_well():
    cell = explain.attribute("leaky_methods:raises", question())
    assert torch.get_default_dtype() == torch.float32
    assert cell.facts["status"] == "error" and "torch's default dtype" in cell.facts["said"][0]


def test_nothing_is_said_of_a_tidy_method():
    assert explain.attribute("leaky_methods:tidy", question()).facts == {"status": "ok", "message": ""}


def test_work_on_the_processor_does_not_ask_an_accelerator_that_may_be_full(monkeypatch):
    """To ask one begins with memory of it, which other processes may have."""

    def full():
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", full)
    torch.manual_seed(4)
    with surroundings.lent_randomness(3):
        drawn = torch.rand(2)
    assert torch.equal(drawn, torch.rand(2, generator=torch.Generator().manual_seed(3)))
    assert torch.equal(torch.rand(2), torch.rand(2, generator=torch.Generator().manual_seed(4)))


def test_an_accelerator_that_is_first_used_inside_has_the_callers_seed_afterwards(monkeypatch):
    seeds = []
    begun = [False, True]  # before, and from then on
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: begun.pop(0) if len(begun) > 1 else begun[0])
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    torch.manual_seed(4)
    with surroundings.lent_randomness(3):
        pass
    assert seeds == [4, 3, 4]


def test_numpy_and_random_are_seeded_and_given_back():
    before = random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
    first = explain.attribute("leaky_methods:draws_from_all", question())
    second = explain.attribute("leaky_methods:draws_from_all", question())
    assert torch.equal(first.tensors["maps"], second.tensors["maps"]) and "said" not in first.facts
    assert (random.getstate(), np.random.get_state()[1].tobytes()) == before  # noqa: NPY002


@pytest.mark.parametrize(
    "method, message",
    [
        ("ends", "Ends: enough"),
        ("on_no_device", "NotImplementedError: Cannot copy out of meta tensor"),
        ("surrogate", "ValueError: lone ? surrogate"),
    ],
)
def test_whatever_comes_of_a_method_is_an_error_row(method, message):
    facts = explain.attribute(f"leaky_methods:{method}", question()).facts
    assert facts["status"] == "error" and facts["message"].startswith(message)


def test_a_sparse_map_is_a_map():
    maps = explain.attribute("leaky_methods:sparse", question()).tensors["maps"]
    assert torch.equal(maps, question().x)


def test_a_model_that_cannot_be_copied_is_asked_all_the_same():
    asked = question()
    asked.model.lock = threading.Lock()
    assert explain.attribute("leaky_methods:tidy", asked).facts["status"] == "ok"


def test_the_values_of_a_model_that_cannot_be_copied_are_put_back():
    expected = next_method(question())
    asked = question()
    asked.model.lock = threading.Lock()
    assert "the model's weights" in explain.attribute("leaky_methods:weights", asked).facts["said"][0]
    assert torch.equal(next_method(asked), expected)


def saliency_rows(folder, *methods: str) -> pd.DataFrame:
    only = {**tiny.ONLY, "model": "llr"}
    settings = {**tiny.SETTINGS, "trainings": 1}
    rows = api.run("xaitris", methods=methods, only=only, settings=settings, out=folder).rows
    return rows.loc[rows["method"] == "saliency", ["sample", "metric", "value"]].reset_index(drop=True)


def test_in_a_run_the_rows_of_others_are_the_same_and_the_page_says_what_was_left(tmp_path):
    beside = saliency_rows(tmp_path / "beside", "leaky_methods:autocast", "saliency")
    assert len(beside) and beside.equals(saliency_rows(tmp_path / "alone", "saliency"))
    assert "leaky_methods:autocast left autocast changed." in (tmp_path / "beside" / "report.html").read_text()
