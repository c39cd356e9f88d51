"""What the Shapley values of a request cost, told before they begin; what nobody can have meant is refused."""

import time

import torch

from forsooth.engine import Progress, one_thread
from forsooth.games.values import rows_at_once
from forsooth.records import UsageError
from forsooth.user.bias.subject import Subject
from forsooth.wording import duration, joined

WORTH_TELLING = 20.0  # seconds
ENTRIES = 2**14  # of the inputs on which a forward is timed: of few rows a call takes as long as of many


def told(subject: Subject, progress: Progress, *, workers: int) -> None:
    """Say how many forwards there are and how long they take, where that is long; UsageError above the budget."""
    total = forwards(subject)
    price = f"{total:,} forwards ({len(subject.x)} inputs, {subject.forwards():,} for each{twice(subject)})"
    if total > subject.request.budget:
        raise UsageError(
            f"`budget` must be at least {total:,} for the Shapley values of {subject.seats.count:,} "
            f"{subject.seats.noun}, got {subject.request.budget:,}; {cheaper(subject)}"
        )
    if total < 10_000:  # whatever a forward takes, nobody needs to be warned
        return
    seconds = total * seconds_of_one(subject) / max(1, workers)
    if seconds >= WORTH_TELLING:
        progress.say(f"Shapley values: {price}, about {duration(seconds)}; {cheaper(subject)}")


def forwards(subject: Subject) -> int:
    """Of all inputs; sampled values are sampled twice, since the second time is the other end of the scale."""
    return len(subject.x) * subject.forwards() * (1 + (not subject.exact))


def twice(subject: Subject) -> str:
    if subject.exact:
        return ""
    return ", twice"


def cheaper(subject: Subject) -> str:
    """What would cost less."""
    ways = ["fewer inputs", "larger players (grid:N)"]
    if subject.stage.table is not None:
        ways = ["fewer inputs", "fewer rows for what is hidden (baseline rows:5)"]
    if not subject.exact and subject.request.anchor != "leverage":
        ways.append("anchor leverage, at a fifth to a tenth of the forwards")
    return f"cheaper are {joined(ways, 'or')}"


def seconds_of_one(subject: Subject) -> float:
    """How long the model takes for one of many inputs, by the clock, on one thread as tasks have it."""
    x, _, _ = subject.part(0, 1)
    rows = min(rows_at_once(x), max(32, ENTRIES // x.numel()))
    many = x.expand(rows, *x.shape[1:]).contiguous()
    with torch.no_grad(), one_thread():
        subject.stage.model(many)  # the first call may build things
        begun = time.perf_counter()
        subject.stage.model(many)
        return (time.perf_counter() - begun) / len(many)
