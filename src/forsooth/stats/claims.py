"""Tests of single claims, and families of claims that are judged together."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from forsooth.stats.intervals import LOWER_TAIL, Estimate, Floats, finite, mean_estimate

Bools = NDArray[np.bool_]
Name = TypeVar("Name", bound=Hashable)

ONE_SIDE = LOWER_TAIL  # level of a family of claims to one side, as that of an interval, which has two


def t_test_above(values: ArrayLike) -> float:
    """One-sided p of Student's test that the mean of values (n,) is above 0; nan where they are too few, or all 0.

    >>> round(t_test_above([0.1, 0.2, 0.3]), 3)
    0.037
    """
    return mean_estimate(values).above()


def t_test(values: ArrayLike) -> float:
    """Two-sided p of Student's test that the mean of values (n,) is not 0; nan where they are too few, or all 0.

    >>> round(t_test([0.1, 0.2, 0.3]), 3)
    0.074
    """
    numbers = finite(values)
    return 2 * min(t_test_above(numbers), t_test_above(-numbers))


def mcnemar_more_often(one: ArrayLike, two: ArrayLike) -> float:
    """Exact p of McNemar's test that two (n,) is true more often than one (n,), of the same samples; 1 where it is not.

    The p-value is two-sided, for it is the data that say which of the two is taken for the larger.

    >>> mcnemar_more_often([False] * 5, [True] * 5), mcnemar_more_often([True], [False])
    (0.0625, 1.0)
    """
    first = np.asarray(one, dtype=bool)
    second = np.asarray(two, dtype=bool)
    more = int((second & ~first).sum())
    less = int((first & ~second).sum())
    if more <= less:
        return 1.0
    return float(stats.binomtest(more, more + less).pvalue)


def holm(pvalues: ArrayLike) -> Floats:
    """p-values of a family of claims, each adjusted for the number of claims (Holm 1979); nan stays out of the family.

    Reject where the adjusted value is at most the level: then the chance of any false rejection is at most the level,
    however the claims depend on each other. Of m claims the smallest is multiplied by m, the next by m - 1, …, and none
    may be smaller than one before it.

    pvalues  (...,)
    returns  (...,)

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    raw = np.asarray(pvalues, dtype=float)
    flat = raw.ravel()
    family = np.flatnonzero(np.isfinite(flat))
    order = family[np.argsort(flat[family], kind="stable")]
    times = np.arange(len(order), 0, -1)
    adjusted = np.full(flat.shape, np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(times * flat[order]))
    return adjusted.reshape(raw.shape)


def holm_by_name(pvalues: Mapping[Name, float]) -> dict[Name, float]:
    """The same for claims that have names.

    >>> holm_by_name({"a": 0.01, "b": 0.04})
    {'a': 0.02, 'b': 0.04}
    """
    adjusted = holm(list(pvalues.values())).tolist()
    return dict(zip(pvalues, adjusted, strict=True))


def surely_above(estimates: Sequence[Estimate], limit: float | Sequence[float] = 0.0) -> Bools:
    """Which numbers are above the limit, (claims,): one family, corrected by Holm; not those of which nothing is known.

    limit  of all, or one for each
    """
    return surely([one.above(own) for one, own in _beside(estimates, limit)])


def surely_below(estimates: Sequence[Estimate], limit: float | Sequence[float] = 0.0) -> Bools:
    """Which are below it, (claims,)."""
    return surely([one.below(own) for one, own in _beside(estimates, limit)])


def directions(estimates: Sequence[Estimate], limit: float | Sequence[float] = 0.0) -> NDArray[np.int64]:
    """1 where a number is surely above its limit, -1 where surely below, 0 where inconclusive, (claims,).

    Each side is a family at half the level, so that any is wrong in at most 5 % of cases.

    >>> from forsooth.stats.intervals import mean_estimate
    >>> directions([mean_estimate([0.8, 0.9, 1.0]), mean_estimate([-1.0, 0.0, 1.0])]).tolist()
    [1, 0]
    """
    return surely_above(estimates, limit).astype(np.int64) - surely_below(estimates, limit).astype(np.int64)


def surely(pvalues: ArrayLike) -> Bools:
    """Which one-sided claims hold, of p-values (...,) that are one family; nan makes no claim."""
    return np.asarray(holm(pvalues) <= ONE_SIDE)


def _beside(estimates: Sequence[Estimate], limit: float | Sequence[float]) -> Iterator[tuple[Estimate, float]]:
    """Each estimate with its limit."""
    return zip(estimates, np.broadcast_to(limit, len(estimates)).tolist(), strict=True)
