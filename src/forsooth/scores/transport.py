"""How far must the attribution travel to become the truth?"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from torch import Tensor

from forsooth.records import Metric, UsageError
from forsooth.scores.columns import DENSE, Floats, NotOptimalError, dense, solve
from forsooth.scores.localisation import magnitude

PIVOTS = 10_000_000  # the dense 64x64 problem needs fewer than 100,000


def transport_cost(attribution: Tensor, truth: Tensor, *, threads: int = 1, pivots: int = PIVOTS) -> Tensor:
    """OT(|s| / sum |s|, F+ / |F+|): the least mass times Euclidean pixel distance that turns the map into the truth.

    attribution  (n, *map) real; the absolute value is taken here
    truth        (n, *map) bool
    threads      maps solved at once; one by default, since runs already use all cores with processes
    pivots       steps after which a solver gives up
    returns      (n,) float64 in pixels; nan where undefined, see `magnitude`, and where the solver gave up

    Exact: the answer is a proven optimum, never an iterate. One cost serves every normaliser, see `emd_from_cost`.
    """
    if threads < 1 or pivots < 1:
        raise UsageError(f"`threads` and `pivots` must be at least 1, got {threads} and {pivots}")
    size = magnitude(attribution, truth)
    size = size / size.amax(1, keepdim=True)  # keeps the sum finite whatever the scale of the map
    shares = (size / size.sum(1, keepdim=True)).cpu().numpy()
    masks = truth.flatten(1).cpu().numpy()
    pixels = np.stack([axis.ravel() for axis in np.indices(truth.shape[1:], dtype=np.float64)], axis=1)
    parts = [part for part in np.array_split(np.arange(len(shares)), threads) if len(part)]
    with ThreadPoolExecutor(threads) as pool:
        costs = pool.map(lambda part: costs_in_turn(shares[part], masks[part], pixels, pivots=pivots), parts)
        done = [cost for part in costs for cost in part]
    return torch.tensor(done, dtype=torch.float64, device=attribution.device)


def costs_in_turn(shares: Floats, masks: NDArray[np.bool_], pixels: Floats, *, pivots: int) -> list[float]:
    """The cost of one map after the other; maps that follow one another with the same mask share the distances.

    shares  (n, pixels) masses of sum one, or nan
    masks   (n, pixels)
    pixels  (pixels, d) their places
    """
    costs, mask = [], None
    for share, own in zip(shares, masks, strict=True):
        if mask is None or not (mask == own).all():
            mask, goal = own, own / max(1, own.sum())
            small = len(pixels) * own.sum() <= DENSE
            distance, demand = (cdist(pixels, pixels[own]), goal[own]) if small else (pixels[:0], goal[:0])
        try:
            if math.isnan(share[0]):
                costs.append(math.nan)
            elif small:
                costs.append(dense(share, demand, distance, pivots=pivots)[1])
            else:
                costs.append(cost_of_excess(share, goal, pixels, pivots=pivots))
        except NotOptimalError:
            costs.append(math.nan)
    return costs


def cost_of_excess(share: Floats, goal: Floats, pixels: Floats, *, pivots: int) -> float:
    """The cost after removing the mass that both have in a pixel: with a metric as cost, it may stay where it is.

    share   (pixels,) masses of sum one
    goal    (pixels,) masses of sum one
    pixels  (pixels, d) their places
    """
    excess = share - goal
    rounding = 4 * np.finfo(np.float64).eps * goal.max()
    give, take = np.flatnonzero(excess > rounding), np.flatnonzero(excess < -rounding)
    if not len(give) or not len(take):
        return 0.0
    mass = excess[give].sum()
    plan = solve(excess[give] / mass, pixels[give], -excess[take] / mass, pixels[take], pivots=pivots)
    return float(plan.cost * mass)


def emd_from_cost(
    cost: Tensor, shape: Sequence[int], *, normaliser: Literal["largest", "released"] = "largest"
) -> Tensor:
    """1 - cost / delta_max, for whoever wants both scores from one `transport_cost`.

    cost        (n,) pixels
    shape       of one map
    normaliser  "largest": the largest pixel distance, 89.10 at 64x64 and 9.90 at 8x8; "released": the diagonal counted
                in pixels, the sqrt(2 D) of the released code, 90.51 and 11.31
    returns     (n,) in [0, 1]
    """
    if normaliser not in ("largest", "released"):
        raise UsageError(f"`normaliser` must be 'largest' or 'released', got {normaliser!r}")
    return 1 - cost / math.hypot(*(side - (normaliser == "largest") for side in shape))


def emd(attribution: Tensor, truth: Tensor) -> Tensor:
    """Earth mover's score: 1 - OT(|s|, F+) / delta_max with delta_max the largest distance between two pixels.

    attribution  (n, *map) real; the absolute value is taken here
    truth        (n, *map) bool
    returns      (n,) float64 in [0, 1]; nan where undefined, see `transport_cost`

    [clark2024xaitris], eq. 5.
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
