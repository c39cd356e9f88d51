"""The commands for one's own model and images: parse, call, print."""

from pathlib import Path
from typing import Annotated

import typer

from forsooth import api
from forsooth.records import UsageError
from forsooth.terminal import (
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

Inputs = Annotated[Path, typer.Option(help="inputs (n, *shape): .npy, .npz or .safetensors")]
Target = Annotated[str | None, typer.Option(help="a class or a file of classes; default: the predicted ones")]


def bias(
    model: Annotated[str, typer.Option(help="package.module:name of your model, or of a function that builds it")],
    inputs: Inputs,
    target: Target = None,
    methods: Methods = "",
    players: Annotated[str, typer.Option(help="pixels, features, grid:N or units:LAYER")] = "pixels",
    permutations: Annotated[str, typer.Option(help="random orders for the Shapley values, or exact")] = "1000",
    baseline: Annotated[
        str, typer.Option(help="in place of the hidden: mean, channel_mean, zero, blur, a file")
    ] = "mean",
    data: Annotated[Path | None, typer.Option(help="file of inputs for means and backgrounds; default: inputs")] = None,
    output: Annotated[
        str, typer.Option(help="logits (outputs as they are) or probabilities (their softmax)")
    ] = "logits",
    channels: Annotated[str, typer.Option(help="colours of a gradient: signed_max, max_abs or sum")] = "signed_max",
    device: Device = "auto",
    workers: Workers = 0,
    folder: Out = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Which explanations of your own model can be trusted, where nobody knows the truth?"""
    made = api.bias(
        model,
        inputs,
        target=target,
        methods=listed(methods),
        players=players,
        permutations=int(permutations) if permutations.isdecimal() else permutations,
        baseline=baseline,
        data=data,
        output=output,
        channels=channels,
        seed=seed,
        device=device,
        workers=processes(workers),
        out=folder,
        progress=progress_of(quiet),
    )
    spare = ("relative", "worst", "failed")  # a narrow terminal has no room for these
    out.print(plain(fitting(made.shown(), spare), "M_bias, least biased first"))
    out.print(made.words, highlight=False, markup=False, soft_wrap=True)
    if folder is not None:
        out.print(f"All rows: {(folder / 'bias.csv').resolve()}", highlight=False, soft_wrap=True)


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
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Would your methods show an artefact in your own images? Plant it, train, explain, and see."""
    made = api.dryrun(
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
        out=folder,
        seed=seed,
        progress=progress_of(quiet),
    )
    out.print(plain(made.shown(), "Share of the attribution on the artefact"))
    out.print(made.words, highlight=False, markup=False, soft_wrap=True)
    opened(made.folder / "report.html")


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
    folder: Out = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Would explanations of your own model point at patches that have no function?"""
    made = api.independence(
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
        out=folder,
        progress=progress_of(quiet),
    )
    out.print(plain(made.shown(), "attention to functionless patches, least first"))
    out.print(made.words, highlight=False, markup=False, soft_wrap=True)
    if folder is not None:
        out.print(f"All rows: {(folder / 'independence.csv').resolve()}", highlight=False, soft_wrap=True)


def check(
    method: Annotated[str, typer.Argument(help="package.module:function of your method, or a name of the catalogue")],
    device: Device = "cpu",
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Does your own method keep the contract that every method here keeps? Exit code 1 if not."""
    made = api.check(method, device=device, seed=seed, progress=progress_of(quiet))
    out.print(plain(made.shown(), f"contract of a method: {method}"))
    out.print(made.words, highlight=False, markup=False, soft_wrap=True)
    if not made.passed:
        raise typer.Exit(1)


def _ends(words: str) -> tuple[float, float] | None:
    """Two numbers in order, from "0,1"; nothing from nothing."""
    if not words:
        return None
    try:
        low, high = map(float, words.split(","))
    except ValueError as error:
        raise UsageError(f"`--bounds` must be two numbers with a comma between them, got {words!r}") from error
    return low, high
