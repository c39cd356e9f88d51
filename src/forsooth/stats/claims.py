"""Means and shares with their intervals, and many claims judged at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
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
    first = np.asarray(one, dtype=float)
    second = np.asarray(two, dtype=float)
    least = min(len(first), len(second))
    middle = float(first.mean()) if len(first) else np.nan
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
    ends = stats.binomtest(int(hits.sum()), len(hits)).proportion_ci(method="wilson")
    return Interval(float(hits.mean()), float(ends.low), float(ends.high), len(hits))


def holm(pvalues: ArrayLike) -> NDArray[np.float64]:
    """p-values of a family of claims, each adjusted for the number of claims (Holm 1979); nan stays out of the family.

    Reject where the adjusted value is at most the level: then the chance of any false rejection is at most the level,
    however the claims depend on each other. Of m claims the smallest is multiplied by m, the next by m - 1, …, and none
    may be smaller than one before it.

    pvalues  (...,)
    returns  (...,)

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(pvalues, dtype=float)
    flat = given.ravel()
    known = np.flatnonzero(np.isfinite(flat))
    order = known[np.argsort(flat[known], kind="stable")]
    times = np.arange(len(order), 0, -1)
    adjusted = np.full(flat.shape, np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(times * flat[order]))
    return adjusted.reshape(given.shape)
