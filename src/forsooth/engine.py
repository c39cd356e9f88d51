"""Runs tasks: those already in the store are not run again, the others here, in processes or on a Dask cluster.

Each task runs on one thread. So all three agree bit for bit, and N workers use N cores.
"""

import functools
import gc
import hashlib
import json
import time
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

from forsooth import chunks, isolation, shared, surroundings
from forsooth.cluster import Cluster
from forsooth.group import Together, carry_out
from forsooth.plain import from_plain, to_plain
from forsooth.processes import Processes
from forsooth.records import Cell, FailedTasks, Task, Trial, UsageError
from forsooth.schedule import Executor, Serial, run_all
from forsooth.store import DamagedCell, Store

FLAT = "*"  # in place of a parameter's word: see `task`


class Progress(Protocol):
    """What the engine tells while it works."""

    def start(self, total: int, done: int) -> None: ...
    def doing(self, names: Sequence[str]) -> None: ...
    def step(self, name: str) -> None: ...
    def say(self, message: str) -> None: ...


Function = TypeVar("Function", bound=Callable[..., Cell])


def task(
    id: str, *, version: int = 1, together: Together | None = None, **words: str
) -> Callable[[Function], Function]:
    """Names a task function in the keys of its cells: it may move to another file or be renamed, and they stay.

    version  raised when the same arguments would give other numbers
    together how tasks of this function are done at once on an accelerator; the cells and keys are those of each
    words    parameter -> the word by which it goes in keys, where it has a better name than when cells were made;
             `FLAT`: a record whose fields stand in keys by themselves
    """

    def named(function: Function) -> Function:
        function.task_id = id  # type: ignore[attr-defined]
        function.task_version = version  # type: ignore[attr-defined]
        function.task_together = together  # type: ignore[attr-defined]
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


def execute(
    tasks: Sequence[Task],
    store: Store,
    *,
    workers: int,
    progress: Progress,
    on: str | None = None,
    timeout: float | None = None,
) -> None:
    """Leave a cell in the store for every task. `tasks` name what they need before they need it.

    on       a Dask cluster in the place of processes of this machine, see `cluster`
    timeout  seconds that a task may take

    A task that fails twice leaves a cell that says so, and so do those that need it. The others are run all the same,
    and `FailedTasks` comes at the end.
    """
    _require_positive(workers, timeout)
    store.sweep()
    tasks = list({task.key: task for task in tasks}.values())
    waiting = [task for task in tasks if not _finished(task, store, progress)]
    progress.start(total=len(tasks), done=len(tasks) - len(waiting))
    ledger = Ledger(store, progress)
    with shared.lent(store.unfinished("shared")):
        if on is None and timeout is None:
            finished = carry_out(waiting, lambda task: typed(task.function, task.arguments), ledger)
            waiting = [task for task in waiting if task.key not in finished]
        if waiting:
            with executor(len(waiting), store, workers=workers, on=on, timeout=timeout) as chosen:
                run_all(waiting, chosen, ledger)
            store.sweep()  # what processes left that died
    if ledger.reasons:
        raise ledger.error(len(tasks))


def _require_positive(workers: int, timeout: float | None) -> None:
    if workers < 1:
        raise UsageError(f"`workers` must be at least 1, got {workers}")
    if timeout is not None and not timeout > 0:
        raise UsageError(f"`task_timeout` must be more than 0 seconds, got {timeout}")


def executor(tasks: int, store: Store, *, workers: int, on: str | None, timeout: float | None) -> Executor:
    """Who runs so many tasks. Nobody can end a task that hangs in his own process: with a limit it has another."""
    tried = functools.partial(attempt, root=store.root.resolve(), limits=isolation.limits())
    if on is not None:
        return Cluster(tried, store, on, timeout)
    count = min(workers, tasks)
    if count == 1 and timeout is None:
        return Serial(tried)
    return Processes(tried, count, timeout)


