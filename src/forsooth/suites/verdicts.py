"""What intervals say of a published claim."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from forsooth.stats import SHARE, Interval, crossed, holm, mean_of, share_of

__all__ = ["SHARE", "Interval", "above", "around", "crossed", "holm", "mean_of", "share_of", "verdict"]


def verdict(claim: str, found: Interval, *, holds: bool, fails: bool, more: str = "") -> str:
    """One line: the claim, our number, and whether it holds; "inconclusive" where the interval says neither."""
    return f"{claim}: {outcome(holds, fails)}. Ours {found}{'; ' + more if more else ''}."


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


def all_above(claims: Mapping[str, Sequence[float] | pd.Series], *, level: float = 0.025) -> list[str]:
    """The verdicts on "more than 0" for many means at once, by t tests over models that Holm corrects for their number.

    claims  words -> one value per model
    level   of one side, as in the interval that is shown; that one is of its claim alone
    """
    told = corrected(len(claims))
    rises = holm([rise(values) for values in claims.values()])
    falls = holm([rise(-np.asarray(values, dtype=float)) for values in claims.values()])
    return [
        verdict(f"{words}{told}", mean_of(values), holds=up <= level, fails=down <= level)
        for (words, values), up, down in zip(claims.items(), rises, falls, strict=True)
    ]


def rise(values: Sequence[float] | pd.Series | NDArray[np.float64]) -> float:
    """p of the t test whether the mean is above 0; nan where values are too few, or all 0.

    >>> round(rise([0.1, 0.2, 0.3]), 3)
    0.037
    """
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if len(known) < 2:
        return float("nan")
    spread = known.std(ddof=1) / np.sqrt(len(known))
    if spread == 0:
        return {1.0: 0.0, -1.0: 1.0}.get(float(np.sign(known.mean())), float("nan"))
    return float(stats.t.sf(known.mean() / spread, len(known) - 1))


def corrected(count: int) -> str:
    """How many claims are judged together, in brackets; empty for one."""
    return f" (one of {count} claims, corrected by Holm)" if count > 1 else ""


def around(claim: str, found: Interval, published: float, more: str = "") -> str:
    """A published number beside ours: they agree where our interval holds it, and does not hold all from 0 to twice it.

    >>> around("a share", Interval(0.5, 0.0, 1.0, 2), 0.4)
    'a share: inconclusive. Ours 0.50 [0.00, 1.00], n = 2; published 0.40.'
    """
    inside = found.low <= published <= found.high
    vague = not np.isfinite(found.low) or (found.low <= 0 and found.high >= 2 * published)
    said = "inconclusive" if vague else "agrees" if inside else "differs"
    return f"{claim}: {said}. Ours {found}; published {published:.2f}{', ' + more if more else ''}."
