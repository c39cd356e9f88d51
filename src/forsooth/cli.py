"""The terminal: parse, call, print. Nothing here that a Python caller cannot do."""

import errno
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from forsooth import __version__, api, cli_runs, cli_user
from forsooth.analysis import export
from forsooth.attributions import METHODS
from forsooth.cli_user import show_board
from forsooth.datasets import DATASETS, Source
from forsooth.models import MODELS
from forsooth.names import find, unknown
from forsooth.processes import kept
from forsooth.records import FailedTasks, Reproduction, Suite, UsageError
from forsooth.runs import write_page
from forsooth.scores import METRICS
from forsooth.settings import as_markdown, described
from forsooth.store import write_atomically
from forsooth.suites import REPRODUCTIONS, SUITES
from forsooth.terminal import (
    EXAMPLES,
    Data,
    Device,
    Json,
    MethodMemory,
    Methods,
    MethodTimeout,
    On,
    Only,
    Out,
    Quiet,
    Seed,
    TaskTimeout,
    Workers,
    as_json,
    factors,
    fitting,
    listed,
    opened,
    out,
    pairs,
    plain,
    processes,
    progress_of,
    records,
)

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measures whether feature-attribution methods tell the truth.",
)
CATALOGUES: dict[str, tuple[Any, ...]] = {
    "suites": SUITES,
    "methods": METHODS,
    "metrics": METRICS,
    "models": MODELS,
    "datasets": DATASETS,
    "reproductions": REPRODUCTIONS,
}

File = Annotated[Path | None, typer.Option("--out", help="file to write; parquet needs one")]
FORMATS = ("csv", "json", "parquet", *export.WRITERS)
SOME_FAILED = 3
STOPPED = 130  # the exit code of a program that was interrupted at the keyboard
TERMINATED = 143  # that of one that was asked to end by SIGTERM
GRACE = 4.0  # seconds between a signal and the end, whatever goes on
Preset = Annotated[
    str,
    typer.Option(
        help="demo (about a minute), quick (minutes on a laptop), paper (as printed), released (as the code does)"
    ),
]
Change = Annotated[list[str] | None, typer.Option("--set", help="change a setting of the preset, e.g. alpha=0.2")]


OF_USERS = (cli_user.bias, cli_user.dryrun, cli_user.independence, cli_user.check, cli_user.score)
for own in (*OF_USERS, cli_runs.doctor, cli_runs.card):
    app.command(epilog=EXAMPLES[own.__name__])(own)
app.command("compare", epilog=EXAMPLES["compare"])(cli_runs.compare_)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"forsooth {__version__}", highlight=False)
        raise typer.Exit()


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version and leave")
    ] = False,
) -> None:
    """Measures whether feature-attribution methods tell the truth."""


@app.command(epilog=EXAMPLES["demo"])
def demo(workers: Workers = 0, on: On = None, quiet: Quiet = False) -> None:
    """All suites at laptop scale, and one page to open."""
    runs = []
    with kept():  # one pool for all suites
        for suite in SUITES:
            out.print(f"[bold]{suite.title}[/bold]: {suite.question}")
            progress = progress_of(quiet)
            runs.append(
                api.run(suite.name, preset="demo", workers=processes(workers), on=on, page=False, progress=progress)
            )
            show_board(runs[-1])
    folders = [made.folder for made in runs]
    opened(write_page(folders, folders[0].parent / "demo.html"))
    _exit_if_failed(runs)


@app.command("list", epilog=EXAMPLES["list"])
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
        return as_json(**{record.name: _summary(record) for record in CATALOGUES[what]})
    for record in CATALOGUES[what]:
        out.print(f"{record.name:<24} {_summary(record)}", highlight=False, markup=False, soft_wrap=True)


