"""Variance and degrees of freedom of scores and of their differences: the formulas of `forsooth.stats`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from forsooth.stats.panels import Floats, Panel, differences_of
from forsooth.stats.samples import count_of, of_samples, of_the_rest, one_disagreement, slopes_of
from forsooth.stats.trainings import by_themselves

CONFIDENCE = 0.95
WIDTH = float(stats.norm.isf((1 - CONFIDENCE) / 2))  # half an interval, in standard errors
TOLERANCE = 1e-6  # two ways to compute one thing (DeepLIFT, Deep SHAP on zeros) differ by rounding; that is no finding
FEWEST = 3.0  # degrees of freedom of trainings below which nothing is claimed
# Trainings may agree by chance: degrees of freedom are reckoned with a B that the true one exceeds so rarely,
EXCEEDED = 0.3  # in an interval
EXCEEDED_IN_CLAIMS = 0.01  # and where something is claimed, far out in the tail


@dataclass(frozen=True)
class Spread:
    """How far chance moves differences of scores, mean over panels; row and column `methods` stand for the number 0.

    samples  (methods + 1, methods + 1) variance (A - E)₊, and its degrees of freedom
    common   (methods + 1, methods + 1) variance B of what all samples have in common, trainings or permutations, and
             its degrees of freedom; infinite where nothing was drawn twice
    count    how many samples were drawn, in all datasets together
    """

    samples: Floats
    samples_df: Floats
    common: Floats
    common_df: Floats
    count: int

    @property
    def variance(self) -> Floats:
        return self.samples + self.common

    def df(self, exceeded: float) -> Floats:
        """Degrees of freedom, reckoned with the upper bound of B that is exceeded with this probability."""
        known = np.isfinite(self.common_df)
        own = np.where(known, self.common_df, 1.0)
        bound = self.common * np.where(known, own / stats.chi2.ppf(exceeded, own), 1.0)
        inverse = self.samples**2 / self.samples_df + bound**2 / own
        together = (self.samples + bound) ** 2
        return np.where(inverse > 0, together / np.where(inverse > 0, inverse, 1.0), np.inf)


def spread_of(
    panels: Sequence[Panel], *, trainings: tuple[Floats, Floats] | None = None, width: float = WIDTH, doubt: float = 0.0
) -> Spread:
    """The spread of the mean over these panels, in which all methods took part.

    trainings  B and its degrees of freedom; by default what these panels say by themselves
    width      standard errors that are looked at to each side: where slopes of quantile functions are taken
    doubt      samples that are added on which two methods disagree, so that no pair seems sure because few happened to
    """
    slopes = slopes_of(panels, width)
    samples = of_samples(panels, slopes)
    doubted = samples.value + doubt * one_disagreement(panels, slopes)
    common, common_df = trainings or by_themselves(panels)
    return Spread(
        samples=np.maximum(0.0, doubted - of_the_rest(panels, slopes)),
        samples_df=samples.df,
        common=common,
        common_df=common_df,
        count=count_of(panels),
    )


def spread_of_means(values: Floats, parts: Floats | None = None) -> Spread:
    """The spread of means over samples, values (methods, samples), by Student; nan of one sample.

    parts  (methods, groups) errors that all samples have in common, whose squares sum to the variance of the mean
    """
    methods, count = values.shape
    if parts is None:
        parts = np.zeros((methods, 0))
    variance = np.full((methods + 1, methods + 1), np.nan)
    if count > 1:
        centred = values - values.mean(axis=1, keepdims=True)
        variance = differences_of(centred @ centred.T) / (count * (count - 1))
    common = differences_of(parts @ parts.T)
    return Spread(
        samples=variance,
        samples_df=np.full_like(variance, max(1, count - 1)),
        common=common,
        common_df=np.where(common > 0, parts.shape[1] - 1.0, np.inf),
        count=count,
    )


def half_widths(spread: Spread) -> Floats:
    """Half the 95 % interval of every difference; the last column is that of the scores themselves."""
    quantile = special.stdtrit(spread.df(EXCEEDED), (1 + CONFIDENCE) / 2)
    return np.asarray(np.where(np.isfinite(quantile), quantile, WIDTH) * np.sqrt(spread.variance))


def pvalues(value: Floats, spread: Spread) -> Floats:
    """Two-sided p-values of all differences of value (methods,): (methods, methods); nan where nothing is known.

    1 where the difference is rounding, or where trainings are too few for a claim.
    """
    size = np.abs(value[:, None] - value)
    variance = spread.variance[:-1, :-1]
    df = spread.df(EXCEEDED_IN_CLAIMS)[:-1, :-1]
    pvalue = np.maximum(_two_sided(size, np.sqrt(variance), df), least(spread.count))
    unclaimed = (size <= TOLERANCE) | (spread.common_df < FEWEST)[:-1, :-1]
    return np.where(np.isfinite(variance), np.where(unclaimed, 1.0, pvalue), np.nan)


def _two_sided(size: Floats, error: Floats, df: Floats) -> Floats:
    """p of differences with standard errors, by Student; by the normal law where degrees of freedom are infinite."""
    ratio = np.where(error > 0, size / np.where(error > 0, error, 1.0), np.inf)
    return np.asarray(np.where(np.isinf(df), 2 * special.ndtr(-ratio), 2 * special.stdtr(df, -ratio)))


def least(count: int) -> float:
    """The smallest p-value that signs of `count` samples alone can give.

    >>> least(6), least(0)
    (0.03125, 1.0)
    """
    return float(min(1.0, 2.0 ** (1 - count)))
