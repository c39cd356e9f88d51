"""A convolution on a tiny image is a tiny matrix: networks for 8×8 images train much faster as matrix products.

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
class _Stage:
    """[ZeroPad2d,] Conv2d, ReLU[, MaxPool2d] as one matrix (window * outputs, inputs) of `conv`'s own weights.

    place   (m,) the entries that are not zero, in the flat matrix
    which   (m,) the weight that stands there, in the flat weight
    window  inputs of one pool, 1 without a pool; the rows are ordered by place in the window
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
    stages: list[_Stage] = []
    while rest and not isinstance(rest[0], nn.Flatten):
        pad, conv = _take(nn.ZeroPad2d, rest), _take(nn.Conv2d, rest)
        relu, pool = _take(nn.ReLU, rest), _take(nn.MaxPool2d, rest)
        if conv is None or relu is None:
            return None
        stage = _stage(pad or nn.Identity(), conv, pool, shape)
        if stage is None:
            return None
        stages.append(stage[0])
        shape = stage[1]
    tail = nn.Sequential(*rest)
    return (lambda x: tail(reduce(lambda h, stage: stage(h), stages, x.flatten(1)))) if stages else None


def _take(kind: type[Kind], rest: deque[nn.Module]) -> Kind | None:
    """The next layer, taken from `rest`, if it is of this kind."""
    first = rest[0] if rest else None
    if not isinstance(first, kind):
        return None
    rest.popleft()
    return first


def _stage(
    pad: nn.Module, conv: nn.Conv2d, pool: nn.MaxPool2d | None, shape: tuple[int, ...]
) -> tuple[_Stage, tuple[int, ...]] | None:
    """The block as one matrix, and the shape of what it gives; None where it has no matrix worth having."""
    plain = pool is None or (pool.padding, pool.dilation, pool.ceil_mode) == (0, 1, False)
    with torch.no_grad():
        out = conv(pad(conv.weight.new_zeros(1, *shape))).shape[1:]
        if conv.padding_mode != "zeros" or not plain or prod(shape) * prod(out) > LARGEST:
            return None
        # Feed the unit vectors to the convolution with weights 1, 2, 3, …: each answer is the number of the one
        # weight that joins this input to that output, or 0.
        numbers = torch.arange(1.0, conv.weight.numel() + 1, dtype=torch.float64, device=conv.weight.device)
        units = torch.eye(prod(shape), dtype=torch.float64, device=conv.weight.device).view(-1, *shape)
        names = {"weight": numbers.view_as(conv.weight)}
        if conv.bias is not None:
            names["bias"] = numbers.new_zeros(len(conv.bias))
        joined = torch.func.functional_call(conv, names, pad(units)).flatten(1).T.long()  # (outputs, inputs)
    window, rows, after = 1, torch.arange(prod(out)), tuple(out)
    if pool is not None:
        places = torch.arange(float(prod(out)), dtype=torch.float64).view(1, *out)
        after = tuple(pool(places).shape[1:])
        rows = F.unfold(places, pool.kernel_size, stride=pool.stride).view(out[0], -1, prod(after[1:]))
        window, rows = rows.shape[1], rows.transpose(0, 1).flatten().long()
    matrix = joined[rows.to(joined.device)]
    place = matrix.flatten().nonzero()[:, 0]
    return _Stage(conv, tuple(matrix.shape), place, matrix.flatten()[place] - 1, window), after
