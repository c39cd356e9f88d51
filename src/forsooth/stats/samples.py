"""What samples do to scores: A and E of `forsooth.stats`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forsooth.stats.panels import Floats, Panel, differences_of, groups_of

FEW = 25  # samples below which the kurtosis of their signs is mostly chance
NORMAL_KURTOSIS = 3.0


class Variance(NamedTuple):
    """Variances of all differences, and their degrees of freedom: (methods + 1, methods + 1) each."""

    value: Floats
    df: Floats


def slopes_of(panels: Sequence[Panel], width: float) -> list[Floats]:
    """Slope of each quantile function around 1/2, over `width` standard errors of the mean each way: (methods,)."""
    return [_slopes(panel, width / len(panels) ** 0.25) for panel in panels]


def _slopes(panel: Panel, width: float) -> Floats:
    samples = panel.signs.shape[1]
    reach = width * panel.signs.std(axis=1) / np.sqrt(samples)
    low = _quantiles_at(panel, 0.5 - reach)
    high = _quantiles_at(panel, 0.5 + reach)
    return np.asarray((high - low) / np.where(reach > 0, 2 * reach, 1.0))


def _quantiles_at(panel: Panel, share: Floats) -> Floats:
    """The quantile of each method at its own share (methods,), between neighbours linearly: (methods,)."""
    samples = panel.signs.shape[1]
    places = np.clip(np.clip(share, 0, 1) * samples - 0.5, 0, samples - 1)
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, samples - 1)
    methods = np.arange(len(share))
    part = places - below
    return np.asarray((1 - part) * panel.quantiles[methods, below] + part * panel.quantiles[methods, above])


def of_samples(panels: Sequence[Panel], slopes: Sequence[Floats]) -> Variance:
    """A of the mean over panels; nan of single samples."""
    methods = len(panels[0].value) + 1
    total = np.zeros((methods, methods))
    inverse = np.zeros_like(total)
    for own in groups_of([panel.dataset for panel in panels]):
        moved = _moved([panels[k] for k in own], [slopes[k] / len(panels) for k in own])
        variance, df = _variances(moved)
        total += variance
        inverse += variance**2 / df
    df = np.where(inverse > 0, total**2 / np.where(inverse > 0, inverse, 1.0), np.inf)
    return Variance(total, df)


def count_of(panels: Sequence[Panel]) -> int:
    """How many samples were drawn, in all datasets together."""
    datasets = groups_of([panel.dataset for panel in panels])
    return sum(len(_samples_of([panels[k] for k in own])) for own in datasets)


def one_disagreement(panels: Sequence[Panel], slopes: Sequence[Floats]) -> Floats:
    """What one more sample on which two methods disagree adds to A, shared out over panels; shaped as A."""
    squares = [(slope / panel.signs.shape[1]) ** 2 / 2 for panel, slope in zip(panels, slopes, strict=True)]
    return differences_of(np.diag(np.mean(squares, axis=0))) / len(panels) ** 2


def _samples_of(panels: Sequence[Panel]) -> Floats:
    """Numbers of the samples of one dataset, in order."""
    return np.unique(np.concatenate([panel.samples for panel in panels]))


def _moved(panels: Sequence[Panel], slopes: Sequence[Floats]) -> Floats:
    """How far each sample moves each score, over the panels of one dataset: (methods + 1, samples)."""
    samples = _samples_of(panels)
    moved = np.zeros((len(panels[0].value) + 1, len(samples)))
    for panel, slope in zip(panels, slopes, strict=True):
        moved[:-1, np.searchsorted(samples, panel.samples)] += slope[:, None] * panel.signs
    return moved


def _variances(moved: Floats) -> Variance:
    """Variance of the mean over samples of all differences of rows (k, samples): two of (k, k).

    Degrees of freedom of a variance follow from the kurtosis κ: 2 n / (κ - (n - 3) / (n - 1)), which is n - 1 for a
    normal law and near n² for a coin.
    """
    count = moved.shape[1]
    if count < 2:
        unknown = np.full((len(moved), len(moved)), np.nan)
        return Variance(unknown, unknown)
    second, raw = _moments(moved)
    if count < 4:
        return Variance(second / count, np.full_like(second, count - 1))
    kurtosis = _unbiased(raw, count)
    coin = np.clip((NORMAL_KURTOSIS - kurtosis) / 2, 0, 1)  # 1: all signs and no more, with nothing to estimate
    variance = second * (1 + (1 - coin) / (count - 1)) / count
    if count < FEW:
        return Variance(variance, _df_of_few(raw, kurtosis, count))
    return Variance(variance, _df(kurtosis, count))


def _moments(moved: Floats) -> tuple[Floats, Floats]:
    """Second moment and kurtosis of all differences of rows (k, samples): (k, k) each; that of a constant is normal."""
    count = moved.shape[1]
    second = np.empty((len(moved), len(moved)))
    fourth = np.empty_like(second)
    for k, row in enumerate(moved):
        squares = (moved - row) ** 2
        second[k] = squares.mean(axis=1)
        fourth[k] = np.einsum("ij,ij->i", squares, squares) / count
    varies = second > 0
    return second, np.where(varies, fourth / np.where(varies, second, 1.0) ** 2, NORMAL_KURTOSIS)


def _unbiased(raw: Floats, count: int) -> Floats:
    """The kurtosis without its bias in small samples; at least that of a coin."""
    excess = (count - 1) / ((count - 2) * (count - 3)) * ((count + 1) * (raw - 3) + 6)
    return np.maximum(1.0, NORMAL_KURTOSIS + excess)


def _df(kurtosis: Floats, count: int) -> Floats:
    """Degrees of freedom of a variance of `count` samples."""
    return np.asarray(2 * count / (kurtosis - (count - 3) / (count - 1)))


def _df_of_few(raw: Floats, kurtosis: Floats, count: int) -> Floats:
    """The same of few samples, whose kurtosis is mostly chance.

    Where all are signs and no more, as for one training or for trainings that agree on every sample, it is the least
    that so many samples can have (one of an odd number is the median, with sign 0): then the law is known. Else it
    counts as that of a normal law at least, and the slope h, from the same few samples, takes one more degree: n - 2.
    """
    normal = _df(np.maximum(kurtosis, NORMAL_KURTOSIS), count) * (count - 2) / (count - 1)
    signs = raw <= count / (count - count % 2) + 1e-6  # rounding
    return np.where(signs, _df(kurtosis, count), normal)


def of_the_rest(panels: Sequence[Panel], slopes: Sequence[Floats]) -> Floats:
    """E of the mean over panels, (methods + 1, methods + 1); panels of one network have it in common."""
    methods = len(panels[0].value)
    covariance = np.zeros((methods, methods))
    for own in groups_of([panel.network for panel in panels]):
        parts = [slopes[k][:, None, None] / len(panels) * panels[k].left for k in own]
        rest = _joined(parts, [panels[k] for k in own])
        covariance += _covariance_of_the_rest(rest)
    return differences_of(covariance)


def _covariance_of_the_rest(rest: Floats) -> Floats:
    """(methods, methods) from rest (methods, samples, trainings); 0 where there is one sample or one training."""
    methods, samples, trainings = rest.shape
    if trainings < 2 or samples < 2:
        return np.zeros((methods, methods))
    flat = rest.reshape(methods, -1)
    return np.asarray(flat @ flat.T / ((samples - 1) * (trainings - 1)) / (samples * trainings))


def _joined(parts: Sequence[Floats], panels: Sequence[Panel]) -> Floats:
    """Sum of (methods, samples, trainings) over panels of one network, each part at its samples and seeds."""
    samples = _samples_of(panels)
    seeds = np.unique(np.concatenate([panel.seeds for panel in panels]))
    joined = np.zeros((len(parts[0]), len(samples), len(seeds)))
    for part, panel in zip(parts, panels, strict=True):
        rows = np.searchsorted(samples, panel.samples)
        columns = np.searchsorted(seeds, panel.seeds)
        joined[:, rows[:, None], columns] += part
    return joined
