"""What all commands share: options with their words, where they print, and how progress and tables look."""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from forsooth.progress import Bar, Lines, Silent


def tolerant_output() -> None:
    """No sign that the terminal lacks, and no closed output, may cost the user the last line of a long run."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - it stays open as long as the program
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


tolerant_output()
GAP = 3  # beside every column of a table
out = Console(width=None if sys.stdout.isatty() else 150)  # a pipe has no width to fit

Methods = Annotated[str, typer.Option(help="names separated by commas; package.module:function is your own")]
Data = Annotated[Path | None, typer.Option(help="folder or zip of real data the suite can use")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda")]
Workers = Annotated[int, typer.Option(help="processes; 0 takes one for each core")]
Out = Annotated[Path | None, typer.Option("--out", help="output folder; repeating the command resumes the run")]
Quiet = Annotated[bool, typer.Option("--quiet", help="no progress")]
Seed = Annotated[int, typer.Option(help="one integer; same seed, same numbers")]


def listed(words: str) -> list[str]:
    """Names separated by commas.

    >>> listed("a,b"), listed("")
    (['a', 'b'], [])
    """
    return [name for name in words.split(",") if name]


def processes(workers: int) -> int:
    return workers if workers != 0 else (os.cpu_count() or 1)


def progress_of(quiet: bool) -> Bar | Lines | Silent:
    if quiet:
        return Silent()
    return Bar() if sys.stderr.isatty() else Lines()


def plain(table: pd.DataFrame, title: str) -> Table:
    shown = Table(*map(str, table.columns), title=escape(title), box=SIMPLE, pad_edge=False)
    for line in table.itertuples(index=False):
        shown.add_row(*(escape(str(cell)) for cell in line))  # messages of errors are full of brackets
    return shown


def fitting(table: pd.DataFrame, spare: Sequence[str] | None = None) -> pd.DataFrame:
    """The table without what the terminal has no room for, since squeezed columns cannot be read.

    spare  columns to leave out, in this order; None: the last one first. The first column stays.
    """
    widths = {name: max(map(len, map(str, [name, *table[name]]))) + GAP for name in table}
    for name in list(table.columns)[:0:-1] if spare is None else spare:
        if sum(widths.values()) <= out.width:
            break
        del widths[name]
    return table[list(widths)]


def opened(page: Path) -> None:
    out.print(f"Open the page: {page.resolve()}", highlight=False, soft_wrap=True)
