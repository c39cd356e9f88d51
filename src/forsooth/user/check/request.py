"""What the user asks: a method of theirs."""

from dataclasses import dataclass
from typing import Any, get_args

from forsooth import names, plugins
from forsooth.adapters.methods import MethodLike, NamedMethod
from forsooth.attributions import METHODS
from forsooth.records import Method, Need, UsageError


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """The user's words. method: a path, a function, a Captum class, a Method, or a name of the catalogue."""

    method: MethodLike
    device: str = "cpu"
    seed: int = 0

    def named(self) -> NamedMethod:
        """The method that is checked."""
        if isinstance(self.method, str) and ":" not in self.method:
            return NamedMethod(of_catalogue(self.method), own=False, portable=True)
        thing: Any = self.method
        if isinstance(thing, str):
            thing = plugins.load(thing, argument="method")
        record = plugins.wrapped(thing, name=name_of(self.method))
        check_needs(record)
        return NamedMethod(record, own=not isinstance(thing, Method), portable=isinstance(self.method, str))


def of_catalogue(name: str) -> Method:
    try:
        return names.find(name, METHODS, argument="method")
    except UsageError as error:
        hint = f"your own is package.module:function, e.g. {name}:my_function"
        raise UsageError(f"{error}; {hint}") from error


def name_of(method: MethodLike) -> str:
    if isinstance(method, str):
        return method
    if isinstance(method, Method):
        return method.name
    return getattr(method, "__name__", type(method).__name__)


def check_needs(record: Method) -> None:
    """UsageError where a record needs what nobody can lend."""
    known = get_args(Need)
    odd = sorted(set(record.needs) - set(known))
    if odd:
        raise UsageError(f"`needs` of {record.name} must be among {', '.join(known)}, got {', '.join(odd)}")
