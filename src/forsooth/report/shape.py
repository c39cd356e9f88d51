"""The shape that a run.json has. Folders of runs come from other people, too: what is odd is refused by name."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Check = Callable[[Any], bool]


def wrong_fields(run: Mapping[str, Any]) -> list[str]:
    """Names of the fields of run.json that have another shape than the page can show."""
    return [name for name, fits in FIELDS.items() if name in run and not fits(run[name])]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _missing_or(fits: Check) -> Check:
    return lambda value: value is None or fits(value)


def _list_of(fits: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _mapping_of(fits: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def _record(**fields: Check) -> Check:
    """A mapping in which all these fields fit; what may be missing says so by `_missing_or`."""
    return lambda value: isinstance(value, dict) and all(fits(value.get(name)) for name, fits in fields.items())


def _are_factors(value: Any) -> bool:
    """Columns of the rows by which panels differ, none of them one that all rows have, but for the model."""
    return _list_of(_is_text)(value) and len(set(value)) == len(value) and not RESERVED & set(value)


def _are_bounds(value: Any) -> bool:
    if not _list_of(_missing_or(_is_number))(value) or len(value) != 2:
        return False
    return None in value or value[0] <= value[1]


def _is_direction(value: Any) -> bool:
    return _is_text(value) and value in ("higher", "lower")


def _are_alike(lines: Iterable[Mapping[str, Any]]) -> bool:
    return len({tuple(line) for line in lines}) <= 1


def _is_table(value: Any) -> bool:
    """Lines that all have the same columns."""
    return _list_of(_is_mapping)(value) and _are_alike(value)


RESERVED = {
    *("suite", "part", "model_seed", "method", "metric", "sample"),
    *("value", "status", "message", "cell", "panel", "failed"),
}
METRIC = _record(
    better=_is_direction, bounds=_missing_or(_are_bounds), cite=_missing_or(_is_text), about=_missing_or(_is_text)
)
METHOD = _record(
    **dict.fromkeys(("promise", "cite", "about"), _missing_or(_is_text)), settings=_missing_or(_is_mapping)
)
FIELDS: Mapping[str, Check] = {
    **dict.fromkeys(("suite", "title", "question", "preset", "command", "started"), _is_text),
    **dict.fromkeys(("settings", "versions", "hardware"), _is_mapping),
    **dict.fromkeys(("exhibits", "facts", "cells", "answer"), _list_of(_is_text)),
    "seed": _is_seed,
    "seconds": _is_number,
    "factors": _are_factors,
    "levels": _mapping_of(_is_list),
    "metrics": _mapping_of(METRIC),
    "methods": _mapping_of(METHOD),
    "pictures": _list_of(_record(tensor=_is_text, kind=_is_text)),
    "classes": _list_of(_record(role=_is_text, count=_is_number)),
    "table": _is_table,
    "reproduction": _missing_or(_record(name=_is_text, title=_is_text, words=_is_text, table=_is_table)),
}
