"""What intervals say of a published claim."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pandas import DataFrame

from forsooth.records import Judgement, Sentences
from forsooth.stats import Interval
from forsooth.stats.claims import directions
from forsooth.stats.intervals import Estimate


class Claim(NamedTuple):
    """One of a family: the same claim of another method, panel or kind of data.

    words  what is claimed
    found  our number
    limit  that it is claimed to be above, or a published number
    more   beside the verdict
    side   -1 where it is claimed to be below the limit
    """

    words: str
    found: Estimate
    limit: float = 0.0
    more: str = ""
    side: int = 1


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


def family(claims: Sequence[Claim]) -> Sentences:
    """The verdicts on claims that are judged together, corrected by Holm; the interval shown is of a claim alone."""
    signs = directions([claim.found for claim in claims], [claim.limit for claim in claims])
    for claim, sign in zip(claims, signs, strict=True):
        holds = claim.side * sign > 0
        fails = claim.side * sign < 0
        words = f"{claim.words}{corrected(len(claims))}"
        yield verdict(words, claim.found.interval, holds=holds, fails=fails, more=claim.more)


def corrected(count: int) -> str:
    """How many claims are judged together, in brackets; empty for one."""
    return f" (one of {count} claims, corrected by Holm)" if count > 1 else ""


def around(claim: str, found: Interval, published: float, more: str = "") -> str:
    """A published number beside ours: they agree where our interval holds it, and does not hold all from 0 to twice it.

    >>> around("a share", Interval(0.5, 0.0, 1.0, 2), 0.4)
    'a share: inconclusive. Ours 0.50 [0.00, 1.00], n = 2; published 0.40.'
    """
    return _beside(claim, found, published, agreement(found, published), more)


def family_around(claims: Sequence[Claim]) -> Sentences:
    """The same of a family, each limit a published number: what differs does so for all tests of the family.

    A number outside of our interval that the family cannot reject neither agrees nor differs.
    """
    differ = directions([claim.found for claim in claims], [claim.limit for claim in claims]) != 0
    for claim, surely in zip(claims, differ, strict=True):
        found = claim.found.interval
        result = agreement(found, claim.limit, surely=surely)
        yield _beside(f"{claim.words}{corrected(len(claims))}", found, claim.limit, result, claim.more)


def _beside(claim: str, found: Interval, published: float, result: str, more: str) -> str:
    line = f"{claim}: {result}. Ours {found}; published {published:.2f}"
    if more:
        line = f"{line}, {more}"
    return f"{line}."


def agreement(found: Interval, published: float, *, surely: bool = True) -> str:
    """Whether an interval agrees with a published number, in a word; `surely` as in `holding`."""
    if found.low <= 0 and found.high >= 2 * published:
        return "inconclusive"
    return holding(found.low, found.high, published, surely=surely)


def holding(low: float, high: float, published: float, *, surely: bool = True) -> str:
    """Whether an interval holds a published number, in a word; one value has no interval, and says nothing.

    surely  whether a number outside of the interval differs: one of a family may be outside by chance
    """
    if low <= published <= high:
        return "agrees"
    if surely and np.isfinite(low):
        return "differs"
    return "inconclusive"


def judgement(table: DataFrame, sentences: Sentences) -> Judgement:
    """The table, and the sentences on lines of their own."""
    return Judgement(table, "\n".join(sentences) + "\n")
