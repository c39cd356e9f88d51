"""The two audits of truth: what changed, where, and where it came from."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forsooth.datasets.audited import donors, edges, irrelevant_region, logo, pasted_pattern
from forsooth.datasets.leaves import leaves
from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator


def numbered(n=60, classes=3, shape=(3, 12, 12), dtype=torch.float32):
    """Every pixel tells the image it comes from (in units) and where it stood (below 1)."""
    y = torch.arange(n) % classes
    place = torch.arange(shape[0] * shape[1] * shape[2], dtype=dtype).reshape(shape) / 1024
    x = torch.arange(n, dtype=dtype)[:, None, None, None] + place
    order = torch.randperm(n, generator=generator(0))
    splits = {"train": order[: n // 2], "val": order[n // 2 : 3 * n // 4], "test": order[3 * n // 4 :]}
    return Dataset("numbered", x, y, None, splits, {"origin": "test"})


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 3]), st.integers(5, 17), st.integers(5, 17), st.integers(2, 5), st.integers(0, 9))
def test_one_region_comes_from_another_class_in_one_piece(channels, height, width, grid, seed):
    base = numbered(n=60, shape=(channels, height, width), dtype=torch.float64)
    made, region = irrelevant_region(base, grid=grid, seed=seed)
    rows, columns = np.array_split(range(height), grid), np.array_split(range(width), grid)
    for i in range(60):
        inside = ~made.truth[i]
        assert torch.equal(made.x[i][:, ~inside], base.x[i][:, ~inside])
        at = inside.nonzero()
        top, left = at.amin(0).tolist()
        bottom, right = (at.amax(0) + 1).tolist()
        assert inside[top:bottom, left:right].all() and len(at) == (bottom - top) * (right - left)
        assert abs(bottom - top - len(rows[0])) <= 1 and abs(right - left - len(columns[0])) <= 1
        assert region[i] == edges(height, grid).index(top) * grid + edges(width, grid).index(left)
        patch = made.x[i][:, top:bottom, left:right]
        donor = int(patch[0, 0, 0].floor())
        assert (patch.floor() == donor).all() and base.y[donor] != base.y[i]
        code = ((patch[0] - donor) * 1024).round().long()  # where the patch stood in the donor
        down, along = divmod(int(code[0, 0]), width)
        assert torch.equal(patch, base.x[donor][:, down : down + bottom - top, along : along + right - left])
        split = {name for name, part in base.splits.items() if i in part}
        assert split == {name for name, part in base.splits.items() if donor in part}


def test_regions_places_and_donors_are_uniform():
    base = numbered(n=3000, classes=2, shape=(1, 8, 8))
    made, region = irrelevant_region(base, grid=4, seed=0)
    counts = region.bincount(minlength=16)
    assert (counts - 3000 / 16).square().sum() / (3000 / 16) < 45  # χ² with 15 degrees
    donor = donors(base, generator=generator(0))
    assert len(donor.unique()) > 0.55 * 3000  # 1 - 1/e of them
    assert (base.y[donor] != base.y).all()
    assert torch.equal(made.y, base.y) and made.splits is base.splits and made.facts["grid"] == 4


def test_same_seed_same_images_and_the_base_is_untouched():
    base = leaves(n=80, side=16, seed=0)
    before = base.x.clone()
    for make in (lambda seed: irrelevant_region(base, seed=seed)[0], lambda seed: pasted_pattern(base, seed=seed)):
        one, two, other = (make(seed) for seed in (0, 0, 1))
        assert torch.equal(one.x, two.x) and torch.equal(one.truth, two.truth) and torch.equal(one.y, two.y)
        assert not torch.equal(one.x, other.x)
    assert torch.equal(base.x, before)


def test_edges():
    assert edges(224, 4) == [0, 56, 112, 168, 224] and edges(5, 2) == [0, 2, 5]


@pytest.mark.parametrize("channels, height, width", [(1, 16, 16), (3, 16, 20), (3, 33, 21)])
def test_pattern_is_where_the_truth_says(channels, height, width):
    base = numbered(n=400, shape=(channels, height, width))
    made = pasted_pattern(base, seed=0)
    side = min(height, width) // 4
    assert torch.equal(made.truth.flatten(1).any(1), made.y == 1) and made.facts["side"] == side
    outside = ~made.truth[:, None].expand_as(made.x)
    assert torch.equal(made.x[outside], base.x[outside])
    stamps = {made.x[i][:, made.truth[i]].numpy().tobytes() for i in made.y.nonzero().squeeze(1)}
    assert len(stamps) == 1 and (made.truth.sum((1, 2)) == side**2 * made.y).all()
    assert 160 < made.y.sum() < 240  # five standard deviations of 400 coins
    assert made.x.min() == base.x.min() and made.x.max() == base.x.max()
    for part in made.splits.values():
        assert made.y[part].unique().tolist() == [0, 1]


def test_pattern_places_are_uniform_and_the_users_pattern_is_used():
    base = numbered(n=4000, shape=(1, 6, 6))
    pattern = torch.full((1, 3, 3), -7.0)
    made = pasted_pattern(base, pattern=pattern, seed=0)
    assert torch.equal(made.x[:, 0] == -7, made.truth)
    corner = made.truth[made.y == 1].flatten(1).int().argmax(1)
    counts = corner.bincount()
    assert (counts > 0).sum() == 16 and counts[counts > 0].min() > 80
    assert made.facts["classes"] == ["without", "with"] and made.facts["origin"] == "test"


def test_logo_is_a_figure():
    big = logo(56)
    assert big.shape == (3, 56, 56) and big.min() >= 0 and big.max() <= 1
    assert len(torch.unique(big.flatten(1), dim=1).T) == 4  # frame, ground, disc and bar
    assert logo(8).flatten(1).std() > 0.2


def test_double_precision_stays():
    base = numbered(dtype=torch.float64)
    assert irrelevant_region(base, seed=0)[0].x.dtype == pasted_pattern(base, side=4, seed=0).x.dtype == torch.float64


def test_bad_input():
    base = numbered()
    for grid in (1, 13):
        with pytest.raises(UsageError, match=rf"`grid` must lie in \[2, 12\] for 12 x 12 px, got {grid}"):
            irrelevant_region(base, grid=grid, seed=0)
    alone = Dataset("one", base.x, torch.zeros(60, dtype=torch.long), None, base.splits)
    with pytest.raises(UsageError, match="`base` must have two classes or more in split 'train', got only 0"):
        irrelevant_region(alone, seed=0)
    flat = Dataset("flat", base.x.flatten(1), base.y, None, base.splits)
    for make in (irrelevant_region, pasted_pattern):
        with pytest.raises(UsageError, match=r"`base` must hold images .* got x \(60, 432\)"):
            make(flat, seed=0)
    with pytest.raises(UsageError, match=r"`side` must lie in \[1, 12\] for 12 x 12 px, got 13"):
        pasted_pattern(base, side=13, seed=0)
    with pytest.raises(UsageError, match="`side` must be at least 4 px for the drawn pattern, got 3"):
        pasted_pattern(base, seed=0)
    with pytest.raises(UsageError, match=r"`pattern` must have the shape \(3, 4, 4\), got \(1, 4, 4\)"):
        pasted_pattern(base, pattern=torch.zeros(1, 4, 4), seed=0)
    with pytest.raises(UsageError, match="`pattern` must be given for images of 2 channels"):
        pasted_pattern(numbered(shape=(2, 16, 16)), seed=0)
