"""The Rescale rule of DeepLIFT for a function of one number at a time."""

from collections.abc import Callable

import torch
from torch import Tensor

Function = Callable[[Tensor], Tensor]


def slope(function: Function, x: Tensor, reference: Tensor) -> Tensor:
    """(f(x) - f(x')) / (x - x'), and the derivative halfway where the two are too near to be subtracted.

    Near is relative to the size of x and x', so values on two sides of a kink at zero never count as near.
    """
    difference = x - reference
    size = torch.maximum(x.abs(), reference.abs())
    far = difference.abs() > torch.finfo(x.dtype).eps ** 0.5 * size
    with torch.enable_grad():
        middle = ((x + reference) / 2).requires_grad_()
        (derivative,) = torch.autograd.grad(function(middle).sum(), middle)
    secant = (function(x) - function(reference)) / torch.where(far, difference, 1.0)
    return torch.where(far, secant, derivative)


def rescaled(function: Function, x: Tensor, reference: Tensor, multipliers: Tensor) -> Tensor:
    """The Rescale rule for a function of one number at a time."""
    return multipliers * slope(function, x, reference)
