"""How numbers, shares and lists are written, everywhere alike."""

from collections.abc import Iterable, Sequence
from typing import Any


def number(value: Any, *, digits: int = 3) -> str:
    """That many decimals for scores of order 1, that many digits for others.

    >>> number(0.25), number(0.25, digits=2), number(1234.5), number(1e-7), number(float("nan"))
    ('0.250', '0.25', '1.23e+03', '1e-07', '?')
    """
    if value != value:
        return "?"
    size = abs(float(value))
    if size == 0 or 1e-3 <= size < 10:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}g}"


def significant(value: Any) -> str:
    """Three digits of a number of whatever size; what is below rounding is zero.

    >>> significant(0.123456), significant(0.00288), significant(2e-17)
    ('0.123', '0.00288', '0')
    """
    if abs(value) < 1e-9:
        return "0"
    return f"{value:.3g}"


def share(value: Any, *, digits: int = 0) -> str:
    """A share in per cent; a little is not nothing.

    >>> share(0.0), share(0.001), share(0.396), share(0.0083, digits=1)
    ('0 %', '<1 %', '40 %', '0.8 %')
    """
    part = float(value)
    if digits == 0 and 0 < part < 0.01:
        return "<1 %"
    return f"{100 * part:.{digits}f} %"


def text(value: Any) -> str:
    """A value as people write it: 8.0 is "8", and what is missing is "".

    >>> text(8.0), text("LIN"), text(0.575), text(None), text(4000002)
    ('8', 'LIN', '0.575', '', '4000002')
    """
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value)


def plural(count: int, noun: str) -> str:
    """
    >>> plural(1, "null"), plural(2, "null")
    ('1 null', '2 nulls')
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}s"


def agreeing(names: Sequence[str], one: str, more: str) -> str:
    """The form of a verb or a noun for so many names.

    >>> agreeing(["a"], "is", "are"), agreeing(["a", "b"], "is", "are")
    ('is', 'are')
    """
    if len(names) == 1:
        return one
    return more


def listed(names: Sequence[str], *, most: int = 8) -> str:
    """Names in a sentence, of which some are left out where they are many.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c"], most=2), listed([])
    ('a', 'a, b and c', 'a, b and 1 other', '')
    """
    shown = list(names[:most])
    if len(names) > most:
        shown.append(plural(len(names) - most, "other"))
    return joined(shown)


def joined(names: Sequence[str], word: str = "and") -> str:
    """All names in a sentence.

    >>> joined(["a"]), joined(["a", "b", "c"], "or")
    ('a', 'a, b or c')
    """
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def markdown_table(columns: Iterable[str], lines: Iterable[Iterable[Any]]) -> str:
    r"""A table in Markdown, every cell as text.

    >>> print(markdown_table(["a", "b"], [[1, "x|y"]]))
    | a | b |
    | --- | --- |
    | 1 | x\|y |
    """
    head = list(columns)
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(_markdown_line(row) for row in rows)


def _markdown_line(cells: Iterable[Any]) -> str:
    escaped = [str(cell).replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"