@app.command(epilog=EXAMPLES["run"])
def run(
    suite: Annotated[str, typer.Argument(help="`forsooth list` names all", autocompletion=lambda: _names(SUITES))],
    preset: Preset = "quick",
    only: Only = None,
    change: Change = None,
    methods: Methods = "",
    models: Annotated[str, typer.Option(help="architectures separated by commas")] = "",
    data: Data = None,
    device: Device = "auto",
    workers: Workers = 0,
    on: On = None,
    task_timeout: TaskTimeout = None,
    method_timeout: MethodTimeout = None,
    method_memory: MethodMemory = None,
    folder: Out = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run a suite: data, models, attributions, scores and a page."""
    kept = factors(only)
    if models and "model" in kept:
        raise UsageError(f"`--models` must come without `--only model=`, got {models!r} and {kept['model']!r}")
    kept |= {"model": models} if models else {}
    made = api.run(
        suite,
        preset=preset,
        methods=listed(methods),
        only=kept,
        settings=pairs(change, "set"),
        data=data,
        device=device,
        workers=processes(workers),
        on=on,
        task_timeout=task_timeout,
        method_timeout=method_timeout,
        method_memory=method_memory,
        out=folder,
        seed=seed,
        progress=progress_of(quiet),
    )
    if json:
        boards = {metric: records(made.leaderboard(metric)) for metric in made.metrics}
        as_json(folder=made.folder, page=made.folder / "report.html", failed=made.failed, boards=boards)
    else:
        show_board(made)
        opened(made.folder / "report.html")
    _exit_if_failed([made])


@app.command(epilog=EXAMPLES["export_data"])
def export_data(
    suite: str,
    preset: Preset = "quick",
    only: Only = None,
    change: Change = None,
    data: Data = None,
    samples: Annotated[int, typer.Option(help="of each dataset at most; 0 takes all")] = 100,
    split: Annotated[str, typer.Option(help="test, val or train")] = "test",
    folder: Out = None,
    seed: Seed = 0,
) -> None:
    """Write samples of a suite with their truth, to make maps elsewhere for `forsooth score`."""
    written = api.export_data(
        suite,
        preset=preset,
        only=factors(only),
        settings=pairs(change, "set"),
        data=data,
        samples=samples or None,
        split=split,
        out=folder,
        seed=seed,
    )
    for place in written:
        out.print(f"Samples and truth: {place.resolve()}", highlight=False, markup=False, soft_wrap=True)


@app.command(epilog=EXAMPLES["settings"])
def settings(
    suite: Annotated[str, typer.Argument(help="a suite; all of them if left out")] = "",
    format: Annotated[str, typer.Option(help="table, markdown or json")] = "table",
) -> None:
    """Every setting of a suite, what it means, and its value in each preset."""
    if format not in ("table", "markdown", "json"):
        raise unknown(format, ("table", "markdown", "json"), argument="format")
    chosen = [find(suite, SUITES, argument="suite")] if suite else list(SUITES)
    if format == "markdown":
        sys.stdout.write(as_markdown(chosen))
    elif format == "json":
        tables = {one.name: described(one).to_dict("records") for one in chosen}
        sys.stdout.write(json.dumps(tables, indent=1) + "\n")
    else:
        for one in chosen:
            out.print(plain(described(one), one.name))


@app.command("report", epilog=EXAMPLES["report"])
def report_(
    runs: list[Path], page: Annotated[Path | None, typer.Option("--out", help="where the page goes")] = None
) -> None:
    """Build the page of a run again; several runs stand side by side on one page."""
    opened(write_page(runs, page))


@app.command(epilog=EXAMPLES["results"])
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
    content = _exported(api.Run(folder), format, factors(only))
    if target is None:
        sys.stdout.write(content.decode())
    else:
        write_atomically(target, content)


def _exported(made: api.Run, format: str, only: Mapping[str, str]) -> bytes:
    """Rows, or the boards of all metrics, in one of FORMATS."""
    if format in export.WRITERS:
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


@app.command(epilog=EXAMPLES["reproduce"])
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="e.g. bias/table-13; `forsooth list reproductions` names all",
            autocompletion=lambda: _names(REPRODUCTIONS),
        ),
    ],
    only: Only = None,
    data: Data = None,
    change: Change = None,
    device: Device = "auto",
    workers: Workers = 0,
    on: On = None,
    task_timeout: TaskTimeout = None,
    folder: Out = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """A published table or figure made again: ours beside theirs, and a verdict in words."""
    table, words = api.reproduce(
        name,
        only=factors(only),
        data=data,
        device=device,
        workers=processes(workers),
        on=on,
        task_timeout=task_timeout,
        out=folder,
        settings=pairs(change, "set"),
        progress=progress_of(quiet),
    )
    if json:
        return as_json(table=table, words=words, folder=api.reproduction_folder(name, folder))
    shown = fitting(table)
    left = ", ".join(map(str, table.columns[shown.shape[1] :]))
    out.print(plain(shown, name))
    out.print(words, highlight=False, markup=False)
    what = f"The table, also with {left}" if left else "The table"
    out.print(
        f"{what}: {api.reproduction_folder(name, folder) / 'table.csv'}", highlight=False, markup=False, soft_wrap=True
    )


def main() -> None:
    """Errors of the user's making are one clear line and exit code 2; if tasks failed it is one line and code 3."""
    received: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        received.append(number)
        _leave_soon(received)
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupt)
    try:
        app()
    except UsageError as error:
        sys.stderr.write(f"forsooth: {error}\n")
        sys.exit(2)
    except FailedTasks as error:
        sys.stderr.write(f"forsooth: {error}\n")
        sys.exit(SOME_FAILED)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.stderr.write(f"forsooth: the output could not be written: {error.strerror}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(stopped(received))
    except SystemExit as end:
        if end.code == STOPPED:  # typer makes this of a keyboard interrupt
            sys.exit(stopped(received))
        raise


def stopped(signals: Sequence[int]) -> int:
    """Say that work is kept; the exit code by which shells know what ended a program."""
    sys.stderr.write("stopped; what was finished is kept, and the same command goes on from there\n")
    if signal.SIGTERM in signals:
        return TERMINATED
    return STOPPED


def _leave_soon(signals: Sequence[int]) -> None:
    """Who is asked to end does so within seconds, even where code of a task swallows the interrupt or hangs."""

    def leave() -> None:
        code = stopped(signals)
        sys.stderr.flush()
        os._exit(code)  # processes of a pool end with this one

    if len(signals) == 1:
        timer = threading.Timer(GRACE, leave)
        timer.daemon = True
        timer.start()


def _names(known: Sequence[Any]) -> list[str]:
    return [record.name for record in known]


def _exit_if_failed(runs: Sequence[api.Run]) -> None:
    """Where tasks failed the exit code says so; what the others gave stands above, and the run said why."""
    if any(made.failed for made in runs):
        raise typer.Exit(SOME_FAILED)


def _summary(record: Any) -> str:
    """What a record is, in a line: what it says of itself, or the first line of its function."""
    if isinstance(record, Suite):
        return record.question
    if isinstance(record, Reproduction):
        return record.title
    if isinstance(record, Source):
        return f"{record.description} [{record.cite}]"
    function = getattr(record.function, "func", record.function)  # a partial has its docstring inside
    lines = (function.__doc__ or "").strip().splitlines()
    knobs = ", ".join(f"{name}={value}" for name, value in getattr(record, "settings", {}).items())
    return " ".join([*lines[:1], f"({knobs})" if knobs else "", f"[{record.cite}]"])
