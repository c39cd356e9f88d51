"""How the user's model is found and built."""

import sys

import torch

from forsooth.doors import models

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
