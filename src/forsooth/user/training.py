"""The user's training function: found by its path, called with planted data; its model verified and explained."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import plugins, seeds
from forsooth.attributions import METHODS
from forsooth.engine import known_as
from forsooth.records import Cell, Dataset, UsageError
from forsooth.suites import explain
from forsooth.suites.planted import data as plots
from forsooth.suites.planted import tasks as planting
from forsooth.user import models

LABELS = 2  # without the artefact, with it


Values = dict[str, Any]


class FailedTraining(Exception):
    """A training that gave no model to explain; the message says why."""


def path_of(train: str | Callable[..., Any]) -> str:
    """The name under which any process can find the training function; an error where there is none."""
    if isinstance(train, str):
        path = train
    elif hasattr(train, "__qualname__") and not isinstance(train, type):
        path = f"{train.__module__}:{train.__qualname__}"
    else:
        raise UsageError(f"`train` must be a function or package.module:function, got {type(train).__name__}")
    if "<" in path:
        raise UsageError(f"`train` must be a function with a name of its own, got {path}: use def at module level")
    if ":" not in path:
        raise UsageError(f"`train` must be package.module:function, got {path!r}")
    return path


def model_name(path: str) -> str:
    """The name of the model in rows and files, which a colon does not suit."""
    return path.replace(":", ".")


def found(path: str) -> Callable[[Dataset], Any]:
    """The function at `package.module:function`."""
    thing = plugins.load(path, argument="train")
    if not callable(thing) or isinstance(thing, nn.Module) or inspect.isclass(thing):
        what = "a class" if inspect.isclass(thing) else f"a {type(thing).__name__}"
        raise UsageError(f"`train` must name a function(dataset) that returns a torch module, got {path}, {what}")
    return thing


def given(plot: Values, facts: Values) -> Dataset:
    """What the function receives: without the truth, and its own, so that it may write into it.

    Labels and artefacts are drawn anew before its model is judged: a function that trains on all images, test images
    included, learns nothing by heart that could help it.
    """
    dataset = plots.anew({**plot, "seed": seeds.derive(plot["seed"], "taught")})
    splits = {name: rows.clone() for name, rows in dataset.splits.items()}
    return dataclasses.replace(dataset, truth=None, splits=splits, facts=facts)


def trained(path: str, plot: Values, *, seed: int, device: str) -> nn.Module:
    """The module that the function makes of the data, in eval mode on the device; FailedTraining where it is none.

    Torch's own generator is seeded for the call, so that a training that draws from it comes out the same again.
    """
    function, facts = found(path), {"labels": LABELS, "device": device, "seed": seed % 2**32}  # numpy takes no more
    try:
        with explain.lent_randomness(seed), torch.enable_grad():
            made = function(given(plot, facts))
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        raise FailedTraining(f"{path} raised {plugins.describe_error(error)}") from error
    if not isinstance(made, nn.Module):
        came = f"the class {made.__name__}" if isinstance(made, type) else type(made).__name__
        raise FailedTraining(f"{path} must return a torch module, got {came}")
    dataset = plots.data(plot)
    try:
        return looked_at(made, dataset.x[dataset.splits["test"]], device=device)
    except UsageError as error:
        raise FailedTraining(f"{path} gave a model that cannot be asked: {error}") from error


def looked_at(made: nn.Module, x: Tensor, *, device: str) -> nn.Module:
    """The module, ready to be asked, after trying it on x (n, 3, h, w): two finite logits for each image."""
    module, x = made.eval().requires_grad_(False).to(device, torch.float32), x.to(device)
    models.unchanged(module, x)
    width = models.asked(module, x[:2]).shape[1]
    if width != LABELS:
        raise UsageError(
            f"`model` must give {LABELS} logits for an image, one for each label (0 without the artefact, 1 with it), "
            f"got {width}"
        )
    models.outputs(module, x)
    return module


def last_map(module: nn.Module, x: Tensor) -> str | None:
    """Dotted name of the module that is done last of those that give (n, channels, h, w) with h and w above 1.

    That is where Grad-CAM looks: a block of convolutions, before the average over all places.
    """
    done: list[str] = []

    def noted(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.ndim == 4 and min(output.shape[2:]) > 1:
                done.append(name)

        return hook

    handles = [part.register_forward_hook(noted(name)) for name, part in module.named_modules() if name]
    try:
        with torch.no_grad():
            module(x)
    finally:
        for handle in handles:
            handle.remove()
    return next((name for name in reversed(done) if done.count(name) == 1), None)


@known_as("user.dryrun")
def train_and_explain(
    *,
    plot: Values,
    train: str,
    code: str,
    gate: dict[str, float],
    asks: list[Values],
    about: Values,
    seed: int,
    device: str,
) -> Cell:
    """The user's model of one artefact: trained, verified, and explained by every method if it uses the artefact.

    plot   the recipe of the planted data (`plots.data`)
    code   changes the key with the function
    gate   as in `planting.train_network`
    asks   a question for every method, as in `planting.explain_network`
    about  columns that all rows share
    """
    here, facts = {**about, "model": model_name(train), "part": "training"}, {"said": plots.said(plot)}
    try:
        module = trained(train, plot, seed=seed, device=device)
        failure = ""
    except FailedTraining as error:
        failure = str(error)
    dataset = plots.data(plot)
    shared = {**about, "suite": "planted", "dataset": dataset.facts["base"]}
    if failure:
        told = {"status": "error", "message": failure, "value": float("nan")}
        row = {**planting.verified(dataset, 0.0, gate, here), **told}
        shared |= {"status": "skipped", "message": "there is no model to explain"}
        return Cell(rows=alike(row, *not_asked(dataset, plot, asks, shared, train)), facts={**facts, "failed": True})
    right = planting.accuracy(module, dataset, device)
    row = planting.verified(dataset, right, gate, here)
    if row["status"] != "ok":
        shared |= {"status": "below gate", "message": "the network is below its gate: not explained"}
        return Cell(rows=alike(row, *not_asked(dataset, plot, asks, shared, train)), facts=facts)
    made = explained(module, plot, asks, {**shared, "accuracy": right, "epoch": -1}, train)
    return dataclasses.replace(made, rows=alike(row, *made.rows), facts={**made.facts, **facts})


def alike(*rows: Mapping[str, Any]) -> tuple[Values, ...]:
    """The rows of a training and of maps with the columns of both, since a cell is one table."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return tuple({name: row.get(name) for name in columns} for row in rows)


