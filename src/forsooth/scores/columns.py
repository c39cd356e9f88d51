"""Exact optimal transport between two sets of points with Euclidean cost, fast when both are large.

A plan of n + m points uses at most n + m - 1 of the n m arcs. So we guess the arcs that matter, solve with these alone,
and price all the others with the dual potentials: an arc with a negative reduced cost could improve the plan and is
added; when there is none left, duality proves that the plan is optimal over all arcs. The guess comes from the same
problem on cells twice as wide, and so on down to a problem small enough for the dense solver.

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
from scipy.spatial.distance import cdist

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

DENSE = 2**15  # arcs up to which the dense solver is the faster one
ARCS_PER_POINT = 6  # of the first guess; fewer cost more rounds, more cost longer rounds
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


def solve(supply: Floats, sources: Floats, demand: Floats, targets: Floats, *, pivots: int, side: float = 2.0) -> Plan:
    """Solve by columns.

    supply   (n,) positive masses
    sources  (n, d) their places, none negative
    demand   (m,) positive masses with the same sum
    targets  (m, d)
    pivots   steps of each simplex after which we give up
    side     width of the cells of the coarser problem
    """
    demand = demand * (supply.sum() / demand.sum())
    distance = cdist(sources, targets)
    if distance.size <= DENSE or private_solver("emd_c_sparse") is None:
        flow, cost, u, v = dense(supply, demand, distance, pivots=pivots)
        return Plan(cost, u, v, *np.nonzero(flow))
    coarse_supply, coarse_sources, source_cell = coarsen(supply, sources, side=side)
    coarse_demand, coarse_targets, target_cell = coarsen(demand, targets, side=side)
    coarse = solve(coarse_supply, coarse_sources, coarse_demand, coarse_targets, pivots=pivots, side=2 * side)
    u = (cdist(sources, coarse_targets) - coarse.v).min(1)  # potentials are 1-Lipschitz: so is this extension
    guess = promising(distance, u) | in_use(coarse)[source_cell][:, target_cell]
    return refine(supply, demand, distance, np.flatnonzero(guess), pivots=pivots)


def in_use(coarse: Plan) -> NDArray[np.bool_]:
    """The arcs (n, m) of a plan that carry mass.

    Their children can carry the coarse plan: with them the guess is feasible.
    """
    used = np.zeros((len(coarse.u), len(coarse.v)), dtype=bool)
    used[coarse.rows, coarse.columns] = True
    return used


def coarsen(mass: Floats, places: Floats, *, side: float) -> tuple[Floats, Floats, Indices]:
    """Gather points into square cells.

    mass     (n,)
    places   (n, d)
    returns  (cells,) masses, (cells, d) centres of mass, (n,) the cell of each point
    """
    cell = np.floor(places / side).astype(np.int64)
    _, owner = np.unique(np.ravel_multi_index(tuple(cell.T), tuple(cell.max(0) + 1)), return_inverse=True)
    total = np.bincount(owner, mass).astype(np.float64)
    centre = np.stack([np.bincount(owner, mass * x) / total for x in places.T], axis=1)
    return total, centre, owner.astype(np.int64)


def promising(distance: Floats, u: Floats) -> NDArray[np.bool_]:
    """The arcs with the least reduced cost under the potential of the sources, about `ARCS_PER_POINT` for each point.

    distance  (n, m)
    u         (n,)
    returns   (n, m)
    """
    n, m = distance.shape
    reduced = distance - (distance - u[:, None]).min(0)
    reduced -= reduced.min(1, keepdims=True)
    sample = reduced[::37].ravel()  # enough for the quantile; odd, to step across the columns of a picture
    rank = min(len(sample) - 1, int(len(sample) * ARCS_PER_POINT * (n + m) / (n * m)))
    return reduced <= np.partition(sample, rank)[rank]


def refine(supply: Floats, demand: Floats, distance: Floats, arcs: Indices, *, pivots: int) -> Plan:
    """Solve over `arcs`, add every arc that could improve the plan, and repeat until there is none.

    supply    (n,)
    demand    (m,)
    distance  (n, m)
    arcs      (arcs,) positions in the flattened `distance`, enough of them for a plan to exist
    """
    solver = private_solver("emd_c_sparse")
    assert solver is not None
    n, m = distance.shape
    u = v = None
    # The potentials carry the rounding of an artificial cost, about (n + m) times the largest distance.
    rounding = 2 * np.finfo(np.float64).eps * (n + m) * distance.max()
    for _ in range(ROUNDS):
        rows, columns = np.divmod(arcs, m)
        tail, head, _mass, cost, u, v, code = solver(
            supply, demand, rows.astype(np.uint64), columns.astype(np.uint64), distance.flat[arcs], pivots, u, v
        )
        check(code, pivots)
        better = improving(distance, u, v, rounding)
        if not len(better):
            return Plan(cost, u, v, tail.astype(np.int64), head.astype(np.int64))
        arcs = np.concatenate([arcs, better])
    raise NotOptimalError(f"columns were still missing after {ROUNDS} rounds")


def improving(distance: Floats, u: Floats, v: Floats, rounding: float) -> Indices:
    """Positions in the flattened distance (n, m) of the arcs whose reduced cost is below zero by more than rounding."""
    reduced = distance - v
    reduced -= u[:, None]
    return np.flatnonzero(reduced < -rounding)
