"""A convolution on a tiny image is a tiny matrix: the CNN for 8×8 images trains faster as a chain of matrix products.

Convolution kernels are made for many channels; with four of them and 8×8 pixels most of their time is overhead.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import TypeVar

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
    """

    conv: nn.Conv2d
    size: tuple[int, int]
    place: Tensor
    which: Tensor
    window: int

    def __call__(self, x: Tensor) -> Tensor:  # (n, inputs) -> (n, outputs)
        weights = self.conv.weight.flatten()[self.which]
        matrix = weights.new_zeros(prod(self.size)).scatter(0, self.place, weights).view(self.size)
        z = x @ matrix.T
        if self.window > 1:
            z = z.view(len(z), self.window, -1).max(1).values
        if self.conv.bias is not None:
            z = (z.view(len(z), len(self.conv.bias), -1) + self.conv.bias[:, None]).flatten(1)
        return z.relu()  # after the pool: ReLU and maximum may be exchanged, and here it has fewer numbers to do


def as_matrices(module: nn.Module, shape: tuple[int, ...]) -> Callable[[Tensor], Tensor] | None:
    """A function of x (n, *shape) that gives what `module` gives, with the module's own parameters.

    None where the module is not a chain of blocks [ZeroPad2d,] Conv2d, ReLU[, MaxPool2d] followed by Flatten and
    anything else, or where a matrix would be too large to pay.
    """
    rest = deque(module if isinstance(module, nn.Sequential) else ())
    stages: list[Stage] = []
    while rest and not isinstance(rest[0], nn.Flatten):
        pad, conv = _take(nn.ZeroPad2d, rest) or nn.Identity(), _take(nn.Conv2d, rest)
        relu, pool = _take(nn.ReLU, rest), _take(nn.MaxPool2d, rest)
        if conv is None or relu is None or not _pays(pad, conv, pool, shape):
            return None
        stage, shape = _stage(pad, conv, pool, shape)
        stages.append(stage)
    tail = nn.Sequential(*rest)
    return (lambda x: tail(reduce(lambda h, stage: stage(h), stages, x.flatten(1)))) if stages and rest else None


def _take(kind: type[Kind], rest: deque[nn.Module]) -> Kind | None:
    """The next layer, taken from `rest`, if it is of this kind."""
    first = rest[0] if rest else None
    if not isinstance(first, kind):
        return None
    rest.popleft()
    return first


def _pays(pad: nn.Module, conv: nn.Conv2d, pool: nn.MaxPool2d | None, shape: tuple[int, ...]) -> bool:
    plain = pool is None or (pool.padding, pool.dilation, pool.ceil_mode) == (0, 1, False)
    if len(shape) != 3 or conv.padding_mode != "zeros" or not plain:
        return False
    with torch.no_grad():
        return prod(shape) * conv(pad(conv.weight.new_zeros(1, *shape))).numel() <= LARGEST


def _stage(
    pad: nn.Module, conv: nn.Conv2d, pool: nn.MaxPool2d | None, shape: tuple[int, ...]
) -> tuple[Stage, tuple[int, ...]]:
    """The block for inputs of this shape (channels, h, w), and the shape of what it gives."""
    joined = _joined(pad, conv, shape)
    rows, window, after = joined.flatten(0, 2), 1, joined.shape[:3]
    if pool is not None:
        places = torch.arange(float(len(rows)), dtype=torch.float64, device=rows.device).view(1, *after)
        under = F.unfold(places, pool.kernel_size, stride=pool.stride)[0].long()  # (channels' * window, pools)
        window, after = len(under) // len(joined), pool(places).shape[1:]
        rows = rows[under.view(len(joined), window, -1).transpose(0, 1).flatten()]
    place = rows.flatten().nonzero()[:, 0]
    return Stage(conv, (len(rows), prod(shape)), place, rows.flatten()[place] - 1, window), tuple(after)


@torch.no_grad()
def _joined(pad: nn.Module, conv: nn.Conv2d, shape: tuple[int, ...]) -> Tensor:
    """(channels', h', w', inputs): the number, from 1, of the one weight that joins this input to that output, or 0.

    Read off the convolution itself, by giving it the unit vectors and the weights 1, 2, 3, …
    """
    units = torch.eye(prod(shape), dtype=torch.float64, device=conv.weight.device).view(-1, *shape)
    numbers = torch.arange(1.0, conv.weight.numel() + 1, dtype=torch.float64, device=conv.weight.device)
    given = {"weight": numbers.view_as(conv.weight)}
    if conv.bias is not None:
        given["bias"] = numbers.new_zeros(len(conv.bias))
    return torch.func.functional_call(conv, given, pad(units)).round().long().movedim(0, -1)