def not_asked(dataset: Dataset, plot: Values, asks: list[Values], shared: Values, train: str) -> list[Values]:
    """Rows of methods that were not asked."""
    rows = []
    for ask in asks:
        groups = plots.chosen(dataset, plot, samples=ask["samples"])
        rows += planting.unsaid(groups, ask, {**shared, **who(ask, train)}, whole=True)
    return rows


def explained(module: nn.Module, plot: Values, asks: list[Values], shared: Values, train: str) -> Cell:
    """Rows of all methods for the user's model, and the maps that the page shows.

    Methods that raise are not tried again by the next run: that would mean to train again.
    """
    dataset = plots.data(plot)
    layer = last_map(module, dataset.x[:2].to(asks[0]["device"]))
    tensors, pictures, rows = dict[str, Tensor](), list[Values](), list[Values]()
    for ask in asks:
        groups = plots.chosen(dataset, plot, samples=ask["samples"])
        here, end = {**shared, **who(ask, train)}, [nn.Softmax(1)] if ask["output"] == "probabilities" else []
        model = None if here["model"] == "none" else nn.Sequential(module, *end).eval()
        question = planting.question(model, layer and f"0.{layer}", dataset, groups, ask)
        made = asked(ask["method"], question)
        if "maps" in made.tensors:
            rows += planting.judged(made.tensors, dataset, plot, groups, ask, here)
        else:
            told = {name: made.facts[name] for name in ("status", "message")}
            rows += planting.unsaid(groups, ask, {**here, **told}, whole=False)
        maps, entries = planting.map_pictures(made.tensors.get("maps"), groups, here)
        tensors |= {f"{ask['method']} {presence}": value for presence, value in maps.items()}
        pictures += [{**entry, "tensor": f"{ask['method']} {entry['tensor']}"} for entry in entries]
    took_part = planting.drawn(dataset, plots.chosen(dataset, plot, samples=asks[0]["samples"]), shared)
    return Cell(rows=tuple(rows), tensors=tensors, facts={"pictures": pictures, "drawn": took_part})


def asked(name: str, question: explain.Question) -> Cell:
    """The maps of a method, or why there are none."""
    if "layer" in plugins.method(name, METHODS).needs and question.layer is None:
        message = f"{name} reads a layer that gives a map, and the model has none"
        return Cell(facts={"status": "skipped", "message": message})
    return explain.attribute(name, question)


def who(ask: Values, train: str) -> dict[str, str]:
    """The method, and the model that it looked at."""
    null = plugins.method(ask["method"], METHODS).null
    return {"method": ask["method"], "model": "none" if null else model_name(train)}
