"""What the engine costs: python benchmarks/engine.py [TASKS] [WORKERS].

Empty tasks on each of the three executors, after one task that starts them; then the time until the engine knows that
all is done already, and until a whole run of as many cells has been put together again.
"""

import sys
import tempfile
import time
from pathlib import Path

from forsooth.engine import execute, make_task
from forsooth.progress import Silent
from forsooth.records import Cell, Plan, Row, Task
from forsooth.runs import Work, perform
from forsooth.store import Store

ABOUT = {"suite": "empty", "title": "", "question": "", "settings": {}, "factors": [], "levels": {}, "metrics": {}}


def empty(*, number: int) -> Cell:
    return Cell(facts={"number": number})


def row(*, number: int) -> Cell:
    return Cell(rows=(Row("empty", "scores", metric="value", sample=number, value=float(number)),))


def tasks_of(count: int, function=empty) -> list[Task]:
    return [make_task(function, {"number": number}, name=f"task {number}") for number in range(count)]


class Clock(Silent):
    """Takes the time between the first finished task and the last: what is before is the start of processes."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def step(self, name: str) -> None:
        self.times.append(time.perf_counter())


def measure(name: str, count: int, folder: Path, **means) -> None:
    clock = Clock()
    begun = time.perf_counter()
    execute(tasks_of(count), Store(folder), progress=clock, **means)
    whole = time.perf_counter() - begun
    work = clock.times[-1] - clock.times[0]
    each = 1000 * work / (count - 1)
    print(f"{name:<14}{count:>8} tasks{each:>8.2f} ms a task{1000 / each:>8.0f} tasks a second{whole:>8.1f} s in all")


def again(count: int, folder: Path) -> None:
    begun = time.perf_counter()
    execute(tasks_of(count), Store(folder), workers=1, progress=Silent())
    print(f"{count} cells found to be there after {time.perf_counter() - begun:.1f} s")


def whole_run(count: int, folder: Path) -> None:
    folder.mkdir()
    work = Work(folder, Store(folder / "store"), 1, Silent())
    for what in ("first", "again"):
        begun = time.perf_counter()
        perform(work, Plan(tuple(tasks_of(count, row))), ABOUT)
        print(f"a run of {count} cells with rows, {what}: {time.perf_counter() - begun:.1f} s")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        measure("serial", count, folder / "serial", workers=1)
        again(count, folder / "serial")
        measure(f"{workers} processes", count, folder / "processes", workers=workers)
        measure(f"Dask local:{workers}", count, folder / "dask", workers=1, on=f"local:{workers}")
        whole_run(count, folder / "run")


if __name__ == "__main__":
    main()
