"""EfficientNet-Lite0: the published number of weights, its shapes, and the forward pass written out."""

import torch
from torch.nn import functional as F

from forsooth.models.efficient import EFFICIENTNET_LITE0, STAGES

EPSILON = 1e-3


def test_as_many_weights_as_the_public_file_and_a_last_map_of_7x7():
    with torch.device("meta"):
        net = EFFICIENTNET_LITE0.function()
        seen = []
        net.get_submodule(EFFICIENTNET_LITE0.layer).register_forward_hook(lambda *given: seen.append(given[2].shape))
        assert net(torch.zeros(2, 3, 224, 224)).shape == (2, 1000)
    assert seen == [(2, 1280, 7, 7)]
    assert sum(p.numel() for p in net.parameters()) == 4_652_008
    assert len([name for name in net.state_dict() if not name.endswith("num_batches_tracked")]) == 247


def written_out(p, x):
    """The logits (n, classes) from the state `p` alone; TensorFlow's rule of padding, worked out from the sizes."""

    def normed(h, at):
        mean, variance, scale, shift = (
            p[f"{at}.{entry}"].view(1, -1, 1, 1) for entry in ("running_mean", "running_var", "weight", "bias")
        )
        return (h - mean) / (variance + EPSILON).sqrt() * scale + shift

    def step(h, at, i, *, stride=1, groups=1):
        weight = p[f"{at}conv{i}.weight"]
        kernel, side = weight.shape[-1], h.shape[-1]
        total = max(0, (-(-side // stride) - 1) * stride + kernel - side)
        h = F.pad(h, (total // 2, total - total // 2) * 2)
        return normed(F.conv2d(h, weight, stride=stride, groups=groups), f"{at}bn{i}")

    x = step(x, "", 1, stride=2).clamp(min=0)
    for i, (count, _, stride, channels, _) in enumerate(STAGES, start=1):
        for j in range(count):
            at, h, first = f"layer{i}.{j}.", x, j == 0
            if f"{at}conv1.weight" in p:
                h = step(h, at, 1).clamp(min=0)
            h = step(h, at, 2, stride=stride if first else 1, groups=h.shape[1]).clamp(min=0)
            h = step(h, at, 3)
            x = h + x if x.shape == h.shape else h
            assert x.shape[1] == channels
    return F.linear(step(x, "", 2).clamp(min=0).mean((2, 3)), p["fc.weight"], p["fc.bias"])


def test_written_out():
    net, g = EFFICIENTNET_LITE0.function(size=64, classes=3).double().eval(), torch.Generator().manual_seed(0)
    for name, value in net.state_dict().items():  # statistics and scales that are not 0 and 1
        if value.ndim == 1 and value.is_floating_point():
            value.copy_(torch.rand(value.shape, generator=g, dtype=torch.float64) + ("var" in name))
    x = torch.randn(2, 3, 64, 64, dtype=torch.float64, generator=g)
    with torch.no_grad():
        torch.testing.assert_close(net(x), written_out(net.state_dict(), x))
