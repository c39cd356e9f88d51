"""What samples and trainings do to the medians of one panel."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Panel:
    """The medians of one panel, and the parts of their chance (see `forsooth.stats`).

    dataset    panels with the same number share samples
    network    panels with the same number share trainings, too
    samples    (samples,) whole numbers, in order
    seeds      (trainings,) whole numbers, in order
    value      (methods,) median over samples and trainings; nan where a method took no part
    signs      (methods, samples) mean over trainings of sign(y - median) / 2, centred; 0 where there is no score
    quantiles  (methods, samples) the scores in order, in as many blocks as there are samples: the mean of each
    left       (methods, samples, trainings) what is left of the signs beside samples and trainings
    trainings  (methods, trainings) median over the samples of each training
    several    (methods,) bool: has more trainings than one
    """

    dataset: int
    network: int
    samples: NDArray[np.int64]
    seeds: NDArray[np.int64]
    value: Floats
    signs: Floats
    quantiles: Floats
    left: Floats
    trainings: Floats
    several: NDArray[np.bool_]

    def take(self, methods: NDArray[np.int64] | Sequence[int]) -> "Panel":
        """The same, of these methods in this order."""
        return replace(
            self,
            value=self.value[methods],
            signs=self.signs[methods],
            quantiles=self.quantiles[methods],
            left=self.left[methods],
            trainings=self.trainings[methods],
            several=self.several[methods],
        )


def panel_of(
    scores: Floats,
    *,
    samples: NDArray[np.int64] | None = None,
    seeds: NDArray[np.int64] | None = None,
    dataset: int = 0,
    network: int = 0,
) -> Panel:
    """The panel of scores (methods, samples, trainings), nan where there is none; samples and seeds count from 0.

    A method with one training among many (a null knows no training) has the same scores in each.
    """
    samples = np.arange(scores.shape[1]) if samples is None else samples
    seeds = np.arange(scores.shape[2]) if seeds is None else seeds
    several = _there(scores).sum(axis=1) > 1
    trained = _trained(scores)
    scores = _spread_over_trainings(scores)[:, :, trained]
    there = np.isfinite(scores)
    taken = np.asarray(there.any(axis=(1, 2)))
    filled = np.where(taken[:, None, None], scores, 0.0)  # nanmedian warns of methods without a score
    value = _median(filled, axis=(1, 2))
    signs = np.where(there, np.sign(filled - value[:, None, None]) / 2, 0.0)
    by_sample = signs.sum(axis=2) / np.maximum(1, there.sum(axis=2))
    return Panel(
        dataset=dataset,
        network=network,
        samples=samples,
        seeds=seeds[trained],
        value=np.where(taken, value, np.nan),
        signs=by_sample - by_sample.mean(axis=1, keepdims=True),
        quantiles=_quantiles(scores),
        left=_left(signs),
        trainings=_by_training(filled),
        several=several,
    )


def _median(values: Floats, axis: int | tuple[int, ...]) -> Floats:
    """The median of what is there; numpy's for whole tables is ten times faster than the one that looks for nan."""
    median = np.nanmedian if np.isnan(values).any() else np.median
    return np.asarray(median(values, axis=axis))


def _there(scores: Floats) -> NDArray[np.bool_]:
    """Whether a method has any score in a training: (methods, samples, trainings) -> (methods, trainings)."""
    return np.asarray(np.isfinite(scores).any(axis=1))


def _trained(scores: Floats) -> NDArray[np.bool_]:
    """(trainings,) those of methods that have several; the first, where none has."""
    there = _there(scores)
    several = np.asarray(there[there.sum(axis=1) > 1].any(axis=0))
    return several if several.any() else np.arange(there.shape[1]) == 0


def _spread_over_trainings(scores: Floats) -> Floats:
    """`scores` where a method's only training stands for all."""
    there = _there(scores)
    single = np.flatnonzero((there.sum(axis=1) == 1) & (there.shape[1] > 1))
    if not len(single):
        return scores
    spread = scores.copy()
    only = np.argmax(there[single], axis=1)
    spread[single] = np.take_along_axis(scores[single], only[:, None, None], axis=2)
    return spread


def _quantiles(scores: Floats) -> Floats:
    """Means of the ordered scores (methods, samples, trainings), in as many blocks as samples: (methods, samples).

    Blocks, for the scores of one sample in all trainings may be the same number: they count as one.
    """
    methods, samples, _ = scores.shape
    flat = np.sort(scores.reshape(methods, -1), axis=1)
    known = np.isfinite(flat).sum(axis=1)
    if (known == flat.shape[1]).all():
        return np.asarray(flat.reshape(scores.shape).mean(axis=2))
    blocks = np.zeros((methods, samples))
    for row, own, count in zip(blocks, flat, known, strict=True):
        if count:
            row[:] = np.interp((np.arange(samples) + 0.5) / samples, (np.arange(count) + 0.5) / count, own[:count])
    return blocks


def _left(signs: Floats) -> Floats:
    """Signs (methods, samples, trainings) less the means of their sample and training."""
    left = signs - signs.mean(axis=2, keepdims=True) - signs.mean(axis=1, keepdims=True)
    return np.asarray(left + signs.mean(axis=(1, 2), keepdims=True))


def _by_training(scores: Floats) -> Floats:
    """Medians (methods, trainings); a training that a method lacks stands at the mean of its others."""
    missing = ~_there(scores)
    medians = _median(np.where(missing[:, None, :], 0.0, scores), axis=1)
    weight = np.maximum(1, (~missing).sum(axis=1, keepdims=True))
    mean = np.where(missing, 0.0, medians).sum(axis=1, keepdims=True) / weight
    return np.where(missing, mean, medians)
