"""A chain of layers as a function of its weights, so that many networks of one architecture can take one step.

A convolution that is followed by ReLU and a 2×2 pool can be folded: the four places under a pool become four times the
channels of a convolution over 2×2 blocks of its input, and the pool a maximum over them. Kernels made for many channels
then have some, and nothing is computed that the pool would drop. The result is the same but for the order of sums.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Weights = Mapping[str, Tensor]  # name in the state dict -> tensor
Drops = Sequence[Tensor]  # what dropout layers keep, one (n, *values) bool for each; empty: all
Link = Callable[[Tensor, Weights, Drops], Tensor]
Named = tuple[str, nn.Module]
SIMPLE = (nn.Flatten, nn.ReLU, nn.MaxPool2d, nn.ZeroPad2d)
KNOWN = (*SIMPLE, nn.Linear, nn.Conv2d, nn.Dropout)


@dataclass(frozen=True)
class Way:
    """How the networks of a stack are computed.

    convolution  "plain": as written; "folded": with its pool, as above; "columns": folded, as a matrix product
    stack        "vmap": all at once; "turns": one after the other, in the same step
    """

    convolution: Literal["plain", "folded", "columns"] = "plain"
    stack: Literal["vmap", "turns"] = "vmap"


WAYS = (Way("plain", "turns"), Way("plain", "vmap"), Way("folded", "turns"), Way("folded", "vmap"), Way("columns"))


def is_chain(module: nn.Module) -> bool:
    """Whether `chain` can be made of it."""
    if not isinstance(module, nn.Sequential):
        return False
    return all(isinstance(layer, KNOWN) and _is_usual(layer) for layer in module)


def _is_usual(layer: nn.Module) -> bool:
    """Whether a layer has no setting that `chain` does not read."""
    if not isinstance(layer, nn.Conv2d):
        return True
    padded = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return padded and (layer.stride, layer.dilation, layer.groups) == ((1, 1), (1, 1), 1)


def ways_for(module: nn.Module) -> tuple[Way, ...]:
    """The ways that differ for a chain: without a convolution there is one, without a pool to fold there are two."""
    assert isinstance(module, nn.Sequential)
    if not any(isinstance(layer, nn.Conv2d) for layer in module):
        return (Way(),)
    rest = deque(module.named_children())
    folds = False
    while rest:
        folds = folds or _foldable(rest) is not None
        rest.popleft()
    return tuple(way for way in WAYS if folds or way.convolution == "plain")


def chain(module: nn.Module, convolution: str) -> Link:
    """f(x (n, *shape), weights, drops) -> logits (n, classes): what the module gives with these weights.

    With `drops` its dropout layers keep what they say, without them everything.
    """
    assert isinstance(module, nn.Sequential)
    rest = deque(module.named_children())
    links: list[Link] = []
    dropouts = 0
    while rest:
        folded = _foldable(rest)
        if folded and convolution != "plain":
            links.append(_folded(*folded, product=convolution == "columns"))
            rest = deque(list(rest)[3:])
        else:
            name, layer = rest.popleft()
            links.append(_link(name, layer, dropouts))
            dropouts += isinstance(layer, nn.Dropout)
    return _joined(links)


def _joined(links: Sequence[Link]) -> Link:
    """One link after the other."""

    def forward(x: Tensor, weights: Weights, drops: Drops) -> Tensor:
        for link in links:
            x = link(x, weights, drops)
        return x

    return forward


def _link(name: str, layer: nn.Module, dropouts: int) -> Link:
    """One layer as it is; `dropouts` were there before it."""
    if isinstance(layer, nn.Linear):
        return lambda x, weights, _: F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))
    if isinstance(layer, nn.Conv2d):
        padding = layer.padding
        return lambda x, weights, _: F.conv2d(
            x, weights[f"{name}.weight"], weights.get(f"{name}.bias"), padding=padding
        )
    if isinstance(layer, nn.Dropout):
        kept = 1 - layer.p
        return lambda x, _, drops: x * drops[dropouts] / kept if len(drops) else x
    return lambda x, _, __: layer(x)


def _foldable(rest: deque[Named]) -> tuple[str, nn.Conv2d, int] | None:
    """Name, convolution and padding where Conv2d, ReLU and a 2×2 pool of stride 2 come next."""
    layers = [layer for _, layer in list(rest)[:3]]
    if len(layers) < 3 or not isinstance(layers[0], nn.Conv2d) or not isinstance(layers[1], nn.ReLU):
        return None
    conv = layers[0]
    pool = layers[2]
    if not isinstance(pool, nn.MaxPool2d) or (pool.kernel_size, pool.stride, pool.padding) != (2, 2, 0):
        return None
    square = len(set(conv.kernel_size)) == len(set(conv.padding)) == 1
    if not square or pool.ceil_mode or pool.dilation != 1:
        return None
    return rest[0][0], conv, int(conv.padding[0])


def _folded(name: str, conv: nn.Conv2d, padding: int, *, product: bool) -> Link:
    """Convolution, ReLU and pool as one convolution over 2×2 blocks and a maximum; as a matrix product if `product`."""
    kernel = conv.kernel_size[0]

    def forward(x: Tensor, weights: Weights, _: Drops) -> Tensor:
        weight = fold_weight(weights[f"{name}.weight"])
        blocks = fold_input(x, kernel=kernel, padding=padding)
        z = _as_product(blocks, weight) if product else F.conv2d(blocks, weight)
        z = z.unflatten(1, (4, -1)).max(1).values
        bias = weights.get(f"{name}.bias")
        if bias is not None:
            z = z + bias[:, None, None]
        return z.relu()  # after the pool: ReLU and maximum may be exchanged

    return forward


def fold_weight(weight: Tensor) -> Tensor:
    """The weight (o, c, k, k) of a convolution as that (4 o, 4 c, m, m) over 2×2 blocks, m = ceil((k + 1) / 2).

    The first factor of 4 o is the place under the pool; 4 c is as `fold_input` orders it.
    """
    kernel = weight.shape[-1]
    side = 2 * ((kernel + 2) // 2)
    room = side - kernel
    places = [(a, b) for a in (0, 1) for b in (0, 1)]
    shifted = torch.stack([F.pad(weight, (b, room - b, a, room - a)) for a, b in places])  # (4, o, c, side, side)
    split = shifted.unflatten(-1, (-1, 2)).unflatten(-3, (-1, 2))  # (4, o, c, m, 2, m, 2)
    return split.permute(0, 1, 2, 4, 6, 3, 5).flatten(2, 4).flatten(0, 1)


def fold_input(x: Tensor, *, kernel: int, padding: int) -> Tensor:
    """Images (n, c, h, w) as 2×2 blocks (n, 4 c, h', w'), zeros around them as far as the pool reaches."""
    m = (kernel + 2) // 2
    ends = []
    for side in (x.shape[-1], x.shape[-2]):
        pooled = (side + 2 * padding - kernel + 1) // 2
        ends += [padding, 2 * (pooled + m - 1) - side - padding]
    padded = F.pad(x, ends)
    split = padded.unflatten(-1, (-1, 2)).unflatten(-3, (-1, 2))  # (n, c, h', 2, w', 2)
    return split.permute(0, 1, 3, 5, 2, 4).flatten(1, 3)


def _as_product(x: Tensor, weight: Tensor) -> Tensor:
    """What `conv2d` of x (n, c, h, w) and weight (o, c, m, m) gives, as one product of matrices."""
    m = weight.shape[-1]
    height = x.shape[-2] - m + 1
    width = x.shape[-1] - m + 1
    corners = [(i, j) for i in range(m) for j in range(m)]
    columns = torch.cat([x[:, :, i : i + height, j : j + width] for i, j in corners], 1)
    flat = weight.permute(0, 2, 3, 1).flatten(1)
    return (flat @ columns.flatten(2)).unflatten(2, (height, width))
