"""How numbers, shares and lists are written, everywhere alike."""

import html
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment

KEPT = str.maketrans({" ": "\ue000", "\n": "\ue001"})  # white space of values, which is not the template's
WIDEST = 40  # letters of a cell in a printed table
BREAK = "\ue002"  # of a line
GIVEN_BACK = str.maketrans({"\ue000": " ", "\ue001": "\n"})


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


def duration(seconds: float) -> str:
    """A time in the unit that people use, roughly.

    >>> duration(41.2), duration(150.0), duration(9000.0)
    ('41 s', '2 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


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


def with_text(table: "pd.DataFrame", columns: Iterable[str]) -> "pd.DataFrame":
    """The table, each value of these columns as people write it."""
    return table.assign(**{name: table[name].map(text) for name in columns})


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


def by_name(values: "Mapping[Any, Any] | pd.Series[Any]", form: str = "{} {:.2f}") -> str:
    """Names with what each has, in a sentence.

    >>> by_name({"a": 0.5, "b": 2}), by_name({"a": 0.25}, "{} {:.0%}")
    ('a 0.50, b 2.00', 'a 25%')
    """
    return ", ".join(form.format(name, value) for name, value in values.items())


def first_line(function: Any) -> str:
    """What a function says of itself, in a line; of a partial the function inside says it. Empty where it is silent.

    >>> first_line(agreeing), first_line(lambda: 0)
    ('The form of a verb or a noun for so many names.', '')
    """
    words = getattr(function, "func", function).__doc__ or ""
    return next(iter(words.strip().splitlines()), "")


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


def printed_table(table: "pd.DataFrame") -> str:
    """A table as text. Long cells are cut, and stand below it in full, each named by the first cell of its line."""
    shown = table.map(_cut).to_string(index=False)
    lines = []
    for line in table.itertuples(index=False):
        lines += [f"{line[0]}: {cell}" for cell in line if _cut(cell) is not cell]
    return "\n\n".join(part for part in (shown, "\n".join(lines)) if part)


def _cut(cell: Any) -> Any:
    if isinstance(cell, str) and len(cell) > WIDEST:
        return f"{cell[: WIDEST - 1]}…"
    return cell


def html_piece(title: str, table: "pd.DataFrame", words: str) -> str:
    """What a notebook shows of an answer: title, table and words, whose paragraphs have blank lines between them."""
    paragraphs = "".join(f"<p>{html.escape(part)}</p>" for part in words.split("\n\n") if part)
    shown = table.to_html(index=False, border=0, na_rep="", justify="left")
    return f"<div><h4>{html.escape(title)}</h4>{shown}{paragraphs}</div>"


class Place(NamedTuple):
    """A word in a paragraph: its line, its first column, and how many columns it takes."""

    line: int
    column: int
    width: int


def placed(words: Sequence[str], *, across: int) -> list[Place]:
    """Where each word stands when lines of `across` letters are filled; a longer word is alone and cut there.

    >>> placed(["one", "two", "three"], across=8)
    [Place(line=0, column=0, width=3), Place(line=0, column=4, width=3), Place(line=1, column=0, width=5)]
    """
    places = []
    line = 0
    column = 0
    for word in words:
        width = min(len(word), across)
        if column and column + width > across:
            line += 1
            column = 0
        places.append(Place(line, column, width))
        column += width + 1
    return places


def lines_of(words: Sequence[str], places: Sequence[Place]) -> list[str]:
    """The text of each line: one string draws faster than its words, and every letter is as wide as the others."""
    lines = [""] * (max((place.line for place in places), default=0) + 1)
    for word, place in zip(words, places, strict=True):
        lines[place.line] = lines[place.line].ljust(place.column) + word[: place.width]
    return lines


def paragraphs(package: str, template: str, **values: Any) -> list[str]:
    """The paragraphs of a template that lies beside the code of a package, those that come out empty left out.

    In a template a blank line ends a paragraph, `//` breaks a line, and all other white space is one space; that of
    values stays as it is. Whatever this module writes is a filter there.
    """
    source = (resources.files(package) / template).read_text(encoding="utf-8").replace("//", BREAK)
    text = _environment().from_string(source).render(**values)
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    return [part.replace(f" {BREAK} ", "\n").translate(GIVEN_BACK) for part in parts if part]


def text_of(package: str, template: str, **values: Any) -> str:
    """All `paragraphs` of a template, with blank lines between them."""
    return "\n\n".join(paragraphs(package, template, **values))


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, StrictUndefined  # only who writes sentences pays for the import

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_kept)
    environment.filters |= {
        "agreeing": agreeing,
        "joined": joined,
        "listed": listed,
        "number": number,
        "plural": plural,
        "share": share,
        "significant": significant,
    }
    return environment


def _kept(value: Any) -> str:
    return str(value).translate(KEPT)
