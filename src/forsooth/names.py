"""Finding a record by its name; an unknown name is answered with the nearest known ones."""

import difflib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from forsooth.errors import UsageError


class Named(Protocol):
    @property
    def name(self) -> str: ...


Record = TypeVar("Record", bound=Named)
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def find(name: str, known: Sequence[Record], *, argument: str) -> Record:
    """The record called `name` among `known`."""
    by_name = {record.name: record for record in known}
    if name in by_name:
        return by_name[name]
    raise unknown(name, by_name, argument=argument)


def kept(values: Sequence[str], only: Mapping[str, Sequence[str]], factor: str) -> list[str]:
    """Those of `values` that `only` admits for the factor, without regard to case; a value not there is an error.

    >>> kept(["LIN", "XOR"], {"scenario": ("lin",)}, "scenario"), kept(["8", "64"], {}, "size")
    (['LIN'], ['8', '64'])
    """
    asked = {value.lower(): value for value in only.get(factor, values)}
    known = {value.lower() for value in values}
    for lowered, value in asked.items():
        if lowered not in known:
            raise unknown(value, values, argument=factor)
    return [value for value in values if value.lower() in asked]


def kept_numbers(values: Sequence[float], only: Mapping[str, Sequence[str]], factor: str) -> list[float]:
    """Those of the numbers that `only` admits for the factor, as `kept` does.

    >>> kept_numbers((0.5, 1), {"r": ("1",)}, "r")
    [1.0]
    """
    return [float(value) for value in kept([f"{value:g}" for value in values], only, factor)]


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key, in the order in which they come.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def check_factors(only: Mapping[str, Sequence[str]], known: Sequence[str]) -> None:
    """An error where `only` names a factor that the suite does not have."""
    for factor in only:
        if factor not in known:
            raise UsageError(f"unknown factor {factor!r} in `only`; {nearest(factor, known)}")


def unknown(name: str, names: Iterable[str], *, argument: str) -> UsageError:
    """The error for a name that is none of `names`, to be raised by the caller."""
    return UsageError(f"`{argument}` must be a known name, got {name!r}; {nearest(name, names)}")


def nearest(name: str, names: Iterable[str]) -> str:
    """The names that may be meant, else all there are.

    >>> nearest("alfa", ["alpha", "gate"]), nearest("x", ["alpha", "gate"])
    ('did you mean alpha?', 'known: alpha, gate')
    """
    lowered = {known.lower(): known for known in names}
    ends = [match for match in lowered if match.rpartition("/")[2] == name.lower()]  # figure-5 of bias/figure-5
    close = ends or difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(lowered[match] for match in close)}?"
    return f"known: {', '.join(sorted(lowered.values())) or 'none'}"


def admitted(value: str | Iterable[str]) -> tuple[str, ...]:
    """The values of a factor: those between commas, or those of a list."""
    if isinstance(value, str):
        value = value.split(",")
    return tuple(str(part).strip() for part in value)
