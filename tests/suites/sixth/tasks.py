"""The tasks: train, explain and score."""

from dataclasses import dataclass, replace

from forsooth.suites.needle import data
from forsooth.suites.needle.data import DataSpec

from forsooth import models
from forsooth.engine import task
from forsooth.models import recipes
from forsooth.models import train as training
from forsooth.records import Cell
from forsooth.scores.localisation import IMA
from forsooth.suites import choose, networks
from forsooth.suites import explain as explaining

RECIPE = replace(recipes.TABLE, learning_rate=0.05, epochs=20, gate=0.8)


@dataclass(frozen=True)
class Ask:
    """What a method is asked."""

    method: str
    version: int
    code: str
    samples: int
    seed: int
    device: str


@task("needle.train")
def train(*, spec: DataSpec, net: str, number: int, seed: int, device: str) -> Cell:
    dataset = data.dataset(spec)
    made = training.fit(lambda: untrained(net, spec), dataset, RECIPE, seed=seed, device=device)
    row = networks.accuracy_row(data.row(spec, "training", model=net, model_seed=number), made.test_accuracy, gate=0.8)
    return Cell(rows=(row,), tensors=networks.weights_of(made.module), facts={"net": net, "number": number})


def untrained(net: str, spec: DataSpec):
    return models.build(net, shape=(spec.columns,), classes=2)


@task("needle.explain")
def explain(trained: Cell, *, spec: DataSpec, ask: Ask) -> Cell:
    dataset = data.dataset(spec)
    net = trained.facts["net"]
    rows = choose.rows_of(dataset, dataset.splits["test"], ask.samples, seed=ask.seed, role="explained")
    template = data.row(spec, "scores", model=net, model_seed=trained.facts["number"], method=ask.method)
    question = explaining.Question(
        model=networks.loaded(untrained(net, spec), trained.tensors, device=ask.device),
        x=dataset.x[rows],
        target=dataset.y[rows],
        background=dataset.x[dataset.splits["train"]],
        fit=dataset.x[dataset.splits["train"]],
        truth=dataset.truth[rows],
        layer=None,
        seed=ask.seed,
        samples=rows,
    )
    made = explaining.attribute(ask.method, question)
    scored = explaining.score_rows(template, made.tensors["maps"], {"truth": dataset.truth[rows]}, [IMA], rows.tolist())
    drawn = choose.classes_of({"explained": dataset.y[rows]}, where={"columns": spec.columns})
    return Cell(rows=tuple(scored), facts={"drawn": drawn})
