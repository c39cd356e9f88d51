"""Processes that run tasks: they start clean, end with their parent, and are not left behind.

Each has one task at a time and a pipe of its own, so that it is known which task ended a process or took too long.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Self

import torch

from forsooth.records import Task, Trial, UsageError
from forsooth.schedule import Attempt
from forsooth.service import CARDS, READY, SAFE_PATH, Order, serve, set_safe_path

STILLBORN = 3  # processes that end by themselves before they begin, one after the other
PATIENCE = 2.0  # seconds in which an idle process leaves by itself


@dataclass(eq=False)
class Worker:
    """One process.

    card   the accelerator that it sees; empty: all there are
    begun  when it began its task; None while it starts
    """

    process: BaseProcess
    pipe: Connection
    card: str
    ready: bool = False
    task: Task | None = None
    begun: float | None = None

    def give(self, task: Task) -> None:
        self.task = task
        self.begun = time.monotonic() if self.ready else None
        try:
            self.pipe.send(task)
        except (BrokenPipeError, ConnectionResetError):
            return  # it died while it had nothing to do; `wait` finds out

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


@dataclass
class Processes:
    """A pool of so many processes. Those that die or take more than `timeout` seconds for a task are replaced."""

    attempt: Attempt
    count: int
    timeout: float | None = None
    workers: list[Worker] = field(default_factory=list)
    stillborn: int = 0

    def __enter__(self) -> Self:
        for number in range(self.count):
            card = _card(number)
            self.workers.append(IDLE.taken(self.attempt, card) or _started(self.attempt, card))
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Where an error or a signal ends the work they are ended at once: they may be busy for hours."""
        if error is None:
            self.workers = IDLE.left_over(self.workers)
            _dismiss(self.workers)
        for worker in self.workers:
            worker.process.kill()
        for worker in self.workers:
            worker.kill()

    def room(self) -> int:
        return sum(worker.task is None for worker in self.workers)

    def submit(self, task: Task) -> None:
        idle = [worker for worker in self.workers if worker.task is None]
        if task.accelerator:
            idle.sort(key=lambda worker: self._load(worker.card))
        idle[0].give(task)

    def _load(self, card: str) -> int:
        """How many tasks an accelerator has now."""
        return sum(w.card == card and w.task is not None and w.task.accelerator for w in self.workers)

    def wait(self) -> Sequence[Trial]:
        """Trials that ended. Idle processes are watched as well, so that a dead one is given nothing."""
        heard = wait([worker.pipe for worker in self.workers], self._patience())
        trials = []
        for worker in list(self.workers):
            if worker.pipe in heard:
                trials += self._heard(worker)
            elif self._is_late(worker):
                trials += self._replaced(worker, "late", f"took more than {self.timeout:g} s")
        return trials

    def _patience(self) -> float | None:
        """Seconds until a task may be late."""
        if self.timeout is None:
            return None
        begun = [worker.begun for worker in self.workers if worker.begun is not None]
        return max(0.0, min(begun, default=time.monotonic()) + self.timeout - time.monotonic())

    def _is_late(self, worker: Worker) -> bool:
        if self.timeout is None or worker.begun is None:
            return False
        return time.monotonic() - worker.begun >= self.timeout

    def _heard(self, worker: Worker) -> list[Trial]:
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            self._count_stillborn(worker)
            return self._replaced(worker, "died", "its process died: it ran out of memory, or its code ended it")
        if message == READY:
            worker.ready = True
            self.stillborn = 0
            worker.begun = time.monotonic() if worker.task else None
            return []
        return [self._ended(worker, message)]

    def _ended(self, worker: Worker, trial: Trial) -> Trial:
        task = worker.task
        worker.task = None
        worker.begun = None
        if task is None or trial.key:
            return trial
        return replace(trial, key=task.key, reason=f"{task.name}: {trial.reason}")

    def _replaced(self, worker: Worker, fault: Any, words: str) -> list[Trial]:
        """Another process in the place of one that is dead or hangs; what became of its task."""
        worker.kill()
        self.workers[self.workers.index(worker)] = _started(self.attempt, worker.card)
        if worker.task is None:
            return []
        if not worker.ready:
            fault = "lost"  # it had not begun
        return [Trial(worker.task.key, fault, f"{worker.task.name}: {words}")]

    def _count_stillborn(self, worker: Worker) -> None:
        """UsageError where processes die as they begin, whatever they are given to do."""
        worker.process.join()
        if worker.ready or (worker.process.exitcode or 0) < 0:  # a signal ended it, so somebody killed it
            return
        self.stillborn += 1
        if self.stillborn >= STILLBORN:
            raise UsageError(
                "`workers` must be 1 here, since processes cannot be started: what a script does must stand below "
                '`if __name__ == "__main__":`'
            )


@dataclass
class Idle:
    """Processes that wait for the next run, if there is to be one: to start them takes seconds."""

    kept: bool = False
    workers: list[Worker] = field(default_factory=list)

    def left_over(self, workers: Sequence[Worker]) -> list[Worker]:
        """Keep those that have nothing to do; the others."""
        if not self.kept:
            return list(workers)
        free = [worker for worker in workers if worker.ready and worker.task is None]
        self.workers += free
        return [worker for worker in workers if worker not in free]

    def taken(self, attempt: Attempt, card: str) -> Worker | None:
        """One that sees this accelerator and is alive; None where there is none."""
        for worker in [one for one in self.workers if one.card == card]:
            self.workers.remove(worker)
            try:
                worker.pipe.send(Order(attempt, dict(os.environ)))
            except OSError:  # it died while it waited
                worker.kill()
            else:
                return worker
        return None

    def end(self) -> None:
        """End them all."""
        self.kept = False
        _dismiss(self.workers)
        for worker in self.workers:
            worker.kill()
        self.workers = []


IDLE = Idle()


@contextmanager
def kept() -> Iterator[None]:
    """The processes of one run go on with the next one inside."""
    IDLE.kept = True
    try:
        yield
    finally:
        IDLE.end()


def _dismiss(workers: Sequence[Worker]) -> None:
    """Tell processes that there is no more work, and give them a moment to leave by themselves."""
    for worker in workers:
        worker.pipe.close()
    until = time.monotonic() + PATIENCE
    for worker in workers:
        worker.process.join(max(0.0, until - time.monotonic()))


def _card(number: int) -> str:
    """The accelerator of a process: they are dealt out in turn; empty where there are fewer than two."""
    count = torch.cuda.device_count()
    if count < 2:
        return ""
    visible = os.environ.get(CARDS) or ",".join(map(str, range(count)))
    return visible.split(",")[number % count]


def _started(attempt: Attempt, card: str) -> Worker:
    context = multiprocessing.get_context("spawn")  # fork does not go with torch's threads
    here, there = context.Pipe()
    with _safe_path() as before:
        process = context.Process(target=serve, args=(there, attempt, before, card))
        process.start()
    there.close()
    return Worker(process, here, card)


@contextmanager
def _safe_path() -> Iterator[str | None]:
    """A file `socket.py` of the user's would break a process before it begins. What was set before comes along."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield before
    finally:
        set_safe_path(before)
