"""Records as plain JSON values and back, so that a task can carry them and its key can be their hash."""

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")


def to_plain(value: Any) -> Any:
    """JSON values: records become objects, tuples lists.

    A field with the metadata {"key": word} goes by that word, so that a field can have a better name than the keys of
    cells that were made before.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {key_of(field): to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): to_plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"a task can carry records, numbers and words, got {type(value).__name__}")


def from_plain(value: Any, hint: Any) -> Any:
    """The value that `to_plain` was given, by the type it had."""
    origin = typing.get_origin(hint)
    options = typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _one_of(value, options)
    if dataclasses.is_dataclass(hint):
        return _record(value, hint)
    if origin is tuple:
        return _tuple(value, options)
    if origin in (list, typing.Sequence) and options:
        return [from_plain(part, options[0]) for part in value]
    if isinstance(value, dict) and len(options) == 2:
        return {name: from_plain(part, options[1]) for name, part in value.items()}
    return value


def key_of(field: "dataclasses.Field[Any]") -> str:
    """The word by which a field goes in JSON."""
    return str(field.metadata.get("key", field.name))


def remembered(maxsize: int) -> Callable[[Callable[Arguments, Made]], Callable[Arguments, Made]]:
    """Keeps the last results of a function of records and plain values: tasks that follow each other ask alike."""

    def decorated(function: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
        kept: dict[str, Made] = {}

        @functools.wraps(function)
        def ask(*args: Arguments.args, **keywords: Arguments.kwargs) -> Made:
            text = json.dumps([to_plain(args), to_plain(keywords)], sort_keys=True)
            found = kept.pop(text) if text in kept else function(*args, **keywords)
            kept[text] = found  # last, since it was asked last
            while len(kept) > maxsize:
                del kept[next(iter(kept))]
            return found

        ask.forget = kept.clear  # type: ignore[attr-defined]
        return ask

    return decorated


def _one_of(value: Any, options: tuple[Any, ...]) -> Any:
    """A value of a union: of `None` and records at most one can be meant."""
    if value is None:
        return None
    rest = [option for option in options if option is not type(None)]
    records = [option for option in rest if dataclasses.is_dataclass(option)]
    if isinstance(value, dict) and records:
        return from_plain(value, records[0])
    return from_plain(value, rest[0]) if len(rest) == 1 else value


def _record(value: Mapping[str, Any], kind: Any) -> Any:
    hints = typing.get_type_hints(kind)
    known = {key_of(field): field.name for field in dataclasses.fields(kind) if field.init}
    return kind(**{name: from_plain(value[key], hints[name]) for key, name in known.items() if key in value})


def _tuple(value: Any, options: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(options) == 2 and options[1] is Ellipsis:
        return tuple(from_plain(part, options[0]) for part in value)
    return tuple(from_plain(part, option) for part, option in zip(value, options, strict=True))
