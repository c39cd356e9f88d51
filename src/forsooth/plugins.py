"""The user's own methods: `package.module:name`, a Method record, a plain function or a Captum class."""

import dataclasses
import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from captum.attr import Attribution
from torch import Tensor

from forsooth.names import find, unknown
from forsooth.records import Method, UsageError


def method(name: str, known: Sequence[Method]) -> Method:
    """The method called `name`: one of the catalogue, or the user's `package.module:name`."""
    if ":" not in name:
        return find(name, known, argument="methods")
    return wrapped(load(name, argument="methods"), name=name)


def load(path: str, *, argument: str) -> Any:
    """The object at `package.module:name`, also from the folder one stands in."""
    module_name, _, attribute = path.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # a script beside the data is the usual place of a user's method
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise UsageError(f"`{argument}` names the module {module_name!r}, which cannot be imported: {error}") from error
    if not hasattr(module, attribute):
        raise unknown(attribute, [n for n in vars(module) if not n.startswith("_")], argument=argument)
    return getattr(module, attribute)


def wrapped(thing: Any, *, name: str) -> Method:
    """A Method around what the user gave: `function(model, x, target) -> tensor like x`, or a Captum class."""
    if isinstance(thing, Method):
        return dataclasses.replace(thing, name=name)  # the path is the name by which other processes find it
    if inspect.isclass(thing) and issubclass(thing, Attribution):
        return _record(_captum(thing), name)
    if callable(thing):
        return _record(thing, name)
    raise UsageError(
        f"`methods` must name a function(model, x, target), a forsooth Method or a Captum class, got {name!r}, "
        f"which is {type(thing).__name__}"
    )


def fingerprint(thing: Any) -> str:
    """A hash of the code of a user's method, so that an edited method is run again."""
    function = thing.function if isinstance(thing, Method) else thing
    try:
        source = inspect.getsource(inspect.getmodule(function) or function)
    except (OSError, TypeError):
        source = repr(function)  # typed at a prompt: no source to read
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def _record(function: Callable[..., Tensor], name: str) -> Method:
    return Method(
        name=name,
        function=function,
        needs=("gradient", "module"),
        random=True,
        signed=True,
        cite="yours",
        version=1,
    )


def _captum(kind: type[Attribution]) -> Callable[..., Tensor]:
    def attribute(model: torch.nn.Module, x: Tensor, target: Tensor) -> Tensor:
        return kind(model).attribute(x.clone().requires_grad_(), target=target).detach()

    return attribute
