"""ResNet-34, 50 and 101: counts and names of the public weights, the forward pass written out, bad input."""

import pytest
import torch
from torch.nn import functional as F

from forsooth.models.residual import RESNET34, RESNET50, RESNET101, resnet
from forsooth.records import UsageError

BLOCKS = {"resnet34": (3, 4, 6, 3), "resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3)}
ENTRIES = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")  # of a batch normalisation


def public_names(name):
    """The state-dict names of the public weights, as a literal list."""
    depth = 2 if name == "resnet34" else 3
    found = ["conv1.weight", *(f"bn1.{entry}" for entry in ENTRIES)]
    for stage, count in enumerate(BLOCKS[name], start=1):
        for block in range(count):
            at = f"layer{stage}.{block}"
            for i in range(1, depth + 1):
                found += [f"{at}.conv{i}.weight", *(f"{at}.bn{i}.{entry}" for entry in ENTRIES)]
            if block == 0 and (stage > 1 or depth == 3):
                found += [f"{at}.downsample.0.weight", *(f"{at}.downsample.1.{entry}" for entry in ENTRIES)]
    return [*found, "fc.weight", "fc.bias"]


@pytest.mark.parametrize(("model", "count"), [(RESNET34, 21_797_672), (RESNET50, 25_557_032), (RESNET101, 44_549_160)])
def test_counts_and_names_of_the_public_weights(model, count):
    with torch.device("meta"):
        net = model.function()
        assert net(torch.zeros(2, 3, 224, 224)).shape == (2, 1000)
        assert net.get_submodule(model.layer)(net.layer3(net.layer2(net.layer1(torch.zeros(1, 64, 56, 56))))).shape == (
            (1, 512, 7, 7) if model is RESNET34 else (1, 2048, 7, 7)
        )
    assert sum(p.numel() for p in net.parameters()) == count
    assert list(net.state_dict()) == public_names(model.name)


def written_out(name, p, x):
    """The logits (n, classes) from the state `p` alone."""

    def normed(h, at):
        entries = [p[f"{at}.{entry}"] for entry in ("running_mean", "running_var", "weight", "bias")]
        mean, variance, scale, shift = (v.view(1, -1, 1, 1) for v in entries)
        return (h - mean) / (variance + 1e-5).sqrt() * scale + shift

    def step(h, at, i, **given):
        return normed(F.conv2d(h, p[f"{at}conv{i}.weight"], **given), f"{at}bn{i}")

    x = F.max_pool2d(step(x, "", 1, stride=2, padding=3).clamp(min=0), 3, stride=2, padding=1)
    for stage, count in enumerate(BLOCKS[name], start=1):
        for block in range(count):
            at, stride = f"layer{stage}.{block}.", 2 if block == 0 and stage > 1 else 1
            if name == "resnet34":
                h = step(x, at, 1, stride=stride, padding=1).clamp(min=0)
                h = step(h, at, 2, padding=1)
            else:
                h = step(x, at, 1).clamp(min=0)
                h = step(h, at, 2, stride=stride, padding=1).clamp(min=0)
                h = step(h, at, 3)
            if f"{at}downsample.0.weight" in p:
                x = normed(F.conv2d(x, p[f"{at}downsample.0.weight"], stride=stride), f"{at}downsample.1")
            x = (h + x).clamp(min=0)
    return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


@pytest.mark.parametrize("model", (RESNET34, RESNET50), ids=lambda model: model.name)
def test_written_out(model):
    net, g = model.function(size=64, channels_in=2, classes=3).double().eval(), torch.Generator().manual_seed(0)
    for name, value in net.state_dict().items():  # statistics and scales that are not 0 and 1
        if value.ndim == 1 and value.is_floating_point():
            value.copy_(torch.rand(value.shape, generator=g, dtype=torch.float64) + ("var" in name))
    x = torch.randn(2, 2, 64, 64, dtype=torch.float64, generator=g)
    with torch.no_grad():
        torch.testing.assert_close(net(x), written_out(model.name, net.state_dict(), x))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(depth=18), "`depth` must be one of 34, 50, 101, got 18"),
        (dict(depth=34, size=31), "`size` must be at least 32 for resnet34, got 31"),
        (dict(depth=50, variant="released"), "`variant` must be 'paper' for resnet50, got 'released'"),
        (dict(depth=101, classes=0), "`classes` must be at least 1, got 0"),
    ],
)
def test_bad_arguments(given, message):
    with pytest.raises(UsageError, match=message):
        resnet(**given)
