"""Bootstraps: a draw is a count for each sample and each training, never a copy.

ArrayLike are arrays (trainings, samples, columns), nan where a training has no value of a sample. A sample counts once,
with its mean over the drawn trainings that have it. The random streams are fixed, so that a number is the same
wherever it is printed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray

from forsooth.stats.intervals import LOWER_TAIL, UPPER_TAIL, Floats, Interval, finite, no_interval

DRAWS = 2000
RATIO_DRAWS = 1000
ENDS = (LOWER_TAIL, UPPER_TAIL)
TRIALS = 10  # the papers print the standard deviation over so many trials
TRIAL_SIZE = 100  # of so many samples each
TRIALS_SEED = 0x1CD079E3FB882803  # seeds.derive(0, "trials")


class Draws(NamedTuple):
    """How often each sample (draws, samples) and each training (draws, trainings) is drawn."""

    samples: Floats
    trainings: Floats


def resampled_counts(n: int, *stream: int) -> Floats:
    """How often each of n is drawn when n are: (DRAWS, n). Another stream, other draws."""
    rng = np.random.default_rng([0, *stream])
    picked = rng.integers(0, n, (DRAWS, n))
    return _counts(picked, n)


def _counts(picked: NDArray[np.int64], n: int) -> Floats:
    """How often each of n stands in each line of picked (draws, m): (draws, n)."""
    line = np.arange(len(picked))[:, None]
    counts = np.bincount((line * n + picked).ravel(), minlength=len(picked) * n)
    return counts.reshape(len(picked), n).astype(float)


def draw(samples: int, trainings: int, *, pool: int = 0) -> Draws:
    """Draws of trainings, the same for every pool; and of the samples of one pool."""
    return Draws(resampled_counts(samples, 1, pool), resampled_counts(trainings, 2))


def everything_once(values: Floats) -> Draws:
    """The one draw that has every sample and every training once."""
    return Draws(np.ones((1, values.shape[1])), np.ones((1, values.shape[0])))


def resampled_means(values: Floats, draws: Draws) -> Floats:
    """Mean over samples of the mean over trainings, for every draw: (draws, columns); nan where a draw has no value.

    values  (trainings, samples, columns)
    """
    means = np.full((len(draws.samples), values.shape[2]), np.nan)
    kinds, kind = np.unique(draws.trainings, axis=0, return_inverse=True)
    for number, trainings in enumerate(kinds):  # draws of the same trainings at once: one product of matrices
        own = kind.ravel() == number
        means[own] = _means(values, draws.samples[own], trainings)
    return means


def _means(values: Floats, samples: Floats, trainings: Floats) -> Floats:
    """The same for draws of samples (draws, samples) and one draw of trainings (trainings,)."""
    known = np.isfinite(values)
    seen = np.einsum("t,tic->ic", trainings, known)
    each = np.einsum("t,tic->ic", trainings, np.where(known, values, 0.0)) / np.maximum(seen, 1)  # (samples, columns)
    weight = samples @ (seen > 0).astype(float)
    total = samples @ each
    return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)


def concept_means(values: Floats, sets: Floats, draws: Draws) -> Floats:
    """Draws of a concept score from its values by input and by random set: the shifts of both from their common mean.

    values   (trainings, inputs, columns)
    sets     (trainings, sets, columns)
    returns  (draws, columns)
    """
    of_sets = Draws(resampled_counts(sets.shape[1], 3), draws.trainings)
    of_neither = Draws(np.ones_like(draws.samples), draws.trainings)
    both = resampled_means(values, draws) + resampled_means(sets, of_sets)
    return both - resampled_means(values, of_neither)


def accuracy_drops(samples: int, accuracy: Floats, n: int) -> tuple[Draws, Floats]:
    """Draws of samples and trainings, and of the accuracy drop (draws, ks).

    samples   how many samples the draws are of
    accuracy  (trainings, 2, ks) with the common feature and without, over n images each; a drop of few points is
              mostly their chance
    """
    rng = np.random.default_rng(0)
    trainings = len(accuracy)
    picked = np.empty((DRAWS, samples), dtype=np.int64)
    again = np.zeros((DRAWS, trainings), dtype=np.int64)
    both = np.empty((DRAWS, *accuracy.shape[1:]))
    for line in range(DRAWS):
        picked[line] = rng.integers(0, samples, samples)
        correct = rng.binomial(n, accuracy) / n
        if trainings > 1:
            again[line] = rng.integers(0, trainings, trainings)
        both[line] = correct[again[line]].mean(0)
    return Draws(_counts(picked, samples), _counts(again, trainings)), both[:, 0] - both[:, 1]


def value_array(
    rows: pd.DataFrame,
    columns: Sequence[str],
    *,
    trainings: Sequence[int] | None = None,
    samples: Sequence[int] | None = None,
    value: str = "value",
) -> tuple[Floats, list[tuple[Any, ...]]]:
    """The rows as (trainings, samples, columns), and the name of each column: what the named ones of the rows say."""
    wide = rows.pivot_table(index=["model_seed", "sample"], columns=list(columns), values=value)
    if trainings is None:
        trainings = sorted(wide.index.get_level_values("model_seed").unique())
    if samples is None:
        samples = wide.index.get_level_values("sample").unique()
    every = pd.MultiIndex.from_product([trainings, samples])
    values = wide.reindex(every).to_numpy(float)
    names = wide.columns.to_frame(index=False).itertuples(index=False, name=None)
    return values.reshape(len(trainings), len(samples), -1), list(names)


def per_sample(rows: pd.DataFrame, value: str = "value") -> pd.Series:
    """Each sample once, with its mean over trainings, in the order of the rows."""
    return rows.groupby("sample", sort=False)[value].mean()


@dataclass(frozen=True, eq=False)
class Drawn:
    """A number of n samples whose law are its draws (draws,), those that have a value; none of a single sample."""

    point: float
    draws: Floats
    n: int

    @property
    def interval(self) -> Interval:
        if self.n < 2 or not len(self.draws):
            return no_interval(self.point, self.n)
        low, high = np.quantile(self.draws, ENDS)
        return Interval(float(self.point), float(low), float(high), self.n)

    def above(self, limit: float = 0.0) -> float:
        """The share of draws that are not; the number itself counts as one more, so that no p-value is 0."""
        return self._share(self.draws <= limit)

    def below(self, limit: float = 0.0) -> float:
        return self._share(self.draws >= limit)

    def _share(self, against: NDArray[np.bool_]) -> float:
        if self.n < 2 or not len(self.draws):
            return float("nan")
        return float((1 + against.sum()) / (1 + len(against)))


def drawn(point: float, draws: ArrayLike, n: int) -> Drawn:
    """The estimate of a number and its draws (draws,); those without a value are left out."""
    return Drawn(point, finite(draws), n)


def percentile_interval(point: float, draws: ArrayLike, n: int) -> Interval:
    """The point with the middle 95 % of the draws (draws,) that have a value; nan of a single sample."""
    return drawn(point, draws, n).interval


def ratio_estimate(above: ArrayLike, below: ArrayLike) -> Drawn:
    """The estimate of `bootstrapped_ratio`."""
    upper = np.asarray(above, dtype=float)
    lower = np.asarray(below, dtype=float)
    n = len(lower)
    if lower.sum() == 0:
        return drawn(np.nan, [], 0)
    times = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RATIO_DRAWS)
    defined = times[times @ lower > 0]
    return drawn(float(upper.sum() / lower.sum()), (defined @ upper) / (defined @ lower), n)


def bootstrapped_ratio(above: ArrayLike, below: ArrayLike) -> Interval:
    """Sum of above (n,) over the sum of below (n,), with a bootstrap over the n; nan where there is nothing below.

    Draws with nothing below are left out.
    """
    return ratio_estimate(above, below).interval


def resampled_ranks(draws: Floats, column: int) -> Floats:
    """The rank of one column in every line of draws (draws, columns): 1 is the highest, equals share the better one.

    returns  (draws,) nan where any column has no value
    """
    ranks = 1.0 + (draws > draws[:, [column]]).sum(1)
    return np.where(np.isnan(draws).any(1), np.nan, ranks)


def draws_of_ranks(
    pools: Sequence[pd.DataFrame], method: str, methods: Sequence[str], *, trainings: Sequence[int]
) -> dict[str, Floats]:
    """Draws of a method's rank in each metric (draws,); nan where one of the methods has a single sample.

    pools  for each set of samples the rows of all metrics on it: metric, method, model_seed, sample and value
    """
    ranks = {}
    for pool, own in enumerate(pools):
        values, columns = value_array(own, ["metric", "method"], trainings=trainings)
        means = resampled_means(values, draw(values.shape[1], len(values), pool=pool))
        single = np.isfinite(values).any(0).sum(0) < 2
        means[:, single] = np.nan
        for metric in own["metric"].unique():
            places = [columns.index((metric, one)) for one in methods]
            ranks[metric] = resampled_ranks(means[:, places], methods.index(method))
    return ranks


def spread_over_trials(values: ArrayLike) -> float:
    """Standard deviation of the mean over ten trials of 100 of the values (n,), or of half of them where n < 200."""
    numbers = np.asarray(values, dtype=float)
    known = torch.tensor(numbers[~np.isnan(numbers)])
    if len(known) < 2:
        return float("nan")
    size = min(TRIAL_SIZE, len(known) // 2)
    generator = torch.Generator().manual_seed(TRIALS_SEED)
    draws = [torch.randperm(len(known), generator=generator)[:size] for _ in range(TRIALS)]
    return float(known[torch.stack(draws)].nanmean(1).std())


def jackknife_parts(values: Floats, left: Floats, sizes: Floats) -> Floats:
    """Parts of the delete-a-group jackknife of means over samples, whose squares sum to the variance of the mean.

    values   (methods, samples)
    left     (methods, samples, groups) the same without each group
    sizes    (groups,) how many draws a group has
    returns  (methods, groups)

    All samples have the groups in common, so that this error does not average out over them. What is independent from
    sample to sample is counted twice, which makes an interval a little too wide.
    """
    ratio = sizes.sum() / sizes
    whole = values.mean(1, keepdims=True)  # (methods, 1)
    without = left.mean(1)  # (methods, groups)
    pseudo = ratio * whole - (ratio - 1) * without
    centre = (pseudo / ratio).sum(1, keepdims=True)
    return np.asarray((pseudo - centre) / np.sqrt((ratio - 1) * len(ratio)))


def concept_lead(
    gap: float, inputs: pd.DataFrame, sets: pd.DataFrame, maps: pd.DataFrame, *, trainings: Sequence[int]
) -> Interval:
    """How much a concept score is above a map, from draws of its inputs and random sets and of the map's images.

    inputs, sets, maps  rows of one method each; the interval is nan where one has none
    """
    parts = (inputs, sets, maps)
    if any(part.empty for part in parts):
        return no_interval(gap)
    of_inputs, of_sets, of_maps = (value_array(part, ["method"], trainings=trainings)[0] for part in parts)
    examples = of_inputs.shape[1]
    images = of_maps.shape[1]
    higher = concept_means(of_inputs, of_sets, draw(examples, len(trainings), pool=1))
    lower = resampled_means(of_maps, draw(images, len(trainings)))
    return percentile_interval(gap, (higher - lower)[:, 0], min(images, examples))
