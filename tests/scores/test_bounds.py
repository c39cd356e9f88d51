import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter
from scipy.spatial.distance import cdist
from scores.tetrominoes import masks
from torch import Tensor

from forsooth.records import UsageError
from forsooth.scores import bounds
from forsooth.scores.bounds import distances, emd_between, transport_bounds
from forsooth.scores.columns import gathered
from forsooth.scores.transport import emd, emd_released, transport_cost
from forsooth.seeds import generator

LARGEST = 63 * 2**0.5


def maps_of(truth: Tensor) -> Tensor:
    """(4, side, side): noise, a smooth map, the truth with noise, and a few pixels."""
    draw = generator(0, "bounds")
    noise = torch.randn(4, *truth.shape, generator=draw, dtype=torch.float64)
    smooth = torch.from_numpy(gaussian_filter(noise[1].numpy(), 4))
    few = noise[3] * (torch.rand(truth.shape, generator=draw) < 0.02)
    return torch.stack([noise[0], smooth, truth + 0.2 * noise[2], few])


@pytest.mark.parametrize("name", ["both_64", "rigid_64"])
def test_the_exact_cost_lies_between_the_bounds(name):
    truth = masks()[name].expand(4, 64, 64)
    maps = maps_of(truth[0])
    exact = transport_cost(maps, truth)
    found = transport_bounds(maps, truth, tolerance=1e-3 * LARGEST)
    assert (found[:, 0] <= exact + 1e-9).all() and (exact <= found[:, 1] + 1e-9).all()
    assert (found[:, 1] - found[:, 0] <= 2e-3 * LARGEST).all()
    score, error = emd_between(maps, truth, tolerance=1e-3)
    assert (score - emd(maps, truth)).abs().le(error + 1e-9).all() and error.max() <= 1e-3
    assert error[:3].min() > 0 and error[3] == 0  # few pixels are solved exactly


def test_a_smaller_tolerance_halves_the_cells_and_then_solves_exactly():
    truth = masks()["rigid_64"][None]
    maps = maps_of(truth[0])[:1]
    widths = []
    for tolerance in (1e-3, 3e-4, 1e-7):
        score, error = emd_between(maps, truth, tolerance=tolerance, normaliser="released")
        assert abs(score - emd_released(maps, truth)) <= error + 1e-9
        widths.append(error.item())
    assert widths[0] > widths[1] > widths[2] == 0


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**30), st.sampled_from([(24, 17), (400,), (9, 8, 7)]))
def test_the_bounds_hold_in_any_shape(seed, shape):
    draw = generator(seed)
    maps = torch.rand(1, *shape, generator=draw, dtype=torch.float64) ** 3
    truth = torch.rand(1, *shape, generator=draw) < 0.2
    truth.view(-1)[0] = True
    exact = transport_cost(maps, truth).item()
    lower, upper = transport_bounds(maps, truth, tolerance=10.0)[0].tolist()
    assert lower <= exact + 1e-9 and exact <= upper + 1e-9


def test_bounds_depend_on_no_other_map():
    truth = masks()["both_64"].expand(3, 64, 64).clone()
    truth[1] = masks()["rigid_64"]
    maps = maps_of(truth[0])[:3]
    together = transport_bounds(maps, truth, tolerance=0.1)
    alone = [transport_bounds(maps[i : i + 1], truth[i : i + 1], tolerance=0.1) for i in (2, 1, 0)]
    assert torch.equal(together, torch.cat(alone[::-1]))


def test_threads_change_no_bit():
    truth = masks()["rigid_64"].expand(4, 64, 64)
    maps = maps_of(truth[0])
    alone = emd_between(maps, truth, tolerance=1e-3)
    assert all(map(torch.equal, alone, emd_between(maps, truth, tolerance=1e-3, threads=3)))
    with pytest.raises(UsageError, match="`threads` must be at least 1, got 0"):
        emd_between(maps, truth, tolerance=1e-3, threads=0)


def test_undefined_and_perfect_maps():
    truth = masks()["both_64"].expand(3, 64, 64).clone()
    maps = truth.double()
    maps[0] = 0
    truth[1] = False
    score, error = emd_between(maps, truth, tolerance=1e-3)
    assert score[:2].isnan().all() and error[:2].isnan().all()
    assert score[2] == 1 and error[2] == 0
    assert emd_between(maps[:0], truth[:0], tolerance=1e-3)[0].shape == (0,)
    with pytest.raises(UsageError, match="`tolerance` must be above 0, got 0"):
        transport_bounds(maps, truth, tolerance=0)


def test_a_solver_that_gave_up_is_nan():
    truth = masks()["both_64"][None]
    assert transport_bounds(maps_of(truth[0])[:1], truth, tolerance=0.1, pivots=1).isnan().all()


@pytest.mark.parametrize("shape", [(64, 64), (5, 7), (11,), (3, 4, 5)])
def test_distances_by_offsets_are_those_of_scipy(shape):
    places = np.argwhere(np.ones(shape))
    mask = np.random.default_rng(0).random(len(places)) < 0.3
    np.testing.assert_allclose(distances(places, mask, shape), cdist(places, places[mask]), rtol=1e-6)


def test_cells_by_hand():
    cells = gathered(np.array([1.0, 3.0, 2.0]), np.array([[0, 0], [0, 0], [2, 1]]))
    np.testing.assert_allclose(cells.mass, [4, 2])
    np.testing.assert_array_equal(cells.places, [[0, 0], [2, 1]])
    np.testing.assert_allclose(cells.mean.toarray(), [[0.25, 0.75, 0], [0, 0, 1]])
    assert cells.largest == 2


def test_without_the_sparse_solver_every_score_is_exact(monkeypatch):
    monkeypatch.setattr(bounds, "private_solver", lambda name: None)
    truth = masks()["rigid_64"][None]
    score, error = emd_between(maps_of(truth[0])[:1], truth, tolerance=1e-3)
    assert error == 0 and score.item() == pytest.approx(emd(maps_of(truth[0])[:1], truth).item(), abs=1e-9)
