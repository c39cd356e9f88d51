import io
import os
from pathlib import Path

import arithmetic
import pytest
import torch
from rich.console import Console

from forsooth.engine import execute, make_task
from forsooth.processes import IDLE, kept
from forsooth.progress import Bar, Lines, Silent
from forsooth.records import FailedTasks, UsageError
from forsooth.store import Store


def diamond(trace: str = ""):
    """Two numbers, their two sums, and the sum of those."""
    a = make_task(arithmetic.number, {"value": 1.0, "trace": trace}, name="a", version=1)
    b = make_task(arithmetic.number, {"value": 2.0, "trace": trace}, name="b", version=1)
    c = make_task(arithmetic.add, {"plus": 10.0}, [a, b], name="c", version=1)
    d = make_task(arithmetic.add, {"plus": 20.0}, [a, b], name="d", version=1)
    return [a, b, c, d, make_task(arithmetic.add, {}, [c, d], name="e", version=1)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_diamond_of_tasks(tmp_path, workers):
    tasks = diamond()
    execute(tasks, Store(tmp_path), workers=workers, progress=Silent())
    assert Store(tmp_path).read(tasks[-1].key).tensors["value"].item() == 36.0


def test_processes_that_are_kept_go_on_with_the_next_run(tmp_path, monkeypatch):
    with kept():
        execute(diamond(), Store(tmp_path / "one"), workers=2, progress=Silent())
        waiting = {worker.process.pid for worker in IDLE.workers}
        assert len(waiting) == 2
        monkeypatch.setenv("FORSOOTH_TOLD", "later")
        told = [make_task(arithmetic.told, {"word": word}, name=word) for word in ("FORSOOTH_TOLD", "PYTHONSAFEPATH")]
        execute(told, Store(tmp_path / "two"), workers=2, progress=Silent())
        found = [Store(tmp_path / "two").read(task.key).facts for task in told]
        assert [facts["said"] for facts in found] == [["later"], [os.environ.get("PYTHONSAFEPATH", "")]]
        assert {facts["process"] for facts in found} <= waiting
        monkeypatch.setattr(IDLE.workers[0], "card", "another")  # that of a process with another accelerator
        IDLE.workers[1].process.kill()
        IDLE.workers[1].process.join()
        execute(diamond(), Store(tmp_path / "three"), workers=2, progress=Silent())
        assert Store(tmp_path / "three").read(diamond()[-1].key).tensors["value"].item() == 36.0
        left = [worker.process for worker in IDLE.workers]
    assert not IDLE.workers and not any(process.is_alive() for process in left)


def test_what_a_killed_run_left_unfinished_is_swept_by_the_next(tmp_path):
    left = tmp_path / "unfinished" / f"{'ab' * 16}.0123abcd"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))
    execute(diamond(), Store(tmp_path), workers=1, progress=Silent())
    assert not left.exists()


class Heard(Silent):
    def __init__(self) -> None:
        self.doing_now: list[list[str]] = []
        self.done: list[str] = []

    def doing(self, names) -> None:
        self.doing_now.append(list(names))

    def step(self, name: str) -> None:
        self.done.append(name)


def test_what_is_being_done_is_said_before_it_is_finished(tmp_path):
    heard = Heard()
    execute(diamond(), Store(tmp_path / "one"), workers=1, progress=heard)
    assert heard.doing_now == [["a"], ["b"], ["c"], ["d"], ["e"]] and heard.done == list("abcde")
    heard = Heard()
    execute(diamond(), Store(tmp_path / "two"), workers=2, progress=heard)
    assert heard.doing_now[0] == ["a", "b"] and heard.doing_now[-1] == ["e"] and set(heard.done) == set("abcde")


def test_progress_shows_the_work_on_a_terminal_and_in_a_log(capsys):
    bar = Bar(Console(file=io.StringIO(), width=80))
    bar.start(total=2, done=0)
    bar.doing(["a very long name of a task that does not fit into its place", "another"])
    (shown,) = bar.bar.tasks
    assert shown.description.endswith("(+1)") and len(shown.description) == 32
    bar.step("a")
    bar.doing(["another"])
    assert shown.description == "another" and shown.completed == 1
    bar.step("another")
    assert bar.bar.finished
    lines = Lines()
    lines.start(total=2, done=0)
    lines.doing(["a", "b"])
    lines.step("a")
    lines.doing(["b"])
    lines.step("b")
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "begun: a; b" and said[-1].startswith("2/2 after") and len(said) == 2


