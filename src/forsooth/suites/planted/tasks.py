"""The tasks of the planted suite: plant, train, explain, score.

No picture is stored: a task makes its data again from their spec, and scores its maps before it forgets them.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import nn

from forsooth import models
from forsooth.datasets.planted import p_value as p_value_of
from forsooth.engine import task
from forsooth.models.gates import Gate
from forsooth.models.normalising import normalised, with_normalising
from forsooth.models.recipes import Recipe
from forsooth.models.train import States, fit
from forsooth.records import NO_MODEL, Cell, Columns, Dataset, Facts, Row
from forsooth.scores.verification import share
from forsooth.suites import choose, networks
from forsooth.suites import explain as explaining
from forsooth.suites.album import Album
from forsooth.suites.planted import data
from forsooth.suites.planted.data import DataSpec
from forsooth.suites.planted.questions import (
    LABELS,
    Ask,
    Explained,
    album_of,
    explained_images,
    no_rows,
    participants,
    question,
    rows_of,
)


@dataclass(frozen=True)
class State:
    """A network at one moment of its training; without a cell: what a method sees that ignores every network."""

    cell: Cell | None = None
    number: int = 0
    epoch: int = -1
    accuracy: float | None = None


@task("planted.train", version=2, spec="plot", columns="about")
def train(
    *,
    spec: DataSpec,
    net: str,
    recipe: Recipe,
    gate: Gate,
    keep: bool,
    columns: Columns,
    seed: int,
    device: str,
) -> Cell:
    """One training. The cell holds the weights and, if `keep`, those of the checkpoints on the way."""
    planted = data.dataset(spec)
    trained = fit(
        lambda: untrained(net, planted), replace(planted, x=normalised(planted.x)), recipe, seed=seed, device=device
    )
    row = training_row(planted, trained.test_accuracy, gate, template(planted, columns).having(model=net))
    states = trained.states(checkpoints=keep)
    tensors = {f"{k}.{name}": value for k, (_, own) in enumerate(states) for name, value in own.items()}
    facts = {
        "passed": row.status == "ok",
        "net": net,
        "states": state_facts(net, planted, states, device=device),
        "attempts": list(trained.attempts),
        "said": data.notes(spec.images),
    }
    return Cell(rows=(row,), tensors=tensors, facts=facts)


def state_facts(net: str, planted: Dataset, states: States, *, device: str) -> list[Facts]:
    """Epoch and test accuracy of every state."""
    facts = []
    for epoch, weights in states:
        network = networks.loaded(untrained(net, planted), weights, device=device)
        facts.append({"epoch": epoch, "accuracy": accuracy_of(with_normalising(network), planted, device=device)})
    return facts


def template(planted: Dataset, columns: Columns) -> Row:
    """What all rows of a task share."""
    return Row("planted", str(columns["part"]), dataset=planted.facts["base"]).having(columns)


def training_row(planted: Dataset, accuracy: float, gate: Gate, shared: Row) -> Row:
    """The row of a training with this test accuracy; its status says whether the model uses the artefact."""
    p_star = planted.facts["p_star"]
    p_value = p_value_of(accuracy, len(planted.splits["test"]), p_star)
    objection = gate.objection(accuracy, p_value, p_star=p_star)
    row = networks.accuracy_row(shared, accuracy, gate=gate.accuracy, passed=not objection)
    return row.having(message=objection, p_star=p_star, p_value=p_value, er=planted.facts["er"])


@task("planted.show", version=2, spec="plot", columns="about")
def show(*, spec: DataSpec, columns: Columns) -> Cell:
    """A few images with the artefact, as many without, and the effective region."""
    planted = data.dataset(spec)
    assert planted.truth is not None
    sources = {"input": planted.x, "truth": planted.truth}
    album = Album({**columns, "model": NO_MODEL, "method": ""})
    for presence, rows in data.explained_rows(planted, spec, samples=choose.SHOWN).items():
        for (place, row), kind in itertools.product(enumerate(rows), sources):
            album.add(sources[kind][row].half(), f"{kind} {presence}", place, kind=kind, label=LABELS[presence])
    return album.cell()


@task("planted.explain", version=2, spec="plot", columns="about")
def explain(*trained: Cell, spec: DataSpec, index: int, ask: Ask, columns: Columns) -> Cell:
    """Rows of one method for one network (index -1: a method that ignores it), and the maps that the page shows."""
    images = explained_images(spec, ask)
    shared = template(images.dataset, columns).having(method=ask.method)
    refusal = refused(trained, index, ask)
    if refusal:
        return Cell(rows=tuple(no_rows(shared, images, ask, refusal, whole=True)))
    rows: list[Row] = []
    failed = False
    notes: list[str] = []
    album = Album({})
    for state in states_of(trained, index, ask):
        answer = explaining.attribute(ask.method, question_on(state, images, ask))
        failed |= answer.facts.get("failed", False)
        notes += answer.facts.get("said", ())
        rows += rows_of(answer, shared.having(epoch=state.epoch, accuracy=state.accuracy), images, ask)
        if ask.show:
            album = album_of(answer, images, {**columns, "method": ask.method})
    facts: Facts = {"drawn": participants(images, columns), "failed": failed}
    if notes:
        facts["said"] = notes
    return album.cell(rows, **facts)


def refused(trained: Sequence[Cell], index: int, ask: Ask) -> Facts:
    """Status and message where nothing is explained; states on the way are, whatever their accuracy."""
    return networks.refusal([cell.facts["passed"] or ask.checkpoints for cell in trained], index)


def states_of(trained: Sequence[Cell], index: int, ask: Ask) -> list[State]:
    """The states of a network that a method is asked about."""
    if index < 0:
        return [State()]
    cell = trained[index]
    states = [State(cell, number, **state) for number, state in enumerate(cell.facts["states"])]
    if ask.checkpoints:
        return states
    return states[-1:]


def question_on(state: State, images: Explained, ask: Ask) -> explaining.Question:
    """The question on a network as it was."""
    if state.cell is None:
        return question(None, None, images, ask)
    net = state.cell.facts["net"]
    network = networks.loaded(
        untrained(net, images.dataset), state.cell.tensors, device=ask.device, prefix=f"{state.number}."
    )
    model = with_normalising(network, output=ask.output)
    layer = networks.inside(models.architecture(net).layer, "1")
    return question(model, layer, images, ask)


def untrained(net: str, planted: Dataset) -> nn.Module:
    return models.build(net, shape=tuple(planted.x.shape[1:]), classes=2)


def accuracy_of(model: nn.Module, planted: Dataset, *, device: str) -> float:
    """The share of the test split that is predicted right."""
    return share(networks.correct(model, planted, planted.splits["test"], device=device))
