"""What intervals say of a published claim."""

from collections.abc import Mapping, Sequence

import numpy as np
from pandas import DataFrame, Series

from forsooth.records import Judgement, Sentences
from forsooth.stats import Interval, mean_interval
from forsooth.stats.claims import directions


def verdict(claim: str, found: Interval, *, holds: bool, fails: bool, more: str = "") -> str:
    """One line: the claim, our number, and whether it holds; "inconclusive" where the interval says neither."""
    line = f"{claim}: {outcome(holds, fails)}. Ours {found}"
    if more:
        line = f"{line}; {more}"
    return f"{line}."


def outcome(holds: bool, fails: bool) -> str:
    """What became of a claim, in a word or three."""
    if holds:
        return "holds"
    if fails:
        return "does not hold"
    return "inconclusive"


def above(claim: str, found: Interval, limit: float = 0.0, more: str = "") -> str:
    """The verdict on "more than `limit`"."""
    return verdict(claim, found, holds=found.low > limit, fails=found.high <= limit, more=more)


def below(claim: str, found: Interval, limit: float, more: str = "") -> str:
    """The verdict on "less than `limit`"."""
    return verdict(claim, found, holds=found.high < limit, fails=found.low >= limit, more=more)


def all_above(claims: Mapping[str, Sequence[float] | Series], *, level: float = 0.025) -> Sentences:
    """The verdicts on "more than 0" for many means at once, by t tests over models that Holm corrects for their number.

    claims  words -> one value per model
    level   of one side, as in the interval that is shown; that one is of its claim alone
    """
    signs = directions(list(claims.values()), level=level)
    for (words, values), sign in zip(claims.items(), signs, strict=True):
        yield verdict(f"{words}{corrected(len(claims))}", mean_interval(values), holds=sign > 0, fails=sign < 0)


def corrected(count: int) -> str:
    """How many claims are judged together, in brackets; empty for one."""
    return f" (one of {count} claims, corrected by Holm)" if count > 1 else ""


def around(claim: str, found: Interval, published: float, more: str = "") -> str:
    """A published number beside ours: they agree where our interval holds it, and does not hold all from 0 to twice it.

    >>> around("a share", Interval(0.5, 0.0, 1.0, 2), 0.4)
    'a share: inconclusive. Ours 0.50 [0.00, 1.00], n = 2; published 0.40.'
    """
    line = f"{claim}: {agreement(found, published)}. Ours {found}; published {published:.2f}"
    if more:
        line = f"{line}, {more}"
    return f"{line}."


def agreement(found: Interval, published: float) -> str:
    """Whether an interval agrees with a published number, in a word."""
    if found.low <= 0 and found.high >= 2 * published:
        return "inconclusive"
    return holding(found.low, found.high, published)


def holding(low: float, high: float, published: float) -> str:
    """Whether an interval holds a published number, in a word; one value has no interval, and says nothing."""
    if not np.isfinite(low):
        return "inconclusive"
    if low <= published <= high:
        return "agrees"
    return "differs"


def judgement(table: DataFrame, sentences: Sentences) -> Judgement:
    """The table, and the sentences on lines of their own."""
    return Judgement(table, "\n".join(sentences) + "\n")
