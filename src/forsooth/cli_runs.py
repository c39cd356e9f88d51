"""Commands that look at what is there: the machine, finished runs, the catalogue."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from forsooth.analysis import cards, compare, health
from forsooth.attributions import METHODS
from forsooth.names import find
from forsooth.scores import METRICS
from forsooth.terminal import Json, Only, as_json, factors, fitting, out, plain


def doctor(
    runs: Annotated[list[Path] | None, typer.Argument(help="folders of runs whose stores are checked, too")] = None,
    json: Json = False,
) -> None:
    """Is all well? Versions, devices, memory, disk, and the stores of runs. Exit code 1 if something is not."""
    found = health.doctor(*(runs or []))
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
    found = compare.compare(a, b, metric, only=factors(only))
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
    known: list[Any] = [*METHODS, *METRICS]
    if name:
        sys.stdout.write(cards.card(find(name, known, argument="name")))
    else:
        sys.stdout.write(cards.page(METHODS, METRICS))
