"""What goes wrong with machines: cards too small, tasks that hang, processes that are killed, signals."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import arithmetic
import psutil
import pytest
import torch
from test_engine import diamond

from forsooth import service
from forsooth.engine import execute, make_task
from forsooth.progress import Silent
from forsooth.records import FailedTasks, UsageError
from forsooth.schedule import Cards, Queue
from forsooth.store import Store

TESTS = Path(__file__).parent


class Said(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


def for_a_card(folder: Path, *, count: int, holds: int):
    folder.mkdir()
    shared = {"holds": holds, "folder": str(folder), "device": "cuda"}
    return [make_task(arithmetic.on_a_card, {"value": v + 1.0, **shared}, name=f"{v}") for v in range(count)]


def test_a_card_that_holds_half_of_what_its_workers_want(tmp_path):
    tasks = for_a_card(tmp_path / "card", count=24, holds=4)
    said = Said()
    execute(tasks, Store(tmp_path / "store"), workers=8, progress=said)
    values = [Store(tmp_path / "store").read(task.key).tensors["value"].item() for task in tasks]
    assert values == [v + 1.0 for v in range(24)]
    (line,) = said.lines
    assert line.startswith("too little memory on the accelerator: work cut in halves 0 times, ")
    assert line.endswith(", 0 tasks moved to the processor")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_too_large_for_the_card_runs_on_the_processor(tmp_path, workers):
    tasks = for_a_card(tmp_path / "card", count=3, holds=0)
    said = Said()
    execute(tasks, Store(tmp_path / "store"), workers=workers, progress=said)
    cells = [Store(tmp_path / "store").read(task.key) for task in tasks]
    assert [cell.tensors["value"].item() for cell in cells] == [-1.0, -2.0, -3.0]
    assert sorted(said.lines)[0] == "0: too large for the accelerator, tried again on the processor"
    assert said.lines[-1].endswith(", 3 tasks moved to the processor")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_method_too_large_for_the_card_is_asked_on_the_processor(tmp_path, workers):
    """It is no row with an error: whoever has less memory gets the same rows, later."""
    task = make_task(arithmetic.asked_of_a_method, {"device": "cuda"}, name="asks")
    halves = make_task(arithmetic.in_halves, {"device": "cuda"}, name="halves")
    said = Said()
    execute([task, halves], Store(tmp_path / "store"), workers=workers, progress=said)
    cell = Store(tmp_path / "store").read(task.key)
    assert cell.facts["status"] == "ok" and torch.equal(cell.tensors["maps"], torch.ones(4, 3))
    words = r"too little memory .*: work cut in halves [46] times, \d tries put off.*, 1 tasks moved to the processor"
    assert re.fullmatch(words, said.lines[-1])


def test_the_count_on_a_card_falls_to_what_was_seen_to_fit():
    cards = Cards()
    for key in "abcd":
        cards.take(key)
    cards.leave("a")
    assert cards.refused("a") and cards.at_once == 3
    cards.leave("b")
    assert cards.refused("b") and cards.at_once == 2
    assert not cards.has_room()
    for key in "cd":
        cards.leave(key)
    cards.take("a")
    cards.leave("a")
    assert not cards.refused("a")  # it was alone


def test_scores_go_to_cores_while_the_card_explains(tmp_path):
    explains, next_one = for_a_card(tmp_path / "card", count=2, holds=9)
    assert explains.accelerator and not diamond()[0].accelerator
    queue = Queue([explains, next_one, *diamond()[:2]], Untold())
    queue.advance()
    assert [queue.take().name for _ in range(4)] == ["0", "a", "b", "1"]


class Untold:
    def blocked(self, task) -> str:
        return ""


def test_a_device_is_found_however_deep_and_the_key_stays():
    task = make_task(arithmetic.number, {"ask": {"device": "cuda", "n": 1}}, name="deep")
    assert task.accelerator
    assert not task.on_processor().accelerator and task.on_processor().key == task.key


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_that_hangs_is_ended_and_tried_again(tmp_path, workers):
    hangs = make_task(arithmetic.hangs_once, {"marker": str(tmp_path / "marker")}, name="hangs once")
    execute([hangs, *diamond()], Store(tmp_path / "s"), workers=workers, timeout=6.0, progress=Silent())
    assert Store(tmp_path / "s").read(hangs.key).tensors["value"].item() == 1.0


def test_a_task_that_always_hangs_has_failed_and_no_other(tmp_path):
    hangs = make_task(arithmetic.hangs, {}, name="hangs")
    with pytest.raises(FailedTasks, match=r"1 of 6 tasks failed; the first: hangs: took more than 5 s"):
        execute([hangs, *diamond()], Store(tmp_path), workers=2, timeout=5.0, progress=Silent())
    assert Store(tmp_path).read(diamond()[-1].key).tensors["value"].item() == 36.0


def test_a_process_whose_asker_is_gone_ends_without_a_word(capfd):
    mine, others = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=service.serve, args=(others, None, None, ""))
    mine.close()
    process.start()
    others.close()
    process.join()
    assert process.exitcode == 0 and not capfd.readouterr().err


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_limit_of_no_time_is_an_error(tmp_path, seconds):
    with pytest.raises(UsageError, match="`task_timeout` must be more than 0 seconds"):
        execute([], Store(tmp_path), workers=1, timeout=seconds, progress=Silent())


def test_killed_processes_cost_no_cell_and_leave_nothing(tmp_path):
    """A worker is killed every few tenths of a second: they are sound tasks, and all end."""
    tasks = [make_task(arithmetic.slow, {"value": float(v)}, name=f"{v}") for v in range(40)]
    over = threading.Event()
    killer = threading.Thread(target=kill_children, args=(over, 4))
    killer.start()
    try:
        execute(tasks, Store(tmp_path), workers=2, progress=Silent())
    finally:
        over.set()
        killer.join()
    assert [Store(tmp_path).read(task.key).tensors["value"].item() for task in tasks] == list(range(40))
    assert list((tmp_path / "unfinished").iterdir()) == []


def kill_children(over: threading.Event, kills: int) -> None:
    while kills and not over.wait(1.0):
        spawned = [c for c in psutil.Process().children() if "spawn_main" in " ".join(c.cmdline())]
        if spawned:
            spawned[kills % len(spawned)].kill()
            kills -= 1


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_ends_a_run_that_hangs_within_seconds(tmp_path, sent, code, workers):
    command = [sys.executable, str(TESTS / "hanging_run.py"), str(tmp_path), workers]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=TESTS)
    until = time.monotonic() + 60
    while not (tmp_path / "marker").exists():
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)  # until it hangs
    begun = time.monotonic()
    process.send_signal(sent)
    _, said = process.communicate(timeout=20)
    assert time.monotonic() - begun < 10
    assert process.returncode == code
    assert said == "stopped; what was finished is kept, and the same command goes on from there\n"
    for _ in range(100):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("a worker outlived its parent")
