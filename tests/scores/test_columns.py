import numpy as np
import pytest
from scipy.spatial.distance import cdist

from forsooth.scores import columns
from forsooth.scores.columns import DENSE, NotOptimalError, dense, solve

PIVOTS = 10_000_000


@pytest.fixture
def another_pot(monkeypatch):
    """Puts something else in the place of private functions of POT, and forgets what was known of them."""
    from ot.lp import emd_wrap

    def change(**functions):
        for name, function in functions.items():
            if function is None:
                monkeypatch.delattr(emd_wrap, name)
            else:
                monkeypatch.setattr(emd_wrap, name, function)
        columns.private_solver.cache_clear()

    yield change
    columns.private_solver.cache_clear()


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
    assert -supply @ reduced.min(1).clip(max=0) <= 1e-9
    assert np.abs(reduced[plan.rows, plan.columns]).max() < 1e-10
    assert plan.u @ supply + plan.v @ demand == pytest.approx(plan.cost, abs=1e-10)


def test_one_source_has_no_choice():
    targets = np.argwhere(np.ones((200, 200))).astype(float)
    demand = np.full(len(targets), 1 / len(targets))
    plan = solve(np.ones(1), np.full((1, 2), 3.0), demand, targets, pivots=PIVOTS)
    assert plan.cost == pytest.approx(np.linalg.norm(targets - 3, axis=1).mean(), rel=1e-12)


def test_out_of_pivots_is_said():
    supply, sources, demand, targets = problem(2, (28, 28), "random")
    with pytest.raises(NotOptimalError, match="code 3 after at most 2 pivots"):
        solve(supply, sources, demand, targets, pivots=2)


def other_arguments(supply, demand, distance):
    raise AssertionError("never called with what it takes")


def other_results(*arguments):
    return 0.0, 1


@pytest.mark.parametrize("instead", [None, other_arguments, other_results])
def test_without_the_private_solvers_the_public_one_finds_the_same_cost(another_pot, instead):
    supply, sources, demand, targets = problem(3, (28, 28), "random")
    assert columns.private_solver("emd_c") is not None and columns.private_solver("emd_c_sparse") is not None
    before = solve(supply, sources, demand, targets, pivots=PIVOTS)
    small = dense(supply[:9] / supply[:9].sum(), np.full(9, 1 / 9), cdist(sources[:9], targets[:9]), pivots=PIVOTS)
    another_pot(emd_c=instead, emd_c_sparse=instead)
    assert columns.private_solver("emd_c") is None and columns.private_solver("emd_c_sparse") is None
    after = solve(supply, sources, demand, targets, pivots=PIVOTS)
    assert after.cost == pytest.approx(before.cost, rel=1e-12)
    assert after.u @ supply + after.v @ demand == pytest.approx(before.cost, abs=1e-10)
    again = dense(supply[:9] / supply[:9].sum(), np.full(9, 1 / 9), cdist(sources[:9], targets[:9]), pivots=PIVOTS)
    assert again[1] == pytest.approx(small[1], rel=1e-12)


def test_without_the_sparse_solver_alone_all_arcs_are_solved_at_once(another_pot):
    supply, sources, demand, targets = problem(4, (28, 28), "equal")
    before = solve(supply, sources, demand, targets, pivots=PIVOTS)
    another_pot(emd_c_sparse=None)
    after = solve(supply, sources, demand, targets, pivots=PIVOTS)
    assert after.cost == pytest.approx(before.cost, rel=1e-12)


@pytest.mark.filterwarnings("ignore:numItermax")
def test_the_public_solver_says_that_it_is_out_of_pivots_too(another_pot):
    supply, sources, demand, targets = problem(2, (28, 28), "random")
    another_pot(emd_c=None)
    with pytest.raises(NotOptimalError, match="after at most 3 pivots"):
        dense(supply, demand, cdist(sources, targets), pivots=3)
