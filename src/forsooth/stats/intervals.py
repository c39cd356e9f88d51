"""Estimates of means and shares, ratios of variances, and their 95 % intervals: the one place outside of boards.

A mean has Student's interval and a share Wilson's. Where the same samples were shown to several trainings, both are
drawn, and the interval is over both. An interval is for one claim; the estimate behind it has the p-values of any, and
`claims` judges many of them together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]
Bounds = tuple[float, float]

SHARE = (0.0, 1.0)  # where a share can lie
AT_LEAST_0 = (0.0, np.inf)
UNBOUNDED = (-np.inf, np.inf)
LOWER_TAIL = 0.025  # a 95 % interval leaves 2.5 % at each end
UPPER_TAIL = 0.975
NORMAL = float(stats.norm.ppf(UPPER_TAIL))


class Interval(NamedTuple):
    """A mean or share with its 95 % interval; nan where one value says nothing of the spread."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}], n = {self.n}"

    @classmethod
    def of(cls, line: "Mapping[str, float] | pd.Series[float]", *names: str) -> "Interval":
        """The interval whose mean, two ends and n stand in these columns of a line.

        >>> print(Interval.of({"share": 0.5, "low": 0.2, "high": 0.8, "n": 10.0}, "share", "low", "high", "n"))
        0.50 [0.20, 0.80], n = 10
        """
        mean, low, high, n = (line[name] for name in names)
        return cls(mean, low, high, int(n))

    def columns(self, *names: str) -> dict[str, float]:
        """The mean, its two ends and n as columns of a table, as far as they are named.

        >>> Interval(0.5, 0.2, 0.8, 10).columns("share", "low", "high")
        {'share': 0.5, 'low': 0.2, 'high': 0.8}
        """
        return dict(zip(names, self, strict=False))


def no_interval(mean: float = np.nan, n: int = 0) -> Interval:
    """A number whose spread is unknown."""
    return Interval(float(mean), np.nan, np.nan, n)


def finite(values: ArrayLike) -> Floats:
    """The values that are numbers, (n,)."""
    numbers = np.asarray(values, dtype=float)
    return numbers[np.isfinite(numbers)]


class Estimate(Protocol):
    """A number from samples: its interval, and what the same law says of one claim on it."""

    @property
    def interval(self) -> Interval:
        """The 95 % interval: the limits that two claims at 2.5 % each do not reject."""
        ...

    def above(self, limit: float = 0.0) -> float:
        """One-sided p-value of the claim that the number is above the limit; nan where nothing is known."""
        ...

    def below(self, limit: float = 0.0) -> float:
        """The same of the claim that it is below."""
        ...


@dataclass(frozen=True)
class Student:
    """A mean whose `error` is known by so many degrees of freedom; no value can be outside of `bounds`.

    >>> round(Student(0.2, 0.1, df=2, n=3).above(), 3)
    0.092
    """

    mean: float
    error: float
    df: float
    n: int
    bounds: Bounds = UNBOUNDED

    @property
    def interval(self) -> Interval:
        half = float(stats.t.ppf(UPPER_TAIL, self.df) * self.error)
        return Interval(self.mean, max(self.mean - half, self.bounds[0]), min(self.mean + half, self.bounds[1]), self.n)

    def above(self, limit: float = 0.0) -> float:
        return _tail(self.mean - limit, self.error, self.df)

    def below(self, limit: float = 0.0) -> float:
        return _tail(limit - self.mean, self.error, self.df)


@dataclass(frozen=True)
class Share:
    """A share of n samples, with Wilson's (1927) interval and the score test, which is its inverse.

    >>> round(Share(0.75, 4).above(0.5), 3)
    0.159
    """

    share: float
    n: int

    @property
    def interval(self) -> Interval:
        square = NORMAL**2
        below = 2 * (self.n + square)
        middle = (2 * self.n * self.share + square) / below
        half = NORMAL / below * np.sqrt(4 * self.n * self.share * (1 - self.share) + square)
        low = max(0.0, float(middle - half))
        high = min(1.0, float(middle + half))
        if self.share <= 0:
            low = 0.0  # exactly, where rounding would leave a rest
        if self.share >= 1:
            high = 1.0
        return Interval(self.share, low, high, self.n)

    def above(self, limit: float = 0.0) -> float:
        return _tail(self.share - limit, self._error(limit), np.inf)

    def below(self, limit: float = 0.0) -> float:
        return _tail(limit - self.share, self._error(limit), np.inf)

    def _error(self, limit: float) -> float:
        """Of the share, were the limit the truth."""
        return float(np.sqrt(limit * (1 - limit) / self.n))


def _tail(distance: float, error: float, df: float) -> float:
    """Chance of a distance as large; without any error that is sure, and of no distance nothing is known."""
    if error == 0:
        return {1.0: 0.0, -1.0: 1.0}.get(float(np.sign(distance)), float("nan"))
    return float(stats.t.sf(distance / error, df))


def no_estimate(mean: float = np.nan, n: int = 0) -> Student:
    """A number whose spread is unknown."""
    return Student(float(mean), np.nan, np.nan, n)


