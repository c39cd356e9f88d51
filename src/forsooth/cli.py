"""The terminal: parse, call, print. Nothing here that a Python caller cannot do."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from forsooth import api, report
from forsooth.attributions import METHODS
from forsooth.datasets import DATASETS
from forsooth.models import MODELS
from forsooth.names import unknown
from forsooth.progress import Bar, Lines, Silent
from forsooth.records import Artefact, Suite, UsageError
from forsooth.report import tables
from forsooth.scores import METRICS
from forsooth.store import replace
from forsooth.suites import ARTEFACTS, SUITES

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Measures whether feature-attribution methods tell the truth.",
)
out = Console(width=None if sys.stdout.isatty() else 150)  # a pipe has no width to fit
CATALOGUES: dict[str, tuple[Any, ...]] = {
    "suites": SUITES,
    "methods": METHODS,
    "metrics": METRICS,
    "models": MODELS,
    "datasets": DATASETS,
    "artefacts": ARTEFACTS,
}

Preset = Annotated[str, typer.Option(help="quick (a laptop, minutes), paper (as printed), released (as the code does)")]
Only = Annotated[list[str] | None, typer.Option(help="keep one part, e.g. scenario=LIN or background=WHITE,CORR")]
Change = Annotated[list[str] | None, typer.Option("--set", help="change a setting of the preset, e.g. alpha=0.2")]
Methods = Annotated[str, typer.Option(help="names separated by commas; package.module:function is your own")]
Data = Annotated[Path | None, typer.Option(help="folder or zip of real data the suite can use")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda")]
Workers = Annotated[int, typer.Option(help="processes; 0 takes one for each core")]
Out = Annotated[Path | None, typer.Option("--out", help="folder of the run; the same words go on where it stopped")]
Quiet = Annotated[bool, typer.Option("--quiet", help="no progress")]


@app.command()
def demo(workers: Workers = 0, quiet: Quiet = False) -> None:
    """All suites at laptop scale, and one page to open."""
    runs = []
    for suite in SUITES:
        out.print(f"[bold]{suite.title}[/bold]: {suite.question}")
        runs.append(api.run(suite.name, workers=_workers(workers), progress=_progress(quiet)))
        _show(runs[-1])
    folders = [made.folder for made in runs]
    _open(folders[0] / "report.html" if len(runs) == 1 else report.write_page(folders, folders[0].parent / "demo.html"))


@app.command("list")
def list_(what: Annotated[str, typer.Argument(help=", ".join(CATALOGUES))] = "suites") -> None:
    """What there is: suites, methods, metrics, models, datasets, artefacts."""
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
    seed: Annotated[int, typer.Option(help="one integer; same seed, same numbers")] = 0,
    quiet: Quiet = False,
) -> None:
    """Run a suite: data, models, attributions, scores and a page."""
    kept = _pairs(only, "only") | ({"model": models} if models else {})
    made = api.run(
        suite,
        preset=preset,
        methods=[name for name in methods.split(",") if name],
        only=kept,
        settings=_pairs(change, "set"),
        data=data,
        device=device,
        workers=_workers(workers),
        out=folder,
        seed=seed,
        progress=_progress(quiet),
    )
    _show(made)
    _open(made.folder / "report.html")


@app.command("report")
def report_(
    runs: list[Path], page: Annotated[Path | None, typer.Option("--out", help="where the page goes")] = None
) -> None:
    """Build the page of a run again; several runs stand side by side on one page."""
    _open(report.write_page(runs, page))


@app.command()
def results(
    folder: Path, format: Annotated[str, typer.Option(help="csv, json or parquet")] = "csv", target: Out = None
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
        replace(target, rows.to_parquet(index=False) if format == "parquet" else text.encode())


@app.command()
def reproduce(
    artefact: str,
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
        artefact,
        only=_pairs(only, "only"),
        data=data,
        device=device,
        workers=_workers(workers),
        out=folder,
        settings=_pairs(change, "set"),
        progress=_progress(quiet),
    )
    out.print(_plain(table, artefact))
    out.print(words, highlight=False, markup=False)


@app.command()
def bias(
    model: Annotated[str, typer.Option(help="package.module:name of your model, or of a function that builds it")],
    inputs: Annotated[Path, typer.Option(help="inputs (n, *shape): .npy, .npz or .safetensors")],
    target: Annotated[
        str | None, typer.Option(help="a class or a file of classes; default: the predicted ones")
    ] = None,
    methods: Methods = "",
    players: Annotated[str, typer.Option(help="pixels, features, grid:N or units:LAYER")] = "pixels",
    permutations: Annotated[str, typer.Option(help="random orders for the Shapley values, or exact")] = "1000",
    baseline: Annotated[str, typer.Option(help="absent: mean, channel_mean, zero, blur or a file")] = "mean",
    data: Annotated[Path | None, typer.Option(help="file of inputs for means and backgrounds; default: inputs")] = None,
    output: Annotated[
        str, typer.Option(help="logits (outputs as they are) or probabilities (their softmax)")
    ] = "logits",
    channels: Annotated[str, typer.Option(help="colours of a gradient: signed_max, max_abs or sum")] = "signed_max",
    device: Device = "auto",
    workers: Workers = 0,
    folder: Out = None,
    seed: Annotated[int, typer.Option(help="one integer; same seed, same numbers")] = 0,
    quiet: Quiet = False,
) -> None:
    """Which explanations of your own model can be trusted, where nobody knows the truth?"""
    made = api.bias(
        model,
        inputs,
        target=target,
        methods=[name for name in methods.split(",") if name],
        players=players,
        permutations=int(permutations) if permutations.isdecimal() else permutations,
        baseline=baseline,
        data=data,
        output=output,
        channels=channels,
        seed=seed,
        device=device,
        workers=_workers(workers),
        out=folder,
        progress=_progress(quiet),
    )
    out.print(_plain(made.shown(), "M_bias, least biased first"))
    out.print(made.words, highlight=False, markup=False, soft_wrap=True)
    if folder is not None:
        out.print(f"All rows: {(folder / 'bias.csv').resolve()}", highlight=False, soft_wrap=True)


@app.command()
def dryrun(
    data: Annotated[Path, typer.Option(help="folder of class folders of images, or a zip; nothing is written there")],
    train: Annotated[str | None, typer.Option(help="package.module:function(dataset) -> torch module")] = None,
    methods: Methods = "",
    artefacts: Annotated[str, typer.Option(help="blur, brightness, hue, noise, watermark; default: all")] = "",
    size: Annotated[int, typer.Option(help="side of the images, px")] = 64,
    images: Annotated[int, typer.Option(help="images that are read at most; 0 takes all")] = 2_000,
    visibility: Annotated[int, typer.Option(help="of the artefacts, 0 (least) to 4")] = 3,
    samples: Annotated[int, typer.Option(help="test images explained with the artefact, and without")] = 50,
    device: Device = "auto",
    workers: Workers = 0,
    folder: Out = None,
    seed: Annotated[int, typer.Option(help="one integer; same seed, same numbers")] = 0,
    quiet: Quiet = False,
) -> None:
    """Would your methods show an artefact in your own images? Plant it, train, explain, and see."""
    made = api.dryrun(
        data,
        train=train,
        methods=[name for name in methods.split(",") if name],
        artefacts=[name for name in artefacts.split(",") if name],
        size=size,
        images=images or None,
        visibility=visibility,
        samples=samples,
        device=device,
        workers=_workers(workers),
        out=folder,
        seed=seed,
        progress=_progress(quiet),
    )
    out.print(_plain(made.shown(), "Share of the attribution on the artefact"))
    out.print(made.words, highlight=False, markup=False, soft_wrap=True)
    _open(made.folder / "report.html")


@app.command()
def independence(
    model: Annotated[str, typer.Option(help="package.module:name of your torch module, or of a function building it")],
    inputs: Annotated[Path, typer.Option(help="inputs (n, *shape): .npy, .npz or .safetensors")],
    target: Annotated[
        str | None, typer.Option(help="a class or a file of classes; default: the predicted ones")
    ] = None,
    methods: Methods = "",
    patch: Annotated[str, typer.Option(help="grid:N, size:S (pixels a side) or a file with a mask")] = "grid:4",
    bounds: Annotated[str, typer.Option(help="least and largest input value, e.g. 0,1; default: of the inputs")] = "",
    layer: Annotated[str | None, typer.Option(help="what Grad-CAM reads; default: the last convolution")] = None,
    threshold: Annotated[float, typer.Option(help="change of saliency that draws attention")] = 0.1,
    device: Device = "auto",
    folder: Out = None,
    seed: Annotated[int, typer.Option(help="one integer; same seed, same numbers")] = 0,
    quiet: Quiet = False,
) -> None:
    """Would explanations of your own model point at patches that have no function?"""
    made = api.independence(
        model,
        inputs,
        target=target,
        methods=[name for name in methods.split(",") if name],
        patch=patch,
        bounds=_ends(bounds),
        layer=layer,
        threshold=threshold,
        seed=seed,
        device=device,
        out=folder,
        progress=_progress(quiet),
    )
    out.print(_plain(made.shown(), "attention to functionless patches, least first"))
    out.print(made.words, highlight=False, markup=False, soft_wrap=True)
    if folder is not None:
        out.print(f"All rows: {(folder / 'independence.csv').resolve()}", highlight=False, soft_wrap=True)


def main() -> None:
    """Errors of the user's making are one clear line and exit code 2."""
    try:
        app()
    except UsageError as error:
        sys.stderr.write(f"forsooth: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("stopped; what was finished is kept, and the same command goes on from there\n")
        sys.exit(130)


def _pairs(words: list[str] | None, option: str) -> dict[str, str]:
    pairs = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"`--{option}` must be key=value, got {word!r}")
        pairs[name] = value
    return pairs


