"""How the user's model is found and built."""

import sys

import numpy as np
import pytest
import torch

import forsooth
from forsooth.records import UsageError
from forsooth.user import models

SOURCE = """
import torch

seen = []


def build():
    seen.append(torch.get_num_threads())
    return torch.nn.Identity()
"""


def test_a_model_is_built_on_one_thread_as_its_tasks_build_it(monkeypatch, tmp_path):
    (tmp_path / "counts_threads.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        models.given("counts_threads:build")
        assert sys.modules["counts_threads"].seen == [1] and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


SLOW = """
def build():
    raise AssertionError("built before the words were read")
"""


@pytest.mark.parametrize(
    "words, message",
    [
        ({"methods": ["gradientt"]}, "did you mean gradient"),
        ({"inputs": "nofile.npy"}, "`inputs`"),
        ({"permutations": 1}, "`permutations`"),
        ({"patch": "banana"}, "`patch` must be grid:N"),
    ],
)
def test_wrong_words_are_told_before_the_model_is_built(monkeypatch, tmp_path, words, message):
    (tmp_path / "builds_slowly.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    np.save(tmp_path / "x.npy", np.zeros((4, 1, 8, 8), dtype=np.float32))
    door = forsooth.independence if "patch" in words else forsooth.bias
    asked = {"inputs": str(tmp_path / "x.npy"), **words}
    with pytest.raises(UsageError, match=message):
        door("builds_slowly:build", asked.pop("inputs"), **asked)
