import torch
from attributions import nets
from pytest import raises
from torch import nn

from forsooth.attributions.paths import integrated_gradients
from forsooth.attributions.segments import ranks, regions, xrai
from forsooth.records import UsageError

TARGET = torch.tensor([0, 1, 1, 0])
X = nets.inputs(4, 1, 8, 8)
MODEL = nets.drawn(nn.Sequential(nn.Flatten(), *nets.mlp(64, 2)))


def test_regions_are_taken_by_their_mean() -> None:
    """Densities 4, 0, 1, 1, 7: {0, 1} has the mean 2; {2, 3} 1; {1, 2} 0.5, but what is left of it has none by then."""
    masks = torch.tensor([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0]]).double()
    density = torch.tensor([4.0, 0.0, 1.0, 1.0, 7.0]).double()
    assert ranks(masks, density, 1).tolist() == [2, 2, 1, 1, 7]
    assert ranks(masks[:2], density, 3).tolist() == [2.6] * 5, "no region has three pixels"


def test_xrai_equals_the_literal_loop() -> None:
    ours = xrai(MODEL, X, TARGET)
    for row, image in enumerate(X):
        one, wanted = image[None], TARGET[row : row + 1]
        ends = [torch.full_like(image, end) for end in (image.min().item(), image.max().item())]
        maps = [integrated_gradients(MODEL, one, wanted, baseline=end) for end in ends]
        density = (maps[0] + maps[1])[0, 0] / 2
        left, expected = torch.ones(8, 8, dtype=torch.bool), torch.zeros(8, 8, dtype=torch.float64)
        masks = list(regions(image))
        while left.any():
            best = max((mask & left for mask in masks if (mask & left).any()), key=lambda new: density[new].mean())
            expected[best] = density[best].mean()
            left &= ~best
        torch.testing.assert_close(ours[row, 0], expected)
        torch.testing.assert_close(ours[row].sum(), density.sum())


def test_regions_cover_the_image() -> None:
    halves = torch.zeros(1, 32, 32)
    halves[:, :, 16:] = 1
    masks = regions(halves)
    assert (masks.any(0).all() and any(mask.sum() == 512 for mask in masks)) or len(masks) > 6


def test_only_images() -> None:
    with raises(UsageError, match=r"`x` must be images .* got \(4, 6\)"):
        xrai(MODEL, nets.inputs(4, 6), TARGET)
