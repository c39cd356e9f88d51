"""How far a method's scores in two runs lie apart, and how sure that is."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forsooth.stats.differences import PAIRS, doubt_of, pairs, width_of
from forsooth.stats.panels import Floats, Panel
from forsooth.stats.spread import Spread, half_widths, pvalues, spread_of
from forsooth.stats.trainings import for_claims


class Change(NamedTuple):
    """From the first run to the second: scores, half the 95 % interval of their difference, and its p-value."""

    first: float
    second: float
    half: float
    pvalue: float


def paired_change(panels: Sequence[Panel]) -> Change:
    """Of runs that share samples and trainings; panels of two methods, those of the first run and of the second."""
    first, second = np.mean([panel.value for panel in panels], axis=0)
    half = half_widths(spread_of(panels))[0, 1]
    return Change(first, second, half, pairs(panels)[0, 1])


def independent_change(first: Sequence[Panel], second: Sequence[Panel]) -> Change:
    """Of runs that drew samples and trainings apart, so that variances add; panels of one method each."""
    values = np.array([np.mean([panel.value for panel in panels]) for panels in (first, second)])
    half = half_widths(_added(spread_of(first), spread_of(second)))[0, 1]
    claimed = _added(_for_claim(first), _for_claim(second))
    return Change(values[0], values[1], half, pvalues(values, claimed)[0, 1])


def _for_claim(panels: Sequence[Panel]) -> Spread:
    width = width_of(PAIRS, 1)
    return spread_of(panels, trainings=for_claims(panels), width=width, doubt=doubt_of(width))


def _added(first: Spread, second: Spread) -> Spread:
    """The spread of the difference of two independent scores, in row 0 and column 1."""
    samples, samples_df = _sum(first.samples, first.samples_df, second.samples, second.samples_df)
    common, common_df = _sum(first.common, first.common_df, second.common, second.common_df)
    return Spread(samples, samples_df, common, common_df, count=min(first.count, second.count))


def _sum(one: Floats, one_df: Floats, other: Floats, other_df: Floats) -> tuple[Floats, Floats]:
    """Variances and degrees of freedom of a sum, by Satterthwaite, each padded by the row that stands for no method."""
    total = one + other
    inverse = one**2 / one_df + other**2 / other_df
    df = np.where(inverse > 0, total**2 / np.where(inverse > 0, inverse, 1.0), np.inf)
    return np.pad(total, (0, 1), mode="edge"), np.pad(df, (0, 1), mode="edge")