def _ends(words: str) -> tuple[float, float] | None:
    """Two numbers in order, from "0,1"; nothing from nothing."""
    if not words:
        return None
    try:
        low, high = map(float, words.split(","))
    except ValueError as error:
        raise UsageError(f"`--bounds` must be two numbers with a comma between them, got {words!r}") from error
    return low, high


def _workers(workers: int) -> int:
    return workers if workers != 0 else (os.cpu_count() or 1)


def _progress(quiet: bool) -> Bar | Lines | Silent:
    if quiet:
        return Silent()
    return Bar() if sys.stderr.isatty() else Lines()


def _show(made: api.Run) -> None:
    metric = next(iter(report.read(made.folder).run["metrics"]))
    rows = made.rows
    if not (rows["part"].eq("scores") & rows["metric"].eq(metric) & rows["status"].eq("ok")).any():
        out.print("No map was scored: the page says why.", highlight=False)
        return
    out.print(tables.console(made.leaderboard(metric), title=metric))


def _plain(table: pd.DataFrame, title: str) -> Table:
    shown = Table(*map(str, table.columns), title=title, box=SIMPLE, pad_edge=False)
    for line in table.itertuples(index=False):
        shown.add_row(*map(str, line))
    return shown


def _summary(record: Any) -> str:
    """What a record is, in a line: a suite's question, an artefact's title, or the first line of its function."""
    if isinstance(record, Suite):
        return record.question
    if isinstance(record, Artefact):
        return record.title
    function = getattr(record.function, "func", record.function)  # a partial has its docstring inside
    lines = (function.__doc__ or "").strip().splitlines()
    knobs = ", ".join(f"{name}={value}" for name, value in getattr(record, "settings", {}).items())
    return " ".join([*lines[:1], f"({knobs})" if knobs else "", f"[{record.cite}]"])


def _open(page: Path) -> None:
    out.print(f"Open the page: {page.resolve()}", highlight=False, soft_wrap=True)
