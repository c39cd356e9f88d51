"""The commands for one's own model and images: parse, call, print."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import forsooth
from forsooth.errors import UsageError
from forsooth.terminal import (
    Answer,
    Device,
    Json,
    MethodMemory,
    Methods,
    MethodTimeout,
    Out,
    Quiet,
    Seed,
    Workers,
    answered,
    as_json,
    fitting,
    listed,
    opened,
    out,
    processes,
    progress_of,
    records,
)

if TYPE_CHECKING:
    from forsooth.runs import Run

RUNS = Path("forsooth-runs")  # where answers go that nobody gave a place
NO_NULL = "No map here ignores the model: name random and sobel, too, and oracle, to see what a score is worth."
Inputs = Annotated[Path, typer.Option(help="inputs (n, *shape): .npy, .npz, .safetensors or a table as .csv")]
Target = Annotated[str | None, typer.Option(help="a class or a file of classes; default: the predicted ones")]


def bias(
    model: Annotated[str, typer.Option(help="package.module:name of your model, or of a function that builds it")],
    inputs: Inputs,
    target: Target = None,
    methods: Methods = "",
    players: Annotated[str, typer.Option(help="auto, pixels, features, words, grid:N or units:LAYER")] = "auto",
    permutations: Annotated[str, typer.Option(help="random orders for the Shapley values, exact or auto")] = "auto",
    anchor: Annotated[
        str, typer.Option(help="permutations; leverage: as sure with a tenth of the forwards; auto: by input size")
    ] = "auto",
    budget: Annotated[int, typer.Option(help="most forwards for all Shapley values")] = 50_000_000,
    budget_seconds: Annotated[float, typer.Option(help="most seconds that it may be thought to take")] = 86_400,
    baseline: Annotated[
        str, typer.Option(help="in place of the hidden: auto, mean, channel_mean, zero, blur, rows:N, a file")
    ] = "auto",
    data: Annotated[Path | None, typer.Option(help="file of inputs for means and backgrounds; default: inputs")] = None,
    output: Annotated[
        str, typer.Option(help="logits (outputs as they are) or probabilities (their softmax)")
    ] = "logits",
    channels: Annotated[str, typer.Option(help="colours of a gradient: signed_max, max_abs or sum")] = "signed_max",
    device: Device = "auto",
    workers: Workers = 0,
    method_timeout: MethodTimeout = None,
    method_memory: MethodMemory = None,
    folder: Out = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Which explanations of your own model can be trusted, where nobody knows the truth?"""
    folder = folder or RUNS / "bias"
    made = forsooth.bias(
        model,
        inputs,
        target=target,
        methods=listed(methods),
        players=players,
        permutations=int(permutations) if permutations.isdecimal() else permutations,
        anchor=anchor,
        budget=budget,
        budget_seconds=budget_seconds,
        baseline=baseline,
        data=data,
        output=output,
        channels=channels,
        seed=seed,
        device=device,
        workers=processes(workers),
        method_timeout=method_timeout,
        method_memory=method_memory,
        out=folder,
        progress=progress_of(quiet),
    )
    spare = ("relative", "worst", "failed")
    told(made, "M_bias, least biased first", folder, json=json, rows="bias.csv", spare=spare)


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
    method_timeout: MethodTimeout = None,
    method_memory: MethodMemory = None,
    folder: Out = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Would your methods show an artefact in your own images? Plant it, train, explain, and see."""
    made = forsooth.dryrun(
        data,
        train=train,
        methods=listed(methods),
        artefacts=listed(artefacts),
        size=size,
        images=images or None,
        visibility=visibility,
        samples=samples,
        device=device,
        workers=processes(workers),
        method_timeout=method_timeout,
        method_memory=method_memory,
        out=folder,
        seed=seed,
        progress=progress_of(quiet),
    )
    told(made, "Share of the attribution on the artefact", made.folder, json=json)


def independence(
    model: Annotated[str, typer.Option(help="package.module:name of your torch module, or of a function building it")],
    inputs: Inputs,
    target: Target = None,
    methods: Methods = "",
    patch: Annotated[str, typer.Option(help="grid:N, size:S (pixels a side) or a file with a mask")] = "grid:4",
    bounds: Annotated[str, typer.Option(help="least and largest input value, e.g. 0,1; default: of the inputs")] = "",
    layer: Annotated[str | None, typer.Option(help="what Grad-CAM reads; default: the last that gives a map")] = None,
    threshold: Annotated[float, typer.Option(help="change of saliency that draws attention")] = 0.1,
    device: Device = "auto",
    workers: Workers = 0,
    method_timeout: MethodTimeout = None,
    method_memory: MethodMemory = None,
    folder: Out = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Would explanations of your own model point at patches that have no function?"""
    folder = folder or RUNS / "independence"
    made = forsooth.independence(
        model,
        inputs,
        target=target,
        methods=listed(methods),
        patch=patch,
        bounds=_ends(bounds),
        layer=layer,
        threshold=threshold,
        seed=seed,
        device=device,
        workers=processes(workers),
        method_timeout=method_timeout,
        method_memory=method_memory,
        out=folder,
        progress=progress_of(quiet),
    )
    told(made, "attention to functionless patches, least first", folder, json=json, rows="independence.csv")


