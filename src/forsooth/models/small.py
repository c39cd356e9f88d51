"""The three small networks of XAI-TRIS, at both image sizes, as the paper prints them and as its code behaves.

Every network takes x (n, 1, size, size) and gives logits (n, 2); softmax belongs to the loss. [clark2024xaitris]
"""

from collections import OrderedDict
from functools import partial
from typing import Literal

from torch import nn

from forsooth.models.builders import of_fixed_images
from forsooth.records import Architecture, UsageError

Variant = Literal["paper", "released"]
Layers = OrderedDict[str, nn.Module]

HIDDEN = {8: (32, 16, 8), 64: (256, 256, 64)}  # widths of the perceptron
FILTERS = {8: (4, 4, 4, 4), 64: (4, 8, 16, 32)}
KERNEL = {8: 2, 64: 4}
# Strides of the pools after the four convolutions; None: no pool there. See `cnn` on the last one at 8×8.
POOL_STRIDES: dict[tuple[int, str], tuple[int | None, ...]] = {
    (8, "paper"): (2, 2, 2, None),
    (8, "released"): (2, 2, 2, 2),
    (64, "paper"): (1, 1, 1, 1),
    (64, "released"): (2, 2, 2, 2),
}
# Side of the last map. 8×8: the pools leave one pixel. 64×64: pool stride 1 (paper) or 2 (released).
LAST_SIDE = {(8, "paper"): 1, (8, "released"): 1, (64, "paper"): 60, (64, "released"): 3}


def llr(*, size: int, variant: Variant = "paper") -> nn.Module:
    """Linear logistic regression: pixels to two logits, without bias; both variants are the same net."""
    _check(size, variant)
    head = nn.Linear(size * size, 2, bias=False)
    return nn.Sequential(OrderedDict(flatten=nn.Flatten(), head=head))


def mlp(*, size: int, variant: Variant = "paper") -> nn.Module:
    """Four fully connected layers with ReLU between them.

    The paper gives the widths for 8×8 alone (64-32-16-8-2); at 64×64 they are those of the released code
    (4096-256-256-64-2). There the code has dropout 0.3 after every hidden layer and no biases, while the paper says
    "without regularization": the `paper` variant has biases and no dropout. At 8×8 both are the same net.
    """
    _check(size, variant)
    as_released = variant == "released" and size == 64
    layers: Layers = OrderedDict(flatten=nn.Flatten())
    width_in = size * size
    for i, width in enumerate(HIDDEN[size], start=1):
        layers[f"linear{i}"] = nn.Linear(width_in, width, bias=not as_released)
        layers[f"relu{i}"] = nn.ReLU()
        if as_released:
            layers[f"dropout{i}"] = nn.Dropout(0.3)
        width_in = width
    layers["head"] = nn.Linear(width_in, 2, bias=not as_released)
    return nn.Sequential(layers)


def cnn(*, size: int, variant: Variant = "paper") -> nn.Module:
    """Four blocks of convolution, ReLU and 2×2 max-pool, then one linear layer.

    paper     'same' zero-padding; pool stride 1 at 64×64 and 2 at 8×8; biases everywhere
    released  padding 1 on each side, pool stride 2 at both sizes; at 64×64 the head has no bias

    Departure: after three pools the 8×8 paper net has a map of one pixel, which a fourth 2×2 pool cannot take.
    Under 'same' pooling it would be the identity, so it is left out.
    """
    _check(size, variant)
    layers: Layers = OrderedDict()
    channels_in = 1
    blocks = zip(FILTERS[size], POOL_STRIDES[size, variant], strict=True)
    for i, (filters, pool_stride) in enumerate(blocks, start=1):
        layers |= _convolution(i, channels_in, filters, kernel=KERNEL[size], same=variant == "paper")
        layers[f"relu{i}"] = nn.ReLU()
        if pool_stride is not None:
            layers[f"pool{i}"] = nn.MaxPool2d(2, stride=pool_stride)
        channels_in = filters
    layers["flatten"] = nn.Flatten()
    has_bias = variant == "paper" or size == 8
    layers["head"] = nn.Linear(channels_in * LAST_SIDE[size, variant] ** 2, 2, bias=has_bias)
    return nn.Sequential(layers)


def _convolution(i: int, channels_in: int, filters: int, *, kernel: int, same: bool) -> Layers:
    """Convolution number i, whose map keeps its side if `same`, else it is padded by one pixel."""
    layers: Layers = OrderedDict()
    if not same:
        layers[f"conv{i}"] = nn.Conv2d(channels_in, filters, kernel, padding=1)
        return layers
    before = (kernel - 1) // 2
    after = kernel // 2  # even kernels pad one more at the end, as torch and Keras do
    # not padding="same": torch warns there for even kernels
    layers[f"pad{i}"] = nn.ZeroPad2d((before, after, before, after))
    layers[f"conv{i}"] = nn.Conv2d(channels_in, filters, kernel)
    return layers


def _check(size: int, variant: str) -> None:
    if size not in HIDDEN:
        raise UsageError(f"`size` must be 8 or 64 for the XAI-TRIS networks, got {size!r}")
    if variant not in ("paper", "released"):
        raise UsageError(f"`variant` must be 'paper' or 'released', got {variant!r}")


LLR = Architecture(name="llr", function=llr, layer=None, cite="clark2024xaitris", version=1)
MLP = Architecture(name="mlp", function=mlp, layer=None, cite="clark2024xaitris", version=1)
CNN = Architecture(name="cnn", function=cnn, layer="conv4", cite="clark2024xaitris", version=2)
_of_two_classes = partial(of_fixed_images, channels=1, classes=2, variant="released")
BUILDERS = {"llr": _of_two_classes(llr), "mlp": _of_two_classes(mlp), "cnn": _of_two_classes(cnn)}
