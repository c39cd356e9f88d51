"""What a person sees while long work goes on: a bar on a terminal, plain lines elsewhere, or nothing."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from forsooth.printing import Printer, tell, visible

BESIDE = 48  # what stands beside the name: a bar of 16, the count, two times, a word and the gaps


@dataclass
class Silent:
    """Says nothing but what must not be missed."""

    def start(self, total: int, done: int) -> None:
        pass

    def doing(self, names: Sequence[str]) -> None:
        pass

    def step(self, name: str) -> None:
        pass

    def say(self, message: str) -> None:
        tell(message)


@dataclass
class Lines:
    """A line every few seconds: for logs and pipes."""

    every: float = 10.0
    total: int = 0
    done: int = 0
    begun: float = 0.0
    spoken: float = 0.0

    def start(self, total: int, done: int) -> None:
        self.total = total
        self.done = done
        self.begun = time.monotonic()
        if done:
            self.say(f"{done} of {total} tasks were finished before")

    def doing(self, names: Sequence[str]) -> None:
        if not self.spoken:  # later the steps say enough
            self.spoken = time.monotonic()
            self.say(f"begun: {'; '.join(names)}")

    def step(self, name: str) -> None:
        self.done += 1
        now = time.monotonic()
        if now - self.spoken >= self.every or self.done == self.total:
            self.spoken = now
            self.say(f"{self.done}/{self.total} after {now - self.begun:.0f} s: {name}")

    def say(self, message: str) -> None:
        tell(message)


@dataclass
class Bar:
    """A bar with what is being computed and what is left."""

    console: Printer = field(default_factory=lambda: Printer(stderr=True))

    def __post_init__(self) -> None:
        self.room = max(16, min(48, self.console.width - BESIDE))
        self.bar = Progress(
            TextColumn(f"{{task.description:<{self.room}}}", markup=False),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
        )

    def start(self, total: int, done: int) -> None:
        self.bar.start()
        self.bar.add_task("starting", total=total, completed=done)
        if done:
            self.say(f"{done} of {total} tasks were finished before")

    def doing(self, names: Sequence[str]) -> None:
        more = ""
        if len(names) > 1:
            more = f" (+{len(names) - 1})"
        first = visible(names[0])
        self.bar.update(self.bar.task_ids[-1], description=f"{first:.{self.room - len(more)}}{more}")

    def step(self, name: str) -> None:
        self.bar.advance(self.bar.task_ids[-1])
        if self.bar.tasks[-1].finished:
            self.bar.stop()

    def say(self, message: str) -> None:
        self.console.print(message, style="dim")


def fitting_progress() -> Bar | Silent:
    """For a call from Python that names no other: a bar where a person looks on, at a terminal or in a notebook."""
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        return Bar()
    return Silent()