def mean_estimate(values: ArrayLike, *, bounds: Bounds = UNBOUNDED) -> Student:
    """Mean of independent values (n,); values that are not finite are left out."""
    numbers = finite(values)
    count = len(numbers)
    if not count:
        return no_estimate()
    mean = float(numbers.mean())
    if count < 2:
        return no_estimate(mean, count)
    return Student(mean, float(numbers.std(ddof=1) / np.sqrt(count)), count - 1, count, bounds)


def mean_interval(values: ArrayLike, *, bounds: Bounds = UNBOUNDED) -> Interval:
    """Mean of independent values (n,) with Student's interval; values that are not finite are left out.

    >>> print(mean_interval([0.0, 1.0, 0.5]))
    0.50 [-0.74, 1.74], n = 3
    >>> print(mean_interval([0.0, 1.0, 0.5], bounds=SHARE))
    0.50 [0.00, 1.00], n = 3
    """
    return mean_estimate(values, bounds=bounds).interval


def crossed_estimate(rows: ArrayLike, columns: ArrayLike, *, bounds: Bounds = UNBOUNDED) -> Student:
    """The estimate of `crossed_interval`."""
    by_row = finite(rows)
    by_column = finite(columns)
    if not len(by_row):
        return no_estimate()
    mean = float(by_row.mean())
    smaller = min(len(by_row), len(by_column))
    if smaller < 2:
        return no_estimate(mean, len(by_row))
    error = np.sqrt(by_row.var(ddof=1) / len(by_row) + by_column.var(ddof=1) / len(by_column))
    return Student(mean, float(error), smaller - 1, len(by_row), bounds)


def crossed_interval(rows: ArrayLike, columns: ArrayLike, *, bounds: Bounds = UNBOUNDED) -> Interval:
    """Mean of a table by its rows' means (r,) and its columns' means (c,): two sources of chance, whose variances add.

    Degrees of freedom are those of the smaller source. What is left beside rows and columns is counted in both, which
    makes the interval rather too wide than too narrow.

    >>> print(crossed_interval([0.0, 1.0, 0.5], [0.5, 0.5, 0.5], bounds=(-1, 1)))
    0.50 [-0.74, 1.00], n = 3
    """
    return crossed_estimate(rows, columns, bounds=bounds).interval


def estimate_of(rows: pd.DataFrame, *, bounds: Bounds = UNBOUNDED, share: bool = False) -> Estimate:
    """The estimate of `samples_and_trainings`."""
    known = rows.dropna(subset="value")
    by_sample = known.groupby("sample")["value"].mean()
    by_training = known.groupby("model_seed")["value"].mean()
    if rows["model_seed"].nunique() > 1:
        return crossed_estimate(by_sample, by_training, bounds=bounds)
    if share:
        return share_estimate(by_sample)
    return mean_estimate(by_sample, bounds=bounds)


def samples_and_trainings(rows: pd.DataFrame, *, bounds: Bounds = UNBOUNDED, share: bool = False) -> Interval:
    """Mean over samples, each with its mean over trainings, and its interval over all that was drawn.

    rows     one row per sample and training: columns sample, model_seed and value; rows without a value are left out
    share    whether values are 0 or 1: then the interval over the samples of one training is Wilson's
    returns  of one training Student's interval over samples; of several the crossed one; n counts samples
    """
    return estimate_of(rows, bounds=bounds, share=share).interval


def share_estimate(hits: ArrayLike) -> Estimate:
    """The estimate of `share_interval`."""
    numbers = finite(hits)
    if not len(numbers):
        return no_estimate()
    return Share(float(numbers.mean()), len(numbers))


def share_interval(hits: ArrayLike) -> Interval:
    """A share with Wilson's interval; hits (n,) are true or false, or lie between (hit in some trainings only).

    >>> print(share_interval([True, True, False, True]))
    0.75 [0.30, 0.95], n = 4
    """
    return share_estimate(hits).interval


def wilson_interval(share: float, n: int) -> Interval:
    """Wilson's (1927) interval of a share of n.

    >>> print(wilson_interval(0.0, 10))
    0.00 [0.00, 0.28], n = 10
    """
    return Share(share, n).interval


def pooled_share_interval(shares: ArrayLike, counts: ArrayLike) -> Interval:
    """The share of all hits, from the shares (t,) and the numbers of samples (t,) of t trainings.

    One training: Wilson's interval. Several: the variance between trainings and that of as many samples as one has add
    up, since all trainings are asked about the same samples.
    """
    own = np.asarray(shares, dtype=float)
    size = np.asarray(counts, dtype=float)
    share = float((own * size).sum() / size.sum())
    n = int(size.sum())
    if len(own) < 2:
        return wilson_interval(share, n)
    error = np.sqrt(own.var(ddof=1) / len(own) + share * (1 - share) / size.mean())
    return Student(share, float(error), len(own) - 1, n, SHARE).interval


def variance_ratio_interval(one: ArrayLike, other: ArrayLike) -> Interval:
    """Variance of one (n,) over that of the other (m,), both normal, with the interval from the F distribution."""
    first = np.asarray(one, dtype=float)
    second = np.asarray(other, dtype=float)
    ratio = float(first.var(ddof=1) / second.var(ddof=1))
    law = stats.f(len(first) - 1, len(second) - 1)
    return Interval(ratio, float(ratio / law.ppf(UPPER_TAIL)), float(ratio / law.ppf(LOWER_TAIL)), len(first))
