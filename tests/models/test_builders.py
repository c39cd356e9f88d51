"""One signature for all networks of images and tables."""

import inspect

import pytest
import torch

from forsooth.models import BUILDERS, MODELS, build, vision
from forsooth.names import find
from forsooth.records import UsageError

IMAGES = (3, 64, 64)
# name -> shape, classes, and the arguments of the network's own function that mean the same
SAME = {
    "llr": ((1, 8, 8), 2, dict(size=8, variant="released")),
    "mlp": ((1, 64, 64), 2, dict(size=64, variant="released")),
    "cnn": ((1, 8, 8), 2, dict(size=8, variant="released")),
    "lenet": ((1, 20, 20), 4, dict(size=20, channels_in=1, classes=4)),
    "mlp5": ((7,), 3, dict(features=7, classes=3)),
    "linear": ((7,), 3, dict(features=7, classes=3)),
    "residual_small": ((1, 16, 16), 5, dict(size=16, channels_in=1, classes=5)),
    "resnet20": ((3, 32, 32), 10, dict()),
    "resnet32": ((3, 32, 32), 10, dict(size=32)),
    "resnet44": ((3, 32, 32), 10, dict(size=32)),
    "resnet56": ((3, 32, 32), 10, dict(size=32)),
    "resnet34": (IMAGES, 2, dict(size=64, classes=2)),
    "resnet50": (IMAGES, 2, dict(size=64, classes=2)),
    "resnet101": (IMAGES, 2, dict(size=64, classes=2)),
    "alexnet": (IMAGES, 2, dict(size=64, classes=2)),
    "vgg16": (IMAGES, 2, dict(size=64, classes=2)),
    "vgg19": (IMAGES, 2, dict(size=64, classes=2)),
    "vit": ((1, 8, 8), 2, dict(size=8)),
    "efficientnet_lite0": (IMAGES, 2, dict(size=64, classes=2)),
}
TEXT = {"attention", "rationale_reinforce", "rationale_relaxed", "text_encoder"}


def test_every_network_but_those_of_text_has_a_builder():
    assert set(BUILDERS) == {model.name for model in MODELS} - TEXT == set(SAME)


@pytest.mark.parametrize("builder", BUILDERS.values(), ids=BUILDERS)
def test_all_builders_have_one_signature(builder):
    assert list(inspect.signature(builder).parameters) == ["shape", "classes", "variant"]


@pytest.mark.parametrize("name", SAME)
def test_a_built_network_is_the_one_of_its_function_to_the_bit(name, monkeypatch):
    monkeypatch.setattr(vision, "UNITS", 16)
    shape, classes, arguments = SAME[name]
    torch.manual_seed(3)
    built = build(name, shape=shape, classes=classes)
    torch.manual_seed(3)
    own = find(name, MODELS, argument="models").function(**arguments)
    assert str(built) == str(own)
    states = zip(built.state_dict().items(), own.state_dict().items(), strict=True)
    assert all(a == b and (x == y).all() for (a, x), (b, y) in states)
    assert built.eval()(torch.zeros(2, *shape)).shape == (2, classes)


@pytest.mark.parametrize(("variant", "pools"), [("paper", 3), ("released", 4), (None, 4)])
def test_the_variant_is_handed_on(variant, pools):
    net = build("cnn", shape=(1, 8, 8), classes=2, variant=variant)
    assert sum(isinstance(layer, torch.nn.MaxPool2d) for layer in net) == pools


@pytest.mark.parametrize(
    ("name", "shape", "classes", "variant", "message"),
    [
        ("attention", (5,), 2, None, "`name` must be a known name, got 'attention'"),
        ("lenett", (3, 32, 32), 2, None, "did you mean lenet"),
        ("lenet", (3, 32, 30), 2, None, r"`shape` must be \(channels, side, side\)"),
        ("lenet", (32,), 2, None, r"`shape` must be \(channels, side, side\)"),
        ("lenet", (3, 32, 32), 2, "released", "`variant` must be 'paper' for lenet"),
        ("mlp5", (3, 32, 32), 2, None, r"`shape` must be \(features,\)"),
        ("linear", (3,), 2, "released", "`variant` must be 'paper'"),
        ("mlp", (1, 8, 8), 3, None, "1 channels and 2 classes for this network, got 1 and 3"),
        ("resnet20", (1, 32, 32), 10, None, "3 channels and 10 classes for this network, got 1 and 10"),
        ("resnet20", (3, 16, 16), 10, None, "`size` must be 32"),
    ],
)
def test_what_cannot_be_built_is_refused(name, shape, classes, variant, message):
    with pytest.raises(UsageError, match=message):
        build(name, shape=shape, classes=classes, variant=variant)
