"""The user's methods: names of the catalogue, paths, records and plain functions become records with a name."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from forsooth import foreign, plugins
from forsooth.names import find
from forsooth.records import Method, UsageError

MethodLike = str | Method | Callable[..., Tensor]


@dataclass(frozen=True)
class NamedMethod:
    """A method to be asked.

    own       the user wrote it as a plain function, so that its record says nothing of it
    portable  any process can find it again by its name
    """

    method: Method
    own: bool
    portable: bool

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def kind(self) -> str:
        """method, or null (it ignores the model)."""
        if self.method.null:
            return "null"
        return "method"

    def identity(self) -> plugins.Identity:
        """What tells it from any other in the key of a task."""
        if self.portable:
            return plugins.identity(self.method)
        return {"method": self.name, "version": self.method.version, "code": ""}


def named(method: MethodLike, catalogue: Sequence[Method], *, argument: str = "methods") -> NamedMethod:
    """What the user gave as that argument, as a record that has a name."""
    if isinstance(method, Method):
        return NamedMethod(method, own=False, portable=False)
    if not isinstance(method, str):
        name = getattr(method, "__name__", type(method).__name__)
        return NamedMethod(plugins.wrapped(method, name=name), own=True, portable=False)
    path = plugins.place_of(method, catalogue, argument=argument)
    if ":" not in path:
        return NamedMethod(find(path, catalogue, argument=argument), own=False, portable=True)
    thing = plugins.load(path, argument=argument)
    return NamedMethod(plugins.wrapped(thing, name=path), own=not isinstance(thing, Method), portable=True)


def with_nulls(
    methods: Iterable[MethodLike], nulls: Iterable[str], catalogue: Sequence[Method], *, reserved: str = ""
) -> list[NamedMethod]:
    """The methods, and behind them those of the nulls that are not among them; no two may have one name.

    reserved  a name that no method may have; empty: any will do
    """
    chosen = [named(method, catalogue) for method in methods]
    names = [one.name for one in chosen]
    if len(set(names)) < len(names) or reserved in names:
        other = f", other than {reserved}" if reserved else ""
        raise UsageError(f"`methods` must have names of their own{other}, got {', '.join(names)}")
    return [*chosen, *(named(null, catalogue) for null in nulls if null not in names)]


def accepting_arrays(method: Method) -> Method:
    """The method, giving a tensor like x where its function gives a numpy array."""
    return replace(method, function=foreign.giving_tensors(method.function))
