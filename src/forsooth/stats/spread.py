"""Variance and degrees of freedom of scores and of their differences: the formulas of `forsooth.stats`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from forsooth.stats.panels import Floats, Panel
from forsooth.stats.trainings import by_themselves, differences_of, groups_of

CONFIDENCE = 0.95
WIDTH = float(stats.norm.isf((1 - CONFIDENCE) / 2))  # half an interval, in standard errors
TOLERANCE = 1e-6  # two ways to compute one thing (DeepLIFT, Deep SHAP on zeros) differ by rounding; that is no finding
FEWEST = 3.0  # degrees of freedom of trainings below which nothing is claimed
LUCK = 0.3  # an interval reckons with trainings that agree by luck: B may be as large as its upper 1 - LUCK bound
CLAIMED_LUCK = 0.01  # the same where something is claimed, far out in the tail


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

    def df(self, luck: float) -> Floats:
        """Degrees of freedom, reckoned with the upper bound of B that is exceeded with probability `luck`."""
        known = np.isfinite(self.common_df)
        own = np.where(known, self.common_df, 1.0)
        bound = self.common * np.where(known, own / stats.chi2.ppf(luck, own), 1.0)
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
    slopes = [_slopes(panel, width / len(panels) ** 0.25) for panel in panels]
    samples, samples_df, count = _of_samples(panels, slopes)
    samples = samples + doubt * _one_disagreement(panels, slopes)
    common, common_df = by_themselves(panels) if trainings is None else trainings
    return Spread(
        samples=np.maximum(0.0, samples - _of_the_rest(panels, slopes)),
        samples_df=samples_df,
        common=common,
        common_df=common_df,
        count=count,
    )


def spread_of_means(values: Floats, parts: Floats | None = None) -> Spread:
    """The spread of means over samples, values (methods, samples), by Student; nan of one sample.

    parts  (methods, groups) errors that all samples have in common, whose squares sum to the variance of the mean
    """
    methods, count = values.shape
    unknown = np.full((methods + 1, methods + 1), np.nan)
    centred = values - values.mean(axis=1, keepdims=True)
    groups = 0 if parts is None else parts.shape[1]
    common = np.zeros_like(unknown) if parts is None else differences_of(parts @ parts.T)
    return Spread(
        samples=differences_of(centred @ centred.T) / (count * (count - 1)) if count > 1 else unknown,
        samples_df=np.full_like(unknown, max(1, count - 1)),
        common=common,
        common_df=np.where(common > 0, groups - 1.0, np.inf),
        count=count,
    )


def _slopes(panel: Panel, width: float) -> Floats:
    """Slope of each quantile function around 1/2, over `width` standard errors of the signs each way: (methods,)."""
    samples = panel.signs.shape[1]
    reach = width * panel.signs.std(axis=1) / np.sqrt(samples)
    ends = np.clip(0.5 + reach * np.array([[-1.0], [1.0]]), 0, 1) * samples - 0.5  # (2, methods), places in the order
    places = np.clip(ends, 0, samples - 1)
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, samples - 1)
    methods = np.arange(len(panel.quantiles))
    part = places - below
    low, high = (1 - part) * panel.quantiles[methods, below] + part * panel.quantiles[methods, above]
    return np.asarray((high - low) / np.where(reach > 0, 2 * reach, 1.0))


def _of_samples(panels: Sequence[Panel], slopes: Sequence[Floats]) -> tuple[Floats, Floats, int]:
    """A, its degrees of freedom, both (methods + 1, methods + 1), and the number of samples; nan of single samples."""
    methods = len(panels[0].value) + 1
    variance = np.zeros((methods, methods))
    inverse = np.zeros((methods, methods))
    count = 0
    for own in groups_of([panel.dataset for panel in panels]):
        moved = _moved([panels[k] for k in own], [slopes[k] / len(panels) for k in own])
        here, df = _variances(moved)
        variance += here
        inverse += here**2 / df
        count += moved.shape[1]
    df = np.where(inverse > 0, variance**2 / np.where(inverse > 0, inverse, 1.0), np.inf)
    return variance, df, count


def _one_disagreement(panels: Sequence[Panel], slopes: Sequence[Floats]) -> Floats:
    """What one more sample on which two methods disagree adds to A, shared out over panels; shaped as A."""
    squares = [(slope / panel.signs.shape[1]) ** 2 / 2 for panel, slope in zip(panels, slopes, strict=True)]
    return differences_of(np.diag(np.mean(squares, axis=0))) / len(panels) ** 2


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
        unknown = np.full((len(moved), len(moved)), np.nan)
        return unknown, unknown
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
    kurtosis = np.maximum(1.0, 3 + excess)
    coin = np.clip((3 - kurtosis) / 2, 0, 1)  # 1: all signs and no more, whose variance needs no estimate
    variance = second * (1 + (1 - coin) / (count - 1)) / count
    return variance, 2 * count / (kurtosis - (count - 3) / (count - 1))


def _of_the_rest(panels: Sequence[Panel], slopes: Sequence[Floats]) -> Floats:
    """E of the mean over panels, (methods + 1, methods + 1); panels of one network have it in common."""
    methods = len(panels[0].value)
    covariance = np.zeros((methods, methods))
    for own in groups_of([panel.network for panel in panels]):
        parts = [slopes[k][:, None, None] / len(panels) * panels[k].left for k in own]
        rest = _joined(parts, [panels[k] for k in own])
        _, samples, trainings = rest.shape
        if trainings > 1 and samples > 1:
            flat = rest.reshape(methods, -1)
            covariance += flat @ flat.T / ((samples - 1) * (trainings - 1)) / (samples * trainings)
    return differences_of(covariance)


def _joined(parts: Sequence[Floats], panels: Sequence[Panel]) -> Floats:
    """Sum of (methods, samples, trainings) over panels of one network, each part at its samples and seeds."""
    samples = np.unique(np.concatenate([panel.samples for panel in panels]))
    seeds = np.unique(np.concatenate([panel.seeds for panel in panels]))
    joined = np.zeros((len(parts[0]), len(samples), len(seeds)))
    for part, panel in zip(parts, panels, strict=True):
        rows = np.searchsorted(samples, panel.samples)
        columns = np.searchsorted(seeds, panel.seeds)
        joined[:, rows[:, None], columns] += part
    return joined


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
    unknown = (spread.common_df < FEWEST)[:-1, :-1]
    found = np.where((size <= TOLERANCE) | unknown, 1.0, found)
    return np.where(np.isfinite(variance), found, np.nan)


def least(count: int) -> float:
    """The smallest p-value that signs of `count` samples alone can give.

    >>> least(6), least(0)
    (0.03125, 1.0)
    """
    return float(min(1.0, 2.0 ** (1 - count)))
