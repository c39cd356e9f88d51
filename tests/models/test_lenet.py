"""LeNet and MLP-5: parameters counted by hand, the forward pass written out, sizes and bad input."""

import pytest
import torch
from torch.nn import functional as F

from forsooth.models.lenet import LENET, lenet, mlp5
from forsooth.records import UsageError


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("size", "flat"), [(16, 16 * 1), (32, 16 * 25), (64, 16 * 169)])
def test_lenet_written_out(size, flat):
    net, x = lenet(size=size, channels_in=2, classes=7).double(), drawn(3, 2, size, size)
    p = net.state_dict()
    assert p["linear1.weight"].shape == (120, flat)
    h = F.max_pool2d(F.conv2d(x, p["conv1.weight"], p["conv1.bias"]).clamp(min=0), 2)
    h = F.max_pool2d(F.conv2d(h, p["conv2.weight"], p["conv2.bias"]).clamp(min=0), 2).reshape(3, flat)
    for name in ("linear1", "linear2"):
        h = (h @ p[f"{name}.weight"].T + p[f"{name}.bias"]).clamp(min=0)
    torch.testing.assert_close(net(x), h @ p["head.weight"].T + p["head.bias"])


def test_lenet_counted_by_hand():
    """6·(75 + 1) + 16·(150 + 1) + 120·(400 + 1) + 84·(120 + 1) + 10·(84 + 1)"""
    net = LENET.function(size=32, variant="paper")
    assert sum(p.numel() for p in net.parameters()) == 456 + 2_416 + 48_120 + 10_164 + 850
    assert net.get_submodule(LENET.layer) is net.relu2


def test_mlp5_written_out():
    net, x = mlp5(features=6, classes=3, width=9).double(), drawn(4, 6)
    pairs = list(net.parameters())
    assert [tuple(w.shape) for w in pairs[::2]] == [(9, 6), (9, 9), (9, 9), (9, 9), (3, 9)]
    h = x
    for i in range(4):
        h = (h @ pairs[2 * i].T + pairs[2 * i + 1]).clamp(min=0)
    torch.testing.assert_close(net(x), h @ pairs[8].T + pairs[9])


@pytest.mark.parametrize(
    ("build", "given", "message"),
    [
        (lenet, dict(size=15), "`size` must be at least 16 for lenet, got 15"),
        (lenet, dict(variant="released"), "`variant` must be 'paper' for lenet, got 'released'"),
        (lenet, dict(classes=0), "`classes` must be at least 1, got 0"),
        (lenet, dict(channels_in=-1), "`channels_in` must be at least 1, got -1"),
        (mlp5, dict(features=0), "`features` must be at least 1, got 0"),
        (mlp5, dict(width=0), "`width` must be at least 1, got 0"),
    ],
)
def test_bad_arguments(build, given, message):
    with pytest.raises(UsageError, match=message):
        build(**given)
