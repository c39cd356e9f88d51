import numpy as np
import pytest
from scipy.spatial.distance import cdist

from forsooth.scores.columns import DENSE, NotOptimalError, coarsen, dense, solve

PIVOTS = 10_000_000


def problem(seed: int, shape: tuple[int, ...], kind: str):
    """Supply, its places, demand, its places, on disjoint points of a grid."""
    rng = np.random.default_rng(seed)
    places = np.argwhere(np.ones(shape)).astype(float)
    order = rng.permutation(len(places))
    sources, targets = places[np.sort(order[::3])], places[np.sort(order[1::3])]
    supply = {
        "equal": np.ones(len(sources)),
        "random": rng.random(len(sources)),
        "few rule": np.exp(10 * rng.standard_normal(len(sources))),
    }[kind]
    demand = np.ones(len(targets))
    return supply / supply.sum(), sources, demand / demand.sum(), targets


@pytest.mark.parametrize("kind", ["equal", "random", "few rule"])
@pytest.mark.parametrize("shape", [(28, 28), (9, 9, 9), (600,), (1, 600), (15, 50)])
def test_columns_equal_the_dense_solver(shape, kind):
    supply, sources, demand, targets = problem(0, shape, kind)
    distance = cdist(sources, targets)
    assert distance.size > DENSE
    plan = solve(supply, sources, demand, targets, pivots=PIVOTS)
    _, cost, _, _ = dense(supply, demand, distance, pivots=PIVOTS)
    assert plan.cost == pytest.approx(cost, rel=1e-12)


def test_the_plan_is_proven_by_its_potentials():
    supply, sources, demand, targets = problem(1, (30, 30), "random")
    plan = solve(supply, sources, demand, targets, pivots=PIVOTS)
    reduced = cdist(sources, targets) - plan.u[:, None] - plan.v
    assert reduced.min() > -1e-10
    assert np.abs(reduced[plan.rows, plan.columns]).max() < 1e-10
    assert plan.u @ supply + plan.v @ demand == pytest.approx(plan.cost, abs=1e-10)


def test_one_source_has_no_choice():
    targets = np.argwhere(np.ones((200, 200))).astype(float)
    demand = np.full(len(targets), 1 / len(targets))
    plan = solve(np.ones(1), np.full((1, 2), 3.0), demand, targets, pivots=PIVOTS)
    assert plan.cost == pytest.approx(np.linalg.norm(targets - 3, axis=1).mean(), rel=1e-12)


def test_coarsen_by_hand():
    mass, centre, owner = coarsen(np.array([1.0, 3.0, 2.0]), np.array([[0.0, 0], [1, 0], [4, 5]]), side=2.0)
    np.testing.assert_allclose(mass, [4, 2])
    np.testing.assert_allclose(centre, [[0.75, 0], [4, 5]])
    np.testing.assert_array_equal(owner, [0, 0, 1])


def test_out_of_pivots_is_said():
    supply, sources, demand, targets = problem(2, (28, 28), "random")
    with pytest.raises(NotOptimalError, match="code 3 after at most 2 pivots"):
        solve(supply, sources, demand, targets, pivots=2)
