"""What a user's model gives: a tensor or an array, or a record, dict or tuple that holds the logits somewhere."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from forsooth.records import UsageError

NAMES = ("logits", "scores", "predictions", "out", "output")  # by which libraries call the outputs of a classifier


class Logits(nn.Module):
    """A module that gives the logits of another one, whose output is no tensor.

    It stays in the mode of the module inside, and the parts of that are found below `inner`.
    """

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.training = inner.training

    def forward(self, x: Tensor) -> Tensor:
        logits = logits_in(self.inner(x))
        if logits is None:
            raise TypeError(f"the output of {type(self.inner).__name__} holds no logits of shape (n, classes)")
        return logits


class Function(nn.Module):
    """A function of tensors as a module without parts."""

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function
        self.training = False

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def logits_in(output: Any) -> Tensor | None:
    """The logits (n, classes) in what a model gave; None where nothing looks like them."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        return _first([output[name] for name in NAMES if name in output] or list(output.values()))
    named = [getattr(output, name) for name in NAMES if isinstance(getattr(output, name, None), Tensor)]
    if named:
        return _first(named)
    if isinstance(output, tuple | list):
        return _first(list(output))
    return None


def _first(values: list[Any]) -> Tensor | None:
    """The first that has a row of numbers for each input: a loss has none, hidden states have more axes."""
    fitting = [value for value in values if isinstance(value, Tensor) and value.ndim == 2]
    return next(iter(fitting), None)


def unwrapped(module: nn.Module, x: Tensor) -> nn.Module:
    """The module itself if it gives a tensor for x (n, *shape) or nothing known; else one that gives its logits."""
    with torch.no_grad():
        output = module(x[:1])
    if isinstance(output, Tensor) or logits_in(output) is None:
        return module
    return Logits(module)


def as_tensor(result: Any, x: Tensor) -> Tensor:
    """What a function gave, as a tensor on the device of x; floating point as it came."""
    if not isinstance(result, Tensor):
        array = np.asarray(result)
        if array.dtype.kind not in "biuf":
            raise UsageError(f"`model` must give an array or tensor of shape (n, classes), got {type(result).__name__}")
        result = torch.from_numpy(np.ascontiguousarray(array))
    tensor: Tensor = result.detach().to(x.device)
    if tensor.is_floating_point():
        return tensor
    return tensor.to(x.dtype)
