"""The terminal: parse, call, print. Nothing here that a Python caller cannot do."""

import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import forsooth
from forsooth import cli_runs, cli_user
from forsooth.cli_user import show_board, shown
from forsooth.errors import FailedTasks, UsageError
from forsooth.printing import show_warning, tell
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
)

if TYPE_CHECKING:
    from forsooth.runs import Run

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measures whether feature-attribution methods tell the truth.",
)
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


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"forsooth {forsooth.__version__}")
        raise typer.Exit()


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version and leave")
    ] = False,
) -> None:
    """Measures whether feature-attribution methods tell the truth."""


def demo(workers: Workers = 0, on: On = None, folder: Out = None, quiet: Quiet = False) -> None:
    """All suites at laptop scale, and one page to open."""
    home = folder or Path("forsooth-runs")
    from forsooth.processes import kept
    from forsooth.runs import write_page
    from forsooth.suites import SUITES

    shared: dict[str, Any] = {"preset": "demo", "workers": processes(workers), "on": on, "page": False}
    runs = []
    with kept():  # one pool for all suites
        for suite in SUITES:
            out.print(f"[bold]{suite.title}[/bold]: {suite.question}", markup=True)
            place = home / f"{suite.name}-demo"
            runs.append(forsooth.run(suite.name, out=place, progress=progress_of(quiet), **shared))
            show_board(runs[-1])
    opened(write_page([made.folder for made in runs], home / "demo.html"))
    _exit_if_failed(runs)


def run(
    suite: Annotated[str, typer.Argument(help="`forsooth list` names all", autocompletion=cli_runs.suite_names)],
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
    made = forsooth.run(
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
    shown(made, json=json)
    _exit_if_failed([made])


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
    written = forsooth.export_data(
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
        out.print(f"Samples and truth: {place.resolve()}", soft_wrap=True)


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="e.g. bias/table-13; `forsooth list reproductions` names all",
            autocompletion=cli_runs.reproduction_names,
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
    table, words = forsooth.reproduce(
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
    from forsooth.api import reproduction_folder

    place = reproduction_folder(name, folder)
    if json:
        return as_json(table=table, words=words, folder=place, page=place / "report.html")
    shown = fitting(table)
    left = ", ".join(map(str, table.columns[shown.shape[1] :]))
    out.print(plain(shown, name))
    out.print(words)
    what = f"The table, also with {left}" if left else "The table"
    out.print(f"{what}: {place / 'table.csv'}", soft_wrap=True)
    opened(place / "report.html")


COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo,
    "run": run,
    "bias": cli_user.bias,
    "dryrun": cli_user.dryrun,
    "independence": cli_user.independence,
    "check": cli_user.check,
    "export-data": export_data,
    "score": cli_user.score,
    "reproduce": reproduce,
    "list": cli_runs.list_,
    "card": cli_runs.card,
    "settings": cli_runs.settings,
    "report": cli_runs.report_,
    "results": cli_runs.results,
    "compare": cli_runs.compare_,
    "doctor": cli_runs.doctor,
}
for name, command in COMMANDS.items():
    app.command(name, epilog=EXAMPLES[name])(command)


def main() -> None:
    """Errors of the user's making are one clear line and exit code 2; if tasks failed it is one line and code 3."""
    received: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        received.append(number)
        _leave_soon(received)
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupt)
    warnings.showwarning = show_warning
    try:
        app()
    except UsageError as error:
        tell(f"forsooth: {error}")
        sys.exit(2)
    except FailedTasks as error:
        tell(f"forsooth: {error}")
        sys.exit(SOME_FAILED)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        tell(f"forsooth: the output could not be written: {error.strerror}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(stopped(received))
    except SystemExit as end:
        if end.code == STOPPED:  # typer makes this of a keyboard interrupt
            sys.exit(stopped(received))
        raise


def stopped(signals: Sequence[int]) -> int:
    """Say that work is kept; the exit code by which shells know what ended a program."""
    tell("stopped; what was finished is kept, and the same command goes on from there")
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


def _exit_if_failed(runs: Sequence["Run"]) -> None:
    """Where tasks failed the exit code says so; what the others gave stands above, and the run said why."""
    if any(made.failed for made in runs):
        raise typer.Exit(SOME_FAILED)
