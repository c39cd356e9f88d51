"""Exact optimal transport between two sets of points with Euclidean cost, fast when both are large.

A plan of n + m points uses at most n + m - 1 of the n m arcs. So we guess the arcs that matter, solve with these alone,
and price all the others with the dual potentials: an arc with a negative reduced cost could improve the plan and is
added; when those that are left cannot save a billionth of a pixel together, duality proves that the plan is optimal.
The guess comes from the same problem with the points of one side gathered into cells, and so on down to a problem small
enough for the dense solver.

The solver is the network simplex of [bonneel2011displacement] in [flamary2021pot], which releases the interpreter lock.
Its sparse form is no public part of that package: where it is missing, all arcs are solved at once, which is slower.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

DENSE = 2**15  # arcs up to which the dense solver is the faster one
ARCS_PER_POINT = 6  # of the first guess between cells; fewer cost more rounds, more cost longer rounds
POINT_ARCS = 2  # the same between points, where the guess is better
DROPS = 20  # rounds after which no arc is dropped, so that the search ends
GAP = 1e-9  # pixels; what better arcs could still save at most when the search for them ends
ROUNDS = 100  # four to six are the rule
RESULTS = {"emd_c": 4, "emd_c_sparse": 6}  # what the private solvers of POT give beside their code


class NotOptimalError(Exception):
    """The solver stopped before it proved its plan optimal."""


@dataclass(frozen=True)
class Plan:
    """An optimal plan.

    cost           sum of mass times distance
    u, v           (n,), (m,) dual potentials: u_i + v_j is at most the distance, and equal to it where mass flows
    rows, columns  (arcs,) the arcs that carry mass
    """

    cost: float
    u: Floats
    v: Floats
    rows: Indices
    columns: Indices


def dense(supply: Floats, demand: Floats, distance: Floats, *, pivots: int) -> tuple[Floats, float, Floats, Floats]:
    """Solve over all arcs.

    supply    (n,) masses, zeros allowed
    demand    (m,) masses with the same sum
    distance  (n, m)
    pivots    steps of the simplex after which we give up
    returns   flow (n, m), cost, and the potentials u (n,) and v (m,)
    """
    solver = private_solver("emd_c")
    if solver is None:
        return public_dense(supply, demand, distance, pivots=pivots)
    flow, cost, u, v, code = solver(supply, demand, distance, pivots, 1)
    check(code, pivots)
    return flow, cost, u, v


def public_dense(
    supply: Floats, demand: Floats, distance: Floats, *, pivots: int
) -> tuple[Floats, float, Floats, Floats]:
    """`dense` by the public function of the package, which checks more and so takes longer on small problems."""
    ot = importlib.import_module("ot")
    flow, log = ot.emd(supply, demand, distance, numItermax=pivots, log=True, center_dual=False)
    check(log["result_code"], pivots)
    return flow, log["cost"], log["u"], log["v"]


@cache
def private_solver(name: str) -> Callable[..., Any] | None:
    """`emd_c` or `emd_c_sparse` of POT, if the installed version has it and it works as we call it; else None.

    Neither is public, so that a new version may drop it or change its arguments. It is tried on a single arc. The
    package is imported here, since that takes two seconds.
    """
    one = np.ones(1)
    at = np.zeros(1, dtype=np.uint64)
    trials: dict[str, tuple[Any, ...]] = {
        "emd_c": (one, one, one[:, None], 1000, 1),
        "emd_c_sparse": (one, one, at, at, one, 1000, None, None),
    }
    try:
        solver = getattr(importlib.import_module("ot.lp.emd_wrap"), name)
        *rest, code = solver(*trials[name])
    except (ImportError, AttributeError, TypeError, ValueError):
        return None
    if len(rest) != RESULTS[name] or code != 1:
        return None
    return solver


def check(code: int, pivots: int) -> None:
    """Raise unless the solver says optimal; its other codes are infeasible 0, unbounded 2, out of pivots 3."""
    if code != 1:
        raise NotOptimalError(f"network simplex ended with code {code} after at most {pivots} pivots")


def solve(supply: Floats, sources: Floats, demand: Floats, targets: Floats, *, pivots: int) -> Plan:
    """Solve by columns.

    supply   (n,) positive masses
    sources  (n, d) their places, none negative
    demand   (m,) positive masses with the same sum
    targets  (m, d)
    pivots   steps of each simplex after which we give up
    """
    demand = demand * (supply.sum() / demand.sum())
    distance = cdist(sources, targets)
    if distance.size <= DENSE or private_solver("emd_c_sparse") is None:
        flow, cost, u, v = dense(supply, demand, distance, pivots=pivots)
        return Plan(cost, u, v, *np.nonzero(flow))
    wide = (2, 1) if len(sources) >= len(targets) else (1, 2)  # the side with more points is gathered
    source = gathered(supply, np.floor(sources / wide[0]).astype(np.int64))
    target = gathered(demand, np.floor(targets / wide[1]).astype(np.int64))
    partly = source.mean @ distance  # (cells, m)
    coarse = between_cells(source, target, np.ascontiguousarray((target.mean @ partly.T).T), pivots=pivots)
    v = (partly - coarse.u[:, None]).min(0)
    reduced = distance - v
    reduced -= reduced.min(1, keepdims=True)
    guess = least(reduced, POINT_ARCS) | in_use(coarse)[source.owner][:, target.owner]
    return refine(supply, demand, distance, np.flatnonzero(guess), pivots=pivots)


def in_use(coarse: Plan) -> NDArray[np.bool_]:
    """The arcs (n, m) of a plan that carry mass.

    Their children can carry the coarse plan: with them the guess is feasible.
    """
    used = np.zeros((len(coarse.u), len(coarse.v)), dtype=bool)
    used[coarse.rows, coarse.columns] = True
    return used


@dataclass(frozen=True)
class Cells:
    """Points gathered into cells.

    mass     (cells,)
    places   (cells, d) int64, counted in cells
    owner    (points,) the cell of each point
    mean     (cells, points) sparse, the share of each point in its cell
    largest  points in a cell at most
    """

    mass: Floats
    places: Indices
    owner: Indices
    mean: sparse.csr_array
    largest: int


def gathered(mass: Floats, cells: Indices) -> Cells:
    """Points of some mass (points,) gathered by the places (points, d) of their cells."""
    numbers = np.ravel_multi_index(tuple(cells.T), tuple(cells.max(0) + 1))
    _, first, owner = np.unique(numbers, return_index=True, return_inverse=True)
    total = np.bincount(owner, mass).astype(np.float64)
    shares = (mass / total[owner]).astype(np.float32)
    mean = sparse.csr_array((shares, (owner, np.arange(len(mass)))), shape=(len(total), len(mass)))
    return Cells(total, cells[first], owner, mean, int(np.bincount(owner).max()))


def between_cells(source: Cells, target: Cells, distance: Floats, *, pivots: int) -> Plan:
    """The optimal plan between cells with the distances (n, m); the guess of arcs comes from cells twice as wide."""
    if distance.size <= DENSE:
        flow, cost, u, v = dense(source.mass, target.mass, distance, pivots=pivots)
        return Plan(cost, u, v, *np.nonzero(flow))
    wide_source = gathered(source.mass, source.places // 2)
    wide_target = gathered(target.mass, target.places // 2)
    partly = wide_target.mean @ distance.T  # (wide cells of the truth, cells of the map)
    coarse = between_cells(wide_source, wide_target, wide_source.mean @ partly.T, pivots=pivots)
    u = (partly - coarse.v[:, None]).min(0)
    guess = promising(distance, u) | in_use(coarse)[wide_source.owner][:, wide_target.owner]
    return refine(source.mass, target.mass, distance, np.flatnonzero(guess), pivots=pivots)


def promising(distance: Floats, u: Floats) -> NDArray[np.bool_]:
    """The arcs (n, m) with the least reduced cost under the potential of the sources u (n,); distance (n, m)."""
    reduced = distance - (distance - u[:, None]).min(0)
    reduced -= reduced.min(1, keepdims=True)
    return least(reduced, ARCS_PER_POINT)


def least(reduced: Floats, arcs: int) -> NDArray[np.bool_]:
    """The entries of reduced (n, m) that are the least, about so many for each of the n + m points."""
    n, m = reduced.shape
    sample = reduced[::37].ravel()  # enough for the quantile; odd, to step across the columns of a picture
    rank = min(len(sample) - 1, int(len(sample) * arcs * (n + m) / (n * m)))
    return reduced <= np.partition(sample, rank)[rank]


def refine(supply: Floats, demand: Floats, distance: Floats, arcs: Indices, *, pivots: int) -> Plan:
    """Solve over `arcs`, add every arc that could improve the plan, and repeat until they save nothing to speak of.

    supply    (n,)
    demand    (m,)
    distance  (n, m)
    arcs      (arcs,) positions in the flattened `distance`, enough of them for a plan to exist

    An arc that is farther from improving the plan than the best of the others is near it leaves again.
    """
    solver = private_solver("emd_c_sparse")
    assert solver is not None
    n, m = distance.shape
    u = v = None
    room = np.empty_like(distance)
    # The potentials carry the rounding of an artificial cost, about (n + m) times the largest distance.
    rounding = 2 * np.finfo(np.float64).eps * (n + m) * distance.max()
    for turn in range(ROUNDS):
        rows, columns = np.divmod(arcs, m)
        costs = distance.flat[arcs]
        tail, head, _mass, cost, u, v, code = solver(
            supply, demand, rows.astype(np.uint64), columns.astype(np.uint64), costs, pivots, u, v
        )
        check(code, pivots)
        low = np.subtract(distance, v, out=room).min(1) - u
        if low.min() >= -rounding or proven_gap(supply, low) <= GAP:
            return Plan(cost, u, v, tail.astype(np.int64), head.astype(np.int64))
        if turn < DROPS:
            arcs = arcs[costs - u[rows] - v[columns] <= -low.min()]
        arcs = np.concatenate([arcs, below(room, u, low, rounding)])
    raise NotOptimalError(f"columns were still missing after {ROUNDS} rounds")


def below(lowered: Floats, u: Floats, low: Floats, rounding: float) -> Indices:
    """The arcs, in the flattened `lowered` (n, m), that lie below u (n,) by more than rounding; low (n,) by row."""
    rows = np.flatnonzero(low < -rounding)
    where, columns = np.nonzero(lowered[rows] < (u[rows] - rounding)[:, None])
    return rows[where] * lowered.shape[1] + columns


def proven_gap(supply: Floats, low: Floats) -> float:
    """How far the cost can be above the optimum, by duality: potentials lowered to be feasible are a lower bound.

    supply  (n,)
    low     (n,) the least of the costs less the potentials
    """
    return -float(supply @ low.clip(max=0))
