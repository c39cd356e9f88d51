"""Optimal transport between proven bounds, for maps so large that an exact plan of every pixel takes long.

Pixels are gathered into square cells, those of the map twice as wide as those of the truth. A plan between cells that
ships every cell's mass in proportion costs the mean distance of two cells: it is a plan of the pixels too, so that its
cost is an upper bound. Its potentials, carried over to the pixels of the truth and made feasible by one c-transform
over all distances, give a lower bound by duality. Both hold whatever the solver did. Where they are too far apart the
cells are halved, and in the end every pixel is a cell of its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from forsooth.records import UsageError
from forsooth.scores.columns import (
    Floats,
    Indices,
    NotOptimalError,
    between_cells,
    gathered,
    private_solver,
)
from forsooth.scores.columns import solve as solve_exactly
from forsooth.scores.transport import PIVOTS, Normaliser, emd_from_cost, farthest, in_threads, masses

Singles = NDArray[np.float32]
SIDES = ((4, 2), (2, 1))  # widths of the cells of the map and of the truth, in the order in which they are tried
FEW = 200  # pixels up to which the exact plan is as quick
MASKS = 4  # whose distances are kept, 14 MB each at most at 64x64
ROWS = 64  # of distances in one block
SINGLE = float(np.finfo(np.float32).eps)
SPARE = 2e-5  # pixels; what single precision can add to a potential of at most a hundred of them


@dataclass(frozen=True)
class Excess:
    """What is left to move when the mass that map and truth share in a pixel stays where it is.

    supply, demand    (s,), (t,) masses of sum one
    sources, targets  (s, d), (t, d) int64, their places
    give              (s,) int64, the sources among all pixels
    take              (t,) int64, the targets among the pixels of the mask
    mass              what supply and demand were before they were scaled
    """

    supply: Floats
    demand: Floats
    sources: Indices
    targets: Indices
    give: Indices
    take: Indices
    mass: float


def transport_bounds(
    attribution: Tensor, truth: Tensor, *, tolerance: float, threads: int = 1, pivots: int = PIVOTS
) -> Tensor:
    """A lower and an upper bound of `transport_cost` for each map.

    attribution  (n, *map) real; the absolute value is taken here
    truth        (n, *map) bool
    tolerance    half the distance of the bounds at most, in pixels; where cells cannot reach it, the cost is exact
    threads      maps bounded at once, as in `transport_cost`
    returns      (n, 2) float64 in pixels; nan where `transport_cost` is

    A map's bounds depend on it and its truth alone, never on the maps beside it nor on threads.
    """
    if not tolerance > 0:
        raise UsageError(f"`tolerance` must be above 0, got {tolerance}")
    places = np.stack([axis.ravel() for axis in np.indices(truth.shape[1:])], axis=1)
    shape = tuple(truth.shape[1:])
    goals = truth.flatten(1).cpu().numpy()
    shares = masses(attribution, truth)

    def some(part: Indices) -> list[tuple[float, float]]:
        found = []
        tables: dict[bytes, Singles] = {}
        for share, goal in zip(shares[part], goals[part], strict=True):
            table = partial(kept_distances, tables, places, goal, shape)
            found.append(bounded(share, goal, places, table, tolerance=tolerance, pivots=pivots))
        return found

    bounds = in_threads(some, len(shares), threads)
    return torch.tensor(bounds, dtype=torch.float64, device=attribution.device).reshape(-1, 2)


def kept_distances(
    tables: dict[bytes, Singles], places: Indices, mask: NDArray[np.bool_], shape: tuple[int, ...]
) -> Singles:
    """As `distances`; those of the last masks are kept, since the truths of a scenario are few or all differ."""
    name = mask.tobytes()
    table = tables.pop(name) if name in tables else distances(places, mask, shape)
    tables[name] = table  # last, since it was asked last
    if len(tables) > MASKS:
        del tables[next(iter(tables))]
    return table


def distances(places: Indices, mask: NDArray[np.bool_], shape: tuple[int, ...]) -> Singles:
    """How far each place (pixels, d) is from those in the mask (pixels,). (pixels, pixels of the mask)"""
    strides = np.array([math.prod(2 * side - 1 for side in shape[axis + 1 :]) for axis in range(len(shape))])
    start = (places + np.array(shape) - 1) @ strides
    return lengths(shape).take(start[:, None] - places[mask] @ strides)


@cache
def lengths(shape: tuple[int, ...]) -> Singles:
    """The length of every offset between two pixels of a map, flat: all distances are among these."""
    offsets = np.indices([2 * side - 1 for side in shape]).reshape(len(shape), -1)
    centred = offsets - np.array(shape)[:, None] + 1
    return np.sqrt(np.square(centred).sum(0)).astype(np.float32)


def bounded(
    share: Floats,
    mask: NDArray[np.bool_],
    places: Indices,
    table: Callable[[], Singles],
    *,
    tolerance: float,
    pivots: int,
) -> tuple[float, float]:
    """The bounds of one map, share (pixels,); nan where undefined or not solved. The table is made where it is read."""
    if math.isnan(share[0]):
        return math.nan, math.nan
    excess = excess_of(share, mask, places)
    if excess is None:
        return 0.0, 0.0
    try:
        if len(excess.supply) >= FEW and private_solver("emd_c_sparse") is not None:
            for sides in SIDES:
                lower, upper = sandwich(excess, table(), sides, pivots=pivots)
                if upper - lower <= 2 * tolerance:
                    return max(0.0, lower), upper
        return exactly(excess, pivots=pivots)
    except NotOptimalError:
        return math.nan, math.nan


def excess_of(share: Floats, mask: NDArray[np.bool_], places: Indices) -> Excess | None:
    """What one map has to move; None where it is the truth, but for rounding."""
    goal = mask / mask.sum()
    excess = share - goal
    rounding = 4 * np.finfo(np.float64).eps * goal.max()
    give = np.flatnonzero(excess > rounding)
    take = np.flatnonzero(excess[mask] < -rounding)
    if not len(give) or not len(take):
        return None
    mass = float(excess[give].sum())
    demand = -excess[mask][take]
    return Excess(excess[give] / mass, demand / demand.sum(), places[give], places[mask][take], give, take, mass)


def exactly(excess: Excess, *, pivots: int) -> tuple[float, float]:
    """The cost twice: it is its own lower and upper bound."""
    sources = excess.sources.astype(np.float64)
    targets = excess.targets.astype(np.float64)
    cost = excess.mass * solve_exactly(excess.supply, sources, excess.demand, targets, pivots=pivots).cost
    return cost, cost


def sandwich(excess: Excess, table: Singles, sides: tuple[int, int], *, pivots: int) -> tuple[float, float]:
    """A lower and an upper bound by cells so wide, in pixels; table (pixels, pixels of the mask) has the distances."""
    source = gathered(excess.supply, excess.sources // sides[0])
    target = gathered(excess.demand, excess.targets // sides[1])
    mean = source.mean
    everywhere = sparse.csr_array(
        (mean.data, excess.give[mean.indices], mean.indptr), shape=(len(source.mass), len(table))
    )
    partly = everywhere @ table  # (cells of the map, pixels of the mask); no copy of what the sources read of the table
    if len(excess.take) < partly.shape[1]:
        partly = partly[:, excess.take]
    plan = between_cells(source, target, as_doubles(target.mean @ partly.T), pivots=pivots)
    v = (partly - plan.u[:, None].astype(np.float32)).min(0)
    u = transformed(v, table, excess)
    lower = float(u @ excess.supply) + float(v.astype(np.float64) @ excess.demand) - SPARE
    rounding = SINGLE * (source.largest + target.largest + 4)  # of the sums of positive terms behind a mean distance
    return excess.mass * lower, excess.mass * plan.cost * (1 + rounding)


def transformed(v: Singles, table: Singles, excess: Excess) -> Singles:
    """The largest potentials (s,) of the sources that are feasible beside those of the targets v (t,).

    In blocks of rows, which stay in the cache.
    """
    potentials = np.full(table.shape[1], -np.inf, dtype=np.float32)  # who has nothing to take is infinitely far
    potentials[excess.take] = v
    room = np.empty((ROWS, len(potentials)), dtype=np.float32)
    u = np.empty(len(excess.give), dtype=np.float32)
    for start in range(0, len(u), ROWS):
        some = excess.give[start : start + ROWS]
        away = room[: len(some)]
        np.take(table, some, axis=0, out=away, mode="clip")
        away -= potentials
        away.min(axis=1, out=u[start : start + ROWS])
    return u


def as_doubles(distance: Singles) -> Floats:
    """The distances (m, n) as the solver reads them, (n, m)."""
    return np.ascontiguousarray(distance.T, dtype=np.float64)


def emd_between(
    attribution: Tensor, truth: Tensor, *, tolerance: float, normaliser: Normaliser = "largest", threads: int = 1
) -> tuple[Tensor, Tensor]:
    """The middle of the proven bounds of the earth mover's score, and how far it can be off.

    attribution  (n, *map) real; the absolute value is taken here
    truth        (n, *map) bool
    tolerance    that the second is never above
    normaliser   as in `emd_from_cost`
    threads      as in `transport_bounds`
    returns      (n,) score in [0, 1] and (n,) half the distance of its bounds, 0 where it is exact; nan where undefined
    """
    shape = truth.shape[1:]
    cost = transport_bounds(attribution, truth, tolerance=tolerance * farthest(shape, normaliser), threads=threads)
    half = (cost[:, 1] - cost[:, 0]) / (2 * farthest(shape, normaliser))
    return emd_from_cost(cost.mean(1), shape, normaliser=normaliser), half