def check(
    method: Annotated[str, typer.Argument(help="package.module:function of your method, or a name of the catalogue")],
    device: Device = "cpu",
    seed: Seed = 0,
    method_timeout: MethodTimeout = None,
    method_memory: MethodMemory = None,
    folder: Annotated[Path | None, typer.Option("--out", help="folder for a page of the answer")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Does your own method keep the contract that every method here keeps? Exit code 1 if not."""
    made = forsooth.check(
        method,
        device=device,
        seed=seed,
        method_timeout=method_timeout,
        method_memory=method_memory,
        out=folder,
        progress=progress_of(quiet),
    )
    if json:
        page = None if folder is None else folder / "report.html"
        as_json(table=made.table, words=made.words, passed=made.passed, page=page)
    else:
        answered(made, f"contract of a method: {method}")
        if folder is not None:
            opened(folder / "report.html")
    if not made.passed:
        raise typer.Exit(1)


def score(
    maps: Annotated[str, typer.Argument(help=".npy, .npz or .safetensors file of maps, or a folder of them")],
    truth: Annotated[Path, typer.Option(help="folder that export-data wrote, folder of masks, or file (n, *map)")],
    images: Annotated[Path | None, typer.Option(help="the inputs, a folder or a file; default: those exported")] = None,
    metrics: Annotated[str, typer.Option(help="names separated by commas; default: ima,precision")] = "",
    emd_tolerance: Annotated[float, typer.Option(help="that emd may be off, proven; 0: exact")] = 1e-3,
    workers: Workers = 0,
    folder: Out = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Score maps that were made elsewhere, beside nulls and oracle on the same samples."""
    made = forsooth.score(
        maps,
        truth,
        images=images,
        metrics=listed(metrics),
        emd_tolerance=emd_tolerance,
        workers=processes(workers),
        out=folder,
        seed=seed,
        progress=progress_of(quiet),
    )
    shown(made, json=json)


def told(made: Answer, title: str, folder: Path, *, json: bool, rows: str = "", spare: Sequence[str] = ()) -> None:
    """An answer and where its page is, for a person or a script.

    rows   the file with all rows, to be named; empty: none
    spare  columns that a narrow terminal has no room for
    """
    page = folder / "report.html"
    if json:
        return as_json(table=made.table, words=made.words, folder=folder, page=page)
    answered(made, title, spare=spare)
    if rows:
        out.print(f"All rows: {(folder / rows).resolve()}", soft_wrap=True)
    opened(page)


def shown(made: "Run", *, json: bool) -> None:
    """The boards of a run and where its page is, for a person or a script."""
    page = made.folder / "report.html"
    if json:
        boards = {metric: records(made.leaderboard(metric)) for metric in made.metrics}
        as_json(folder=made.folder, page=page, failed=made.failed, boards=boards)
    else:
        show_board(made)
        opened(page)


def show_board(made: "Run") -> None:
    """The leaderboard by the first metric of a run."""
    from forsooth.report import tables
    from forsooth.report.notes import letters

    first, *others = made.metrics
    board = made.leaderboard(first)
    if board.empty:
        out.print("No map was scored: the page says why.")
        return
    out.print(tables.console(board, title=first, columns=fitting(tables.display(board)).shape[1]))
    for note in letters(board):
        out.print(note)
    if not board["null"].any():
        out.print(NO_NULL)
    if others:
        out.print(
            f"By {', '.join(others)}, too: on the page, and by `forsooth results {made.folder} --format markdown`.",
            soft_wrap=True,
        )


def _ends(words: str) -> tuple[float, float] | None:
    """Two numbers in order, from "0,1"; nothing from nothing."""
    if not words:
        return None
    try:
        low, high = map(float, words.split(","))
    except ValueError as error:
        raise UsageError(f"`--bounds` must be two numbers with a comma between them, got {words!r}") from error
    return low, high
