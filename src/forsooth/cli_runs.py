"""Commands that look at what is there: the machine, finished runs, the catalogue."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import forsooth
from forsooth import facts
from forsooth.analysis.cards import page
from forsooth.errors import UsageError
from forsooth.names import unknown
from forsooth.printing import put
from forsooth.terminal import Json, Only, as_json, factors, fitting, grid, opened, out, plain

if TYPE_CHECKING:
    from forsooth.runs import Run

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
        out.print(found.words, soft_wrap=True)
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
    out.print(found.words, soft_wrap=True)


def card(
    name: Annotated[
        str,
        typer.Argument(help="a method or a metric; all of them if left out", autocompletion=lambda: list(_cards())),
    ] = "",
) -> None:
    """All that is known of a method or a metric: what it needs, promises and cites, and how it is reckoned."""
    if not name:
        words = page(*(cards.values() for cards in facts.known()["cards"].values()))
    elif name in _cards():
        words = _cards()[name]
    else:
        raise unknown(name, _cards(), argument="name")
    put(words)


def _cards() -> dict[str, str]:
    """name -> card, of methods and of metrics."""
    cards = facts.known()["cards"]
    return {**cards["methods"], **cards["metrics"]}


def list_(
    what: Annotated[
        str, typer.Argument(help=", ".join(facts.CATALOGUES), autocompletion=lambda: list(facts.CATALOGUES))
    ] = "suites",
    json: Json = False,
) -> None:
    """What there is: suites, methods with what they need and promise, metrics, models, datasets, reproductions."""
    if what not in facts.CATALOGUES:
        raise unknown(what, facts.CATALOGUES, argument="what")
    summaries = facts.known()["catalogues"][what]
    traits = facts.known()["traits"].get(what, {})
    if json:
        told = {name: {"summary": summary, **traits[name]} for name, summary in summaries.items() if name in traits}
        return as_json(**{**summaries, **told})
    lines = [[name, *traits.get(name, {}).values(), summary] for name, summary in summaries.items()]
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)][:-1]
    for *words, summary in lines:
        start = "".join(f"{word:<{width}}  " for word, width in zip(words, wide, strict=True))
        out.print(f"{start}{summary}", soft_wrap=True)


def settings(
    suite: Annotated[
        str, typer.Argument(help="a suite; all of them if left out", autocompletion=lambda: suite_names())
    ] = "",
    format: Annotated[str, typer.Option(help="table, markdown or json")] = "table",
) -> None:
    """Every setting of a suite, what it means, and its value in each preset."""
    if format not in ("table", "markdown", "json"):
        raise unknown(format, ("table", "markdown", "json"), argument="format")
    known = facts.known()["settings"]
    if suite and suite not in known:
        raise unknown(suite, known, argument="suite")
    chosen = {suite: known[suite]} if suite else known
    if format == "markdown":
        put(facts.settings_page(chosen))
    elif format == "json":
        put(json.dumps(chosen, indent=1) + "\n")
    else:
        for name, lines in chosen.items():
            out.print(grid(lines[0], [line.values() for line in lines], name))


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
        put(content.decode())
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


def suite_names() -> list[str]:
    """The suites: whoever presses the tabulator does not wait for imports."""
    return list(facts.known()["catalogues"]["suites"])


def reproduction_names() -> list[str]:
    return list(facts.known()["catalogues"]["reproductions"])
