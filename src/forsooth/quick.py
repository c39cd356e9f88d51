"""A chain of layers some of which have a quicker way to say the same, but for the order of sums."""

from typing import Protocol, runtime_checkable

from torch import Tensor, nn


@runtime_checkable
class Quicker(Protocol):
    """A layer with a quicker way, for whoever asks a network thousands of times; methods that read layers do not."""

    def quickly(self, x: Tensor) -> Tensor: ...


class Quick(nn.Module):
    """The chain, with its own layers."""

    def __init__(self, layers: nn.Sequential) -> None:
        super().__init__()
        self.layers = layers
        self.steps = [layer.quickly if isinstance(layer, Quicker) else layer for layer in layers]

    def forward(self, x: Tensor) -> Tensor:
        for step in self.steps:
            x = step(x)
        return x


def as_quick(module: nn.Module) -> Quick | None:
    """The module by the quicker ways of its layers; None where it is no chain, or none of them has one."""
    if not isinstance(module, nn.Sequential) or not any(isinstance(layer, Quicker) for layer in module):
        return None
    return Quick(module)
