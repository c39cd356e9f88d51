"""Who differs from whom on a board: pairs judged as one family, tie groups and ranks that follow from them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from forsooth.stats.claims import holm
from forsooth.stats.panels import Floats, Panel
from forsooth.stats.spread import TOLERANCE, Spread, own_variance, pooled_variance, pvalues, spread_of

Bools = NDArray[np.bool_]

LEVEL = 0.05  # chance that a board of equal methods names any difference at all
PAIRS = LEVEL / 2  # of it, for pairs of methods on the board
AGAINST = LEVEL / 2  # and for methods against nulls in the panels


def width_of(level: float, claims: int) -> float:
    """Standard errors that a difference must reach when `claims` are made at `level`, by a normal law."""
    return float(stats.norm.isf(level / 2 / max(1, claims)))


def doubt_of(width: float) -> float:
    """Disagreements to add to those seen, for claims of `width` standard errors: half of Wilson's."""
    return width**2 / 4


def pairs(panels: Sequence[Panel]) -> Floats:
    """p-values of all pairs of methods, of their means over panels: (methods, methods), not yet corrected."""
    methods = len(panels[0].value)
    width = width_of(PAIRS, methods * (methods - 1) // 2)
    spread = spread_of(panels, width=width, doubt=doubt_of(width))
    return pvalues(np.mean([panel.value for panel in panels], axis=0), spread)


def differing(pvalues: Floats, *, level: float = PAIRS) -> Bools:
    """Which pairs differ, from p-values (methods, methods), the same both ways; all pairs are one family."""
    upper = np.triu_indices(len(pvalues), 1)
    found = np.zeros(pvalues.shape, dtype=bool)
    found[upper] = holm(pvalues[upper]) <= level
    return found | found.T


def against(panels: Sequence[Panel]) -> list[Floats]:
    """For each panel alone, p-values of all pairs of methods (methods, methods); nan where one took no part.

    Trainings spread as in the mean of all panels, or wider where the panel's own do.
    """
    claims = len(panels) * len(panels[0].value)
    width = width_of(AGAINST, claims)
    trained = [panel for panel in panels if panel.trainings.shape[1] > 1]
    pooled = pooled_variance(trained) if trained else None
    found = []
    for panel in panels:
        spread = _alone(panel, pooled, width=width)
        found.append(pvalues(panel.value, spread))
    return found


def _alone(panel: Panel, pooled: tuple[Floats, int] | None, *, width: float) -> Spread:
    """The spread in one panel, with what all panels know of trainings."""
    if pooled is None:
        return spread_of([panel], width=width, doubt=doubt_of(width))
    variance, degrees = pooled
    trainings = panel.trainings.shape[1]
    if trainings > 1:
        variance = np.maximum(variance, own_variance(panel))
    df = np.where(variance > 0, float(degrees), np.inf)
    return spread_of([panel], width=width, doubt=doubt_of(width), trainings=(variance / trainings, df))


def letters(differ: Bools) -> list[str]:
    """Tie groups A, B, … of methods in order, best first: a new group where one differs from the group's first member.

    differ  (methods, methods)
    """
    lead = 0
    group = 0
    names = []
    for method in range(len(differ)):
        if differ[lead, method]:
            lead = method
            group += 1
        names.append(chr(ord("A") + group % 26) * (1 + group // 26))
    return names


def ranks(good: Floats, differ: Bools) -> NDArray[np.int64]:
    """Rank, lowest and highest rank of each method: (3, methods).

    good    (methods,), more is better
    differ  (methods, methods) pairs that differ: a rank is sure of those only, and of all at once

    A rank is 1 + how many are better; equals share it.
    """
    better = good[None] > good[:, None] + TOLERANCE  # (methods, those that may be better)
    worse = good[None] < good[:, None] - TOLERANCE
    first = 1 + better.sum(axis=1)
    low = 1 + (better & differ).sum(axis=1)
    high = len(good) - (worse & differ).sum(axis=1)
    return np.stack([first, low, high])
