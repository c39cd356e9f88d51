"""Who differs from whom on a board: pairs judged as one family, tie groups and ranks that follow from them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from forsooth.stats.claims import holm
from forsooth.stats.panels import Floats, Panel
from forsooth.stats.spread import TOLERANCE, pvalues, spread_of
from forsooth.stats.trainings import for_claims, for_claims_in_each

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
    spread = spread_of(panels, trainings=for_claims(panels), width=width, doubt=doubt_of(width))
    return pvalues(np.mean([panel.value for panel in panels], axis=0), spread)


def differing(pvalues: Floats, *, level: float = PAIRS) -> Bools:
    """Which pairs differ, from p-values (methods, methods), the same both ways; all pairs are one family."""
    upper = np.triu_indices(len(pvalues), 1)
    differ = np.zeros(pvalues.shape, dtype=bool)
    differ[upper] = holm(pvalues[upper]) <= level
    return differ | differ.T


def against(panels: Sequence[Panel]) -> list[Floats]:
    """For each panel alone, p-values of all pairs of methods (methods, methods); nan where one took no part.

    Trainings spread as in the mean of all panels, or wider where those of the panel do.
    """
    width = width_of(AGAINST, len(panels) * len(panels[0].value))
    doubt = doubt_of(width)
    by_panel = []
    for panel, trainings in zip(panels, for_claims_in_each(panels), strict=True):
        spread = spread_of([panel], trainings=trainings, width=width, doubt=doubt)
        by_panel.append(pvalues(panel.value, spread))
    return by_panel


def wins(panels: Sequence[Panel], *, sign: int, null: Bools, rival: Bools) -> Bools:
    """(panels, methods): clearly better than every null that is a rival; all methods and panels are one family.

    Who must beat all nulls must beat the hardest: the p-value is the largest of them. A null without a score in a panel
    (some read images, and take no part in tables) need not be beaten there.
    """
    value = np.stack([panel.value for panel in panels])
    rivals = np.isfinite(value) & ~null
    if not (null & rival).any():
        return np.zeros_like(rivals)
    pvalue = _against_nulls(panels, sign=sign, null=null & rival)
    away = np.isnan(value[:, None, null & rival])
    hardest = np.where(away, 0.0, pvalue).max(axis=2)
    hardest[~rivals | away.all(axis=2)] = np.nan
    return np.asarray(holm(hardest) <= AGAINST / 2)


def losses(panels: Sequence[Panel], *, sign: int, null: Bools, rival: Bools) -> Bools:
    """(panels, methods, nulls): clearly worse than a null that is a rival; all of them are one family."""
    pvalue = _against_nulls(panels, sign=-sign, null=null & rival)
    pvalue[:, null] = np.nan
    return np.asarray(holm(pvalue) <= AGAINST / 2)


def _against_nulls(panels: Sequence[Panel], *, sign: int, null: Bools) -> Floats:
    """One-sided p-values that a method is ahead of a null: (panels, methods, nulls), nan where nothing is known."""
    value = np.stack([panel.value for panel in panels])
    two_sided = np.stack([pvalue[:, null] for pvalue in against(panels)])
    ahead = sign * (value[:, :, None] - value[:, None, null]) > 0
    one_sided = np.where(ahead, two_sided / 2, 1.0)
    return np.where(np.isnan(two_sided), np.nan, one_sided)


def enough_for_pairs(methods: int) -> int:
    """Samples that it takes to tell any two of so many methods apart, where pairs are all that is claimed.

    >>> enough_for_pairs(2), enough_for_pairs(12)
    (6, 12)
    """
    return int(np.ceil(1 + np.log2(max(1, methods * (methods - 1) // 2) / LEVEL)))


def enough(claims: int) -> int:
    """Samples that it takes to call any of so many methods clearly better than a null, however far ahead it is.

    >>> enough(1), enough(400)
    (7, 15)
    """
    return int(np.ceil(np.log2(max(1, claims) / (AGAINST / 2))))


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
