import math

import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.ndimage import gaussian_filter
from scores.tetrominoes import masks
from torch import Tensor

from forsooth.records import UsageError
from forsooth.scores import columns
from forsooth.scores.localisation import ima
from forsooth.scores.transport import emd, emd_from_cost, emd_released, transport_cost
from forsooth.seeds import generator

NAN = float("nan")
values = st.one_of(st.just(0.0), st.floats(-1, -1e-3), st.floats(1e-12, 1e12))
maps_of = arrays(np.float64, (1, 4, 5), elements=values).filter(lambda x: np.abs(x).max() > 0)
masks_of = arrays(np.bool_, (1, 4, 5)).filter(np.any)


def pot(attribution: Tensor, truth: Tensor, *, only_the_mask: bool = False) -> float:
    """POT's exact value for one map, with the full cost matrix or with its columns in the mask."""
    pixels = np.argwhere(np.ones(truth.shape)).astype(float)
    a = attribution.abs().double().flatten().numpy()
    b = truth.double().flatten().numpy()
    keep = b > 0 if only_the_mask else b >= 0
    cost = ot.dist(pixels, pixels[keep], metric="euclidean")
    return float(ot.emd2(a / a.sum(), b[keep] / b.sum(), cost, numItermax=10_000_000))


@pytest.mark.parametrize("size", [8, 16])
def test_equals_pot_on_200_pairs(size):
    draw = generator(0, size)
    n = 200
    maps = torch.randn(n, size, size, generator=draw, dtype=torch.float64)
    maps[::4] *= torch.rand(maps[::4].shape, generator=draw) < 0.1  # sparse maps
    maps[1::4] = maps[1::4].exp() ** 4  # a few pixels rule
    truth = torch.rand(n, size, size, generator=draw) < torch.rand(n, 1, 1, generator=draw)
    truth[:, 0, 0] = True
    maps[:, -1, -1] = 1e-3
    expected = torch.tensor([pot(s, t) for s, t in zip(maps, truth, strict=True)], dtype=torch.float64)
    torch.testing.assert_close(transport_cost(maps, truth), expected, rtol=0, atol=1e-9)


def maps_64() -> list[tuple[str, np.ndarray]]:
    """Ten maps at 64x64: (name of the mask, map)."""
    rng = np.random.default_rng(0)
    both, rigid = (masks()[name].numpy() for name in ("both_64", "rigid_64"))
    sparse = [rng.random((64, 64)) * (rng.random((64, 64)) < share) for share in (0.002, 0.01, 0.05)]
    return [
        ("both_64", rng.uniform(-1, 1, (64, 64))),
        ("both_64", gaussian_filter(both.astype(float), 1.5) + 0.2 * rng.standard_normal((64, 64))),
        ("both_64", both * rng.random((64, 64)) + (rng.random((64, 64)) < 0.02)),
        ("both_64", np.pad(np.ones((20, 20)), ((0, 44), (44, 0)))),
        ("rigid_64", rng.standard_normal((64, 64))),
        ("rigid_64", gaussian_filter(rng.standard_normal((64, 64)), 3)),
        ("rigid_64", rigid + 0.2 * rng.standard_normal((64, 64))),
        *(("both_64", picture) for picture in sparse),
    ]


@pytest.mark.parametrize("i", range(10))
def test_equals_pot_on_ten_maps_at_64(i):
    name, picture = maps_64()[i]
    attribution, truth = torch.from_numpy(picture), masks()[name]
    got = transport_cost(attribution[None], truth[None]).item()
    assert got == pytest.approx(pot(attribution, truth, only_the_mask=True), abs=1e-9)


def test_by_hand():
    attribution = torch.zeros(3, 8, 8)
    truth = torch.zeros(3, 8, 8, dtype=torch.bool)
    attribution[0, 0, 0], truth[0, 3, 4] = -7, True  # a 3-4-5 triangle
    attribution[1, 2, 2], attribution[1, 2, 5], truth[1, 2, 3] = 1, 1, True  # half goes one pixel, half two
    attribution[2, 0, 0], truth[2, 7, 7] = 1, True  # the worst there is
    cost = transport_cost(attribution, truth)
    torch.testing.assert_close(cost, torch.tensor([5.0, 1.5, 7 * math.sqrt(2)], dtype=torch.float64))
    expected = torch.tensor([1 - 5 / math.sqrt(98), 1 - 1.5 / math.sqrt(98), 0.0], dtype=torch.float64)
    torch.testing.assert_close(emd(attribution, truth), expected, rtol=0, atol=1e-15)
    expected = torch.tensor([1 - 5 / math.sqrt(128), 1 - 1.5 / math.sqrt(128), 1 / 8], dtype=torch.float64)
    torch.testing.assert_close(emd_released(attribution, truth), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("shape", "normaliser", "delta"),
    [
        ((64, 64), "largest", 89.10),
        ((8, 8), "largest", 9.90),
        ((64, 64), "released", 90.51),
        ((8, 8), "released", 11.31),
        ((4, 5), "largest", 5.0),
        ((3, 4), "released", 5.0),
    ],
)
def test_normalisers(shape, normaliser, delta):
    score = emd_from_cost(torch.tensor([1.0, NAN]).double(), shape, normaliser=normaliser)
    assert 1 / (1 - score[0].item()) == pytest.approx(delta, abs=0.005)
    assert score[1].isnan()


