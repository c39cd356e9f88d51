"""Runs tasks: those already in the store are not run again, the others serially or in a pool of processes.

Each task runs on one thread. So serial and pool agree bit for bit, and a pool of N workers uses N cores.
"""

import concurrent.futures as futures
import functools
import graphlib
import hashlib
import json
import multiprocessing
import os
import threading
import time
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

from forsooth.plain import from_plain, to_plain
from forsooth.records import Cell, DeadWorker, Task, UsageError
from forsooth.store import DamagedCell, Store

FLAT = "*"  # in place of a parameter's word: see `task`
NAMED = 4  # tasks that an error names; more would hide what it says


class Progress(Protocol):
    """What the engine tells while it works."""

    def start(self, total: int, done: int) -> None: ...
    def doing(self, names: Sequence[str]) -> None: ...
    def step(self, name: str) -> None: ...
    def say(self, message: str) -> None: ...


Function = TypeVar("Function", bound=Callable[..., Cell])


def task(id: str, *, version: int = 1, **words: str) -> Callable[[Function], Function]:
    """Names a task function in the keys of its cells: it may move to another file or be renamed, and they stay.

    version  raised when the same arguments would give other numbers
    words    parameter -> the word by which it goes in keys, where it has a better name than when cells were made;
             `FLAT`: a record whose fields stand in keys by themselves
    """

    def named(function: Function) -> Function:
        function.task_id = id  # type: ignore[attr-defined]
        function.task_version = version  # type: ignore[attr-defined]
        function.task_words = words  # type: ignore[attr-defined]
        return function

    return named


def make_task(
    function: Callable[..., Cell],
    arguments: Mapping[str, Any],
    needs: Sequence[Task] = (),
    *,
    name: str,
    version: int | None = None,
) -> Task:
    """A task whose key is the hash of all that decides its result.

    arguments  records, numbers and words by the names of the function's parameters
    version    that of `task`, unless given

    A function without an id from `task` goes by its place, so that its cells are lost when it moves.
    """
    keys = tuple(task.key for task in needs)
    id = getattr(function, "task_id", f"{function.__module__}:{function.__qualname__}")
    words = getattr(function, "task_words", {})
    if version is None:
        version = getattr(function, "task_version", 1)
    plain = to_plain(arguments)
    identity = {
        "id": id,
        "version": version,
        "arguments": _keyed(plain, words),
        "needs": keys,
        "torch": torch.__version__,
    }
    key = hashlib.sha256(json.dumps(identity, sort_keys=True, allow_nan=False).encode()).hexdigest()[:32]
    return Task(key=key, id=id, name=name, function=function, arguments=plain, needs=keys, version=version)


def _keyed(plain: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """The arguments by the words that stand in keys."""
    keyed: dict[str, Any] = {}
    for name, value in plain.items():
        if words.get(name) == FLAT:
            keyed |= value
        else:
            keyed[words.get(name, name)] = value
    return keyed


def typed(function: Callable[..., Cell], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The plain arguments of a task as the records that its function's annotations name."""
    hints = _hints(function)
    return {name: from_plain(value, hints.get(name)) for name, value in arguments.items()}


@functools.lru_cache(maxsize=64)
def _hints(function: Callable[..., Cell]) -> dict[str, Any]:
    return typing.get_type_hints(function)


def execute(tasks: Sequence[Task], store: Store, *, workers: int, progress: Progress) -> None:
    """Leave a cell in the store for every task. `tasks` name what they need before they need it."""
    if workers < 1:
        raise UsageError(f"`workers` must be at least 1, got {workers}")
    tasks = list({task.key: task for task in tasks}.values())
    waiting = [task for task in tasks if not _finished(task, store, progress)]
    progress.start(total=len(tasks), done=len(tasks) - len(waiting))
    if workers == 1 or len(waiting) < 2:
        for task in waiting:
            progress.doing([task.name])
            run_task(task, store.root)
            progress.step(task.name)
    else:
        _in_pool(waiting, store, workers, progress)


def run_task(task: Task, root: Path) -> str:
    """Run one task here and store its cell; the key comes back."""
    store = Store(root)
    needed = [store.read(key) for key in task.needs]
    begun = time.perf_counter()
    with one_thread():
        cell = task.function(*needed, **typed(task.function, task.arguments))
    about = {
        "name": task.name,
        "function": f"{task.function.__module__}:{task.function.__qualname__}",
        "version": task.version,
        "needs": list(task.needs),
        "seconds": round(time.perf_counter() - begun, 6),
    }
    store.write(task.key, cell, about=about)
    return task.key


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for the work inside: sums over threads would make the last bits depend on the machine's load."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _finished(task: Task, store: Store, progress: Progress) -> bool:
    """Whether the cell is there and whole. Cells that record a failure are tried again."""
    if not store.has(task.key):
        return False
    try:
        meta = store.verify(task.key)
    except DamagedCell as damage:
        aside = store.set_aside(task.key)
        progress.say(f"{damage}: set aside as {aside}, made again ({task.name})")
        return False
    if meta["facts"].get("failed"):
        store.remove(task.key)
        return False
    return True


def _in_pool(waiting: list[Task], store: Store, workers: int, progress: Progress) -> None:
    """Hand tasks to processes as soon as what they need is there."""
    by_key = {task.key: task for task in waiting}
    order = graphlib.TopologicalSorter({key: set(task.needs) & by_key.keys() for key, task in by_key.items()})
    order.prepare()
    context = multiprocessing.get_context("spawn")  # fork does not go with torch's threads
    running: dict[futures.Future[str], str] = {}  # names, in the order in which the processes take them
    with futures.ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker) as pool:
        try:
            while order.is_active():
                for key in order.get_ready():
                    running[pool.submit(run_task, by_key[key], store.root)] = by_key[key].name
                progress.doing(list(running.values())[:workers])
                for key, name in _next_done(running):
                    order.done(key)
                    progress.step(name)
        except BrokenProcessPool as error:
            lost = [name for future, name in running.items() if not future.done() or future.exception()]
            raise _dead(lost[:workers]) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _next_done(running: dict[futures.Future[str], str]) -> Iterator[tuple[str, str]]:
    """Key and name of each task that is done by now, of at least one; they run no more."""
    done, _ = futures.wait(running, return_when=futures.FIRST_COMPLETED)
    for future in done:
        key = future.result()
        yield key, running.pop(future)


def _dead(names: Sequence[str]) -> DeadWorker:
    """The error for a pool of which a process died; the pool does not say which task that process had."""
    running = ""
    if names:
        running = f" while these tasks ran: {'; '.join(names[:NAMED])}"
    if len(names) > NAMED:
        running += f" and {len(names) - NAMED} more"
    return DeadWorker(
        f"a worker process died{running}. It ran out of memory, or the code of a task ended it. What was finished is "
        "kept, and the same command goes on from there; try `--workers 1` to see which task it is"
    )


def _begin_worker() -> None:
    """One thread, and an end with the parent: a killed parent would leave its workers waiting for ever."""
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()
