"""Tasks that are quicker together: a group of one kind is done at once, and each leaves the cell of its own key."""

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from forsooth import chunks
from forsooth.records import Cell, Task

MOST = 64  # tasks at once

Record = Mapping[str, Any]  # the arguments of a task, as records


@dataclass(frozen=True)
class Together:
    """How tasks of one function are done at once.

    alike  what tasks must have in common, from their arguments; None: this one is done alone
    work   the arguments of tasks that are alike, and who is told what goes on -> their cells, in their order
    """

    alike: Callable[[Record], Any]
    work: Callable[[Sequence[Record], Callable[[str], None]], Iterable[Cell]]


class Ledger(Protocol):
    """Who is told what becomes of tasks."""

    def doing(self, tasks: Iterable[Task]) -> None: ...
    def say(self, message: str) -> None: ...
    def keep(self, task: Task, cell: Cell, seconds: float) -> None: ...


def carry_out(waiting: Sequence[Task], arguments: Callable[[Task], Record], ledger: Ledger) -> set[str]:
    """Do here what is quicker together; the keys of what is finished."""
    finished = set()
    for group in groups(waiting, arguments):
        ledger.doing(group)
        for task, cell, seconds in done(group, arguments, ledger.say):
            ledger.keep(task, cell, seconds)
            finished.add(task.key)
    if finished:
        gc.collect()  # other processes cannot use what this one keeps for later
        torch.cuda.empty_cache()
    return finished


def groups(tasks: Sequence[Task], arguments: Callable[[Task], Record]) -> list[list[Task]]:
    """The groups of at least two, in the order of their first tasks.

    Only those for an accelerator that need no other task: on a processor every task has a core of its own.
    """
    found: dict[str, list[Task]] = {}
    for task in tasks:
        together = getattr(task.function, "task_together", None)
        if together is None or task.needs or not task.accelerator:
            continue
        common = together.alike(arguments(task))
        if common is not None:
            found.setdefault(f"{task.id} {common!r}", []).append(task)
    return [part for group in found.values() for part in parts(group)]


def parts(group: Sequence[Task]) -> list[list[Task]]:
    """A group cut into groups that are not too large."""
    cut = [list(group[start : start + MOST]) for start in range(0, len(group), MOST)]
    return [part for part in cut if len(part) > 1]


def done(
    group: Sequence[Task], arguments: Callable[[Task], Record], say: Callable[[str], None]
) -> Iterator[tuple[Task, Cell, float]]:
    """Every task of a group with its cell and its share of the seconds.

    Where the accelerator is too small for the group, its halves are done; nothing comes of one task that is too large,
    nor of a group with any other fault: its tasks are then done one by one, where the fault shows whose it is.
    """
    together: Together = group[0].function.task_together  # type: ignore[attr-defined]
    begun = time.perf_counter()
    try:
        cells = list(together.work([arguments(task) for task in group], say))
    except Exception as error:
        if not chunks.is_full(error):
            say(f"{len(group)} at once failed, and are done one by one ({type(error).__name__}: {error})")
            return
        cells = []
    if cells:
        seconds = (time.perf_counter() - begun) / len(group)
        for task, cell in zip(group, cells, strict=True):
            yield task, cell, round(seconds, 6)
        return
    say(f"{len(group)} at once are too many for the accelerator ({group[0].name} …)")
    torch.cuda.empty_cache()
    for half in halves(group):
        yield from done(half, arguments, say)


def halves(group: Sequence[Task]) -> list[Sequence[Task]]:
    """The halves of a group that are groups themselves."""
    middle = len(group) // 2
    return [half for half in (group[:middle], group[middle:]) if len(half) > 1]
