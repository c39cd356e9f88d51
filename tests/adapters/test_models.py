"""How the user's model is found and built."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

import forsooth
from forsooth.adapters import models
from forsooth.models import build
from forsooth.records import UsageError

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
        models.load_model("counts_threads:build")
        assert sys.modules["counts_threads"].seen == [1] and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_what_builds_a_model_leaves_nothing_behind_and_is_seeded():
    before = torch.get_rng_state()
    widths = {models.load_model("leaky_methods:builds").out_features for _ in range(2)}
    assert len(widths) == 1 and not torch.is_autocast_enabled("cpu")
    assert torch.equal(torch.get_rng_state(), before)


def test_what_builds_a_model_and_leaves_is_one_line():
    with pytest.raises(UsageError, match="leaky_methods:builds_and_leaves raised SystemExit: 0"):
        models.load_model("leaky_methods:builds_and_leaves")


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


def test_grad_cam_looks_at_the_last_map():
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
            self.act = nn.ReLU()
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.act(self.act(self.features(x))).mean((2, 3)))

    assert models.last_map(Twice(), torch.zeros(1, 3, 8, 8)) == "features"  # `act` runs twice
    pooled = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    assert models.last_map(pooled, torch.zeros(1, 3, 8, 8)) == "1"
    assert models.last_map(nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), torch.zeros(1, 3, 8, 8)) is None
    words = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Flatten(), nn.Linear(30, 2))
    assert models.last_map(words, torch.zeros(1, 5, 4)) is None  # (length, dims) is no space …
    sound = nn.Sequential(nn.Conv1d(4, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(18, 2))
    assert models.last_map(sound, torch.zeros(1, 4, 5)) == "1"  # … unless the network convolves along it
    assert models.last_map(nn.Sequential(nn.Linear(4, 2)), torch.zeros(1, 4)) is None


def test_grad_cam_does_not_take_the_embedding_of_patches_for_the_last_convolution():
    class Patched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 8, 4, stride=4)
            self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            return self.head(self.block(self.patches(x).flatten(2).transpose(1, 2)).mean(1))

    assert models.last_map(Patched().eval(), torch.zeros(1, 3, 8, 8)) is None
    assert models.last_map(build("vit", shape=(1, 8, 8), classes=2), torch.zeros(1, 1, 8, 8)) == "grid"
