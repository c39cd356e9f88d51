"""Variance and degrees of freedom of scores and of their differences: the formulas of `forsooth.stats`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from forsooth.stats.panels import Floats, Panel

CONFIDENCE = 0.95
WIDTH = float(stats.norm.isf((1 - CONFIDENCE) / 2))  # half an interval, in standard errors
TOLERANCE = 1e-6  # two ways to compute one thing (DeepLIFT, Deep SHAP on zeros) differ by rounding; that is no finding
FEWEST = 2.0  # degrees of freedom of trainings below which nothing is claimed
LUCK = 0.3  # an interval reckons with trainings that agree by luck: B may be as large as its upper 1 - LUCK bound
CLAIMED_LUCK = 0.01  # the same where something is claimed, far out in the tail


@dataclass(frozen=True)
class Spread:
    """How far chance moves differences of scores, mean over panels; row and column `methods` stand for the number 0.

    samples    (methods + 1, methods + 1) variance (A - E)₊, and its degrees of freedom
    trainings  (methods + 1, methods + 1) variance B, and its degrees of freedom; infinite where there is one training
    count      how many samples were drawn, in all datasets together
    """

    samples: Floats
    samples_df: Floats
    trainings: Floats
    trainings_df: Floats
    count: int

    @property
    def variance(self) -> Floats:
        return self.samples + self.trainings

    def df(self, luck: float) -> Floats:
        """Degrees of freedom, reckoned with the upper bound of B that is exceeded with probability `luck`."""
        known = np.isfinite(self.trainings_df)
        own = np.where(known, self.trainings_df, 1.0)
        bound = self.trainings * np.where(known, own / stats.chi2.ppf(luck, own), 1.0)
        inverse = self.samples**2 / self.samples_df + bound**2 / own
        together = (self.samples + bound) ** 2
        return np.where(inverse > 0, together / np.where(inverse > 0, inverse, 1.0), np.inf)


def spread_of(
    panels: Sequence[Panel], *, width: float = WIDTH, doubt: float = 0.0, trainings: tuple[Floats, Floats] | None = None
) -> Spread:
    """The spread of the mean over these panels, in which all methods took part.

    width      standard errors that are looked at to each side: where slopes of quantile functions are taken
    doubt      samples that are added on which two methods disagree, so that no pair seems sure because few happened to
    trainings  B and its degrees of freedom, where more is known of them than these panels say
    """
    slopes = [_slopes(panel, width / len(panels) ** 0.25) for panel in panels]
    samples, samples_df, count = _of_samples(panels, slopes)
    samples = samples + doubt * _one_disagreement(panels, slopes)
    left = sum(_differences(slope[:, None] * panel.residual * slope) for panel, slope in zip(panels, slopes, strict=True))
    every, every_df = training_variances(panels) if trainings is None else trainings
    return Spread(
        samples=np.maximum(0.0, samples - left / len(panels) ** 2),
        samples_df=samples_df,
        trainings=every,
        trainings_df=every_df,
        count=count,
    )


def _differences(covariance: Floats) -> Floats:
    """Variances of all differences, from covariances (methods, methods) to (methods + 1, methods + 1)."""
    whole = np.pad(covariance, (0, 1))
    own = np.diagonal(whole)
    return np.asarray(np.maximum(0.0, own[:, None] + own - 2 * whole))


def _slopes(panel: Panel, width: float) -> Floats:
    """Slope of each quantile function around 1/2, over `width` standard errors of the signs to each side: (methods,)."""
    samples = panel.signs.shape[1]
    reach = width * panel.signs.std(axis=1) / np.sqrt(samples)
    ends = np.clip(0.5 + reach * np.array([[-1.0], [1.0]]), 0, 1) * samples - 0.5  # (2, methods), places in the order
    places = np.clip(ends, 0, samples - 1)
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, samples - 1)
    methods = np.arange(len(panel.quantiles))
    low, high = (1 - places + below) * panel.quantiles[methods, below] + (places - below) * panel.quantiles[methods, above]
    return np.asarray((high - low) / np.where(reach > 0, 2 * reach, 1.0))


def _of_samples(panels: Sequence[Panel], slopes: Sequence[Floats]) -> tuple[Floats, Floats, int]:
    """A, its degrees of freedom, both (methods + 1, methods + 1), and the number of samples; nan of single samples."""
    methods = len(panels[0].value) + 1
    variance = np.zeros((methods, methods))
    inverse = np.zeros((methods, methods))
    count = 0
    for dataset in dict.fromkeys(panel.dataset for panel in panels):
        own = [k for k, panel in enumerate(panels) if panel.dataset == dataset]
        moved = _moved([panels[k] for k in own], [slopes[k] / len(panels) for k in own])
        here, df = _variances(moved)
        variance += here
        inverse += here**2 / df
        count += moved.shape[1]
    df = np.where(inverse > 0, variance**2 / np.where(inverse > 0, inverse, 1.0), np.inf)
    return variance, df, count


def _one_disagreement(panels: Sequence[Panel], slopes: Sequence[Floats]) -> Floats:
    """What one more sample on which two methods disagree adds to A, shared out over panels: (methods + 1, methods + 1)."""
    squares = [(slope / panel.signs.shape[1]) ** 2 / 2 for panel, slope in zip(panels, slopes, strict=True)]
    return _differences(np.diag(np.mean(squares, axis=0))) / len(panels) ** 2


def _moved(panels: Sequence[Panel], slopes: Sequence[Floats]) -> Floats:
    """How far each sample moves each score, over the panels of one dataset: (methods + 1, samples)."""
    samples = np.unique(np.concatenate([panel.samples for panel in panels]))
    moved = np.zeros((len(panels[0].value) + 1, len(samples)))
    for panel, slope in zip(panels, slopes, strict=True):
        moved[:-1, np.searchsorted(samples, panel.samples)] += slope[:, None] * panel.signs
    return moved


def _variances(moved: Floats) -> tuple[Floats, Floats]:
    """Variance of the mean of all differences of rows (k, samples), and its degrees of freedom: two of (k, k).

    Degrees of freedom of a variance follow from the kurtosis κ: 2 n / (κ - (n - 3) / (n - 1)), which is n - 1 for a
    normal law and near n² for a coin.
    """
    count = moved.shape[1]
    if count < 2:
        return np.full((2, len(moved), len(moved)), np.nan)[0], np.full((len(moved), len(moved)), np.nan)
    second = np.empty((len(moved), len(moved)))
    fourth = np.empty_like(second)
    for k, row in enumerate(moved):
        squares = (moved - row) ** 2
        second[k] = squares.mean(axis=1)
        fourth[k] = np.einsum("ij,ij->i", squares, squares) / count
    if count < 4:
        return second / count, np.full_like(second, count - 1)
    varies = second > 0
    excess = np.where(varies, fourth / np.where(varies, second, 1.0) ** 2, 3.0) - 3
    excess = (count - 1) / ((count - 2) * (count - 3)) * ((count + 1) * excess + 6)  # without its bias in small samples
    return second / count, 2 * count / (np.maximum(1.0, 3 + excess) - (count - 3) / (count - 1))


def training_variances(panels: Sequence[Panel]) -> tuple[Floats, Floats]:
    """B of the mean over panels and its degrees of freedom (Welch's), both (methods + 1, methods + 1).

    A panel with one training has the mean variance of the others; where all have one, B is 0 with infinite degrees.
    """
    trained = [panel for panel in panels if panel.trainings.shape[1] > 1]
    methods = len(panels[0].value) + 1
    if not trained:
        return np.zeros((methods, methods)), np.full((methods, methods), np.inf)
    single = len(panels) - len(trained)
    parts = np.stack([own_variance(panel) / panel.trainings.shape[1] for panel in trained])
    degrees = np.array([panel.trainings.shape[1] - 1 for panel in trained])
    whole = parts.sum(axis=0)
    squares = (parts**2 / (degrees[:, None, None] + 2)).sum(axis=0)
    df = np.where(squares > 0, whole**2 / np.where(squares > 0, squares, 1.0) - 2, np.inf)
    df = np.where(squares > 0, np.clip(df, degrees.min(), degrees.sum()), np.inf)
    missing = single * pooled_variance(trained)[0]
    return (whole + missing) / len(panels) ** 2, df


def own_variance(panel: Panel) -> Floats:
    """Variance between trainings of all differences, (methods + 1, methods + 1)."""
    return _differences(np.atleast_2d(np.cov(panel.trainings)))


def pooled_variance(panels: Sequence[Panel]) -> tuple[Floats, int]:
    """Variance between trainings of all differences, mean over panels, and its degrees of freedom."""
    degrees = [panel.trainings.shape[1] - 1 for panel in panels]
    parts = [df * own_variance(panel) for df, panel in zip(degrees, panels, strict=True)]
    return sum(parts) / sum(degrees), sum(degrees)


def half_widths(spread: Spread) -> Floats:
    """Half the 95 % interval of every difference; the last column is that of the scores themselves."""
    quantile = special.stdtrit(spread.df(LUCK), (1 + CONFIDENCE) / 2)
    return np.asarray(np.where(np.isfinite(quantile), quantile, WIDTH) * np.sqrt(spread.variance))


def pvalues(value: Floats, spread: Spread) -> Floats:
    """Two-sided p-values of all differences of value (methods,): (methods, methods); nan where nothing is known.

    1 where the difference is rounding, or where trainings are too few for a claim.
    """
    size = np.abs(value[:, None] - value)
    variance = spread.variance[:-1, :-1]
    error = np.sqrt(variance)
    ratio = np.where(error > 0, size / np.where(error > 0, error, 1.0), np.inf)
    found = 2 * special.stdtr(spread.df(CLAIMED_LUCK)[:-1, :-1], -ratio)
    found = np.where(np.isinf(spread.df(CLAIMED_LUCK)[:-1, :-1]), 2 * special.ndtr(-ratio), found)
    found = np.maximum(found, least(spread.count))
    unknown = (spread.trainings_df < FEWEST)[:-1, :-1]
    found = np.where((size <= TOLERANCE) | unknown, 1.0, found)
    return np.where(np.isfinite(variance), found, np.nan)


def least(count: int) -> float:
    """The smallest p-value that signs of `count` samples alone can give.

    >>> least(6), least(0)
    (0.03125, 1.0)
    """
    return float(min(1.0, 2.0 ** (1 - count)))


