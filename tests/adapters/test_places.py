"""Where patches are: each drawn for its input, inside it, and the same again for the same seed."""

import numpy as np
import pytest
import torch

from forsooth.adapters.places import placed
from forsooth.records import UsageError

X = torch.zeros(50, 3, 8, 6)


@pytest.mark.parametrize("patch, pixels", [("grid:2", 12), ("size:3", 9)])
def test_each_input_has_a_patch_of_that_size_somewhere_else(patch, pixels):
    mask, noun = placed(patch, X, seed=0)
    assert mask.shape == (50, 8, 6) and (mask.flatten(1).sum(1) == pixels).all()
    assert len(mask.unique(dim=0)) > 3 and patch[-1] in noun
    assert torch.equal(mask, placed(patch, X, seed=0)[0])
    assert not torch.equal(mask, placed(patch, X, seed=1)[0])


def test_a_square_is_square_and_reaches_every_edge():
    mask, _ = placed("size:2", X, seed=0)
    for one in mask:
        rows, columns = torch.nonzero(one, as_tuple=True)
        assert rows.max() - rows.min() == 1 and columns.max() - columns.min() == 1
    reached = mask.any(0)
    assert reached.any(0).all() and reached.any(1).all()


def test_tables_have_patches():
    mask, _ = placed("size:2", torch.zeros(20, 5), seed=0)
    assert mask.shape == (20, 5) and (mask.sum(1) == 2).all()


def test_a_mask_of_ones_own_is_for_all_inputs_or_for_each(tmp_path):
    one = np.zeros((8, 6))
    one[2, 3] = 1
    mask, noun = placed(one, X, seed=0)
    assert mask.shape == (50, 8, 6) and mask.sum() == 50 and noun == "your own mask"
    each = torch.rand(50, 8, 6) > 0.5
    np.save(tmp_path / "mask.npy", each.numpy())
    assert torch.equal(placed(str(tmp_path / "mask.npy"), X, seed=0)[0], each)


@pytest.mark.parametrize(
    "patch, message",
    [
        ("size:0", "`patch` must be grid:N, size:S or a file with a mask, got 'size:0'"),
        ("size", "`patch` must be grid:N"),
        ("size:7", "`patch` size must be at most 6"),
        (np.zeros((8, 6)), "`patch` must hold at least one place of every input"),
        (np.ones((6, 8)), r"`patch` must have the shape \(8, 6\) or \(50, 8, 6\), got \(6, 8\)"),
    ],
)
def test_places_that_are_none(patch, message):
    with pytest.raises(UsageError, match=message):
        placed(patch, X, seed=0)
