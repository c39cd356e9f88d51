import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forsooth.records import UsageError
from forsooth.scores.contrast import (
    IDR,
    IIR,
    MCS,
    g_c,
    idr,
    iir,
    iir_curve,
    mcs,
    random_masks,
    reduced,
    relative_change,
    relative_difference,
)
from forsooth.seeds import generator

NAN, INF = float("nan"), float("inf")


def doubles(values):
    return torch.tensor(values, dtype=torch.float64)


def same(got, values):
    torch.testing.assert_close(got, doubles(values), equal_nan=True)


def literally_reduced(one, percentile=99.0, from_minimum=True):
    """One map (c, h, w) by the words of the paper, with numpy and loops."""
    channels, height, width = one.shape
    flat = np.zeros((height, width))
    for i in range(height):
        for j in range(width):
            flat[i, j] = sum(max(0.0, one[c, i, j]) for c in range(channels)) / channels
    low = flat.min() if from_minimum else 0.0
    return np.clip((flat - low) / (np.percentile(flat, percentile) - low), 0, 1)


@pytest.mark.parametrize("percentile", [99.0, 90.0, 50.0, 100.0])
@pytest.mark.parametrize("lowest", ["minimum", "zero"])
def test_reduction_against_the_words(percentile, lowest):
    maps = torch.randn(5, 3, 11, 13, generator=generator(0), dtype=torch.float64) + 1
    got = reduced(maps, percentile=percentile, lowest=lowest)
    wanted = np.stack([literally_reduced(one, percentile, lowest == "minimum") for one in maps.numpy()])
    torch.testing.assert_close(got, torch.from_numpy(wanted))


def test_reduction_by_hand():
    # positive part and mean over two channels: 0 1 2 3 4; the 75th percentile is 3
    maps = doubles([[[0, 2, 4, 3, 8], [-9, 0, 0, 3, -1]]])
    same(reduced(maps, percentile=75), [[0, 1 / 3, 2 / 3, 1, 1]])
    # between 2 and 3 lies the percentile 62.5
    same(reduced(maps, percentile=62.5), [[0, 1 / 2.5, 2 / 2.5, 1, 1]])


def test_reduction_of_a_map_with_few_pixels_above_its_minimum():
    maps = torch.zeros(1, 1, 30, 30)
    maps[0, 0, 3, 4], maps[0, 0, 3, 5] = 1e-30, 5.0
    got = reduced(maps)
    assert got[0, 3, 4] == 1 and got[0, 3, 5] == 1 and got.sum() == 2


def test_reduction_where_there_is_nothing_to_scale():
    maps = torch.stack([torch.zeros(2, 4, 4), -torch.ones(2, 4, 4), torch.ones(2, 4, 4), torch.ones(2, 4, 4)])
    maps[3, 1, 0, 0] = INF
    assert reduced(maps).isnan().all()
    got = reduced(maps, lowest="zero")
    assert got[[0, 1, 3]].isnan().all() and (got[2] == 1).all()
    broken = torch.rand(2, 1, 4, 4, generator=generator(0))
    broken[0, 0, 1, 1] = NAN
    assert reduced(broken)[0].isnan().all() and not reduced(broken)[1].isnan().any()
    broken[0, 0, 1, 1] = -INF  # would vanish with the negative part
    assert reduced(broken)[0].isnan().all()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.floats(1e-30, 1e30), st.integers(1, 3))
def test_reduction_ignores_scale_and_neighbours_and_stays_in_its_bounds(seed, scale, channels):
    maps = torch.randn(3, channels, 6, 7, generator=generator(seed), dtype=torch.float64)
    got = reduced(maps)
    assert got.shape == (3, 6, 7) and got.min() == 0 and got.max() == 1
    torch.testing.assert_close(reduced(maps * scale), got)
    torch.testing.assert_close(reduced(maps[1:2]), got[1:2], rtol=0, atol=0)
    assert reduced(maps.float()).dtype == torch.float32


