"""What a request costs, told before it begins, in forwards and by the clock; what nobody can have meant is refused."""

import inspect
import math
import time
from collections.abc import Sequence

import torch

from forsooth.engine import Progress, one_thread
from forsooth.games.anchors import GROUPS, MOST_PAIRS
from forsooth.games.values import rows_at_once
from forsooth.records import Method, UsageError
from forsooth.user.bias.seats import MOST_OF_LEVERAGE
from forsooth.user.bias.subject import AT_ONCE, BACKGROUND, Subject
from forsooth.wording import duration, joined

WORTH_TELLING = 20.0  # seconds
WORTH_TIMING = 1_000  # forwards: fewer are soon done, however long one takes
ENTRIES = 2**14  # of the inputs on which a forward is timed: of few rows a call takes as long as of many
PASS_AND_BACK = 3  # forwards that a pass with its gradient takes as long as
RATE = 5e9  # multiplications in a second that a least squares makes on one core
FITS = 16  # of the interactions that a least squares guesses: six to choose from, then five for each that was chosen


def told(subject: Subject, methods: Sequence[Method], progress: Progress, *, workers: int) -> None:
    """Say how many forwards there are and how long they take, where that is long; UsageError above a budget."""
    total = forwards(subject)
    if total > subject.request.budget:
        raise UsageError(
            f"`budget` must be at least {total:,} for the Shapley values of {subject.seats.count:,} "
            f"{subject.seats.noun}, got {subject.request.budget:,}; {cheaper(subject)}"
        )
    asked = len(subject.x) * sum(forwards_of(method, subject) for method in methods)
    if total + asked < WORTH_TIMING:
        return
    one = seconds_of_one(subject) / max(1, workers)
    games = total * one + solving(subject) / max(1, workers)
    seconds = games + asked * one
    if seconds > subject.request.budget_seconds:
        parts = f"{duration(games)} for the Shapley values, {duration(asked * one)} for the methods"
        raise UsageError(
            f"`budget_seconds` must be at least {math.ceil(seconds):,}, about {duration(seconds)} ({parts}), "
            f"got {subject.request.budget_seconds:,}; {cheaper(subject)}"
        )
    if seconds >= WORTH_TELLING:
        price = f"{total:,} forwards ({len(subject.x)} inputs, {subject.forwards():,} for each{twice(subject)})"
        progress.say(
            f"Shapley values: {price}, about {duration(games)}; methods: about {asked:,}, {duration(asked * one)}; "
            f"{cheaper(subject)}"
        )


def forwards(subject: Subject) -> int:
    """Of all inputs; sampled values are sampled twice, since the second time is the other end of the scale."""
    return len(subject.x) * subject.forwards() * times(subject)


def times(subject: Subject) -> int:
    return 1 + (not subject.exact)


def twice(subject: Subject) -> str:
    if subject.exact:
        return ""
    return ", twice"


def forwards_of(method: Method, subject: Subject) -> int:
    """About how many forwards a method takes for an input, as its own numbers say; of one with no numbers, one pass."""
    if method.null:
        return 0
    parameters = inspect.signature(method.function).parameters
    given = {name: one.default for name, one in parameters.items()} | dict(method.settings)
    players = subject.seats.count
    count = 1
    for name, each in (("samples", 1), ("steps", 1), ("repeats", players), ("permutations", players)):
        if name in given:
            count *= each * (given[name] or 2 * players + 2048)
    if count == 1 and method.cost == "forwards":
        count = players
    if method.cost != "forwards":
        count *= PASS_AND_BACK
    if "background" in given and method.promise == "complete to background" and "samples" not in given:
        count *= min(BACKGROUND, len(subject.references))
    return count * subject.stage.rows


def solving(subject: Subject) -> float:
    """About how many seconds the least squares of all inputs take by themselves."""
    if subject.exact or subject.request.anchor != "leverage":
        return 0.0
    players = subject.seats.count
    pairs = subject.samples / 2
    work = pairs * players**2 + GROUPS * players**3
    if pairs <= MOST_PAIRS:
        work += FITS * pairs**3 / 3
    return times(subject) * math.ceil(len(subject.x) / min(AT_ONCE, subject.step)) * work / RATE


def cheaper(subject: Subject) -> str:
    """What would cost less."""
    ways = ["fewer inputs", "larger players (grid:N)"]
    if subject.stage.table is not None:
        ways = ["fewer inputs", "fewer rows for what is hidden (baseline rows:5)"]
    if not subject.exact:
        ways.append("fewer permutations")
        if subject.request.anchor != "leverage" and subject.seats.count <= MOST_OF_LEVERAGE:
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
