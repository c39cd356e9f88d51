"""Pearson's and Spearman's correlations, of two series and of many draws of them, and slopes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from forsooth.stats.bootstrap import (
    Drawn,
    Draws,
    accuracy_drops,
    concept_means,
    draw,
    drawn,
    everything_once,
    percentile_interval,
    resampled_means,
    value_array,
)
from forsooth.stats.intervals import Floats, Interval

FLAT = 1e-12  # what varies less is rounding
FEWEST_FOR_ORDER = 3  # of two values an order is always the same or the reverse


class Correlation(NamedTuple):
    """ρ of n pairs, and the p-value of the claim that it is not 0."""

    rho: float
    pvalue: float
    n: int


def pearson_of_lines(one: Floats, two: Floats) -> Floats:
    """Pearson's ρ of each line of one (draws, m) with that of two: (draws,); nan where a line is flat or has nan."""
    first = one - one.mean(1, keepdims=True)
    second = two - two.mean(1, keepdims=True)
    flat = (np.ptp(one, axis=1) < FLAT) | (np.ptp(two, axis=1) < FLAT)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = (first * second).sum(1) / np.sqrt((first**2).sum(1) * (second**2).sum(1))
    return np.where(flat, np.nan, rho)


def spearman_of_lines(one: Floats, two: Floats) -> Floats:
    """Spearman's ρ of each line of one (draws, m) with that of two: (draws,); nan where a line is flat or has nan."""
    rho = pearson_of_lines(stats.rankdata(one, axis=1), stats.rankdata(two, axis=1))
    return np.where(np.isnan(one).any(1) | np.isnan(two).any(1), np.nan, rho)


def pearson(one: ArrayLike, two: ArrayLike) -> float:
    """Pearson's ρ of one (m,) with two (m,); nan of fewer than two, or where one does not vary or has nan.

    >>> round(pearson([1.0, 2.0, 3.0], [1.0, 2.0, 2.0]), 3)
    0.866
    """
    first = np.asarray(one, dtype=float)
    if len(first) < 2:
        return float("nan")
    return float(pearson_of_lines(first[None], np.asarray(two, dtype=float)[None])[0])


def spearman(one: ArrayLike, two: ArrayLike) -> Correlation:
    """Spearman's ρ of one (m,) with two (m,), and its p-value; nan of fewer than three, or where one does not vary."""
    first = np.asarray(one, dtype=float)
    second = np.asarray(two, dtype=float)
    count = len(first)
    if count < FEWEST_FOR_ORDER or min(np.ptp(first), np.ptp(second)) == 0:
        return Correlation(np.nan, np.nan, count)
    result = stats.spearmanr(first, second)
    return Correlation(float(result.statistic), float(result.pvalue), count)


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """How much y (m,) rises for each step of x (m,), by least squares."""
    return float(np.polyfit(np.asarray(x, dtype=float), np.asarray(y, dtype=float), 1)[0])


def mean_slopes(frame: pd.DataFrame, x: str, y: str, *, units: Sequence[str], lines: Sequence[str]) -> list[float]:
    """The slope of y along x for every unit, the mean of its lines; a line with one x has none, nor has its unit then.

    units, lines  columns whose values tell units apart, and the lines of one unit
    """
    found = []
    for _, own in frame.groupby(list(units), sort=False):
        parts = [line for _, line in own.groupby(list(lines), sort=False) if line[x].nunique() > 1]
        if parts:
            found.append(float(np.mean([slope(line[x], line[y]) for line in parts])))
    return found


def order_correlation(rows: pd.DataFrame, kinds: tuple[str, str], methods: Sequence[str], rho: float) -> Drawn:
    """Spearman's ρ between the orders of methods in two kinds of rows, with a bootstrap over samples and trainings.

    rows  columns kind, method, model_seed, sample and value; a sample that both kinds have is drawn for both
    rho   of the means themselves
    """
    rows = rows[rows["kind"].isin(kinds) & rows["method"].isin(methods)]
    values, names = value_array(rows, ["kind", "method"])
    means = resampled_means(values, draw(values.shape[1], len(values)))
    first, second = (means[:, [names.index((kind, method)) for method in methods]] for kind in kinds)
    samples = int(rows.groupby("kind")["sample"].nunique().min())
    return drawn(rho, spearman_of_lines(first, second), samples)


class Series(NamedTuple):
    """Scores over k of one method.

    ks      m values of k
    values  (trainings, samples, m)
    sets    (trainings, sets, m) of a concept score, by random set; None of a map
    """

    ks: list[float]
    values: Floats
    sets: Floats | None = None


class Accuracies(NamedTuple):
    """Accuracies over k with the common feature and without.

    ks      m values of k
    values  (trainings, 2, m)
    n       images behind each
    """

    ks: list[float]
    values: Floats
    n: int

    def at(self, ks: Sequence[float]) -> Floats:
        """(trainings, 2, len(ks))"""
        return self.values[:, :, [self.ks.index(k) for k in ks]]


def drop_correlation(series: Series, accuracies: Accuracies) -> Interval:
    """Pearson's ρ of the mean of a series with the accuracy drop at its ks, with a bootstrap over both.

    The random sets of a concept score are drawn, too.
    """
    values = series.values
    accuracy = accuracies.at(series.ks)
    draws, drops = accuracy_drops(values.shape[1], accuracy, accuracies.n)
    means = _means(values, series.sets, draws)
    return percentile_interval(drop_rho(series, accuracies), pearson_of_lines(means, drops), values.shape[1])


def drop_rho(series: Series, accuracies: Accuracies) -> float:
    """The same ρ without its interval."""
    with_feature, without = accuracies.at(series.ks).mean(0)
    means = resampled_means(series.values, everything_once(series.values))
    return float(pearson_of_lines(means, (with_feature - without)[None])[0])


def _means(values: Floats, sets: Floats | None, draws: Draws) -> Floats:
    """Draws of the mean of a map, or of a concept score that has random sets: (draws, ks)."""
    if sets is None:
        return resampled_means(values, draws)
    return concept_means(values, sets, draws)


def series_draws(series: Mapping[str, Series], accuracies: Accuracies) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draws of ρ with the drop, and of the range over k: one column per method, the same draws for all.

    series  method -> its series, of the same samples each
    """
    samples = next(iter(series.values())).values.shape[1]
    draws, drops = accuracy_drops(samples, accuracies.values, accuracies.n)
    rhos = {}
    ranges = {}
    for method, (own, values, sets) in series.items():
        means = _means(values, sets, draws)
        places = [accuracies.ks.index(k) for k in own]
        rhos[method] = pearson_of_lines(means, drops[:, places])
        ranges[method] = np.ptp(means, axis=1)
    return pd.DataFrame(rhos), pd.DataFrame(ranges)