def test_g_c_against_a_loop():
    saliency = torch.rand(4, 5, 6, generator=generator(0), dtype=torch.float64)
    mask = torch.rand(4, 5, 6, generator=generator(1)) < 0.3
    mask[2] = False
    for got, values, inside in zip(g_c(saliency, mask).tolist(), saliency, mask, strict=True):
        inner = [values[i, j].item() for i in range(5) for j in range(6) if inside[i, j]]
        assert got == pytest.approx(sum(inner) / len(inner)) if inner else math.isnan(got)
    saliency[0, 0, 0] = NAN  # also outside the mask: such a map means nothing
    mask[0, 0, 0] = False
    assert g_c(saliency, mask)[0].isnan() and not g_c(saliency, mask)[1].isnan()


# three images of 1 × 4 with the concept in the first two pixels
MASK = torch.tensor([[[True, True, False, False]]]).expand(3, 1, 4)
FIRST = doubles([[[0.5, 0.7, 0.0, 1.0]], [[0.2, 0.0, 0.9, 0.3]], [[0.0, 0.0, 1.0, 1.0]]])  # g_c 0.6, 0.1, 0
SECOND = doubles([[[0.1, 0.3, 1.0, 1.0]], [[0.1, 0.12, 0.0, 0.0]], [[0.0, 0.4, 0.0, 0.0]]])  # g_c 0.2, 0.11, 0.2


def test_scores_by_hand():
    same(mcs(FIRST, SECOND, MASK), [0.4, -0.01, -0.2])
    same(idr(FIRST, SECOND, MASK), [0.0, 1.0, 1.0])
    same(relative_change(FIRST, SECOND, MASK), [2.0, 1 / 11, 1.0])
    same(iir(FIRST, SECOND, MASK), [0.0, 1.0, 0.0])
    thresholds = doubles([0.05, 0.1, 1.5, 2.5])
    got = iir_curve(FIRST, SECOND, MASK, thresholds=thresholds)
    same(got, [[0, 0, 0, 1], [0, 1, 1, 1], [0, 0, 1, 1]])
    # g_c was 0 and is no more: a failure at every threshold
    same(relative_change(SECOND, FIRST, MASK), [2 / 3, 0.1, INF])
    same(iir(SECOND, FIRST, MASK, threshold=0.7), [1.0, 1.0, 0.0])


def test_zero_before_and_after_is_undefined_or_as_released_a_failure():
    zero = torch.zeros(1, 2, 2)
    mask = torch.ones(1, 2, 2, dtype=torch.bool)
    assert iir(zero, zero, mask).isnan().all() and relative_change(zero, zero, mask).isnan().all()
    assert iir(zero, zero, mask, zero="failure").tolist() == [0.0]
    assert iir(zero * NAN, zero, mask, zero="failure").isnan().all()
    assert idr(zero, zero, mask).tolist() == [0.0]
    assert mcs(zero, zero, mask).tolist() == [0.0]


def test_the_threshold_is_strict():
    before, mask = doubles([[0.5]]), torch.tensor([[True]])
    assert iir(doubles([[0.625]]), before, mask, threshold=0.25).tolist() == [0.0]
    assert iir(doubles([[0.625]]), before, mask, threshold=0.2500001).tolist() == [1.0]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_what_must_hold_for_any_maps(seed):
    first, second = (reduced(torch.randn(6, 3, 8, 8, generator=generator(seed, k))) for k in "ab")
    mask = torch.rand(6, 8, 8, generator=generator(seed, "mask")) < 0.4
    mask[:, 0, 0] = True
    assert (mcs(first, first, mask) == 0).all()  # a model compared with itself
    assert (iir(first, first, mask) == 1).all()  # inputs compared with themselves
    assert (idr(first, first, mask) == 0).all()
    torch.testing.assert_close(mcs(first, second, mask), -mcs(second, first, mask))
    torch.testing.assert_close(idr(first, second, mask), 1 - idr(second, first, mask))  # no ties here
    assert (idr(first * ~mask, second, mask) == 1).all()  # nothing on the object
    assert (mcs(mask.float(), (~mask).float(), mask) == 1).all()
    curve = iir_curve(first, second, mask, thresholds=torch.linspace(0.01, 3, 20))
    assert (curve.diff(dim=1) >= 0).all()
    torch.testing.assert_close(curve[:, 3], iir(first, second, mask, threshold=torch.linspace(0.01, 3, 20)[3].item()))


