"""Every answer leaves a page: its words, table and rows become the files of a run, from which the page is made."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Self

from pandas import DataFrame
from torch import Tensor

from forsooth import runs
from forsooth.adapters.methods import NamedMethod
from forsooth.records import Facts, Line
from forsooth.suites.album import Album
from forsooth.user.results import Result, as_text, times

MOST = 60  # values of a list that a page repeats; methods are fewer, texts may be many


@dataclass(frozen=True)
class Page:
    """What the page of an answer says beside its table and its words.

    suite     as which its rows are kept
    question  in a line
    command   the words at the terminal that ask it again; empty where something lives in memory
    settings  what was asked, by name
    methods   method -> what its record says
    facts     sentences that a reader must know
    scores    fields of run.json about scores and panels; none where nothing is ranked
    rows      of scores.parquet
    album     pictures
    seen      a sentence on them
    seconds   that the answer took
    """

    suite: str
    question: str
    command: str
    settings: Facts
    seed: int = 0
    methods: Mapping[str, Facts] = field(default_factory=dict)
    facts: Sequence[str] = ()
    scores: Facts = field(default_factory=dict)
    rows: Sequence[Line] = ()
    album: Album = field(default_factory=partial(Album, {}))
    seen: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class PagedResult(Result):
    """An answer that can be written as a page.

    page  what it says beside table and words
    """

    page: Page = field(kw_only=True, repr=False, compare=False)

    def kept(self, folder: Path | None, name: str) -> Self:
        """The answer itself, its files and its page written into the folder, if there is one."""
        if folder is not None:
            self.keep(folder, name, self.rows)
            self.report(folder)
        return self

    def report(self, out: str | Path) -> Path:
        """Write the page, with the rows behind it, into a folder, and return its path."""
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        runs.keep_answer(folder, self.page.rows, self.page.album.tensors, run_facts(self))
        return runs.write_page([folder])


def run_facts(result: PagedResult) -> Facts:
    """What run.json says of an answer: the advice first, the other words below, and the table as a person reads it."""
    page = result.page
    *words, advice = result.words.strip().split("\n\n")
    seen = [page.seen] if page.album.pictures else []
    return {
        "suite": page.suite,
        "title": result.title,
        "question": page.question,
        "preset": "",
        "seed": page.seed,
        "command": page.command,
        "settings": dict(page.settings),
        "factors": [],
        "levels": {},
        "exhibits": [],
        "metrics": {},
        **page.scores,
        "methods": dict(page.methods),
        "answer": advice.splitlines(),
        "facts": [*words, *page.facts, *seen],
        "table": as_text(result.shown()),
        "pictures": page.album.pictures,
        "classes": [],
        **times(page.seconds),
    }


def plain_rows(rows: DataFrame) -> list[Facts]:
    """The lines of a table, None where nothing is known."""
    lines: list[Facts] = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return lines


def described_methods(chosen: Iterable[NamedMethod]) -> dict[str, Facts]:
    """What run.json says of the methods that were asked."""
    return {one.name: {**runs.described_method(one.method), "settings": told(one.method.settings)} for one in chosen}


def asked(request: Any) -> Facts:
    """The fields of a request, what lives in memory by its kind."""
    return {one.name: told(getattr(request, one.name)) for one in fields(request)}


def told(value: Any) -> Any:
    """A value that JSON can hold, or words for it.

    >>> told(("a", 2)), told(float("nan")), told(dict), told(["a text"] * 500)
    (['a', 2], None, 'type, given in Python', '500 values, given in Python')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): told(part) for name, part in value.items()}
    if isinstance(value, tuple | list) and len(value) <= MOST:
        return [told(part) for part in value]
    return f"{kind_of(value)}, given in Python"


def kind_of(value: Any) -> str:
    """What a value is that cannot be told in full."""
    if isinstance(value, tuple | list):
        return f"{len(value)} values"
    name = type(value).__name__
    if hasattr(value, "shape"):
        return f"{name} {tuple(value.shape)}"
    return name


def add_pictures(album: Album, pictures: Mapping[tuple[str, str], Tensor], place: int, label: Any) -> None:
    """Add what belongs to one input, at that place among those with this label: kind and method -> (h, w)."""
    for (kind, method), picture in pictures.items():
        name = f"{kind}/{label}/{method}"
        album.add(picture.float().cpu().contiguous(), name, place, kind=kind, method=method, label=label)


def grey(x: Tensor) -> Tensor:
    """One input, its channels averaged where it has any. (*map)"""
    return x.float().mean(0) if x.ndim == 3 else x.float()
