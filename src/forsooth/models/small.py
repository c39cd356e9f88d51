"""The three small networks of XAI-TRIS, at both image sizes, as the paper prints them and as its code behaves.

Every network takes x (n, 1, size, size) and gives logits (n, 2); softmax belongs to the loss. [clark2024xaitris]
"""

from collections import OrderedDict
from typing import Literal

from torch import nn

from forsooth.records import Architecture, UsageError

Variant = Literal["paper", "released"]

HIDDEN = {8: (32, 16, 8), 64: (256, 256, 64)}  # widths of the perceptron
FILTERS = {8: (4, 4, 4, 4), 64: (4, 8, 16, 32)}
KERNEL = {8: 2, 64: 4}
# Side of the last map. 8×8: the pools leave one pixel. 64×64: pool stride 1 (paper) or 2 (released).
LAST_SIDE = {(8, "paper"): 1, (8, "released"): 1, (64, "paper"): 60, (64, "released"): 3}


def llr(*, size: int, variant: Variant = "paper") -> nn.Module:
    """Linear logistic regression: pixels to two logits, without bias; both variants are the same net."""
    _check(size, variant)
    return nn.Sequential(OrderedDict(flatten=nn.Flatten(), head=nn.Linear(size * size, 2, bias=False)))


def mlp(*, size: int, variant: Variant = "paper") -> nn.Module:
    """Four fully connected layers with ReLU between them.

    The paper gives the widths for 8×8 alone (64-32-16-8-2); at 64×64 they are those of the released code
    (4096-256-256-64-2). There the code has dropout 0.3 after every hidden layer and no biases, while the paper says
    "without regularization": the `paper` variant has biases and no dropout. At 8×8 both are the same net.
    """
    _check(size, variant)
    bare = variant == "released" and size == 64
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    wide = size * size
    for i, width in enumerate(HIDDEN[size], start=1):
        layers[f"linear{i}"] = nn.Linear(wide, width, bias=not bare)
        layers[f"relu{i}"] = nn.ReLU()
        if bare:
            layers[f"dropout{i}"] = nn.Dropout(0.3)
        wide = width
    layers["head"] = nn.Linear(wide, 2, bias=not bare)
    return nn.Sequential(layers)


def cnn(*, size: int, variant: Variant = "paper") -> nn.Module:
    """Four blocks of convolution, ReLU and 2×2 max-pool, then one linear layer.

    paper     'same' zero-padding; pool stride 1 at 64×64 and 2 at 8×8; biases everywhere
    released  padding 1 on each side, pool stride 2 at both sizes; at 64×64 the head has no bias

    Departure: after three pools the 8×8 paper net has a map of one pixel, which a fourth 2×2 pool cannot take.
    Under 'same' pooling it would be the identity, so it is left out.
    """
    _check(size, variant)
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    channels, kernel, same = 1, KERNEL[size], variant == "paper"
    before, after = (kernel - 1) // 2, kernel // 2  # even kernels pad one more at the end, as torch and Keras do
    for i, filters in enumerate(FILTERS[size], start=1):
        if same:  # not padding="same": torch warns there for even kernels
            layers[f"pad{i}"] = nn.ZeroPad2d((before, after, before, after))
        layers[f"conv{i}"] = nn.Conv2d(channels, filters, kernel, padding=0 if same else 1)
        layers[f"relu{i}"] = nn.ReLU()
        if not (same and size == 8 and i == 4):
            layers[f"pool{i}"] = nn.MaxPool2d(2, stride=1 if same and size == 64 else 2)
        channels = filters
    layers["flatten"] = nn.Flatten()
    layers["head"] = nn.Linear(channels * LAST_SIDE[size, variant] ** 2, 2, bias=same or size == 8)
    return nn.Sequential(layers)


def _check(size: int, variant: str) -> None:
    if size not in HIDDEN:
        raise UsageError(f"`size` must be 8 or 64 for the XAI-TRIS networks, got {size!r}")
    if variant not in ("paper", "released"):
        raise UsageError(f"`variant` must be 'paper' or 'released', got {variant!r}")


LLR = Architecture(name="llr", function=llr, layer=None, cite="clark2024xaitris", version=1)
MLP = Architecture(name="mlp", function=mlp, layer=None, cite="clark2024xaitris", version=1)
CNN = Architecture(name="cnn", function=cnn, layer="conv4", cite="clark2024xaitris", version=2)
