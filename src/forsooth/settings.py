"""A preset's settings with some fields changed, by a script or by words on the command line."""

import dataclasses
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from forsooth import names
from forsooth.records import Suite, UsageError


def configured(suite: Suite, preset: str, changes: Mapping[str, Any]) -> Any:
    """The preset's settings with some fields changed."""
    if preset not in suite.presets:
        raise names.unknown(preset, suite.presets, argument="preset")
    return changed(suite.presets[preset], changes)


def changed(settings: Any, changes: Mapping[str, Any]) -> Any:
    """A frozen record with some fields changed, its own or those of all records inside it that have such a field."""
    for name, value in changes.items():
        if name not in _fields(settings):
            raise names.unknown(name, _fields(settings), argument="set")
        settings = _replaced(settings, name, value)
    return settings


def _fields(record: Any) -> dict[str, Any]:
    """Field names of a record and of the records inside it."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        found |= _fields(value) if dataclasses.is_dataclass(value) else {field.name: value}
    return found


def _replaced(record: Any, name: str, value: Any) -> Any:
    """The record with the field changed, or with every record inside it changed that has the field."""
    hints = typing.get_type_hints(type(record))
    if name in hints:
        return dataclasses.replace(record, **{name: _parsed(name, value, hints[name])})
    inner = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    having = {place: part for place, part in inner.items() if dataclasses.is_dataclass(part) and name in _fields(part)}
    return dataclasses.replace(record, **{place: _replaced(part, name, value) for place, part in having.items()})


def _parsed(name: str, value: Any, hint: Any) -> Any:
    """The value as the field's type; text from the command line is read, other values are only checked."""
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        if value in options:
            return value
        raise names.unknown(str(value), map(str, options), argument=name)
    if origin in (types.UnionType, typing.Union):
        if value is None or str(value).lower() == "none":
            return None
        return _parsed(name, value, next(o for o in options if o is not type(None)))
    if origin is tuple:
        return tuple(_parsed(name, part, options[0]) for part in _parts(value))
    if hint is bool:
        if str(value).lower() not in ("true", "false"):
            raise UsageError(f"`{name}` must be true or false, got {value!r}")
        return str(value).lower() == "true"
    if hint in NUMBERS:
        return _number(name, value, hint)
    if not isinstance(value, hint):
        raise UsageError(f"`{name}` must be {hint.__name__}, got {value!r}")
    return value


NUMBERS = {int: "a whole number", float: "a number"}


def _parts(value: Any) -> Iterable[Any]:
    """The members of a tuple: those of a list, those between commas, or a single value as the only one."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value if isinstance(value, Iterable) else [value]


def _number(name: str, value: Any, kind: type) -> Any:
    """The value as a finite number of that kind, none lost on the way: 2.7 is no whole number."""
    try:
        number = kind(value)
        same = not isinstance(value, bool) and (isinstance(value, str) or number == value) and math.isfinite(number)
    except (TypeError, ValueError, OverflowError):
        same = False
    if not same:
        raise UsageError(f"`{name}` must be {NUMBERS[kind]}, got {value!r}")
    return number
