"""What the Shapley values of a request cost, told before they begin; what nobody can have meant is refused."""

import time

import torch

from forsooth.engine import Progress, one_thread
from forsooth.games.values import rows_at_once
from forsooth.records import UsageError
from forsooth.user.bias.subject import Subject
from forsooth.wording import duration

WORTH_TELLING = 20.0  # seconds
FEW = 32  # inputs of the first call whose time is taken
MANY = 2048  # of the second, for models that are quick
PATIENCE = 0.2  # seconds of the first call above which there is no second


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
    if not subject.exact and subject.request.anchor != "leverage":
        ways.append("anchor leverage, at a quarter to a tenth of the forwards")
    return f"cheaper are {', '.join(ways[:-1])} or {ways[-1]}"


def seconds_of_one(subject: Subject) -> float:
    """How long the model takes for one of many inputs, by the clock, on one thread as tasks have it.

    Games ask many inputs at once, and what a call costs by itself is shared by all: a forest takes as long for one row
    as for a hundred. So a model that is quick with a few inputs is asked about as many as a game would hand it.
    """
    x, _, _ = subject.part(0, 1)
    most = rows_at_once(x, subject.stage.model)
    few = min(FEW, most)
    with torch.no_grad(), one_thread():
        subject.stage.model(x)  # the first call may build things
        taken = seconds_of(subject, x, few)
        if taken > PATIENCE:
            return taken / few
        many = min(MANY, most)
        return seconds_of(subject, x, many) / many


def seconds_of(subject: Subject, x: torch.Tensor, count: int) -> float:
    """Seconds of one call with the input x (1, *shape) so many times."""
    many = x.expand(count, *x.shape[1:]).contiguous()
    begun = time.perf_counter()
    subject.stage.model(many)
    return time.perf_counter() - begun
