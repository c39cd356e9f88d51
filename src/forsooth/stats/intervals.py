"""95 % intervals of means, shares and ratios of variances: the one place that makes them outside of boards.

A mean has Student's interval and a share Wilson's. Where the same samples were shown to several trainings, both are
drawn, and the interval is over both.
"""

from collections.abc import Mapping
from typing import NamedTuple

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


def student_interval(mean: float, error: float, *, df: int, n: int, bounds: Bounds = UNBOUNDED) -> Interval:
    """`mean` ± t · `error`, cut off where no value can be."""
    half = float(stats.t.ppf(UPPER_TAIL, df) * error)
    return Interval(mean, max(mean - half, bounds[0]), min(mean + half, bounds[1]), n)


def mean_interval(values: ArrayLike, *, bounds: Bounds = UNBOUNDED) -> Interval:
    """Mean of independent values (n,) with Student's interval; values that are not finite are left out.

    >>> print(mean_interval([0.0, 1.0, 0.5]))
    0.50 [-0.74, 1.74], n = 3
    >>> print(mean_interval([0.0, 1.0, 0.5], bounds=SHARE))
    0.50 [0.00, 1.00], n = 3
    """
    numbers = finite(values)
    count = len(numbers)
    if not count:
        return no_interval()
    mean = float(numbers.mean())
    if count < 2:
        return no_interval(mean, count)
    error = numbers.std(ddof=1) / np.sqrt(count)
    return student_interval(mean, error, df=count - 1, n=count, bounds=bounds)


def crossed_interval(rows: ArrayLike, columns: ArrayLike, *, bounds: Bounds = UNBOUNDED) -> Interval:
    """Mean of a table by its rows' means (r,) and its columns' means (c,): two sources of chance, whose variances add.

    Degrees of freedom are those of the smaller source. What is left beside rows and columns is counted in both, which
    makes the interval rather too wide than too narrow.

    >>> print(crossed_interval([0.0, 1.0, 0.5], [0.5, 0.5, 0.5], bounds=(-1, 1)))
    0.50 [-0.74, 1.00], n = 3
    """
    by_row = finite(rows)
    by_column = finite(columns)
    if not len(by_row):
        return no_interval()
    mean = float(by_row.mean())
    smaller = min(len(by_row), len(by_column))
    if smaller < 2:
        return no_interval(mean, len(by_row))
    error = np.sqrt(by_row.var(ddof=1) / len(by_row) + by_column.var(ddof=1) / len(by_column))
    return student_interval(mean, error, df=smaller - 1, n=len(by_row), bounds=bounds)


def samples_and_trainings(rows: pd.DataFrame, *, bounds: Bounds = UNBOUNDED, share: bool = False) -> Interval:
    """Mean over samples, each with its mean over trainings, and its interval over all that was drawn.

    rows     one row per sample and training: columns sample, model_seed and value; rows without a value are left out
    share    whether values are 0 or 1: then the interval over the samples of one training is Wilson's
    returns  of one training Student's interval over samples; of several the crossed one; n counts samples
    """
    known = rows.dropna(subset="value")
    by_sample = known.groupby("sample")["value"].mean()
    by_training = known.groupby("model_seed")["value"].mean()
    if rows["model_seed"].nunique() > 1:
        return crossed_interval(by_sample, by_training, bounds=bounds)
    if share:
        return share_interval(by_sample)
    return mean_interval(by_sample, bounds=bounds)


def share_interval(hits: ArrayLike) -> Interval:
    """A share with Wilson's interval; hits (n,) are true or false, or lie between (hit in some trainings only).

    >>> print(share_interval([True, True, False, True]))
    0.75 [0.30, 0.95], n = 4
    """
    numbers = finite(hits)
    if not len(numbers):
        return no_interval()
    return wilson_interval(float(numbers.mean()), len(numbers))


def wilson_interval(share: float, n: int) -> Interval:
    """Wilson's (1927) interval of a share of n.

    >>> print(wilson_interval(0.0, 10))
    0.00 [0.00, 0.28], n = 10
    """
    square = NORMAL**2
    below = 2 * (n + square)
    middle = (2 * n * share + square) / below
    half = NORMAL / below * np.sqrt(4 * n * share * (1 - share) + square)
    low = max(0.0, float(middle - half))
    high = min(1.0, float(middle + half))
    if share <= 0:
        low = 0.0  # exactly, where rounding would leave a rest
    if share >= 1:
        high = 1.0
    return Interval(share, low, high, n)


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
    return student_interval(share, error, df=len(own) - 1, n=n, bounds=SHARE)


def variance_ratio_interval(one: ArrayLike, other: ArrayLike) -> Interval:
    """Variance of one (n,) over that of the other (m,), both normal, with the interval from the F distribution."""
    first = np.asarray(one, dtype=float)
    second = np.asarray(other, dtype=float)
    ratio = float(first.var(ddof=1) / second.var(ddof=1))
    law = stats.f(len(first) - 1, len(second) - 1)
    return Interval(ratio, float(ratio / law.ppf(UPPER_TAIL)), float(ratio / law.ppf(LOWER_TAIL)), len(first))
