"""A card for each method and metric: what its record and its function say of it."""

import dataclasses
import inspect
from collections.abc import Iterable
from typing import Any

from forsooth.wording import text

LEFT_OUT = ("name", "function", "version")
HEAD = """# Cards

What the record of every method and metric says, and the docstring of its function. `forsooth card NAME` prints one.
`needs`: what a method is given beside model, inputs and targets. `promise`: the sum that its maps have.
"""


def card(record: Any) -> str:
    """The card of a record in Markdown: its fields that are set, and the words of its function."""
    facts = []
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name not in LEFT_OUT and value:
            facts.append(f"{field.name}: {_written(value)}")
    function = getattr(record.function, "func", record.function)  # a partial has its docstring inside
    words = inspect.getdoc(function) or ""
    return f"### {record.name}\n\n{' · '.join(facts)}\n\n```text\n{words}\n```\n"


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return {True: "yes", False: "no"}[value]
    if isinstance(value, dict):
        return ", ".join(f"{name}={_written(setting)}" for name, setting in value.items())
    if isinstance(value, tuple | list | frozenset | set):
        return ", ".join(text(part) for part in value)
    return text(getattr(value, "__name__", value))


def page(methods: Iterable[str], metrics: Iterable[str]) -> str:
    """All cards on one page."""
    return "\n".join([HEAD, "## Methods\n", *methods, "## Metrics\n", *metrics])
