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
        first = self.x if x is None else x
        return self.function(first.clone() if self.inplace else first, *self.args[1:], **self.kwargs)

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        """The argument at `place` or called `name`."""
        return self.args[place] if len(self.args) > place else self.kwargs.get(name, default)


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
    name = ALIASES.get(last.strip("_"), last.strip("_"))
    marked = last.startswith("__i") if last.startswith("__") else last.endswith("_")
    inplace = marked or last == "__setitem__" or _flagged(function, args, kwargs)
    return as_relu(Call(name, full, function, tuple(args), kwargs, inplace, args[0] if args else None))


def _flagged(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a function with an option `inplace` was given it."""
    place = _place_of_inplace(function)
    return place is not None and bool(args[place] if len(args) > place else kwargs.get("inplace", False))


@cache
def _place_of_inplace(function: Callable[..., Any]) -> int | None:
    """Which argument of a function is called `inplace`; None where it has none."""
    if not inspect.isfunction(function):  # built-in operations say it by their name
        return None
    parameters = list(inspect.signature(function).parameters)
    return parameters.index("inplace") if "inplace" in parameters else None


def as_relu(call: Call) -> Call:
    """The call, as a ReLU where it is one that was spelled as a clamp, a maximum with zero or a threshold."""
    z = _rectified(call)
    return call if z is None else replace(call, name="relu", function=torch.relu, args=(z,), kwargs={}, given=z)


def _rectified(call: Call) -> Any:
    """What the call rectifies: z of max(z, 0); None where it does something else."""
    if call.name in ("clamp", "clamp_min"):
        least = call.argument(1, "min")
        most = call.argument(2, "max") if call.name == "clamp" else None
        return call.x if most is None and _is_zero(least) else None
    if call.name == "threshold":
        return call.x if call.argument(1, "threshold") == 0 and call.argument(2, "value") == 0 else None
    other = call.argument(1, "other")
    if call.name not in PAIRED_MAXIMA or not isinstance(other, Tensor):
        return None
    for z, zero in ((call.x, other), (other, call.x)):
        if z.requires_grad and _is_zero(zero) and torch.broadcast_shapes(z.shape, zero.shape) == z.shape:
            return z
    return None


def _is_zero(value: Any) -> bool:
    """Whether a number or a constant tensor is zero everywhere."""
    if isinstance(value, Tensor):
        return not value.requires_grad and not bool(value.any())
    return isinstance(value, (int, float)) and value == 0
