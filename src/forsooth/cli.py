"""The terminal: parse, call, print. Nothing here that a Python caller cannot do."""

import errno
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from forsooth import __version__, api, cli_user, report
from forsooth.attributions import METHODS
from forsooth.datasets import DATASETS, Source
from forsooth.models import MODELS
from forsooth.names import find, unknown
from forsooth.records import FailedTasks, Reproduction, Suite, UsageError
from forsooth.report import tables
from forsooth.runs import write_page
from forsooth.scores import METRICS
from forsooth.settings import as_markdown, described
from forsooth.store import write_atomically
from forsooth.suites import REPRODUCTIONS, SUITES
from forsooth.terminal import (
    Data,
    Device,
    Methods,
    Out,
    Quiet,
    Seed,
    Workers,
    fitting,
    listed,
    opened,
    out,
    plain,
    processes,
    progress_of,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
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
SOME_FAILED = 3
STOPPED = 130  # the exit code of a program that was interrupted at the keyboard
TERMINATED = 143  # that of one that was asked to end by SIGTERM
Preset = Annotated[
    str,
    typer.Option(
        help="demo (about a minute), quick (minutes on a laptop), paper (as printed), released (as the code does)"
    ),
]
Only = Annotated[list[str] | None, typer.Option(help="keep one part, e.g. scenario=LIN or background=WHITE,CORR")]
Change = Annotated[list[str] | None, typer.Option("--set", help="change a setting of the preset, e.g. alpha=0.2")]


for own in (cli_user.bias, cli_user.dryrun, cli_user.independence, cli_user.check):
    app.command()(own)


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


@app.command()
def demo(workers: Workers = 0, quiet: Quiet = False) -> None:
    """All suites at laptop scale, and one page to open."""
    runs = []
    for suite in SUITES:
        out.print(f"[bold]{suite.title}[/bold]: {suite.question}")
        runs.append(
            api.run(suite.name, preset="demo", workers=processes(workers), page=False, progress=progress_of(quiet))
        )
        _show(runs[-1])
    folders = [made.folder for made in runs]
    opened(write_page(folders, folders[0].parent / "demo.html"))
    _exit_if_failed(runs)


@app.command("list")
def list_(what: Annotated[str, typer.Argument(help=", ".join(CATALOGUES))] = "suites") -> None:
    """What there is: suites, methods, metrics, models, datasets, reproductions."""
    if what not in CATALOGUES:
        raise unknown(what, CATALOGUES, argument="what")
    for record in CATALOGUES[what]:
        out.print(f"{record.name:<24} {_summary(record)}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def run(
    suite: str,
    preset: Preset = "quick",
    only: Only = None,
    change: Change = None,
    methods: Methods = "",
    models: Annotated[str, typer.Option(help="architectures separated by commas")] = "",
    data: Data = None,
    device: Device = "auto",
    workers: Workers = 0,
    folder: Out = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Run a suite: data, models, attributions, scores and a page."""
    kept = _pairs(only, "only")
    if models and "model" in kept:
        raise UsageError(f"`--models` must come without `--only model=`, got {models!r} and {kept['model']!r}")
    kept |= {"model": models} if models else {}
    made = api.run(
        suite,
        preset=preset,
        methods=listed(methods),
        only=kept,
        settings=_pairs(change, "set"),
        data=data,
        device=device,
        workers=processes(workers),
        out=folder,
        seed=seed,
        progress=progress_of(quiet),
    )
    _show(made)
    opened(made.folder / "report.html")
    _exit_if_failed([made])


@app.command()
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


@app.command("report")
def report_(
    runs: list[Path], page: Annotated[Path | None, typer.Option("--out", help="where the page goes")] = None
) -> None:
    """Build the page of a run again; several runs stand side by side on one page."""
    opened(write_page(runs, page))


@app.command()
def results(
    folder: Path, format: Annotated[str, typer.Option(help="csv, json or parquet")] = "csv", target: File = None
) -> None:
    """The rows of a run, one per sample and metric, for your own analysis."""
    rows = api.Run(folder).rows
    if format not in ("csv", "json", "parquet"):
        raise unknown(format, ("csv", "json", "parquet"), argument="format")
    if format == "parquet" and target is None:
        raise UsageError("`--out` must name a file for parquet, which is no text to print")
    text = rows.to_csv(index=False) if format == "csv" else rows.to_json(orient="records", lines=True)
    if target is None:
        sys.stdout.write(text)
    else:
        write_atomically(target, rows.to_parquet(index=False) if format == "parquet" else text.encode())


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="e.g. bias/table-13; `forsooth list reproductions` names all")],
    only: Only = None,
    data: Data = None,
    change: Change = None,
    device: Device = "auto",
    workers: Workers = 0,
    folder: Out = None,
    quiet: Quiet = False,
) -> None:
    """A published table or figure made again: ours beside theirs, and a verdict in words."""
    table, words = api.reproduce(
        name,
        only=_pairs(only, "only"),
        data=data,
        device=device,
        workers=processes(workers),
        out=folder,
        settings=_pairs(change, "set"),
        progress=progress_of(quiet),
    )
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
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
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
    if signals:
        return TERMINATED
    return STOPPED


def _pairs(words: list[str] | None, option: str) -> dict[str, str]:
    pairs = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"`--{option}` must be key=value, got {word!r}")
        pairs[name] = value
    return pairs


def _show(made: api.Run) -> None:
    metric = next(iter(report.read(made.folder).run["metrics"]))
    board = made.leaderboard(metric)
    if board.empty:
        out.print("No map was scored: the page says why.")
    else:
        out.print(tables.console(board, title=metric, columns=fitting(tables.display(board)).shape[1]))


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
