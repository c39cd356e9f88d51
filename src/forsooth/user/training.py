"""The user's training function: found by its path, called with planted data; its model verified and explained."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import plugins, seeds
from forsooth.attributions import METHODS
from forsooth.engine import task
from forsooth.records import NO_MODEL, Cell, Dataset, Row, UsageError
from forsooth.suites import explain as explaining
from forsooth.suites.planted import data as planted
from forsooth.suites.planted import explanations
from forsooth.suites.planted import tasks as planting
from forsooth.suites.planted.data import DataSpec
from forsooth.suites.planted.explanations import Ask
from forsooth.suites.planted.tasks import Columns, Gate
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


def given(spec: DataSpec, facts: Values) -> Dataset:
    """What the function receives: without the truth, and its own, so that it may write into it.

    Labels and artefacts are drawn anew before its model is judged: a function that trains on all images, test images
    included, learns nothing by heart that could help it.
    """
    dataset = planted.fresh_dataset(dataclasses.replace(spec, seed=seeds.derive(spec.seed, "taught")))
    splits = {name: rows.clone() for name, rows in dataset.splits.items()}
    return dataclasses.replace(dataset, truth=None, splits=splits, facts=facts)


def trained(path: str, spec: DataSpec, *, seed: int, device: str) -> nn.Module:
    """The module that the function makes of the data, in eval mode on the device; FailedTraining where it is none.

    Torch's own generator is seeded for the call, so that a training that draws from it comes out the same again.
    """
    function, facts = found(path), {"labels": LABELS, "device": device, "seed": seed % 2**32}  # numpy takes no more
    try:
        with explaining.lent_randomness(seed), torch.enable_grad():
            made = function(given(spec, facts))
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        raise FailedTraining(f"{path} raised {plugins.describe_error(error)}") from error
    if not isinstance(made, nn.Module):
        came = f"the class {made.__name__}" if isinstance(made, type) else type(made).__name__
        raise FailedTraining(f"{path} must return a torch module, got {came}")
    dataset = planted.dataset(spec)
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


@task("user.dryrun", version=2, spec="plot", columns="about")
def train_and_explain(
    *,
    spec: DataSpec,
    train: str,
    code: str,
    gate: Gate,
    asks: list[Ask],
    columns: Columns,
    seed: int,
    device: str,
) -> Cell:
    """The user's model of one artefact: trained, verified, and explained by every method if it uses the artefact.

    code     changes the key with the function
    asks     a question for every method
    columns  that all rows share
    """
    dataset = planted.dataset(spec)
    shared = planting.template(dataset, columns).having(model=model_name(train))
    training = shared.having(part="training")
    facts = {"said": planted.notes(spec.images)}
    try:
        module = trained(train, spec, seed=seed, device=device)
    except FailedTraining as error:
        row = planting.training_row(dataset, 0.0, gate, training)
        row = row.having(status="error", message=str(error), value=float("nan"))
        refusal = {"status": "skipped", "message": "there is no model to explain"}
        return Cell(rows=alike(row, *not_asked(spec, asks, shared, refusal)), facts={**facts, "failed": True})
    accuracy = planting.accuracy_of(module, dataset, device=device)
    row = planting.training_row(dataset, accuracy, gate, training)
    if row.status != "ok":
        refusal = {"status": "below gate", "message": planting.NOT_EXPLAINED}
        return Cell(rows=alike(row, *not_asked(spec, asks, shared, refusal)), facts=facts)
    explained = explain(module, spec, asks, shared.having(accuracy=accuracy, epoch=-1), columns)
    return dataclasses.replace(explained, rows=alike(row, *explained.rows), facts={**explained.facts, **facts})


def alike(*rows: Row) -> tuple[Row, ...]:
    """The rows of a training and of maps with the columns of both, since a cell is one table."""
    names = dict.fromkeys(name for row in rows for name in row.columns)
    return tuple(dataclasses.replace(row, columns={**dict.fromkeys(names), **row.columns}) for row in rows)


def not_asked(spec: DataSpec, asks: list[Ask], shared: Row, refusal: dict[str, str]) -> list[Row]:
    """Rows of methods that were not asked."""
    rows: list[Row] = []
    for ask in asks:
        images = explanations.explained_images(spec, ask)
        rows += explanations.no_rows(asked_of(ask, shared), images, ask, refusal, whole=True)
    return rows


def explain(module: nn.Module, spec: DataSpec, asks: list[Ask], shared: Row, columns: Columns) -> Cell:
    """Rows of all methods for the user's model, and the maps that the page shows.

    Methods that raise are not tried again by the next run: that would mean to train again.
    """
    layer = last_map(module, planted.dataset(spec).x[:2].to(asks[0].device))
    tensors: dict[str, Tensor] = {}
    pictures: list[Values] = []
    rows: list[Row] = []
    for ask in asks:
        images = explanations.explained_images(spec, ask)
        here = asked_of(ask, shared)
        end = [nn.Softmax(1)] if ask.output == "probabilities" else []
        model = None if here.model == NO_MODEL else nn.Sequential(module, *end).eval()
        answer = asked(ask.method, explanations.question(model, layer and f"0.{layer}", images, ask))
        rows += explanations.rows_of(answer, here, images, ask)
        maps = explanations.first_maps(answer, images)
        tensors |= {f"{ask.method} {presence}": value for presence, value in maps.items()}
        entries = explanations.map_pictures(maps, {**columns, "model": here.model, "method": ask.method})
        pictures += [{**entry, "tensor": f"{ask.method} {entry['tensor']}"} for entry in entries]
    took_part = explanations.participants(explanations.explained_images(spec, asks[0]), columns)
    return Cell(rows=tuple(rows), tensors=tensors, facts={"pictures": pictures, "drawn": took_part})


def asked(name: str, question: explaining.Question) -> Cell:
    """The maps of a method, or why there are none."""
    if "layer" in plugins.method(name, METHODS).needs and question.layer is None:
        message = f"{name} reads a layer that gives a map, and the model has none"
        return Cell(facts={"status": "skipped", "message": message})
    return explaining.attribute(name, question)


def asked_of(ask: Ask, shared: Row) -> Row:
    """The row with the method, and the model that it looked at."""
    if plugins.method(ask.method, METHODS).null:
        return shared.having(method=ask.method, model=NO_MODEL)
    return shared.having(method=ask.method)