def test_what_is_there_is_not_computed_again(tmp_path):
    trace = tmp_path / "trace"
    for _ in range(3):
        execute(diamond(str(trace)), Store(tmp_path / "store"), workers=1, progress=Silent())
    assert trace.read_text().split() == ["1.0", "2.0"]


def test_the_key_is_decided_by_function_version_arguments_and_needs():
    base = make_task(arithmetic.number, {"value": 1.0}, name="x", version=1)
    assert base.key == make_task(arithmetic.number, {"value": 1.0}, name="another name", version=1).key
    others = [
        make_task(arithmetic.number, {"value": 2.0}, name="x", version=1),
        make_task(arithmetic.number, {"value": 1.0}, name="x", version=2),
        make_task(arithmetic.add, {"value": 1.0}, name="x", version=1),
        make_task(arithmetic.number, {"value": 1.0}, [base], name="x", version=1),
    ]
    assert len({base.key, *(task.key for task in others)}) == 5


def test_a_damaged_cell_is_set_aside_and_made_again(tmp_path, capsys):
    store, tasks = Store(tmp_path), diamond()
    execute(tasks, store, workers=1, progress=Silent())
    (store.path(tasks[0].key) / "tensors.safetensors").write_bytes(b"rubbish")
    execute(tasks, store, workers=1, progress=Silent())
    assert store.read(tasks[0].key).tensors["value"].item() == 1.0
    assert len(list((tmp_path / "damaged").iterdir())) == 1
    assert "tensors.safetensors is missing or was changed" in capsys.readouterr().err


def test_a_recorded_failure_is_tried_again(tmp_path):
    store = Store(tmp_path / "store")
    task = make_task(arithmetic.flaky, {"marker": str(tmp_path / "marker")}, name="flaky", version=1)
    execute([task], store, workers=1, progress=Silent())
    assert store.read(task.key).facts == {"failed": True}
    execute([task], store, workers=1, progress=Silent())
    assert store.read(task.key).facts == {"status": "ok"}


def test_tasks_run_on_one_thread_and_the_callers_number_comes_back(tmp_path):
    task = make_task(arithmetic.threads, {}, name="threads", version=1)
    before = torch.get_num_threads()
    execute([task], Store(tmp_path), workers=1, progress=Silent())
    assert Store(tmp_path).read(task.key).facts == {"threads": 1}
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_task_leaves_open_reaches_no_other(tmp_path, workers):
    leaves = [make_task(arithmetic.leaves_autocast, {}, name="leaves", version=k) for k in range(2)]
    after = [make_task(arithmetic.autocast, {}, leaves, name="after", version=k) for k in range(4)]
    execute([*leaves, *after], Store(tmp_path), workers=workers, progress=Silent())
    assert [Store(tmp_path).read(task.key).facts for task in after] == 4 * [{"autocast": False}]
    assert not torch.is_autocast_enabled("cpu")


FAILURE = {"failed": True, "unfinished": True, "status": "error", "message": "broken: RuntimeError: the task broke"}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_that_breaks_is_recorded_with_those_that_need_it_and_the_run_goes_on(tmp_path, workers):
    broken = make_task(arithmetic.broken, {}, name="broken")
    needs_it = make_task(arithmetic.add, {}, [broken], name="needs it")
    last = make_task(arithmetic.add, {}, [needs_it], name="last")
    tasks = [broken, needs_it, last, *diamond()]
    with pytest.raises(FailedTasks, match=r"3 of 8 tasks failed; the first: broken: .* same command tries them again"):
        execute(tasks, Store(tmp_path), workers=workers, progress=Silent())
    cells = [Store(tmp_path).read(task.key) for task in tasks]
    assert [cell.facts for cell in cells[:3]] == [FAILURE] * 3
    assert not any(cell.rows or cell.tensors for cell in cells[:3])
    assert cells[-1].tensors["value"].item() == 36.0


def test_a_failed_task_and_those_that_need_it_are_tried_again_by_the_next_run(tmp_path, monkeypatch):
    store = Store(tmp_path / "store")
    breaks = make_task(arithmetic.broken_once, {"marker": str(tmp_path / "marker")}, name="breaks")
    tasks = [breaks, make_task(arithmetic.add, {"plus": 1.0}, [breaks], name="needs it")]
    monkeypatch.setattr("forsooth.schedule.TRIES", 1)
    with pytest.raises(FailedTasks, match=r"2 of 2 tasks failed; the first: breaks: MemoryError: too much"):
        execute(tasks, store, workers=1, progress=Silent())
    execute(tasks, store, workers=1, progress=Silent())
    assert store.read(tasks[-1].key).tensors["value"].item() == 2.0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_is_tried_twice(tmp_path, workers):
    task = make_task(arithmetic.broken_once, {"marker": str(tmp_path / "marker")}, name="breaks")
    execute([task, *diamond()], Store(tmp_path), workers=workers, progress=Silent())
    assert Store(tmp_path).read(task.key).tensors["value"].item() == 1.0


