import pytest
import torch
from attributions import nets
from torch import Tensor, nn

from forsooth.attributions.rise import rise, sobol_indices, sobol_masks, soft_masks
from forsooth.records import UsageError

TARGET = torch.tensor([0, 1, 1, 0])
X = nets.inputs(4, 2, 8, 8)
MODEL = nets.drawn(nn.Sequential(nn.Flatten(), *nets.mlp(128, 2)))


def test_rise_equals_a_loop_over_masks() -> None:
    ours = rise(MODEL, X, TARGET, generators=nets.own(3), samples=20, grid=3)
    for row, generator in enumerate(nets.own(3)):
        masks = soft_masks(20, X, 3, 0.5, generator)
        total = torch.zeros(8, 8, dtype=torch.float64)
        for mask in masks:
            total += MODEL((X[row] * mask)[None])[0, TARGET[row]].detach() * mask
        torch.testing.assert_close(ours[row], (total / 10).expand(2, 8, 8))


def test_masks_are_soft_and_show_their_share() -> None:
    masks = soft_masks(4000, X, 4, 0.3, nets.own(0)[0])
    assert masks.shape == (4000, 8, 8) and masks.min() >= 0 and masks.max() <= 1
    assert ((masks > 0) & (masks < 1)).any()
    torch.testing.assert_close(masks.mean(0), torch.full((8, 8), 0.3).double(), rtol=0, atol=0.04)


def test_rise_finds_the_pixel_that_counts() -> None:
    def corner(x: Tensor) -> Tensor:
        return x[:, 0, 1, 6, None].expand(-1, 2)

    ours = rise(corner, torch.ones(1, 1, 8, 8), TARGET[:1], generators=nets.own(0, 1), samples=2000)
    row, column = divmod(int(ours[0, 0].argmax()), 8)
    assert abs(row - 1) <= 1 and abs(column - 6) <= 1


def test_sobol_indices_of_a_sum_are_its_shares_of_variance() -> None:
    weight = torch.tensor([[1.0, 2.0], [0.0, 3.0]]).repeat_interleave(4, 0).repeat_interleave(4, 1)

    def weighted(x: Tensor) -> Tensor:
        return (x * weight).sum((1, 2, 3))[:, None]

    ones, first = torch.ones(1, 1, 8, 8), TARGET[:1]
    ours = sobol_indices(weighted, ones, first, generators=nets.own(0, 1), samples=512, grid=2)
    expected = weight**2 / (1 + 4 + 9)
    torch.testing.assert_close(ours[0, 0], expected, rtol=0, atol=0.03)


def test_sobol_indices_equal_a_loop() -> None:
    ours = sobol_indices(MODEL, X[:1], TARGET[:1], generators=nets.own(5, 1), samples=8, grid=2)
    first, second = sobol_masks(8, 4, nets.own(5, 1)[0])

    def value(mask: Tensor) -> float:
        large = mask.view(2, 2).repeat_interleave(4, 0).repeat_interleave(4, 1)
        return MODEL((X[0] * large)[None])[0, TARGET[0]].item()

    before = torch.tensor([value(mask) for mask in first])
    for patch in range(4):
        moved = []
        for a, b in zip(first, second, strict=True):
            other = a.clone()
            other[patch] = b[patch]
            moved.append(value(other))
        index = ((before - torch.tensor(moved)) ** 2).mean() / (2 * before.var(correction=0))
        row, column = divmod(patch, 2)
        assert ours[0, 0, 4 * row, 4 * column].item() == pytest.approx(index.item(), rel=1e-4)


def test_bad_arguments() -> None:
    with pytest.raises(UsageError, match="`share` in \\(0, 1\\), got 10, 3 and 1"):
        rise(MODEL, X, TARGET, generators=nets.own(0), samples=10, grid=3, share=1)
    with pytest.raises(UsageError, match=r"`x` must be images .* got \(4, 6\)"):
        rise(MODEL, nets.inputs(4, 6), TARGET, generators=nets.own(0))
    with pytest.raises(UsageError, match="`samples` must be at least 2 and `grid` at least 1, got 1 and 8"):
        sobol_indices(MODEL, X, TARGET, generators=nets.own(0), samples=1)
