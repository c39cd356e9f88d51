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
    trained = _trained(scores)
    used = _spread_over_trainings(scores)[:, :, trained]
    part = np.asarray(np.isfinite(used).any(axis=(1, 2)))
    filled = np.where(part[:, None, None], used, 0.0)  # nanmedian warns of methods without a score
    value = _median(filled, axis=(1, 2))
    signs = _signs(filled, value)
    return Panel(
        dataset=dataset,
        network=network,
        samples=_numbers(samples, scores.shape[1]),
        seeds=_numbers(seeds, scores.shape[2])[trained],
        value=np.where(part, value, np.nan),
        signs=_by_sample(signs, filled),
        quantiles=_quantiles(used),
        left=_left(signs),
        trainings=_by_training(filled),
        several=_there(scores).sum(axis=1) > 1,
    )


def _numbers(numbers: NDArray[np.int64] | None, count: int) -> NDArray[np.int64]:
    """The numbers themselves; 0, 1, … where there are none."""
    if numbers is None:
        return np.arange(count)
    return numbers


def _signs(scores: Floats, value: Floats) -> Floats:
    """sign(y - median) / 2 of scores y (methods, samples, trainings), medians (methods,); 0 where there is no score."""
    return np.where(np.isfinite(scores), np.sign(scores - value[:, None, None]) / 2, 0.0)


def _by_sample(signs: Floats, scores: Floats) -> Floats:
    """Mean over the trainings that have a score, centred: (methods, samples)."""
    mean = signs.sum(axis=2) / np.maximum(1, np.isfinite(scores).sum(axis=2))
    return np.asarray(mean - mean.mean(axis=1, keepdims=True))


def _median(values: Floats, axis: int | tuple[int, ...]) -> Floats:
    """The median of what is there; numpy's for whole tables is ten times faster than the one that looks for nan."""
    if np.isnan(values).any():
        return np.asarray(np.nanmedian(values, axis=axis))
    return np.asarray(np.median(values, axis=axis))


def _there(scores: Floats) -> NDArray[np.bool_]:
    """Whether a method has any score in a training: (methods, samples, trainings) -> (methods, trainings)."""
    return np.asarray(np.isfinite(scores).any(axis=1))


def _trained(scores: Floats) -> NDArray[np.bool_]:
    """(trainings,) those of methods that have several; the first, where none has."""
    there = _there(scores)
    several = np.asarray(there[there.sum(axis=1) > 1].any(axis=0))
    if several.any():
        return several
    return np.arange(there.shape[1]) == 0


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


def differences_of(covariance: Floats) -> Floats:
    """Variances of all differences, from covariances (methods, methods) to (methods + 1, methods + 1)."""
    whole = np.pad(covariance, (0, 1))
    own = np.diagonal(whole)
    return np.asarray(np.maximum(0.0, own[:, None] + own - 2 * whole))


def groups_of(numbers: Sequence[int]) -> list[list[int]]:
    """Places of the panels that have the same number.

    >>> groups_of([4, 7, 4])
    [[0, 2], [1]]
    """
    places: dict[int, list[int]] = {}
    for place, number in enumerate(numbers):
        places.setdefault(number, []).append(place)
    return list(places.values())
