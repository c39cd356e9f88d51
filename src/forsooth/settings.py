"""Settings: what there are, what they mean, and a preset's with some changed, by a script or at the terminal."""

import dataclasses
import math
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from forsooth import names
from forsooth.records import Suite, UsageError

NUMBERS = {int: "a whole number", float: "a number"}
HUGE = 1e100  # products of numbers from here on are infinite
MANY = 1_000_000  # of anything: more than one machine can hold
ABOVE_0 = math.nextafter(0.0, 1.0)
BELOW_1 = math.nextafter(1.0, 0.0)
SIDES = (8, 4_096)  # px, of images that networks can be trained on
REPEATS = {  # of whose members each is work of its own: more would take a plan that nobody can wait for
    **dict.fromkeys(("trainings", "rationale_trainings", "runs_with_checkpoints", "groups", "pairs", "draws"), 1_000),
    "samples": 100_000,
}
NO_RENAMES: Mapping[str, str] = {}


def configured(suite: Suite, preset: str, changes: Mapping[str, Any]) -> Any:
    """The preset's settings with some fields changed."""
    if preset not in suite.presets:
        raise names.unknown(preset, suite.presets, argument="preset")
    return changed(suite.presets[preset], changes, renamed=suite.renamed)


def changed(settings: Any, changes: Mapping[str, Any], *, renamed: Mapping[str, str] = NO_RENAMES) -> Any:
    """A frozen record with some fields changed, its own or those of all records inside it that have such a field."""
    for name, value in changes.items():
        if name in renamed:
            raise UsageError(f"the setting {name!r} is called {renamed[name]!r} now")
        known = values_of(settings)
        if name not in known:
            raise UsageError(f"unknown setting {name!r} in `set`; {names.nearest(name, known)}")
        settings = _replaced(settings, name, value)
        _check_count(name, values_of(settings)[name])
    return settings


def _check_count(name: str, value: Any) -> None:
    """UsageError where a plan would be too long to be made: each of these is work of its own."""
    most = REPEATS.get(name)
    if most is not None and value is not None and value > most:
        raise UsageError(f"`{name}` must be at most {most:,}, got {value:,}")


def values_of(record: Any) -> dict[str, Any]:
    """Fields of a record and of the records inside it, by name."""
    return {name: value for _, name, value in fields_of(record)}


def fields_of(record: Any) -> Iterator[tuple[Any, str, Any]]:
    """Every field that is no record itself: the record it stands in, its name and its value."""
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if dataclasses.is_dataclass(value):
            yield from fields_of(value)
        else:
            yield record, field.name, value


def described(suite: Suite) -> list[dict[str, str]]:
    """A line for every setting of a suite: setting, meaning, and its value in each preset."""
    first = next(iter(suite.presets.values()))
    lines = []
    for record, name, _ in fields_of(first):
        values = {preset: written(values_of(settings)[name]) for preset, settings in suite.presets.items()}
        lines.append({"setting": name, "meaning": meanings(type(record)).get(name, ""), **values})
    return lines


def meanings(kind: type) -> dict[str, str]:
    """What the fields of a record mean, as its docstring says: a line `name  meaning` for each, indented lines go on.

    >>> words = "Settings.\\n\\n    n, m   numbers\\n           of things\\n    gate   least\\n"
    >>> meanings(type("Settings", (), {"__doc__": words}))
    {'n': 'numbers of things', 'm': 'numbers of things', 'gate': 'least'}
    """
    found: dict[str, str] = {}
    current: list[str] = []
    for line in (kind.__doc__ or "").splitlines()[1:]:
        entry = re.match(r"    (\w+(?:, \w+)*) +(\S.*)", line)
        if entry:
            current = entry.group(1).split(", ")
            found |= dict.fromkeys(current, entry.group(2).strip())
        elif line.startswith("     ") and current:
            found |= {name: f"{found[name]} {line.strip()}" for name in current}
        else:
            current = []
    return found


def written(value: Any) -> str:
    """A value as one types it behind `--set name=`."""
    if isinstance(value, tuple | list):
        return ",".join(map(written, value))
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value)


