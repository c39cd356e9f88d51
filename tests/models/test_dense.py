"""Networks written as matrices give the outputs and gradients of torch's convolution and pool."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from forsooth.dense import as_matrices
from forsooth.models.resnet import small_resnet
from forsooth.models.small import cnn, mlp


def agree(net, shape, x=None):
    net = net.double()
    if x is None:
        x = torch.randn(7, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.arange(len(x)) % 2
    fast = as_matrices(net, shape)
    assert fast is not None
    torch.testing.assert_close(fast(x), net(x), rtol=1e-12, atol=1e-14)
    for loss in (lambda z: F.cross_entropy(z, y), lambda z: F.cross_entropy(z.softmax(1), y)):
        ours, theirs = (torch.autograd.grad(loss(f(x)), list(net.parameters())) for f in (fast, net))
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_the_8_pixel_cnn(variant):
    agree(cnn(size=8, variant=variant), (1, 8, 8))


def test_follows_its_module():
    net = cnn(size=8)
    fast, x = as_matrices(net, (1, 8, 8)), torch.ones(1, 1, 8, 8)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += 1
    torch.testing.assert_close(fast(x), net(x))


def test_the_first_of_equals_gets_the_gradient():
    """On a flat image all numbers under a pool are equal."""
    agree(cnn(size=8, variant="released"), (1, 8, 8), x=torch.full((4, 1, 8, 8), 0.7, dtype=torch.float64))


def test_strides_groups_dilation_overlapping_pools_and_no_bias():
    net = nn.Sequential(
        nn.ZeroPad2d((2, 0, 1, 3)),
        nn.Conv2d(2, 4, (3, 2), stride=(1, 2), groups=2, bias=False),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(4, 3, 2, dilation=2, padding="same"),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(3 * 6 * 3, 5, bias=False),
        nn.Linear(5, 6),
        nn.ReLU(),
        nn.Linear(6, 2),
    )
    agree(net, (2, 5, 6))


@pytest.mark.parametrize(
    ("net", "shape"),
    [
        (cnn(size=64, variant="released"), (1, 64, 64)),  # too large to pay
        (mlp(size=8), (1, 8, 8)),  # no convolution
        (small_resnet(channels_in=1, classes=2, width=2, blocks=(1,)), (1, 8, 8)),  # no chain
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()), (1, 8, 8)),  # not flattened
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten()), (1, 8, 8)),
        (nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"), nn.ReLU(), nn.Flatten()), (1, 8, 8)),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2, padding=1), nn.Flatten()), (1, 8, 8)),
    ],
)
def test_what_is_left_to_torch(net, shape):
    assert as_matrices(net, shape) is None
