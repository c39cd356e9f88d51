"""Commands that look at what is there: the machine, finished runs, the catalogue."""

import importlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import forsooth
from forsooth.errors import UsageError
from forsooth.names import find, unknown
from forsooth.terminal import Json, Only, as_json, factors, fitting, opened, out, plain

if TYPE_CHECKING:
    from forsooth.runs import Run

CATALOGUES = {
    "suites": ("forsooth.suites", "SUITES"),
    "methods": ("forsooth.attributions", "METHODS"),
    "metrics": ("forsooth.scores", "METRICS"),
    "models": ("forsooth.models", "MODELS"),
    "datasets": ("forsooth.datasets", "DATASETS"),
    "reproductions": ("forsooth.suites", "REPRODUCTIONS"),
}
File = Annotated[Path | None, typer.Option("--out", help="file to write; parquet needs one")]
ROWS = ("csv", "json", "parquet")
FORMATS = (*ROWS, "markdown", "latex")


def doctor(
    runs: Annotated[list[Path] | None, typer.Argument(help="folders of runs whose stores are checked, too")] = None,
    json: Json = False,
) -> None:
    """Is all well? Versions, devices, memory, disk, and the stores of runs. Exit code 1 if something is not."""
    found = forsooth.doctor(*(runs or []))
    if json:
        as_json(table=found.table, problems=found.problems)
    else:
        out.print(plain(found.table, "this machine"))
        out.print(found.words, highlight=False, markup=False, soft_wrap=True)
    if not found.well:
        raise typer.Exit(1)


def compare_(
    a: Annotated[Path, typer.Argument(help="folder of a run")],
    b: Annotated[Path, typer.Argument(help="folder of another run of the same suite")],
    metric: Annotated[str | None, typer.Option(help="by which score; default: the first")] = None,
    only: Only = None,
    json: Json = False,
) -> None:
    """What became of every score from run A to run B: differences with intervals, and what was set otherwise."""
    found = forsooth.compare(a, b, metric, only=factors(only))
    if json:
        return as_json(metric=found.metric, paired=found.paired, **found.tables(), words=found.words)
    out.print(plain(fitting(found.table.round(3)), f"{found.metric}: b - a"))
    if len(found.settings):
        out.print(plain(found.settings, "set otherwise"))
    out.print(found.words, highlight=False, markup=False, soft_wrap=True)


def card(
    name: Annotated[str, typer.Argument(help="a method or a metric; all of them if left out")] = "",
) -> None:
    """All that is known of a method or a metric: what it needs, promises and cites, and how it is reckoned."""
    from forsooth.analysis import cards
    from forsooth.attributions import METHODS
    from forsooth.scores import METRICS

    known: list[Any] = [*METHODS, *METRICS]
    if name:
        sys.stdout.write(cards.card(find(name, known, argument="name")))
    else:
        sys.stdout.write(cards.page(METHODS, METRICS))


def list_(
    what: Annotated[
        str, typer.Argument(help=", ".join(CATALOGUES), autocompletion=lambda: list(CATALOGUES))
    ] = "suites",
    json: Json = False,
) -> None:
    """What there is: suites, methods, metrics, models, datasets, reproductions."""
    if what not in CATALOGUES:
        raise unknown(what, CATALOGUES, argument="what")
    if json:
        return as_json(**{record.name: _summary(record) for record in _catalogue(what)})
    wide = max(len(record.name) for record in _catalogue(what))
    for record in _catalogue(what):
        out.print(f"{record.name:<{wide}}  {_summary(record)}", highlight=False, markup=False, soft_wrap=True)


def _catalogue(what: str) -> tuple[Any, ...]:
    """The records of that kind; only who asks for them waits for their imports."""
    module, name = CATALOGUES[what]
    return tuple(getattr(importlib.import_module(module), name))


def settings(
    suite: Annotated[str, typer.Argument(help="a suite; all of them if left out")] = "",
    format: Annotated[str, typer.Option(help="table, markdown or json")] = "table",
) -> None:
    """Every setting of a suite, what it means, and its value in each preset."""
    if format not in ("table", "markdown", "json"):
        raise unknown(format, ("table", "markdown", "json"), argument="format")
    from forsooth.settings import as_markdown, described
    from forsooth.suites import SUITES

    chosen = [find(suite, SUITES, argument="suite")] if suite else list(SUITES)
    if format == "markdown":
        sys.stdout.write(as_markdown(chosen))
    elif format == "json":
        tables = {one.name: described(one).to_dict("records") for one in chosen}
        sys.stdout.write(json.dumps(tables, indent=1) + "\n")
    else:
        for one in chosen:
            out.print(plain(described(one), one.name))


def report_(
    runs: list[Path], page: Annotated[Path | None, typer.Option("--out", help="where the page goes")] = None
) -> None:
    """Build the page of a run again; several runs stand side by side on one page."""
    from forsooth.runs import write_page

    opened(write_page(runs, page))


def results(
    folder: Path,
    format: Annotated[str, typer.Option(help=", ".join(FORMATS))] = "csv",
    only: Only = None,
    target: File = None,
) -> None:
    """A run for your own analysis: rows as csv, json (a line each) or parquet; boards as markdown or latex."""
    if format not in FORMATS:
        raise unknown(format, FORMATS, argument="format")
    if format == "parquet" and target is None:
        raise UsageError("`--out` must name a file for parquet, which is no text to print")
    content = _exported(forsooth.Run(folder), format, factors(only))
    if target is None:
        sys.stdout.write(content.decode())
    else:
        from forsooth.store import write_atomically

        write_atomically(target, content)


def _exported(made: "Run", format: str, only: Mapping[str, str]) -> bytes:
    """Rows, or the boards of all metrics, in one of FORMATS."""
    if format not in ROWS:
        from forsooth.analysis import export

        boards = {metric: made.leaderboard(metric, only=only) for metric in made.metrics}
        return "\n".join(
            export.WRITERS[format](board, metric) for metric, board in boards.items() if len(board)
        ).encode()
    rows = made.part(only) if only else made.rows
    if format == "parquet":
        return bytes(rows.to_parquet(index=False))
    if format == "json":
        return str(rows.to_json(orient="records", lines=True)).encode()
    return str(rows.to_csv(index=False)).encode()


def _summary(record: Any) -> str:
    """What a record is, in a line: what it says of itself, or the first line of its function."""
    for field in ("question", "title"):  # of a suite, of a reproduction
        if hasattr(record, field):
            return str(getattr(record, field))
    if hasattr(record, "description"):
        return f"{record.description} [{record.cite}]"
    function = getattr(record.function, "func", record.function)  # a partial has its docstring inside
    lines = (function.__doc__ or "").strip().splitlines()
    knobs = ", ".join(f"{name}={value}" for name, value in getattr(record, "settings", {}).items())
    return " ".join([*lines[:1], f"({knobs})" if knobs else "", f"[{record.cite}]"])


def suite_names() -> list[str]:
    """The suites, by their folders: whoever presses the tabulator does not wait for imports."""
    folder = Path(forsooth.__path__[0]) / "suites"
    return sorted(path.parent.name for path in folder.glob("*/settings.py"))


def reproduction_names() -> list[str]:
    from forsooth.suites import REPRODUCTIONS

    return [record.name for record in REPRODUCTIONS]
