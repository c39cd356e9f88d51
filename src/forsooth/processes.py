"""Processes that run tasks: they start clean, end with their parent, and are not left behind."""

import concurrent.futures as futures
import graphlib
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from typing import Protocol

import torch

from forsooth.records import Task, UsageError

SAFE_PATH = "PYTHONSAFEPATH"  # tells Python not to import from the working folder before all else
Attempt = Callable[[Task], str]  # runs a task; why it failed, or nothing


class Ledger(Protocol):
    """Who is told what becomes of tasks."""

    def doing(self, tasks: Iterable[Task]) -> None: ...
    def blocked(self, task: Task) -> str: ...
    def finished(self, task: Task) -> bool: ...
    def close(self, task: Task, reason: str) -> None: ...


class Queue:
    """Tasks of a pool, in an order that respects their needs.

    ready  by key, those that have all they need and are not finished
    """

    def __init__(self, waiting: Sequence[Task], attempt: Attempt, ledger: Ledger) -> None:
        self.attempt = attempt
        self.ledger = ledger
        self.tasks = {task.key: task for task in waiting}
        self.ready: dict[str, Task] = {}
        self.order = graphlib.TopologicalSorter({task.key: self.tasks.keys() & task.needs for task in waiting})
        self.order.prepare()

    def advance(self) -> list[Task]:
        """Tasks that have become ready since the last call. Those that need a failed one are closed."""
        fresh = []
        while keys := self.order.get_ready():
            for key in keys:
                self.ready[key] = self.tasks[key]
                reason = self.ledger.blocked(self.tasks[key])
                if reason:
                    self.close(self.tasks[key], reason)
                else:
                    fresh.append(self.tasks[key])
        return fresh

    def close(self, task: Task, reason: str) -> None:
        del self.ready[task.key]
        self.ledger.close(task, reason)
        self.order.done(task.key)


def run_all(waiting: Sequence[Task], attempt: Attempt, ledger: Ledger, workers: int) -> None:
    """Hand tasks to processes as soon as what they need is there.

    Where a process dies, the pool does not say which task it had. So all that it may have had are tried apart.
    """
    queue = Queue(waiting, attempt, ledger)
    queue.advance()
    while queue.ready:
        lost = _until_broken(queue, workers)
        if lost:
            require_start()
        suspects = lost[: 2 * workers + 1]  # as many as a pool takes at once
        for start in range(0, len(suspects), workers):
            _apart(suspects[start : start + workers], queue)
        queue.advance()


def _until_broken(queue: Queue, workers: int) -> list[Task]:
    """Run all to the end, or until a process dies: then those not finished, in the order in which they were taken."""
    running: dict[futures.Future[str], Task] = {}
    fresh = list(queue.ready.values())
    with processes(workers) as pool:
        try:
            while queue.ready:
                for task in fresh:
                    running[pool.submit(queue.attempt, task)] = task
                queue.ledger.doing(itertools.islice(running.values(), workers))
                for task, reason in _next_done(running):
                    queue.close(task, reason)
                fresh = queue.advance()
        except BrokenProcessPool:
            return list(running.values())
    return []


def _next_done(running: dict[futures.Future[str], Task]) -> Iterator[tuple[Task, str]]:
    """Each task that is over by now, of at least one, and why it failed; they run no more."""
    done, _ = futures.wait(running, return_when=futures.FIRST_COMPLETED)
    for future in done:
        reason = future.result()
        yield running.pop(future), reason


def _apart(tasks: Sequence[Task], queue: Queue) -> None:
    """Try tasks at once, each in a process that has no other, so that it is known which one ends it."""
    with ExitStack() as stack:
        running = {}
        for task in tasks:
            if queue.ledger.finished(task):  # it was finished when the process of another died
                queue.close(task, "")
            else:
                running[task.key] = stack.enter_context(processes(1)).submit(queue.attempt, task)
        for key, future in running.items():
            task = queue.ready[key]
            queue.close(task, _reason(task, future, queue.attempt))


def _reason(task: Task, future: futures.Future[str], attempt: Attempt) -> str:
    """Why a task failed that runs by itself. Whether it was the one that ended a process before is not known."""
    try:
        return future.result()
    except BrokenProcessPool:
        return _last_try(task, attempt)


def _last_try(task: Task, attempt: Attempt) -> str:
    with processes(1) as pool:
        try:
            return pool.submit(attempt, task).result()
        except BrokenProcessPool:
            return f"{task.name}: its process died twice: it ran out of memory, or the code of the task ended it"


@contextmanager
def processes(count: int) -> Iterator[futures.ProcessPoolExecutor]:
    """A pool, which is ended at once where an error or a signal ends the work inside."""
    context = multiprocessing.get_context("spawn")  # fork does not go with torch's threads
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"  # a file `socket.py` of the user's would break a process before it begins
    pool = futures.ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(before,))
    try:
        yield pool
    except BaseException:
        for process in list(pool._processes.values()):  # they may be busy for hours; what is finished is stored
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        _set_safe_path(before)


def require_start() -> None:
    """UsageError where processes die as they begin, whatever they are given to do."""
    with processes(1) as pool:
        try:
            pool.submit(os.getpid).result()
        except BrokenProcessPool as error:
            raise UsageError(
                "`workers` must be 1 here, since processes cannot be started: what a script does must stand below "
                '`if __name__ == "__main__":`'
            ) from error


def _set_safe_path(value: str | None) -> None:
    os.environ.pop(SAFE_PATH, None)
    if value is not None:
        os.environ[SAFE_PATH] = value


def _begin(safe_path: str | None) -> None:
    """One thread, no tracebacks at Ctrl-C, and an end with the parent: a killed one would leave its workers waiting."""
    _set_safe_path(safe_path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()