def test_a_task_that_leaves_has_failed(tmp_path):
    with pytest.raises(FailedTasks, match="leaves: SystemExit: 0"):
        execute([make_task(arithmetic.leaves, {}, name="leaves")], Store(tmp_path), workers=1, progress=Silent())


@pytest.mark.parametrize("workers", [1, 2])
def test_what_the_user_must_change_ends_the_run(tmp_path, workers):
    tasks = [make_task(arithmetic.impossible, {}, name="impossible"), *diamond()]
    with pytest.raises(UsageError, match="`this` cannot be"):
        execute(tasks, Store(tmp_path), workers=workers, progress=Silent())


def test_a_task_that_ends_its_process_twice_has_failed_and_no_other(tmp_path):
    dies = make_task(arithmetic.dies, {}, name="dies")
    once = make_task(arithmetic.dies_once, {"marker": str(tmp_path / "marker")}, name="dies once")
    after = make_task(arithmetic.add, {}, [dies], name="after")
    with pytest.raises(FailedTasks, match="2 of 8 tasks failed; the first: dies: its process died: it ran"):
        execute([dies, once, *diamond(), after], Store(tmp_path), workers=2, progress=Silent())
    assert Store(tmp_path).read(once.key).tensors["value"].item() == 1.0
    assert Store(tmp_path).read(diamond()[-1].key).tensors["value"].item() == 36.0


def test_a_task_that_ends_its_process_in_silence_has_failed_here_as_well(tmp_path):
    dies = make_task(arithmetic.dies, {}, name="dies")
    with pytest.raises(FailedTasks, match="1 of 6 tasks failed; the first: dies: SystemExit: 3"):
        execute([dies, *diamond()], Store(tmp_path), workers=1, progress=Silent())
    assert Store(tmp_path).read(diamond()[-1].key).tensors["value"].item() == 36.0


def test_no_worker_is_an_error():
    with pytest.raises(UsageError, match="`workers` must be at least 1, got 0"):
        execute([], Store(Path()), workers=0, progress=Silent())


def test_what_is_quicker_together_is_done_at_once_and_leaves_the_cells_of_each(tmp_path):
    store = Store(tmp_path)
    tasks = [make_task(arithmetic.doubled, {"value": k, "device": "cuda"}, name=f"double {k}") for k in (1, 2, 3)]
    heard = Heard()
    arithmetic.GROUPS.clear()
    execute(tasks, store, workers=1, progress=heard)
    assert arithmetic.GROUPS == [[1, 2, 3]] and heard.done == ["double 1", "double 2", "double 3"]
    assert [store.read(task.key).tensors["value"].item() for task in tasks] == [2, 4, 6]
    execute(tasks, store, workers=1, progress=heard)
    assert arithmetic.GROUPS == [[1, 2, 3]]  # nothing was left to do


def test_a_group_with_a_fault_is_done_one_by_one(tmp_path, capsys):
    tasks = [make_task(arithmetic.doubled, {"value": k, "device": "cuda", "most": "?"}, name=f"{k}") for k in (1, 2)]
    execute(tasks, Store(tmp_path), workers=1, progress=Silent())
    assert "2 at once failed, and are done one by one (TypeError: " in capsys.readouterr().err
    assert all(Store(tmp_path).read(task.key).tensors["value"].item() == -1 for task in tasks)


def test_a_group_that_an_accelerator_cannot_take_is_halved_and_one_task_goes_its_usual_way(tmp_path):
    tasks = [make_task(arithmetic.doubled, {"value": k, "device": "cuda", "most": 2}, name=f"{k}") for k in range(5)]
    arithmetic.GROUPS.clear()
    execute(tasks, Store(tmp_path), workers=1, progress=Silent())
    assert arithmetic.GROUPS == [[0, 1], [3, 4]]  # 5 fell into 2 and 3, and 3 into 1 and 2
    assert Store(tmp_path).read(tasks[2].key).tensors["value"].item() == -1
