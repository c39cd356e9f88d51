"""The user's training function: found by its path, called with planted data; its model verified and explained."""

import dataclasses

import torch
from torch import nn

from forsooth import plugins, seeds, surroundings
from forsooth.adapters import models
from forsooth.adapters.trainings import LABELS, FailedTraining, call_training, model_name, ready_model
from forsooth.attributions import METHODS
from forsooth.engine import task
from forsooth.models.gates import Gate
from forsooth.records import NO_MODEL, Cell, Columns, Dataset, Method, Row
from forsooth.suites import explain as explaining
from forsooth.suites.album import Album
from forsooth.suites.networks import BELOW_GATE, with_output
from forsooth.suites.planted import data as planted
from forsooth.suites.planted import questions
from forsooth.suites.planted import tasks as planting
from forsooth.suites.planted.data import DataSpec
from forsooth.suites.planted.questions import Ask

NO_MODEL_GIVEN = {"status": "skipped", "message": "there is no model to explain"}


def training_data(spec: DataSpec, *, seed: int, device: str) -> Dataset:
    """What the function receives: without the truth, and its own, so that it may write into it.

    Labels and artefacts are redrawn before its model is judged: a function that trains on all images, test images
    included, learns nothing by heart that could help it.
    """
    dataset = planted.fresh_dataset(dataclasses.replace(spec, seed=seeds.derive(spec.seed, "taught")))
    splits = {name: rows.clone() for name, rows in dataset.splits.items()}
    facts = {"labels": LABELS, "device": device, "seed": seed % 2**32}  # numpy takes no more
    return dataclasses.replace(dataset, truth=None, splits=splits, facts=facts)


@task("user.dryrun", version=3, path="train", spec="plot", columns="about")
def train_and_explain(
    *,
    spec: DataSpec,
    path: str,
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
    shared = planting.template(dataset, columns).having(model=model_name(path))
    try:
        with surroundings.apart(seed) as left:
            module = train(path, spec, seed=seed, device=device)
    except FailedTraining as error:
        row = planting.training_row(dataset, 0.0, gate, shared)
        row = row.having(status="error", message=str(error), value=float("nan"))
        explained = Cell(rows=not_asked(spec, asks, shared, NO_MODEL_GIVEN), facts={"failed": True})
        return with_training(explained, row, said_of(spec, path, left))
    accuracy = planting.accuracy_of(module, dataset, device=device)
    row = planting.training_row(dataset, accuracy, gate, shared)
    if row.status == "ok":
        explained = explain(module, spec, asks, shared.having(accuracy=accuracy, epoch=-1), columns)
    else:
        explained = Cell(rows=not_asked(spec, asks, shared, BELOW_GATE))
    return with_training(explained, row, said_of(spec, path, left))


def said_of(spec: DataSpec, path: str, left: list[str]) -> list[str]:
    """What there is to say of the images, and of a training that left these changed."""
    return [*planted.notes(spec.images), *surroundings.facts(path, left).get("said", ())]


def with_training(explained: Cell, training: Row, said: list[str]) -> Cell:
    """The cell with the row of the training before the others, and what there is to say beside."""
    rows = same_columns(training.having(part="training"), *explained.rows)
    facts = {**explained.facts, "said": [*said, *explained.facts.get("said", ())]}
    return dataclasses.replace(explained, rows=rows, facts=facts)


def train(path: str, spec: DataSpec, *, seed: int, device: str) -> nn.Module:
    """The user's model, in eval mode on the device; FailedTraining where there is none."""
    dataset = planted.dataset(spec)
    with torch.enable_grad():
        model = call_training(path, training_data(spec, seed=seed, device=device))
    return ready_model(path, model, dataset.x[dataset.splits["test"]], device=device)


def same_columns(*rows: Row) -> tuple[Row, ...]:
    """The rows of a training and of maps with the columns of both, since a cell is one table."""
    names = dict.fromkeys(name for row in rows for name in row.columns)
    return tuple(dataclasses.replace(row, columns={**dict.fromkeys(names), **row.columns}) for row in rows)


def not_asked(spec: DataSpec, asks: list[Ask], shared: Row, refusal: dict[str, str]) -> tuple[Row, ...]:
    """Rows of methods that were not asked."""
    rows: list[Row] = []
    images = questions.explained_images(spec, asks[0])
    for ask in asks:
        rows += questions.no_rows(row_of(ask, shared), images, ask, refusal, whole=True)
    return tuple(rows)


def explain(module: nn.Module, spec: DataSpec, asks: list[Ask], shared: Row, columns: Columns) -> Cell:
    """Rows of all methods for the user's model, and the maps that the page shows.

    Methods that raise are not tried again by the next run: that would mean to train again.
    """
    images = questions.explained_images(spec, asks[0])  # all are asked about the same
    layer = models.last_map(module, images.dataset.x[:2].to(asks[0].device))
    shown = Album({})
    rows: list[Row] = []
    said: list[str] = []
    for ask in asks:
        row = row_of(ask, shared)
        answer = ask_method(ask, questions.question(*looked_into(module, layer, ask), images, ask))
        rows += questions.rows_of(answer, row, images, ask)
        said += answer.facts.get("said", ())
        about = {**columns, "model": row.model, "method": ask.method}
        album = questions.album_of(answer, images, about, prefix=f"{ask.method} ")
        shown.tensors.update(album.tensors)
        shown.pictures.extend(album.pictures)
    return shown.cell(rows, drawn=questions.participants(images, columns), said=said)


def looked_into(module: nn.Module, layer: str | None, ask: Ask) -> tuple[nn.Module | None, str | None]:
    """The model and the layer that a method looks at, with the outputs that it explains; no model for a null."""
    if method_of(ask).null:
        return None, layer
    return with_output(module, layer, ask.output)


def method_of(ask: Ask) -> Method:
    return plugins.method(ask.method, METHODS)


def ask_method(ask: Ask, question: explaining.Question) -> Cell:
    """The maps of a method, or why there are none."""
    if "layer" in method_of(ask).needs and question.layer is None:
        message = f"{ask.method} reads a layer that gives a map, and the model has none"
        return Cell(facts={"status": "skipped", "message": message})
    return explaining.attribute(ask.method, question)


def row_of(ask: Ask, shared: Row) -> Row:
    """The row with the method, and the model that it looked at."""
    if method_of(ask).null:
        return shared.having(method=ask.method, model=NO_MODEL)
    return shared.having(method=ask.method)
