"""What all commands share: options with their words, where they print, and how progress and tables look."""

import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from rich.box import SIMPLE
from rich.table import Table

from forsooth.errors import UsageError
from forsooth.printing import Printer, put
from forsooth.progress import Bar, Lines, Silent

if TYPE_CHECKING:  # whoever only asks for help does not wait for pandas
    import pandas as pd


def tolerant_output() -> None:
    """No sign that the terminal lacks, and no closed output, may cost the user the last line of a long run."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - it stays open as long as the program
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


tolerant_output()
GAP = 3  # beside every column of a table
out = Printer(width=None if sys.stdout.isatty() else 150)  # a pipe has no width to fit

Methods = Annotated[str, typer.Option(help="names separated by commas, or all; package.module:function is your own")]
Data = Annotated[Path | None, typer.Option(help="folder or zip of real data the suite can use")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda")]
Workers = Annotated[int, typer.Option(help="processes; 0 takes one for each core")]
On = Annotated[str | None, typer.Option(help="a Dask cluster instead: tcp://host:port, local:N or a scheduler file")]
TaskTimeout = Annotated[float | None, typer.Option(help="seconds after which a task is ended and tried once more")]
MethodTimeout = Annotated[
    float | None, typer.Option(help="seconds that one question to a method of yours may take; default: 600")
]
MethodMemory = Annotated[
    float | None, typer.Option(help="GiB of memory that it may take beyond torch's own; default: 8")
]
Out = Annotated[Path | None, typer.Option("--out", help="output folder; repeating the command resumes the run")]
Only = Annotated[list[str] | None, typer.Option(help="keep one part, e.g. scenario=LIN or background=WHITE,CORR")]
Quiet = Annotated[bool, typer.Option("--quiet", help="no progress")]
Json = Annotated[bool, typer.Option("--json", help="print JSON, for scripts")]
Seed = Annotated[int, typer.Option(help="one integer; same seed, same numbers")]


EXAMPLES = {  # what `forsooth COMMAND --help` ends with
    "demo": "forsooth demo --workers 2 --out demo",
    "list": "forsooth list methods",
    "run": "forsooth run xaitris --preset demo --methods saliency,random,oracle,mine:my_method --out first",
    "settings": "forsooth settings xaitris",
    "export-data": "forsooth export-data xaitris --only scenario=LIN --out data",
    "score": "forsooth score maps.npz --truth data/LIN-WHITE-8 --metrics emd,ima",
    "report": "forsooth report first second --out both.html",
    "results": "forsooth results first --format latex --only model=mlp",
    "reproduce": "forsooth reproduce bias/suppressor --out again",
    "bias": "forsooth bias --model mine:build --inputs x.npy --players grid:8 --methods integrated_gradients,lime",
    "dryrun": "forsooth dryrun --data photos --methods integrated_gradients,grad_cam --artefacts watermark",
    "independence": "forsooth independence --model mine:build --inputs x.npy --patch grid:4",
    "check": "forsooth check mine:my_method",
    "doctor": "forsooth doctor first",
    "compare": "forsooth compare first second --metric ima --only model=mlp",
    "card": "forsooth card lime",
}


def listed(words: str) -> list[str]:
    """Names separated by commas.

    >>> listed("a, b"), listed("")
    (['a', 'b'], [])
    """
    return [name.strip() for name in words.split(",") if name.strip()]


def pairs(words: list[str] | None, option: str) -> dict[str, str]:
    """key -> value, of words like key=value."""
    pairs = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"`--{option}` must be key=value, got {word!r}")
        pairs[name] = value
    return pairs


def factors(only: list[str] | None) -> dict[str, str]:
    """factor -> values to keep."""
    return pairs(only, "only")


def processes(workers: int) -> int:
    return workers if workers != 0 else (os.cpu_count() or 1)


def progress_of(quiet: bool) -> Bar | Lines | Silent:
    if quiet:
        return Silent()
    return Bar() if sys.stderr.isatty() else Lines()


def plain(table: "pd.DataFrame", title: str) -> Table:
    return grid(table.columns, table.itertuples(index=False), title)


def grid(columns: Iterable[Any], lines: Iterable[Iterable[Any]], title: str) -> Table:
    """A table to print, every cell as text."""
    shown = Table(*map(str, columns), title=title, box=SIMPLE, pad_edge=False)
    for line in lines:
        shown.add_row(*map(str, line))
    return shown


class Answer(Protocol):
    """A table with the words that go with it."""

    @property
    def table(self) -> "pd.DataFrame": ...

    @property
    def words(self) -> str: ...

    def shown(self) -> "pd.DataFrame": ...


def answered(answer: Answer, title: str, *, spare: Sequence[str] = ()) -> None:
    """Print a table, without the columns to spare that a narrow terminal has no room for, and its words."""
    out.print(plain(fitting(answer.shown(), spare), title))
    out.print(answer.words, soft_wrap=True)


def as_json(**values: Any) -> None:
    """Print one object; tables are lists of objects, with null where there is no number."""
    told = {name: records(value) if hasattr(value, "to_json") else value for name, value in values.items()}
    put(json.dumps(told, indent=1, default=str) + "\n")


def records(table: "pd.DataFrame") -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = json.loads(table.to_json(orient="records"))
    return lines


def fitting(table: "pd.DataFrame", spare: Sequence[str] | None = None) -> "pd.DataFrame":
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
    out.print(f"Open the page: {page.resolve()}", soft_wrap=True)
