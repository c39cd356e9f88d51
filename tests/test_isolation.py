"""Whatever a user's method does in its process, there is an answer in plain words, and the next method is as ever."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import arithmetic
import pytest
import tiny
import torch
from test_surroundings import next_method, question

from forsooth import api, isolation, mirror
from forsooth.engine import executor, make_task
from forsooth.records import UsageError
from forsooth.store import Store
from forsooth.suites import explain

ENDS = {
    "exits": "SystemExit: 3",
    "leaves_at_once": "the method ended its process, or took away",
    "hangs": "the method did not answer within 2 s",
    "kills_itself": "the process of the method was killed",
    "eats_memory": "RuntimeError",
}


@pytest.mark.parametrize("method", ENDS)
def test_a_method_that_gives_no_answer_is_an_error_row_and_reaches_no_other(method):
    expected = next_method(question())
    seconds = 2 if method == "hangs" else 60  # a busy machine takes long to fill its memory
    with isolation.limited(seconds=seconds, gigabytes=1):
        facts = explain.attribute(f"hostile_methods:{method}", question()).facts
    assert facts["status"] == "error" and facts["message"].startswith(ENDS[method])
    assert torch.equal(next_method(question()), expected)


@pytest.mark.parametrize("method", ["is_killed_once", "loses_its_parent_once"])
def test_a_method_whose_process_was_killed_is_asked_again(method, tmp_path, monkeypatch):
    monkeypatch.setenv("KILLED_ONCE", str(tmp_path / "marker"))
    cell = explain.attribute(f"hostile_methods:{method}", question())
    assert (tmp_path / "marker").exists()
    assert torch.equal(cell.tensors["maps"], question().x * 2)


def test_a_helper_that_died_before_its_first_word_is_replaced(monkeypatch):
    """The end of its pipe may be seen before the system says that it is over."""
    isolation._close()
    own = isolation.Nursery()
    isolation._running[os.getpid()] = own
    own.process.kill()
    over = threading.Event()
    end = own.end
    monkeypatch.setattr(own, "end", lambda: (over.set(), end()))
    alive = property(lambda self: self.process.poll() is None or (self is own and not over.is_set()))
    monkeypatch.setattr(isolation.Nursery, "alive", alive)
    cell = explain.attribute("hostile_methods:prints", question())
    assert torch.equal(cell.tensors["maps"], question().x * 2)


@pytest.mark.parametrize("method", ["patches_torch", "prints", "deletes_files"])
def test_a_method_that_does_harm_and_answers_reaches_no_other(method, tmp_path, monkeypatch):
    expected = next_method(question())
    (tmp_path / "kept.txt").write_text("kept")
    monkeypatch.chdir(tmp_path)
    cell = explain.attribute(f"hostile_methods:{method}", question())
    assert torch.equal(cell.tensors["maps"], question().x * 2)
    assert torch.equal(next_method(question()), expected) and Path("kept.txt").read_text() == "kept"


def test_what_a_method_deletes_in_folders_is_lost_to_no_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = [tmp_path / name for name in ("data/kept.txt", "data/deep/kept.txt", "mine/store/cells/ab/meta.json")]
    for file in kept:
        file.parent.mkdir(parents=True)
        file.write_text("kept")
    for _ in range(2):  # the second is not asked in what the first left
        assert torch.equal(answer_of("counts_files"), question().x * 2)  # and not what a run keeps
        assert torch.equal(answer_of("deletes_all_below"), question().x * 2)
        assert all(file.read_text() == "kept" for file in kept)


def answer_of(method: str) -> torch.Tensor:
    return explain.attribute(f"hostile_methods:{method}", question()).tensors["maps"]


def test_a_method_that_misses_a_file_of_a_folder_too_large_to_be_seen_is_told_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mirror, "MOST", 4)
    (tmp_path / "data").mkdir()
    for number in range(4):
        (tmp_path / "data" / f"{number}.txt").write_text(f"{number}")
    facts = explain.attribute("hostile_methods:reads_data", question()).facts
    assert facts["message"].startswith("FileNotFoundError")
    assert facts["message"].endswith(
        f"too large to be seen by a method, and to be named by its full path: {Path('data').resolve()}"
    )
    (tmp_path / "data" / "3.txt").unlink()
    assert torch.equal(answer_of("reads_data"), question().x * 2)


def test_what_is_printed_is_counted():
    cell = explain.attribute("hostile_methods:prints", question())
    assert cell.facts["said"] == ["It printed 100,000,100 bytes, which were not kept."]


@pytest.mark.parametrize("text", ["0", "nan", "-1", "many"])
def test_limits_are_numbers_above_zero(text, monkeypatch):
    monkeypatch.setenv(isolation.SECONDS, text)
    with pytest.raises(UsageError, match=f"`{isolation.SECONDS}` must be a number above 0, got '{text}'"):
        isolation.limits()


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "many", 10**400])
def test_a_limit_that_is_no_number_above_zero_is_named(value):
    with pytest.raises(UsageError, match="`method_timeout` must be a number above 0"):
        api.check("leaky_methods:tidy", method_timeout=value)
    with pytest.raises(UsageError, match="`method_memory` must be a number above 0"):
        api.check("leaky_methods:tidy", method_memory=value)


def test_limits_come_along_with_a_task(tmp_path, monkeypatch):
    """Workers on other machines have another environment."""
    task = make_task(arithmetic.limits, {}, name="limits")
    with isolation.limited(seconds=7, gigabytes=3):
        chosen = executor(1, Store(tmp_path), workers=1, on=None, timeout=None)
    chosen.submit(task)
    chosen.wait()
    assert Store(tmp_path).read(task.key).facts == {"seconds": 7.0, "gigabytes": 3.0}


def test_a_run_ends_a_method_at_its_limits_whoever_runs_it(tmp_path):
    """With a limit of a second the others of the run are as without the method that hangs."""
    asked = {"only": {**tiny.ONLY, "model": "llr"}, "settings": tiny.SETTINGS, "page": False}
    alone = api.run("xaitris", methods=["saliency"], **asked, out=tmp_path / "alone").rows
    methods = ["saliency", "hostile_methods:hangs"]
    rows = api.run("xaitris", methods=methods, method_timeout=1, workers=2, **asked, out=tmp_path / "beside").rows
    bad = rows[rows["method"] == methods[1]]
    assert set(bad["status"]) == {"error"}
    assert set(bad["message"]) == {"the method did not answer within 1 s, and its process was ended"}
    pair = [frame[frame["method"] == "saliency"].reset_index(drop=True) for frame in (alone, rows)]
    assert pair[0]["value"].equals(pair[1]["value"]) and len(pair[0])


def test_a_lambda_is_asked_here(tmp_path):
    asked = {"only": {**tiny.ONLY, "model": "llr"}, "settings": tiny.SETTINGS, "page": False}
    rows = api.run("xaitris", methods=[lambda model, x, target: x * 2], **asked, out=tmp_path / "run").rows
    own = rows[rows["method"].str.startswith("live:")]
    assert set(own["status"]) == {"ok"}


def test_a_helper_whose_asker_is_gone_ends_without_a_word():
    words = [sys.executable, "-m", "forsooth.nursery", "json"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as helper:
        helper.stdout.close()  # as when the asker is killed before the helper has begun
        assert "Traceback" not in helper.stderr.read().decode()