@dataclass
class Ledger:
    """Which tasks of a run failed.

    reasons  why, by key and in order; those that need a failed task have its reason
    """

    store: Store
    progress: Progress
    reasons: dict[str, str] = field(default_factory=dict)

    def doing(self, tasks: Iterable[Task]) -> None:
        self.progress.doing([task.name for task in tasks])

    def say(self, message: str) -> None:
        self.progress.say(message)

    def finished(self, task: Task) -> bool:
        return self.store.has(task.key)

    def keep(self, task: Task, cell: Cell, seconds: float) -> None:
        """A task is over, and this is its cell."""
        self.store.write(task.key, cell, about=about_task(task, seconds))
        self.progress.step(task.name)

    def blocked(self, task: Task) -> str:
        """Why a task is not tried: the reason of a failed one that it needs; empty if it can be tried."""
        reasons = [self.reasons[key] for key in task.needs if key in self.reasons]
        return next(iter(reasons), "")

    def close(self, task: Task, reason: str) -> None:
        """A task is over. With a reason it failed, and its cell says so until the next run tries it again."""
        if reason:
            self.reasons[task.key] = reason
            failure = Cell(facts={"failed": True, "unfinished": True, "status": "error", "message": reason})
            self.store.write(task.key, failure, about=about_task(task, seconds=0.0))
        self.progress.step(task.name)

    def error(self, total: int) -> FailedTasks:
        first = next(iter(self.reasons.values()))
        return FailedTasks(
            f"{len(self.reasons)} of {total} tasks failed; the first: {first}. All others are kept, and the same "
            "command tries them again"
        )


def attempt(task: Task, root: Path, limits: isolation.Limits) -> Trial:
    """Run one task here, once. Limits come along, since other machines have another environment."""
    before = chunks.PRESSURE.halved
    trial = Trial(task.key)
    try:
        with isolation.limited(limits.seconds, limits.gigabytes), _pressure_of(task):
            run_task(task, root)
    except (Exception, SystemExit) as error:  # a fault of the task, the user or the machine: others go on
        trial = _faulty(task, error)
    if task.accelerator:
        _free_memory()  # other processes cannot use what this one keeps for later
    return replace(trial, halved=chunks.PRESSURE.halved - before)


def _pressure_of(task: Task) -> AbstractContextManager[None]:
    """On an accelerator, what finds no memory is tried again: with fewer beside it, or on the processor."""
    if task.accelerator:
        return chunks.tried_again()
    return nullcontext()


def _faulty(task: Task, error: BaseException) -> Trial:
    if isinstance(error, UsageError) and not isinstance(error, DamagedCell):
        return Trial(task.key, "usage", str(error))
    reason = _one_line(f"{task.name}: {type(error).__name__}: {error}")
    if task.accelerator and chunks.is_full(error):
        return Trial(task.key, "memory", reason)
    return Trial(task.key, "raised", reason)


def _one_line(words: str) -> str:
    """Words as one line of moderate length that can be written as UTF-8."""
    return " ".join(words.split())[:500].encode(errors="replace").decode()


def _free_memory() -> None:
    """Give back what a task has left behind on an accelerator."""
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()


def run_task(task: Task, root: Path) -> str:
    """Run one task here and store its cell; the key comes back."""
    store = Store(root)
    needed = [store.read(key) for key in task.needs]
    begun = time.perf_counter()
    chunks.keep_freed_memory()
    with surroundings.restored(), one_thread():  # a user's model may leave something open whenever it is asked
        cell = task.function(*needed, **typed(task.function, task.arguments))
    seconds = round(time.perf_counter() - begun, 6)
    store.write(task.key, cell, about=about_task(task, seconds))
    return task.key


def about_task(task: Task, seconds: float) -> dict[str, Any]:
    """What `meta.json` of a cell says of its task."""
    return {
        "name": task.name,
        "function": f"{task.function.__module__}:{task.function.__qualname__}",
        "version": task.version,
        "needs": list(task.needs),
        "seconds": seconds,
    }


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
