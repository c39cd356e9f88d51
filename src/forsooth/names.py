"""Finding a record by its name; an unknown name is answered with the nearest known ones."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from forsooth.records import UsageError


class Named(Protocol):
    @property
    def name(self) -> str: ...


Record = TypeVar("Record", bound=Named)


def find(name: str, known: Sequence[Record], *, argument: str) -> Record:
    """The record called `name` among `known`."""
    by_name = {record.name: record for record in known}
    if name in by_name:
        return by_name[name]
    raise unknown(name, by_name, argument=argument)


def unknown(name: str, names: Iterable[str], *, argument: str) -> UsageError:
    """The error for a name that is none of `names`, to be raised by the caller."""
    lowered = {known.lower(): known for known in names}
    near = [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)]
    offer = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(lowered.values()))}"
    return UsageError(f"`{argument}` must be a known name, got {name!r}; {offer}")
