"""Means and shares with their intervals, and what these say of a published claim."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

SHARE = (0.0, 1.0)  # where a share can lie


class Interval(NamedTuple):
    """A mean or share with its 95 % interval; nan where one value says nothing of the spread."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}], n = {self.n}"


def mean_of(values: Sequence[float] | pd.Series, *, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Interval:
    """Mean over models with Student's interval, which ends where no value can be.

    >>> print(mean_of([0.0, 1.0, 0.5]))
    0.50 [-0.74, 1.74], n = 3
    >>> print(mean_of([0.0, 1.0, 0.5], bounds=SHARE))
    0.50 [0.00, 1.00], n = 3
    """
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if not len(known):
        return Interval(np.nan, np.nan, np.nan, 0)
    middle = float(known.mean())
    if len(known) < 2:
        return Interval(middle, np.nan, np.nan, 1)
    half = float(stats.t.ppf(0.975, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known)))
    return Interval(middle, max(middle - half, bounds[0]), min(middle + half, bounds[1]), len(known))


def crossed(one: pd.Series, two: pd.Series, *, bounds: tuple[float, float]) -> Interval:
    """Mean of a table by its rows' means and its columns' means: two sources of chance, whose variances add up.

    >>> print(crossed(pd.Series([0.0, 1.0, 0.5]), pd.Series([0.5, 0.5, 0.5]), bounds=(-1, 1)))
    0.50 [-0.74, 1.00], n = 3
    """
    first, second = (np.asarray(part, dtype=float) for part in (one, two))
    least, middle = min(len(first), len(second)), float(first.mean()) if len(first) else np.nan
    if least < 2:
        return Interval(middle, np.nan, np.nan, len(first))
    error = np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    half = float(stats.t.ppf(0.975, least - 1) * error)
    return Interval(middle, max(middle - half, bounds[0]), min(middle + half, bounds[1]), len(first))


def share_of(hits: Sequence[bool] | pd.Series) -> Interval:
    """A share with Wilson's interval."""
    hits = np.asarray(hits, dtype=bool)
    if not len(hits):
        return Interval(np.nan, np.nan, np.nan, 0)
    found = stats.binomtest(int(hits.sum()), len(hits)).proportion_ci(method="wilson")
    return Interval(float(hits.mean()), float(found.low), float(found.high), len(hits))


def verdict(claim: str, found: Interval, *, holds: bool, fails: bool, more: str = "") -> str:
    """One line: the claim, our number, and whether it holds; "cannot be told" where the interval says neither."""
    said = "holds" if holds else "does not hold" if fails else "cannot be told"
    return f"{claim}: {said}. Ours {found}{'; ' + more if more else ''}."


def above(claim: str, found: Interval, limit: float = 0.0, more: str = "") -> str:
    """The verdict on "more than `limit`"."""
    return verdict(claim, found, holds=found.low > limit, fails=found.high <= limit, more=more)


def around(claim: str, found: Interval, published: float, more: str = "") -> str:
    """A published number beside ours: they agree where our interval holds it, and does not hold all from 0 to twice it.

    >>> around("a share", Interval(0.5, 0.0, 1.0, 2), 0.4)
    'a share: cannot be told. Ours 0.50 [0.00, 1.00], n = 2; published 0.40.'
    """
    inside = found.low <= published <= found.high
    vague = not np.isfinite(found.low) or (found.low <= 0 and found.high >= 2 * published)
    said = "cannot be told" if vague else "agrees" if inside else "differs"
    return f"{claim}: {said}. Ours {found}; published {published:.2f}{', ' + more if more else ''}."
