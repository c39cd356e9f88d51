"""Augmentation against the same draws applied image by image."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forsooth.models.augment import augmented
from forsooth.records import UsageError


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def literal(x, kind, generator):
    """Mirror, then move each pixel on its own; what leaves the image is lost."""
    mirrored = torch.rand(len(x), generator=generator) < 0.5
    n, _, h, w = x.shape
    down = torch.randint(0, 2 * (h // 8) + 1, (n, 1), generator=generator) - h // 8
    right = torch.randint(0, 2 * (w // 8) + 1, (n, 1), generator=generator) - w // 8
    out = torch.zeros_like(x)
    for k in range(n):
        image = x[k].flip(2) if mirrored[k] else x[k]
        dy, dx = (int(down[k]), int(right[k])) if kind == "flip_shift" else (0, 0)
        for i in range(h):
            for j in range(w):
                if 0 <= i + dy < h and 0 <= j + dx < w:
                    out[k, :, i, j] = image[:, i + dy, j + dx]
    return out


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["flip", "flip_shift"]), st.integers(1, 17), st.integers(1, 17), st.integers(0, 99))
def test_image_by_image(kind, h, w, seed):
    x = torch.randn(4, 2, h, w, generator=source(seed), dtype=torch.float64)
    kept = x.clone()
    assert torch.equal(augmented(x, kind, generator=source(seed)), literal(x, kind, source(seed)))
    assert torch.equal(x, kept)


def test_half_of_the_images_are_mirrored_and_all_shifts_occur():
    x = torch.zeros(4_000, 1, 16, 16)
    x[:, 0, 8, 4] = 1.0
    flipped = augmented(x, "flip", generator=source())[:, 0, 8]
    assert 1_850 < flipped[:, 11].sum() < 2_150 and flipped.sum() == 4_000
    seen = augmented(x, "flip_shift", generator=source())[:, 0].sum(0)
    assert set(seen.nonzero()[:, 0].tolist()) == {6, 7, 8, 9, 10}
    assert set(seen.nonzero()[:, 1].tolist()) == {2, 3, 4, 5, 6, 9, 10, 11, 12, 13}


def test_none_and_tables():
    table = torch.zeros(3, 5)
    assert augmented(table, "none", generator=source()) is table
    with pytest.raises(UsageError, match=r"`augment` must be 'none' where x is not \(n, .*, got 'flip' and 2 axes"):
        augmented(table, "flip", generator=source())
