"""Operations as a model calls them: which one it is, what it was given, and whether it overwrites."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.overrides import resolve_name

ALIASES = {
    **{prefix + name: name for name in ("add", "mul", "matmul", "sub") for prefix in "ir" if prefix + name != "rsub"},
    **{name: "div" for name in ("truediv", "itruediv", "true_divide", "divide")},
    "multiply": "mul",
    "subtract": "sub",
    "mm": "matmul",
    "clip": "clamp",
}
PAIRED_MAXIMA = ("maximum", "fmax", "max")


def names(text: str) -> frozenset[str]:
    """The words of a text, as a set of operations."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Call:
    """One operation that the model is about to run on something that depends on the input.

    name      without module, dunder and in-place marks, e.g. "relu" for `torch.Tensor.relu_`
    full      as PyTorch calls it, for messages
    inplace   whether it overwrites its first argument
    given     the first argument as the model holds it; where it will be overwritten, `x` is a copy
    """

    name: str
    full: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    inplace: bool
    given: Any = None

    @property
    def x(self) -> Tensor:
        """The first argument."""
        return self.args[0]

    def __call__(self, x: Tensor | None = None) -> Any:
        """Run the operation, on `x` where given, and never overwrite."""
        if x is None:
            x = self.x
        if self.inplace:
            x = x.clone()
        return self.function(x, *self.args[1:], **self.kwargs)

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        """The argument at `place` or called `name`."""
        if len(self.args) > place:
            return self.args[place]
        return self.kwargs.get(name, default)


def tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in nested tuples, lists, dictionaries and slices."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        yield from tensors(tuple(value.values()))
    elif isinstance(value, slice):
        yield from tensors((value.start, value.stop, value.step))


def read(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Name the operation, whichever of its many doors it was called through."""
    if not args:
        args = tuple(kwargs.pop(name) for name in ("input", "tensors") if name in kwargs)
    full = resolve_name(function) or getattr(function, "__qualname__", repr(function))
    last = full.removesuffix(".__get__").removesuffix(".default").rsplit(".", 1)[-1]
    name = _plain(last)
    inplace = _marked(last) or _flagged(function, args, kwargs)
    first = next(iter(args), None)
    return as_relu(Call(name, full, function, tuple(args), kwargs, inplace, first))


def _plain(name: str) -> str:
    """The name of an operation without its marks, one for all its spellings."""
    bare = name.strip("_")
    return ALIASES.get(bare, bare)


def _marked(name: str) -> bool:
    """Whether the last part of an operation's name says that it overwrites its first argument."""
    if name.startswith("__"):
        return name.startswith("__i") or name == "__setitem__"
    return name.endswith("_")


def _flagged(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a function with an option `inplace` was given it."""
    place = _place_of_inplace(function)
    if place is None:
        return False
    if len(args) > place:
        return bool(args[place])
    return bool(kwargs.get("inplace", False))


@cache
def _place_of_inplace(function: Callable[..., Any]) -> int | None:
    """Which argument of a function is called `inplace`; None where it has none."""
    # Built-in operations say it by their name, also those that Python wraps, as `**` is.
    if not inspect.isfunction(inspect.unwrap(function)):
        return None
    parameters = list(inspect.signature(function).parameters)
    if "inplace" not in parameters:
        return None
    return parameters.index("inplace")


def as_relu(call: Call) -> Call:
    """The call, as a ReLU where it is one that was spelled as a clamp, a maximum with zero or a threshold."""
    z = _rectified(call)
    if z is None:
        return call
    return replace(call, name="relu", function=torch.relu, args=(z,), kwargs={}, given=z)


def _rectified(call: Call) -> Any:
    """What the call rectifies: z of max(z, 0); None where it does something else."""
    if _cuts_at_zero(call):
        return call.x
    other = call.argument(1, "other")
    if call.name not in PAIRED_MAXIMA or not isinstance(other, Tensor):
        return None
    for z, zero in ((call.x, other), (other, call.x)):
        if z.requires_grad and _is_zero(zero) and torch.broadcast_shapes(z.shape, zero.shape) == z.shape:
            return z
    return None


def _cuts_at_zero(call: Call) -> bool:
    """Whether the call is a clamp or a threshold that replaces what is below zero by zero, and nothing else."""
    if call.name == "clamp":
        return call.argument(2, "max") is None and _is_zero(call.argument(1, "min"))
    if call.name == "clamp_min":
        return _is_zero(call.argument(1, "min"))
    if call.name == "threshold":
        return bool(call.argument(1, "threshold") == 0 and call.argument(2, "value") == 0)
    return False


def _is_zero(value: Any) -> bool:
    """Whether a number or a constant tensor is zero everywhere."""
    if isinstance(value, Tensor):
        return not value.requires_grad and not bool(value.any())
    return isinstance(value, (int, float)) and value == 0
