"""How far must the attribution travel to become the truth?"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from torch import Tensor

from forsooth.records import Metric, UsageError
from forsooth.scores.columns import DENSE, Floats, Indices, NotOptimalError, dense, solve
from forsooth.scores.localisation import magnitude

Normaliser = Literal["largest", "released"]
PIVOTS = 10_000_000  # the dense 64x64 problem needs fewer than 100,000


def transport_cost(attribution: Tensor, truth: Tensor, *, threads: int = 1, pivots: int = PIVOTS) -> Tensor:
    """OT(|s| / sum |s|, F+ / |F+|): the least mass times Euclidean pixel distance that turns the map into the truth.

    attribution  (n, *map) real; the absolute value is taken here
    truth        (n, *map) bool
    threads      maps solved at once; one by default, since runs already use all cores with processes
    pivots       steps after which a solver gives up
    returns      (n,) float64 in pixels; nan where undefined, see `magnitude`, and where the solver gave up

    Exact: the answer is proven to be within 1e-9 pixels of the optimum; `transport_bounds` is faster and says how far
    it can be off. One cost serves every normaliser, see `emd_from_cost`.
    """
    if pivots < 1:
        raise UsageError(f"`pivots` must be at least 1, got {pivots}")
    shares = masses(attribution, truth)
    masks = truth.flatten(1).cpu().numpy()
    pixels = np.stack([axis.ravel() for axis in np.indices(truth.shape[1:], dtype=np.float64)], axis=1)
    costs = in_threads(
        lambda part: costs_in_turn(shares[part], masks[part], pixels, pivots=pivots), len(shares), threads
    )
    return torch.tensor(costs, dtype=torch.float64, device=attribution.device)


Some = TypeVar("Some")


def in_threads(function: Callable[[Indices], list[Some]], count: int, threads: int) -> list[Some]:
    """What a function gives for the numbers 0 … count - 1, asked for a slice of them in each thread."""
    if threads < 1:
        raise UsageError(f"`threads` must be at least 1, got {threads}")
    parts = [part for part in np.array_split(np.arange(count), threads) if len(part)]
    with ThreadPoolExecutor(threads) as pool:
        return [one for part in pool.map(function, parts) for one in part]


def masses(attribution: Tensor, truth: Tensor) -> Floats:
    """The absolute map with a sum of one, (n, pixels); nan where undefined, see `magnitude`."""
    size = magnitude(attribution, truth)
    size = size / size.amax(1, keepdim=True)  # keeps the sum finite whatever the scale of the map
    return (size / size.sum(1, keepdim=True)).cpu().numpy()


@dataclass(frozen=True)
class Goal:
    """The truth as a place to travel to.

    mask      (pixels,) bool
    share     (pixels,) masses of sum one
    distance  (pixels, pixels of the mask); None where so many are better solved by columns
    """

    mask: NDArray[np.bool_]
    share: Floats
    distance: Floats | None


def goal_of(mask: NDArray[np.bool_], pixels: Floats) -> Goal:
    """The goal of a mask (pixels,) whose pixels have the places (pixels, d)."""
    share = mask / max(1, mask.sum())
    if len(pixels) * mask.sum() > DENSE:
        return Goal(mask, share, None)
    return Goal(mask, share, cdist(pixels, pixels[mask]))


def costs_in_turn(shares: Floats, masks: NDArray[np.bool_], pixels: Floats, *, pivots: int) -> list[float]:
    """The cost of one map after the other; maps that follow one another with the same mask share the distances.

    shares  (n, pixels) masses of sum one, or nan
    masks   (n, pixels)
    pixels  (pixels, d) their places
    """
    costs = []
    goal = None
    for share, mask in zip(shares, masks, strict=True):
        if goal is None or not (goal.mask == mask).all():
            goal = goal_of(mask, pixels)
        costs.append(cost(share, goal, pixels, pivots=pivots))
    return costs


def cost(share: Floats, goal: Goal, pixels: Floats, *, pivots: int) -> float:
    """The cost of one map, share (pixels,) with places pixels (pixels, d); nan where undefined or not solved."""
    if math.isnan(share[0]):
        return math.nan
    try:
        if goal.distance is None:
            return cost_of_excess(share, goal.share, pixels, pivots=pivots)
        return dense(share, goal.share[goal.mask], goal.distance, pivots=pivots)[1]
    except NotOptimalError:
        return math.nan


def cost_of_excess(share: Floats, goal: Floats, pixels: Floats, *, pivots: int) -> float:
    """The cost after removing the mass that both have in a pixel: with a metric as cost, it may stay where it is.

    share   (pixels,) masses of sum one
    goal    (pixels,) masses of sum one
    pixels  (pixels, d) their places
    """
    excess = share - goal
    rounding = 4 * np.finfo(np.float64).eps * goal.max()
    give = np.flatnonzero(excess > rounding)
    take = np.flatnonzero(excess < -rounding)
    if not len(give) or not len(take):
        return 0.0
    mass = excess[give].sum()
    plan = solve(excess[give] / mass, pixels[give], -excess[take] / mass, pixels[take], pivots=pivots)
    return float(plan.cost * mass)


def emd_from_cost(cost: Tensor, shape: Sequence[int], *, normaliser: Normaliser = "largest") -> Tensor:
    """1 - cost / delta_max, for whoever wants both scores from one `transport_cost`.

    cost        (n,) pixels
    shape       of one map
    normaliser  "largest": the largest pixel distance, 89.10 at 64x64 and 9.90 at 8x8; "released": the diagonal counted
                in pixels, the sqrt(2 D) of the released code, 90.51 and 11.31
    returns     (n,) in [0, 1]
    """
    return 1 - cost / farthest(shape, normaliser)


def farthest(shape: Sequence[int], normaliser: Normaliser) -> float:
    """The distance that scores zero on maps of this shape, in pixels; normalisers as in `emd_from_cost`."""
    if normaliser not in ("largest", "released"):
        raise UsageError(f"`normaliser` must be 'largest' or 'released', got {normaliser!r}")
    return math.hypot(*(side - (normaliser == "largest") for side in shape))


def emd(attribution: Tensor, truth: Tensor) -> Tensor:
    """Earth mover's score: 1 less the way that the map must be moved to lie on the truth, over the longest there is.

    attribution  (n, *map) real; the absolute value is taken here
    truth        (n, *map) bool
    returns      (n,) float64 in [0, 1]; nan where undefined, see `transport_cost`

    1 - OT(|s|, F+) / delta_max with delta_max the largest distance between two pixels: [clark2024xaitris], eq. 5.
    """
    return emd_from_cost(transport_cost(attribution, truth), truth.shape[1:])


def emd_released(attribution: Tensor, truth: Tensor) -> Tensor:
    """`emd` as the released code divides it, by sqrt(2 D); shapes and undefined maps as there.

    Departure: for maps that are not square we take the diagonal counted in pixels, which is sqrt(2 D) for square ones.
    """
    return emd_from_cost(transport_cost(attribution, truth), truth.shape[1:], normaliser="released")


EMD = Metric(
    name="emd",
    function=emd,
    reads=("truth",),
    better="higher",
    bounds=(0.0, 1.0),
    cite="clark2024xaitris",
    version=1,
)
EMD_RELEASED = Metric(
    name="emd_released",
    function=emd_released,
    reads=("truth",),
    better="higher",
    bounds=(0.0, 1.0),
    cite="clark2024xaitris",
    version=1,
)
