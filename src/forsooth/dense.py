"""A convolution on a tiny image is a tiny matrix: the CNN for 8×8 images trains faster as a chain of matrix products.

Convolution kernels are made for many channels; with four of them and 8×8 pixels most of their time is overhead. On one
thread a training step of 512 images takes 2.3 ms as matrices and 4.2 ms as convolutions (the paper's CNN; the released
one 2.5 and 4.4), see `benchmarks/training.py`.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Kind = TypeVar("Kind", bound=nn.Module)
LARGEST = 2**15  # entries of a matrix above which the convolution kernels win


@dataclass(frozen=True)
class Stage:
    """[ZeroPad2d,] Conv2d, ReLU[, MaxPool2d] as one matrix (window * outputs, inputs) of the convolution's weights.

    place   (m,) the entries of the flat matrix that hold a weight
    which   (m,) the weight that each of them holds, in the flat weight
    window  numbers under one max-pool, 1 without a pool; the rows are ordered by place in the window
    after   shape (channels, h, w) of what the stage gives
    ready   the matrix, made once where the weights stay as they are; None: made in every forward, with a gradient
    """

    conv: nn.Conv2d
    size: tuple[int, int]
    place: Tensor
    which: Tensor
    window: int
    after: tuple[int, ...]
    ready: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:  # (n, inputs) -> (n, outputs)
        matrix = self.ready
        if matrix is None:
            matrix = self.matrix()
        z = x @ matrix.T
        if self.window > 1:
            z = self.pooled(z.view(len(z), self.window, -1))
        if self.conv.bias is not None:
            by_channel = z.view(len(z), len(self.conv.bias), -1)
            z = (by_channel + self.conv.bias[:, None]).flatten(1)
        return z.relu()  # after the pool: ReLU and maximum may be exchanged, and here it has fewer numbers to do

    def pooled(self, z: Tensor) -> Tensor:
        """The largest of z (n, window, outputs) under each pool, (n, outputs).

        By pairs it takes a tenth of the time, but then equals would share the gradient.
        """
        if self.ready is None:
            return z.max(1).values
        return reduce(torch.maximum, z.unbind(1))

    def matrix(self) -> Tensor:
        """The matrix of this size, with a gradient to the weights."""
        weights = self.conv.weight.flatten()[self.which]
        zeros = weights.new_zeros(prod(self.size))
        return zeros.scatter(0, self.place, weights).view(self.size)


class Block(NamedTuple):
    """Layers that become one stage; the ReLU between the last two has no settings."""

    pad: nn.Module
    conv: nn.Conv2d
    pool: nn.MaxPool2d | None


def as_matrices(
    module: nn.Module, shape: tuple[int, ...], *, frozen: bool = False
) -> Callable[[Tensor], Tensor] | None:
    """A function of x (n, *shape) that gives what `module` gives, with the module's own parameters.

    frozen  the convolutions are read once, and are not to change

    None where the module is not a chain of blocks [ZeroPad2d,] Conv2d, ReLU[, MaxPool2d] followed by Flatten and
    anything else, or where a matrix would be too large to pay.
    """
    if not isinstance(module, nn.Sequential):
        return None
    layers = deque(module)
    stages: list[Stage] = []
    while layers and not isinstance(layers[0], nn.Flatten):
        block = _next_block(layers)
        if block is None or not _pays(block, shape):
            return None
        stages.append(_stage(block, shape))
        shape = stages[-1].after
    if not stages or not layers:
        return None
    if frozen:
        stages = [replace(stage, ready=stage.matrix().detach()) for stage in stages]
    return _chain(stages, nn.Sequential(*layers))


def _chain(stages: list[Stage], tail: nn.Module) -> Callable[[Tensor], Tensor]:
    def forward(x: Tensor) -> Tensor:
        hidden = x.flatten(1)
        for stage in stages:
            hidden = stage(hidden)
        return tail(hidden)

    return forward


def _next_block(layers: deque[nn.Module]) -> Block | None:
    """The block that comes next, its layers taken from `layers`; None where something else comes."""
    pad = _take(nn.ZeroPad2d, layers) or nn.Identity()
    conv = _take(nn.Conv2d, layers)
    relu = _take(nn.ReLU, layers)
    pool = _take(nn.MaxPool2d, layers)
    if conv is None or relu is None:
        return None
    return Block(pad, conv, pool)


def _take(kind: type[Kind], layers: deque[nn.Module]) -> Kind | None:
    """The next layer, taken from `layers`, if it is of this kind."""
    if not layers or not isinstance(layers[0], kind):
        return None
    first = layers.popleft()
    assert isinstance(first, kind)
    return first


def _pays(block: Block, shape: tuple[int, ...]) -> bool:
    """Whether the block has no setting that the matrix leaves out, and the matrix is small."""
    pad, conv, pool = block
    plain = pool is None or (pool.padding, pool.dilation, pool.ceil_mode) == (0, 1, False)
    if len(shape) != 3 or conv.padding_mode != "zeros" or not plain:
        return False
    with torch.no_grad():
        outputs = conv(pad(conv.weight.new_zeros(1, *shape))).numel()
    return prod(shape) * outputs <= LARGEST


def _stage(block: Block, shape: tuple[int, ...]) -> Stage:
    """The block for inputs of this shape (channels, h, w)."""
    joined = _joined(block, shape)
    rows = joined.flatten(0, 2)  # (outputs, inputs)
    window = 1
    after = tuple(joined.shape[:3])
    if block.pool is not None:
        under, after = _under_pool(block.pool, joined)
        window = len(under)
        rows = rows[under.flatten()]
    entries = rows.flatten()
    place = entries.nonzero()[:, 0]
    return Stage(block.conv, (len(rows), prod(shape)), place, entries[place] - 1, window, after)


def _under_pool(pool: nn.MaxPool2d, joined: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """(window, pools): the outputs of the convolution under each pool; and the shape (channels, h, w) of the pools.

    joined  (channels, h', w', inputs), only its shape counts
    """
    before = joined.shape[:3]
    numbers = torch.arange(float(prod(before)), dtype=torch.float64, device=joined.device).view(1, *before)
    unfolded = F.unfold(numbers, pool.kernel_size, stride=pool.stride)[0].long()  # (channels * window, places)
    by_channel = unfolded.view(len(joined), len(unfolded) // len(joined), -1)
    return by_channel.transpose(0, 1).flatten(1), tuple(pool(numbers).shape[1:])


@torch.no_grad()
def _joined(block: Block, shape: tuple[int, ...]) -> Tensor:
    """(channels', h', w', inputs): the number, from 1, of the one weight that joins this input to that output, or 0.

    Read off the convolution itself, by giving it the unit vectors and the weights 1, 2, 3, …
    """
    conv = block.conv
    units = torch.eye(prod(shape), dtype=torch.float64, device=conv.weight.device).view(-1, *shape)
    numbers = torch.arange(1.0, conv.weight.numel() + 1, dtype=torch.float64, device=conv.weight.device)
    parameters = {"weight": numbers.view_as(conv.weight)}
    if conv.bias is not None:
        parameters["bias"] = numbers.new_zeros(len(conv.bias))
    outputs = torch.func.functional_call(conv, parameters, block.pad(units))
    return outputs.round().long().movedim(0, -1)
