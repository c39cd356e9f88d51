"""What every answer to the user is: a table for a reader, the rows behind it, and the same in words."""

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pandas import DataFrame

from forsooth.store import write_atomically
from forsooth.wording import html_piece, markdown_table, printed_table


@dataclass(frozen=True)
class Result:
    """An answer.

    table  one line for each thing that was judged
    rows   what the table was made from
    words  the same in plain sentences
    """

    title: ClassVar[str]
    table: DataFrame
    rows: DataFrame
    words: str

    def shown(self) -> DataFrame:
        """The table for a reader."""
        return self.table

    def __str__(self) -> str:
        return f"{printed_table(self.shown())}\n\n{self.words}"

    def _repr_html_(self) -> str:
        return html_piece(self.title, self.shown(), self.words)

    def markdown(self) -> str:
        """The table and the words as a page."""
        shown = self.shown()
        table = markdown_table(shown.columns, shown.to_numpy().tolist())
        return "\n".join([f"# {self.title}", "", table, "", self.words, ""])

    def keep(self, folder: Path, name: str, lines: DataFrame) -> None:
        """Write name.md, and the lines as name.csv, into the folder."""
        write_atomically(folder / f"{name}.csv", lines.to_csv(index=False).encode())
        write_atomically(folder / f"{name}.md", self.markdown().encode())


def times(seconds: float) -> dict[str, str | float]:
    """Now, and the seconds that an answer took, as run.json has them."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"started": now, "seconds": round(seconds, 1)}


def or_blank(values: Iterable[float], write: Callable[[float], str]) -> list[str]:
    """Numbers as they are written, and nothing where there is none."""
    return [write(value) if value == value else "" for value in values]


def written(table: DataFrame, columns: Iterable[str], writers: Mapping[str, Callable[[float], str]]) -> DataFrame:
    """These columns of a table for a reader, numbers as they are written, and each status with its message."""
    shown = table.assign(status=with_messages(table))[list(columns)]
    for name, write in writers.items():
        shown[name] = or_blank(table[name], write)
    return shown


def with_messages(table: DataFrame) -> list[str]:
    """Statuses, each with its message where it has one, of the columns status and message."""
    pairs = zip(table["status"], table["message"], strict=True)
    return [f"{status}: {message}" if message else status for status, message in pairs]


def as_text(table: DataFrame) -> list[dict[str, str]]:
    """The lines of a table, every cell as text."""
    return [{str(name): str(value) for name, value in line.items()} for line in table.to_dict("records")]
