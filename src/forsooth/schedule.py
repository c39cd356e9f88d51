"""The order of the work: what is ready goes to an executor, and what went wrong is tried again in another way.

Three executors stand behind one seam: `Serial` here, processes of this machine, and a Dask cluster.
"""

import graphlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Protocol, Self

from forsooth.importing import staying
from forsooth.records import Task, Trial, UsageError

TRIES = 2  # of a task that raises, ends its process or takes too long
LOSSES = 20  # times that a task may be lost with a machine before it is taken for the cause
Attempt = Callable[[Task], Trial]  # runs a task where it is called


class Executor(Protocol):
    """Who runs tasks. It is left with `with`, which ends all that it started."""

    def room(self) -> int:
        """How many more tasks it takes now."""
        ...

    def submit(self, task: Task) -> None: ...

    def wait(self) -> Sequence[Trial]:
        """Trials that ended, of at least one; none where nothing was heard for a while."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Ledger(Protocol):
    """Who is told what becomes of tasks."""

    def doing(self, tasks: Iterable[Task]) -> None: ...
    def blocked(self, task: Task) -> str: ...
    def finished(self, task: Task) -> bool: ...
    def close(self, task: Task, reason: str) -> None: ...
    def say(self, message: str) -> None: ...


class Serial:
    """Runs tasks in this process, one after the other."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.given: list[Task] = []

    def room(self) -> int:
        return 1 - len(self.given)

    def submit(self, task: Task) -> None:
        self.given.append(task)

    def wait(self) -> Sequence[Trial]:
        with staying():  # code of the user's, a training say, would end the run without a word
            return [self.attempt(self.given.pop())]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Cards:
    """How many tasks the accelerators take at once: all that come, until one of several is refused memory.

    Nobody knows beforehand what a task will take. So the count falls by what was seen: where one of eight is refused,
    seven may run, then six. One that is refused memory while it is alone has no place there.
    """

    def __init__(self) -> None:
        self.at_once: float = float("inf")
        self.running: set[str] = set()
        self.in_company: set[str] = set()

    def has_room(self) -> bool:
        return len(self.running) < self.at_once

    def take(self, key: str) -> None:
        self.running.add(key)
        if len(self.running) > 1:
            self.in_company |= self.running

    def leave(self, key: str) -> None:
        self.running.discard(key)

    def refused(self, key: str) -> bool:
        """A task was refused memory: fewer at once from now on. Whether others held some of it."""
        shared = key in self.in_company
        self.in_company.discard(key)
        if shared:
            self.at_once = max(1, min(self.at_once, len(self.running)))
        return shared


class Queue:
    """Tasks in an order that respects their needs; those for accelerators wait apart, so that cores never idle."""

    def __init__(self, waiting: Sequence[Task], ledger: Ledger) -> None:
        self.ledger = ledger
        self.tasks = {task.key: task for task in waiting}
        self.for_cores: deque[Task] = deque()
        self.for_cards: deque[Task] = deque()
        self.running: dict[str, Task] = {}
        self.cards = Cards()
        self.tries: Counter[str] = Counter()
        self.losses: Counter[str] = Counter()
        self.pressed: Counter[str] = Counter()
        self.order = graphlib.TopologicalSorter({task.key: self.tasks.keys() & task.needs for task in waiting})
        self.order.prepare()

    def advance(self) -> None:
        """Make ready what has all it needs. Those that need a failed one are closed."""
        while keys := self.order.get_ready():
            for key in keys:
                reason = self.ledger.blocked(self.tasks[key])
                if reason:
                    self.close(self.tasks[key], reason)
                else:
                    self.push(self.tasks[key])

    def push(self, task: Task) -> None:
        if task.accelerator:
            self.for_cards.append(task)
        else:
            self.for_cores.append(task)

    def take(self) -> Task | None:
        """The next task, if one may run now. While an accelerator works, what needs none goes first."""
        if self.for_cards and self.cards.has_room() and not (self.for_cores and self.cards.running):
            task = self.for_cards.popleft()
            self.cards.take(task.key)
        elif self.for_cores:
            task = self.for_cores.popleft()
        else:
            return None
        self.running[task.key] = task
        return task

    def judge(self, trial: Trial) -> None:
        """What follows from a trial: the task is over, or it is tried again."""
        if trial.fault == "usage":
            raise UsageError(trial.reason)
        task = self.running.pop(trial.key)
        self.cards.leave(trial.key)
        self.pressed["halved"] += trial.halved
        if self.ledger.finished(task):  # a process may die right after its work
            self.close(task, "")
            return
        again = self._another(task, trial)
        if again is None:
            self.close(task, trial.reason)
        else:
            self.push(again)

    def _another(self, task: Task, trial: Trial) -> Task | None:
        """The task as it is tried next; None: it was tried enough."""
        if trial.fault == "memory" and self.cards.refused(task.key):
            self.pressed["waited"] += 1
            return task
        if trial.fault in ("", "lost"):
            self.losses[task.key] += 1
            return task if self.losses[task.key] < LOSSES else None
        self.tries[task.key] += 1
        if self.tries[task.key] >= TRIES:
            return None
        if trial.fault == "memory":
            self.pressed["moved"] += 1
            self.ledger.say(f"{task.name}: too large for the accelerator, tried again on the processor")
            return task.on_processor()
        return task

    def close(self, task: Task, reason: str) -> None:
        self.ledger.close(task, reason)
        self.order.done(task.key)

    def say_pressure(self) -> None:
        """What too little memory of the accelerators has changed, where it did."""
        if not self.pressed.total():
            return
        halved, waited, moved = (self.pressed[name] for name in ("halved", "waited", "moved"))
        at_once = ""
        if waited:
            at_once = f", at most {self.cards.at_once:g} at once in the end"
        self.ledger.say(
            f"too little memory on the accelerator: work cut in halves {halved} times, {waited} tries put off"
            f"{at_once}, {moved} tasks moved to the processor"
        )


def run_all(waiting: Sequence[Task], executor: Executor, ledger: Ledger) -> None:
    """Hand tasks to the executor as soon as what they need is there, until all are over."""
    queue = Queue(waiting, ledger)
    queue.advance()
    while queue.order.is_active():
        _fill(queue, executor)
        ledger.doing(queue.running.values())
        for trial in executor.wait():
            queue.judge(trial)
        queue.advance()
    queue.say_pressure()


def _fill(queue: Queue, executor: Executor) -> None:
    for _ in range(executor.room()):
        task = queue.take()
        if task is None:
            return
        executor.submit(task)
