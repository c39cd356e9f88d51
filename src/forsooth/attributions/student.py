"""Student's t-test for a handful of scores."""

import math

from scipy.special import stdtr
from torch import Tensor


def t_test(scores: Tensor, other: Tensor | float) -> float:
    """p of the two-sided t-test: of scores (m,) against other (k,) with one variance, or against a number.

    nan with too few scores. Scores that do not vary give 0 where the means differ, else 1.
    """
    mean, squares = moments(scores)
    freedom = len(scores) - 1
    each = 1 / len(scores)
    if isinstance(other, Tensor):
        other_mean, other_squares = moments(other)
        freedom += len(other) - 1
        each += 1 / len(other)
        squares += other_squares
        other = other_mean
    return two_sided(mean - other, squares, freedom, each)


def two_sided(gap: float, squares: float, freedom: int, each: float) -> float:
    """p of a gap between means, whose variance is `each` times squares / freedom."""
    if freedom < 1 or math.isnan(gap):
        return math.nan
    if squares == 0:
        return float(gap == 0)
    return float(2 * stdtr(freedom, -abs(gap) / math.sqrt(squares / freedom * each)))


def moments(scores: Tensor) -> tuple[float, float]:
    """Mean and sum of squares around it; exact for scores that are all the same, where rounding would leave a rest."""
    scores = scores.double()
    mean = scores[0]
    if (scores != mean).any():
        mean = scores.mean()
    return mean.item(), (scores - mean).square().sum().item()
