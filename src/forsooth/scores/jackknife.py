"""Standard errors from groups of permutations: the delete-a-group jackknife for groups of unequal size."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
Array = TypeVar("Array", Tensor, Floats)


def jackknife(whole: Tensor, left: Tensor, sizes: Tensor) -> Tensor:
    """Standard error from the delete-a-group jackknife for groups of unequal size [busing1999delete].

    whole    (n,) the estimate from all permutations
    left     (n, g) the estimate without each group
    sizes    (g,) permutations in each group
    returns  (n,) nan with fewer than two groups

    A group holds whole permutations, so the covariance between players, and between sum and norm, is in it.
    """
    ratio = sizes.sum() / sizes  # (g,)
    return (deviations(whole, left, ratio).square() / (ratio - 1)).mean(1).sqrt()


def jackknife_parts(values: Floats, left: Floats, sizes: Tensor) -> Floats | None:
    """What the groups do to means over inputs that all walk the same permutations.

    values   (m, n) of every method and input
    left     (m, n, g) the same without each group
    sizes    (g,) permutations in each group
    returns  (m, g), whose squares sum to the squared standard error of the mean, and whose products to the
             covariances between methods; None without inputs or with fewer than two groups

    All inputs share the permutations, so that this error does not average out over them. What is independent from
    input to input is counted twice, which makes an interval a little too wide.
    """
    if left.shape[2] < 2 or values.shape[1] == 0:
        return None
    ratio = (sizes.sum() / sizes).numpy()  # (g,)
    apart = deviations(values.mean(1), left.mean(1), ratio)
    return np.asarray(apart / np.sqrt((ratio - 1) * len(ratio)))


def deviations(whole: Array, left: Array, ratio: Array) -> Array:
    """How far the pseudo-value of each group is from their mean: (n, g).

    whole  (n,) the estimate from all permutations
    left   (n, g) the estimate without each group
    ratio  (g,) all permutations by those in each group
    """
    pseudo = ratio * whole[:, None] - (ratio - 1) * left  # for a plain mean these are the groups' own means
    centre = (pseudo / ratio).sum(1)
    return pseudo - centre[:, None]
