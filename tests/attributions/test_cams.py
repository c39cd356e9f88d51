"""Each map against loops over samples, channels and places, as its paper prints it."""

import math
from collections.abc import Callable

import pytest
import torch
from attributions import nets
from torch import Tensor, nn

from forsooth.attributions import cams
from forsooth.records import UsageError

TARGET = torch.tensor([0, 1, 1, 0])
MODEL = nets.drawn(nets.cnn(), seed=3)
X = nets.inputs(4, 1, 8, 8)
Weigh = Callable[[Tensor, Tensor], Tensor]  # activations and gradients of one channel (h, w) -> (h, w) or a number


def literal(weigh: Weigh) -> Tensor:
    """The map of every image, one channel after the other; MODEL is cut behind its second ReLU."""
    assert isinstance(MODEL, nn.Sequential)
    maps = []
    for image, wanted in zip(X, TARGET, strict=True):
        inner = MODEL[:5](image[None]).detach().requires_grad_()
        (slope,) = torch.autograd.grad(MODEL[5:](inner)[0, wanted], inner)
        total = torch.zeros(inner.shape[2:], dtype=torch.float64)
        for channel in range(inner.shape[1]):
            total += weigh(inner.detach()[0, channel], slope[0, channel]) * inner.detach()[0, channel]
        maps.append(total.relu())
    small = torch.stack(maps)[:, None]
    return nn.functional.interpolate(small, size=(8, 8), mode="bilinear")


def plus_plus(output: Tensor, slope: Tensor) -> Tensor:
    total = output.sum().item()
    weight = 0.0
    for g in slope.flatten().tolist():
        if g > 0:
            weight += g * g**2 / (2 * g**2 + total * g**3)
    return torch.tensor(weight)


def test_maps_equal_the_literal_ones() -> None:
    pairs: list[tuple[Callable[..., Tensor], Weigh]] = [
        (cams.hires_cam, lambda output, slope: slope),
        (cams.layer_cam, lambda output, slope: slope.clamp(min=0)),
        (cams.xgrad_cam, lambda output, slope: (slope * output / output.sum()).nan_to_num().sum()),
        (cams.grad_cam_plus_plus, plus_plus),
    ]
    for function, weigh in pairs:
        ours = function(MODEL, X, TARGET, layer="4")
        torch.testing.assert_close(ours, literal(weigh))
        assert ours.sum() > 0


def test_score_cam_by_hand() -> None:
    """Two channels, x and 1 - x: seen through the first the image scores Σ x², through the second Σ x (1 - x)."""
    conv = nn.Conv2d(1, 2, 1)
    model = nn.Sequential(conv, nn.Flatten(), nn.Linear(8, 1, bias=False)).double().eval()
    conv.weight.data = torch.tensor([1.0, -1.0], dtype=torch.float64).view(2, 1, 1, 1)
    assert conv.bias is not None
    conv.bias.data = torch.tensor([0.0, 1.0], dtype=torch.float64)
    head = model[2]
    assert isinstance(head, nn.Linear)
    head.weight.data = torch.tensor([[1.0] * 4 + [0.0] * 4], dtype=torch.float64)
    x = torch.tensor([[0.0, 0.5], [0.25, 1.0]], dtype=torch.float64).view(1, 1, 2, 2)
    first, second = 0.25 + 0.0625 + 1, 0.25 + 0.1875
    share = math.exp(first) / (math.exp(first) + math.exp(second))
    expected = share * x + (1 - share) * (1 - x)
    torch.testing.assert_close(cams.score_cam(model, x, torch.tensor([0]), layer="0"), expected)


def test_a_channel_that_is_the_same_everywhere_hides_all() -> None:
    model = nets.drawn(nets.cnn())
    assert cams.score_cam(model, torch.zeros(1, 1, 8, 8).double(), torch.tensor([0]), layer="3").isfinite().all()


def test_tables_have_no_places() -> None:
    for function in (cams.hires_cam, cams.score_cam):
        with pytest.raises(UsageError, match=r"`x` must be \(n, channels, \*space\) .* got \(4, 5\)"):
            function(nets.drawn(nets.mlp()), nets.inputs(4, 5), TARGET, layer="0")
