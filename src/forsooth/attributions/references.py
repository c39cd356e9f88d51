"""What a forward pass of the baselines leaves behind, met again by the pass of x: for maps against references."""

from collections.abc import Callable

import torch
from torch import Tensor

from forsooth.attributions.intercept import Backward, BackwardOfTwo, sample_axis
from forsooth.attributions.rescale import Function
from forsooth.records import UsageError

Multiply = Callable[[Tensor, Tensor, Tensor], Tensor]  # x, its reference, multipliers of the outputs -> those of x
Activate = Callable[[Function, Multiply, Tensor], Tensor]  # runs f on x, with a rule for the way back
Product = Callable[[Tensor, Tensor], Tensor]
Join = Callable[[Product, Tensor, Tensor], Tensor]  # runs a product of two values, with a rule for the way back


class References:
    """Inputs of all activations for the baselines, which those for x meet in the same order.

    kept     (k, ...) each, see `recorded`
    counts   samples of x, and k
    axes     of the samples in each; none where every sample has a baseline of its own (`paired`)
    current  the references of this backward pass: one forward pass of x serves all baselines
    """

    def __init__(self, kept: list[Tensor], *, counts: tuple[int, int], paired: bool, method: str) -> None:
        self.kept = kept
        self.counts = counts
        self.paired = paired
        self.method = method
        self.place = 0
        self.axes: list[int] = []
        self.current = kept

    def activate(self, function: Function, multiply: Multiply, x: Tensor) -> Tensor:
        """f(x), whose multipliers on the way back are those against the current reference."""
        place = self.met(x)
        return Backward.apply(x, function, lambda z, m: multiply(z, self.current[place], m))

    def join(self, product: Product, a: Tensor, b: Tensor) -> Tensor:
        """The product, each of whose factors has the mean of the other and its reference as its multiplier."""
        first = self.met(a)
        second = self.met(b)

        def multiply(a: Tensor, b: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
            return halfway(product, (a, self.current[first]), (b, self.current[second]), m)

        return BackwardOfTwo.apply(a, b, product, multiply)

    def met(self, x: Tensor) -> int:
        """The place among the references of the one for x, which is the next."""
        place = self.place
        self.place += 1
        if place >= len(self.kept) or (self.paired and x.shape != self.kept[place].shape):
            raise another_way(self.method)
        if not self.paired:
            axis = sample_axis(x.shape, self.kept[place].shape, counts=self.counts, method=self.method)
            self.axes.append(axis)
        return place

    def choose(self, number: int) -> None:
        """Let all references be those of one baseline; where every sample has its own they stay."""
        if not self.paired:
            self.current = [value.narrow(axis, number, 1) for value, axis in zip(self.kept, self.axes, strict=True)]


def halfway(
    product: Product, a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor], multipliers: Tensor
) -> tuple[Tensor, Tensor]:
    """Multipliers of the factors a and b, each given with its reference, from those of their product."""
    with torch.enable_grad():
        first = ((a[0] + a[1]) / 2).expand_as(a[0]).detach().requires_grad_()
        second = ((b[0] + b[1]) / 2).expand_as(b[0]).detach().requires_grad_()
        to_first, to_second = torch.autograd.grad(product(first, second), (first, second), multipliers)
    return to_first, to_second


def another_way(method: str) -> UsageError:
    """What to say of a model whose code takes another branch for the baseline than for x."""
    return UsageError(
        f"`{method}` needs a model that runs the same operations on x and on its baseline, but this one branches on "
        "the numbers it is given"
    )