def test_the_change_of_two_columns_is_that_of_two_maps():
    after, before = g_c(FIRST, MASK).numpy(), g_c(SECOND, MASK).numpy()
    assert relative_difference(after, before).tobytes() == relative_change(FIRST, SECOND, MASK).numpy().tobytes()
    after, before = np.array([0.5, 0.3, 0.0, NAN, 0.2]), np.array([0.0, 0.2, 0.0, 0.1, 0.2])
    change = relative_difference(after, before)
    np.testing.assert_array_equal(change, [INF, abs(0.3 - 0.2) / 0.2, NAN, NAN, 0.0])


def test_random_masks_keep_shape_or_size():
    masks = torch.zeros(400, 6, 7, dtype=torch.bool)
    masks[:, 2:4, 5:7] = True
    masks[:, 3, 6] = False  # a corner of three pixels
    masks[7] = False
    moved = random_masks(masks, generator=generator(0))
    assert (moved.flatten(1).sum(1) == masks.flatten(1).sum(1)).all()
    corners = set()
    for one in torch.cat([moved[:7], moved[8:]]):
        top, left = (one.any(1 - axis).nonzero()[0].item() for axis in (0, 1))
        assert one[top : top + 2, left : left + 2].tolist() == [[True, True], [True, False]]
        corners.add((top, left))
    assert corners == {(i, j) for i in range(5) for j in range(6)}
    scattered = random_masks(masks, generator=generator(0), kind="scattered")
    assert (scattered.flatten(1).sum(1) == masks.flatten(1).sum(1)).all()
    assert scattered.any(0).all() and scattered.double().mean(0).max() < 0.2
    assert torch.equal(random_masks(masks, generator=generator(0)), moved)
    full = torch.ones(2, 3, 3, dtype=torch.bool)
    assert torch.equal(random_masks(full, generator=generator(0)), full)


def test_records():
    for record, function in ((MCS, mcs), (IDR, idr), (IIR, iir)):
        assert record.function is function and record.reads == ("anchor", "truth") and record.better == "higher"


def test_bad_input():
    maps, mask = torch.rand(2, 4, 4, generator=generator(0)), torch.ones(2, 4, 4, dtype=torch.bool)
    with pytest.raises(UsageError, match=r"shape of the saliency \(2, 4, 4\), got \(2, 3, 4\)"):
        mcs(maps, maps, mask[:, :3])
    with pytest.raises(UsageError, match=r"shape of the saliency \(2, 5, 5\), got \(2, 4, 4\)"):
        mcs(maps, torch.rand(2, 5, 5, generator=generator(0)), mask)  # models with inputs of different sizes
    with pytest.raises(UsageError, match=r"torch.bool, got torch.float32"):
        g_c(maps, mask.float())
    with pytest.raises(UsageError, match=r"must lie in \[0, 1\], see `reduced`; got also -1 to -1"):
        g_c(-torch.ones(2, 4, 4), mask)
    with pytest.raises(UsageError, match=r"`maps` must be \(n, channels, \*space\), got \(4, 4\)"):
        reduced(maps[0])
    with pytest.raises(UsageError, match=r"`percentile` must lie in \(0, 100\], got 0"):
        reduced(maps, percentile=0)
    with pytest.raises(UsageError, match="`lowest` must be one of minimum, zero, got 'least'"):
        reduced(maps, lowest="least")
    with pytest.raises(UsageError, match=r"`threshold` must be above 0, got \[0.0\]"):
        iir(maps, maps, mask, threshold=0.0)
    with pytest.raises(UsageError, match="`zero` must be one of undefined, failure, got 'none'"):
        iir(maps, maps, mask, zero="none")
    with pytest.raises(UsageError, match="`kind` must be one of moved, scattered, got 'turned'"):
        random_masks(mask, generator=generator(0), kind="turned")
    with pytest.raises(UsageError, match=r"`masks` must be \(n, height, width\) bool, got \(4, 4\)"):
        random_masks(mask[0], generator=generator(0))