def _replaced(record: Any, name: str, value: Any) -> Any:
    """The record with the field changed, or with every record inside it changed that has the field."""
    hints = typing.get_type_hints(type(record))
    if name in hints:
        return dataclasses.replace(record, **{name: _parsed(name, value, hints[name])})
    having = {}
    for field in dataclasses.fields(record):
        inner = getattr(record, field.name)
        if dataclasses.is_dataclass(inner) and name in values_of(inner):
            having[field.name] = _replaced(inner, name, value)
    return dataclasses.replace(record, **having)


def _parsed(name: str, value: Any, hint: Any) -> Any:
    """The value as the field's type; text from the command line is read, other values are only checked."""
    origin = typing.get_origin(hint)
    options = typing.get_args(hint)
    if origin is typing.Literal:
        return _one_of(name, value, options)
    if origin in (types.UnionType, typing.Union):
        if value is None or str(value).lower() == "none":
            return None
        return _parsed(name, value, next(option for option in options if option is not type(None)))
    if origin is tuple:
        return _members(name, value, options)
    if hint is bool:
        return _truth(name, value)
    if hint in NUMBERS:
        return _number(name, value, hint)
    if not isinstance(value, hint):
        raise UsageError(f"`{name}` must be {hint.__name__}, got {value!r}")
    return value


def _one_of(name: str, value: Any, options: tuple[Any, ...]) -> Any:
    if value not in options:
        raise names.unknown(str(value), map(str, options), argument=name)
    return value


def _truth(name: str, value: Any) -> bool:
    known = {"true": True, "false": False}
    if str(value).lower() not in known:
        raise UsageError(f"`{name}` must be true or false, got {value!r}")
    return known[str(value).lower()]


def _members(name: str, value: Any, options: tuple[Any, ...]) -> tuple[Any, ...]:
    """A tuple of any length, or of the length that the field has."""
    parts = list(_parts(value))
    if options[-1] is Ellipsis:
        return tuple(_parsed(name, part, options[0]) for part in parts)
    if len(parts) != len(options):
        raise UsageError(f"`{name}` must be {len(options)} values, got {value!r}")
    return tuple(_parsed(name, part, option) for part, option in zip(parts, options, strict=True))


def _parts(value: Any) -> Iterable[Any]:
    """The members of a tuple: those of a list, those between commas, or a single value as the only one."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable):
        return value
    return [value]


def _number(name: str, value: Any, kind: type) -> Any:
    """The value as a finite number of that kind, none lost on the way: 2.7 is no whole number."""
    try:
        number = kind(value)
        same = not isinstance(value, bool) and (isinstance(value, str) or number == value) and abs(number) < HUGE
    except (TypeError, ValueError, OverflowError):
        same = False
    if not same:
        raise UsageError(f"`{name}` must be {NUMBERS[kind]}, got {value!r}")
    return number


def check_words(settings: Any, known: Mapping[str, Iterable[str]]) -> None:
    """UsageError where a field of the settings lists a word that is not among those known for it."""
    for field, words in known.items():
        for word in getattr(settings, field):
            if word not in words:
                raise names.unknown(word, words, argument=field)


def check_some(settings: Any, fields: Iterable[str]) -> None:
    """UsageError where a field of the settings that lists what a run is made of lists nothing."""
    for field in fields:
        if not getattr(settings, field):
            raise UsageError(f"`{field}` must name one thing at least, got none")


def check_range(settings: Any, fields: Iterable[str], least: float, most: float = MANY, *, what: str = "") -> None:
    """UsageError where a number of the settings, or one of several, lies outside; None lies nowhere.

    what  the numbers must be, in words: "a share from 0 to 1"; empty: at least and at most so many
    """
    for field in fields:
        value = getattr(settings, field)
        numbers = value if isinstance(value, tuple) else (value,)
        for number in numbers:
            if number is not None and not least <= number <= most:
                bound = f"at most {most:,}" if number > most else f"at least {least:,}"
                raise UsageError(f"`{field}` must be {what or bound}, got {number:,}")
