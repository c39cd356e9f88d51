"""Resampling without resampled copies: a bootstrap draw is a column of counts, its median a weighted median."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int16]
Floats = NDArray[np.float64]

CONFIDENCE = 0.95
TOLERANCE = 1e-6  # two ways to compute one thing (DeepLIFT, Deep SHAP on zeros) differ by rounding; that is no finding


def counts(n: int, *, draws: int, rng: np.random.Generator) -> Counts:
    """How often each of n items is drawn, when n are drawn with replacement.

    returns  (n, draws); every column sums to n
    """
    picked = rng.integers(0, n, size=(draws, n)) + n * np.arange(draws)[:, None]
    tally = np.bincount(picked.ravel(), minlength=draws * n).reshape(draws, n)
    return np.ascontiguousarray(tally.T, dtype=np.int16)


def weighted_median(values: Floats, weights: Counts) -> Floats:
    """The median of `values` repeated as often as `weights` says, for every draw at once.

    values   (k,)
    weights  (k, draws) whole numbers >= 0
    returns  (draws,), the midpoint of the two middle values where they are even in number; where a draw holds
             none of the values, the median of them all
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    below = weights[order].astype(np.float32)  # (k, draws); float32 counts exactly up to 16 million
    for above, row in pairwise(below):  # numpy's cumsum walks down columns: ten times slower
        row += above
    half = below[-1] / 2
    low = np.count_nonzero(below < half, axis=0)
    high = np.minimum(np.count_nonzero(below <= half, axis=0), len(values) - 1)
    return np.where(half > 0, (ordered[low] + ordered[high]) / 2, np.median(values))


def interval(draws: Floats, *, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
    """The percentile interval over the last axis.

    draws    (..., draws)
    returns  two of (...,)
    """
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=-1)
    return low, high


def exceeds(difference: Floats) -> NDArray[np.bool_]:
    """Whether the interval of paired differences (..., draws) lies above 0, rounding aside; no where one is nan."""
    return interval(difference)[0] > TOLERANCE


def ranks(good: Floats) -> NDArray[np.int64]:
    """1 + how many are better, where more is better; equals share a rank.

    good     (methods, ...)
    returns  (methods, ...)
    """
    return 1 + np.count_nonzero(good[None] > good[:, None] + TOLERANCE, axis=1)


def letters(good: Floats) -> list[str]:
    """Tie groups A, B, … of methods in order, best first.

    good     (methods, draws) paired draws of the score, more is better
    returns  a method opens a new group when its difference to the group's first member excludes 0
    """
    lead, group, names = 0, 0, []
    for method in range(len(good)):
        if method and exceeds(good[lead] - good[method]):
            lead, group = method, group + 1
        names.append(chr(ord("A") + group % 26) * (1 + group // 26))
    return names
