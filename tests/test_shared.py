"""A dataset made once: what is mapped is what was made, by one process alone, and nothing stays behind."""

import multiprocessing
import os

import pytest
import torch

from forsooth import shared
from forsooth.records import Dataset


def made() -> Dataset:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(20, 1, 4, 4, generator=g)
    splits = {"train": torch.arange(15), "val": torch.arange(0), "test": torch.arange(15, 20)}
    truth = (x[:1, 0] > 0).expand(20, -1, -1)
    return Dataset("noise", x, torch.arange(20) % 2, truth, splits, {"n": 20, "words": ["a"]}, strata=None)


def refused() -> Dataset:
    raise AssertionError("made a second time")


@pytest.mark.skipif(shared.fcntl is None, reason="processes share nothing on Windows")
def test_what_is_mapped_is_what_was_made_and_it_is_made_once(tmp_path):
    with shared.lent(tmp_path / "here"):
        shared.once("noise", made)
        found = shared.once("noise", refused)
        whole = made()
        for name in ("x", "y", "truth"):
            torch.testing.assert_close(getattr(found, name), getattr(whole, name), rtol=0, atol=0)
        assert found.splits.keys() == whole.splits.keys()
        assert all(torch.equal(found.splits[name], rows) for name, rows in whole.splits.items())
        assert (found.name, dict(found.facts), found.strata) == (whole.name, dict(whole.facts), None)
        size = sum(file.stat().st_size for file in (tmp_path / "here" / "noise").iterdir())
        assert size < whole.x.numel() * 4 + 20 * 8 * 2 + 16 + 1000  # the one mask is kept once
    assert not (tmp_path / "here").exists() and shared.FOLDER not in os.environ


def ask(pipe) -> None:
    count = []
    shared.once("noise", lambda: count.append(1) or made())
    pipe.send(len(count))


@pytest.mark.skipif(shared.fcntl is None, reason="processes share nothing on Windows")
def test_of_processes_that_ask_at_once_one_makes_it(tmp_path):
    context = multiprocessing.get_context("fork")
    with shared.lent(tmp_path / "here"):
        pipes = [context.Pipe() for _ in range(4)]
        processes = [context.Process(target=ask, args=(there,)) for _, there in pipes]
        for process in processes:
            process.start()
        assert sum(here.recv() for here, _ in pipes) == 1
        for process in processes:
            process.join()


def test_outside_of_a_run_everybody_makes_his_own():
    assert shared.FOLDER not in os.environ
    assert shared.once("noise", made).x.shape == (20, 1, 4, 4)