@pytest.mark.parametrize("score", [emd, emd_released])
@pytest.mark.parametrize("name", ["both_64", "rigid_64", "both_8", "rigid_8"])
def test_oracle_scores_one(score, name):
    truth = masks()[name][None]
    assert score(-0.3 * truth, truth).item() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("size", [8, 64])
def test_undefined_is_nan_and_touches_no_other_row(size):
    truth = masks()[f"both_{size}"].expand(5, size, size).clone()
    truth[3] = False
    attribution = torch.ones(5, size, size)
    attribution[0], attribution[1, 0, 0], attribution[2, 1, 1] = 0, NAN, float("inf")
    got = emd(attribution, truth)
    assert got[:4].isnan().all()
    assert got[4] == emd(attribution[4:], truth[4:])[0]
    assert emd(attribution[:0], truth[:0]).shape == (0,)


@pytest.mark.parametrize("size", [8, 64])
def test_a_solver_that_gave_up_is_nan(size):
    truth = masks()[f"both_{size}"][None]
    attribution = torch.rand(1, size, size, generator=generator(4))
    assert transport_cost(attribution, truth, pivots=1).isnan()


def test_missing_columns_are_nan(monkeypatch):
    monkeypatch.setattr(columns, "ROUNDS", 0)
    assert transport_cost(torch.rand(1, 64, 64, generator=generator(5)), masks()["both_64"][None]).isnan()


def test_bad_arguments_are_named():
    with pytest.raises(UsageError, match=r"`truth` must have the shape of the attribution \(1, 8, 8\), got \(8, 8\)"):
        emd(torch.ones(1, 8, 8), torch.ones(8, 8).bool())
    with pytest.raises(UsageError, match="`threads` must be at least 1, got 0"):
        transport_cost(torch.ones(1, 8, 8), torch.ones(1, 8, 8).bool(), threads=0)
    with pytest.raises(UsageError, match="`normaliser` must be 'largest' or 'released', got 'paper'"):
        emd_from_cost(torch.ones(1), (8, 8), normaliser="paper")


def test_threads_and_batches_change_no_bit():
    draw = generator(6)
    maps = torch.randn(20, 8, 8, generator=draw)
    truth = torch.rand(20, 8, 8, generator=draw) < 0.2
    truth[5:9] = truth[4]  # some that share their mask, others not
    cost = transport_cost(maps, truth)
    assert torch.equal(cost, transport_cost(maps, truth, threads=3))
    assert torch.equal(cost, torch.cat([transport_cost(maps[i : i + 1], truth[i : i + 1]) for i in range(20)]))


@settings(deadline=None, max_examples=60)
@given(maps_of, masks_of, st.sampled_from([-1.0, 3.0, 1e-280, 1e280]))
def test_bounds_symmetry_and_invariance(picture, mask, factor):
    attribution, truth = torch.from_numpy(picture), torch.from_numpy(mask)
    score = emd(attribution, truth)
    assert -1e-12 <= score.item() <= 1 + 1e-12
    assert emd(factor * attribution, truth).item() == pytest.approx(score.item(), abs=1e-12)
    assert emd(attribution.mT, truth.mT).item() == pytest.approx(score.item(), abs=1e-12)
    # what lies outside the truth travels at least one pixel
    assert transport_cost(attribution, truth).item() >= 1 - ima(attribution, truth).item() - 1e-12


@settings(deadline=None, max_examples=60)
@given(maps_of, masks_of, st.floats(0, 1))
def test_blending_in_the_truth_removes_that_share_of_the_cost(picture, mask, share):
    attribution, truth = torch.from_numpy(picture).abs(), torch.from_numpy(mask)
    blend = (1 - share) * attribution / attribution.sum() + share * truth.double() / truth.sum()
    cost = transport_cost(attribution, truth).item()
    assert transport_cost(blend, truth).item() == pytest.approx((1 - share) * cost, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(maps_of, st.permutations(range(20)), st.floats(0, 1))
def test_moving_mass_closer_never_lowers_the_score(picture, order, share):
    goal, one, other = order[:3]
    places = np.argwhere(np.ones((4, 5)))
    far, near = sorted((one, other), key=lambda i: -np.linalg.norm(places[i] - places[goal]))
    truth = torch.zeros(1, 20, dtype=torch.bool)
    truth[0, goal] = True
    before = torch.from_numpy(picture).abs().reshape(1, 20)
    after = before.clone()
    after[0, near] += share * before[0, far]
    after[0, far] -= share * before[0, far]
    scores = [emd(s.reshape(1, 4, 5), truth.reshape(1, 4, 5)).item() for s in (before, after)]
    assert scores[1] >= scores[0] - 1e-12
