"""AlexNet and VGG: parameter counts and names of the public weights, the forward pass written out, bad input."""

import pytest
import torch
from torch.nn import functional as F

from forsooth.models import vision
from forsooth.models.vision import ALEXNET, VGG16, VGG19, vgg
from forsooth.records import UsageError

NETS = (ALEXNET, VGG16, VGG19)
CONVOLUTIONS = {  # places in `features` in the public weights
    "alexnet": (0, 3, 6, 8, 10),
    "vgg16": (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28),
    "vgg19": (0, 2, 5, 7, 10, 12, 14, 16, 19, 21, 23, 25, 28, 30, 32, 34),
}
POOLED = {  # convolutions behind which a max-pool stands
    "alexnet": (0, 3, 10),
    "vgg16": (2, 7, 14, 21, 28),
    "vgg19": (2, 7, 16, 25, 34),
}
LINEAR = {"alexnet": (1, 4, 6), "vgg16": (0, 3, 6), "vgg19": (0, 3, 6)}


@pytest.mark.parametrize(("model", "count"), [(ALEXNET, 61_100_840), (VGG16, 138_357_544), (VGG19, 143_667_240)])
def test_counts_and_names_of_the_public_weights(model, count):
    with torch.device("meta"):
        net = model.function()
        assert net(torch.zeros(2, 3, 224, 224)).shape == (2, 1000)
        assert net(torch.zeros(2, 3, 64, 64)).shape == (2, 1000)
    assert sum(p.numel() for p in net.parameters()) == count
    places = [f"features.{i}" for i in CONVOLUTIONS[model.name]] + [f"classifier.{i}" for i in LINEAR[model.name]]
    assert list(net.state_dict()) == [f"{place}.{kind}" for place in places for kind in ("weight", "bias")]
    assert model.layer == f"features.{CONVOLUTIONS[model.name][-1]}"


def written_out(name, p, x):
    """The logits (n, classes) from the weights `p` alone."""
    stride = {0: 4} if name == "alexnet" else {}
    padding = {0: 2, 3: 2} if name == "alexnet" else {}
    kernel, side = (3, 6) if name == "alexnet" else (2, 7)
    for i in CONVOLUTIONS[name]:
        weight, bias = p[f"features.{i}.weight"], p[f"features.{i}.bias"]
        x = F.conv2d(x, weight, bias, stride=stride.get(i, 1), padding=padding.get(i, 1)).clamp(min=0)
        x = F.max_pool2d(x, kernel, stride=2) if i in POOLED[name] else x
    x = F.adaptive_avg_pool2d(x, side).flatten(1)
    first, second, last = ((p[f"classifier.{i}.weight"], p[f"classifier.{i}.bias"]) for i in LINEAR[name])
    return F.linear(F.linear(F.linear(x, *first).clamp(min=0), *second).clamp(min=0), *last)


@pytest.mark.parametrize("model", NETS, ids=lambda model: model.name)
def test_written_out(model, monkeypatch):
    monkeypatch.setattr(vision, "UNITS", 8)  # the linear layers hold nearly all the weights
    net = model.function(size=64, channels_in=2, classes=3)
    x = torch.randn(2, 2, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(net.eval()(x), written_out(model.name, net.state_dict(), x))
        assert sum(isinstance(layer, torch.nn.Dropout) for layer in net.modules()) == 2


@pytest.mark.parametrize(
    ("build", "given", "message"),
    [
        (ALEXNET.function, dict(size=63), "`size` must be at least 64 for alexnet, got 63"),
        (VGG16.function, dict(size=32), "`size` must be at least 64 for vgg16, got 32"),
        (VGG19.function, dict(variant="released"), "`variant` must be 'paper' for vgg19, got 'released'"),
        (VGG19.function, dict(classes=0), "`classes` must be at least 1, got 0"),
        (vgg, dict(depth=11), "`depth` must be one of 16, 19, got 11"),
    ],
)
def test_bad_arguments(build, given, message):
    with pytest.raises(UsageError, match=message):
        build(**given)
