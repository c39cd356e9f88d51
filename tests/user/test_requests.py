"""Requests as a task carries them, and folders that hold nothing else."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forsooth.records import UsageError
from forsooth.user.requests import answer_folder, plain_words


@dataclass(frozen=True)
class Request:
    model: Any
    inputs: Any
    threshold: float = 0.5


def test_files_are_named_in_full_and_a_model_by_its_path():
    words = plain_words(Request("a:b.npy", "x.npy"), without=("threshold",))
    assert words == {"model": "a:b.npy", "inputs": str(Path("x.npy").resolve())}
    assert plain_words(Request("a:b", Path("words")), without=("threshold",))["inputs"].endswith("/words")


@pytest.mark.parametrize("request_", [Request("a:b", np.zeros(3)), Request(np.sum, "x.npy"), Request(None, "x.npy")])
def test_what_lives_in_memory_cannot_be_carried(request_):
    assert plain_words(request_, without=("threshold",)) is None


def test_a_number_with_a_point_cannot_be_carried_unless_it_is_left_out():
    assert plain_words(Request("a:b", "x.npy")) is None


def test_folders_of_others_are_left_alone(tmp_path):
    assert answer_folder(None, "bias") is None
    new = answer_folder(tmp_path / "new", "bias")
    assert new is not None and new.is_dir()
    (new / "bias.csv").write_text("an earlier answer")
    assert answer_folder(new, "bias") == new
    with pytest.raises(UsageError, match=r"`out` must be new, empty or an earlier answer, got .*, which holds other"):
        answer_folder(new, "independence")
