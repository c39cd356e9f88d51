"""The tasks of the articles suite: train a model of text, ask a method about its words, score. Results are cells."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from forsooth.datasets import texts
from forsooth.datasets.articles import Articles
from forsooth.engine import task
from forsooth.models import MODELS, train_text
from forsooth.models.recurrent import lengths_of
from forsooth.names import find
from forsooth.records import NO_MODEL, Cell, Metric, Row, Status
from forsooth.scores import METRICS, selection
from forsooth.suites import explain as explaining
from forsooth.suites import networks
from forsooth.suites.articles import data
from forsooth.suites.articles.data import DataSpec, Panel
from forsooth.suites.articles.word_weights import Ask, WordWeights, weigh_words

NOT_EXPLAINED = "the network is below its gate: not explained"


@dataclass(frozen=True)
class NetSpec:
    """A network to train: its architecture, the version of it, and its size."""

    name: str
    version: int
    variant: str


@task("articles.train", version=2, spec="plot", panel="about")
def train(*, spec: DataSpec, net: NetSpec, recipe: train_text.TextRecipe, panel: Panel, seed: int, device: str) -> Cell:
    """One training. The cell holds the weights and the row of its accuracy."""
    documents = data.dataset(spec)
    trained = train_text.fit_text(
        lambda: untrained(net.name, net.variant, spec), documents.dataset, recipe, seed=seed, device=device
    )
    template = panel.row("training", data.source(documents))
    template = template.having(selected=trained.test_rate, sizes=data.sizes(documents))
    row = networks.accuracy_row(template, trained.test_accuracy, gate=recipe.gate, passed=trained.passed)
    facts = {
        "passed": trained.passed,
        "net": net.name,
        "variant": net.variant,
        "reached": trained.reached,
        "attempts": list(trained.attempts),
        "epochs": len(trained.history),
        "rate": plain_number(trained.test_rate),
        "said": data.notes(spec),
    }
    return Cell(rows=(row,), tensors=networks.weights_of(trained.module), facts=facts)


def untrained(net: str, variant: str, spec: DataSpec) -> nn.Module:
    """The network for the vocabulary of the documents; with given word vectors where the spec names a file of them."""
    words = data.dataset(spec).vocabulary
    vectors = None
    if spec.vectors:
        vectors = texts.word_vectors(spec.vectors, words, seed=spec.seed)[0]
    return find(net, MODELS, argument="models").function(words=len(words), variant=variant, vectors=vectors)


def loaded(trained: Cell, spec: DataSpec, *, device: str) -> nn.Module:
    """The network of a cell of `train`, ready to be explained."""
    module = untrained(trained.facts["net"], trained.facts["variant"], spec)
    return networks.loaded(module, trained.tensors, device=device)


@task("articles.explain", version=2, spec="plot", panel="about")
def explain(*trained: Cell, spec: DataSpec, index: int, ask: Ask, panel: Panel) -> Cell:
    """Rows of one method for one network (index -1: a method that ignores them all)."""
    documents = data.dataset(spec)
    template = panel.row("scores", data.source(documents), ask.method).having(frequency=None)
    status = unexplained(trained, index)
    if status is not None:
        reason = {"status": status, "message": NOT_EXPLAINED}
        return Cell(rows=tuple(explaining.no_scores(template, ask.metrics, [-1], reason)))
    rows = data.explained(documents, ask.samples)
    model = None
    if index >= 0:
        model = loaded(trained[index], spec, device=ask.device)
    weighed = weigh_words(model, documents, rows, ask, fit=documents.dataset.splits["train"])
    tensors: dict[str, Tensor] = {}
    facts: dict[str, Any] = {"drawn": data.drawn(documents, rows, panel.kind)}
    if any(weighed.failures):
        facts["failed"] = True
    if ask.keep:
        tensors = {"weights": weighed.weights.float(), "rows": rows}
    if ask.show:
        place = data.shown(documents, rows)
        length = int(lengths_of(documents.dataset.x[rows[place]][None]))
        tensors["shown"] = weighed.weights[place, :length].float()
        facts["pictures"] = [{**asdict(panel), "method": ask.method, "shows": "weights", "tensor": "shown"}]
    return Cell(rows=tuple(score(weighed, documents, rows, ask.metrics, template)), tensors=tensors, facts=facts)


def unexplained(trained: Sequence[Cell], index: int) -> Status | None:
    """Why nobody is explained: the network is below its gate, or all are and a null has nothing to be compared with."""
    passed = [cell.facts["passed"] for cell in trained]
    if index < 0:
        return None if any(passed) else "no model"
    return None if passed[index] else "below gate"


def score(weighed: WordWeights, documents: Articles, rows: Tensor, metrics: Iterable[str], template: Row) -> list[Row]:
    """One row per document and metric for the documents rows (k,), and the gaps of promises.

    Attr% of other words is a row of the part "shares", which nobody ranks.
    """
    table: list[Row] = []
    for name in metrics:
        metric = find(name, METRICS, argument="metrics")
        table += attr_rows(replace(metric, name=name), weighed, documents, rows, template)
    other = replace(selection.ATTR_WORDS, name="attr_words_other")
    table += attr_rows(other, weighed, documents, rows, template.having(part="shares"))
    return explaining.promise_rows(template, table, weighed.gap, rows.tolist())


def attr_rows(metric: Metric, weighed: WordWeights, documents: Articles, rows: Tensor, template: Row) -> list[Row]:
    """One row per document; `frequency` is what a constant map scores there."""
    kind = kind_of_words(metric.name)
    mask = data.word_masks(documents, rows)[kind]
    lacking = template.having(metric=metric.name, value=float("nan"), status="no such words")
    if not mask.any():
        return [lacking.having(sample=-1, message=f"no document has {kind} words", frequency=0.0)]
    tokens = documents.dataset.x[rows]
    reads = {"truth": mask, "x": tokens}
    scored = explaining.score_rows(template, weighed.weights.abs(), reads, [metric], rows.tolist())
    frequency = selection.frequency(mask, tokens).tolist()
    table = []
    for row, there, share, failure in zip(scored, mask.any(1).tolist(), frequency, weighed.failures, strict=True):
        if not there:
            row = lacking.having(sample=row.sample, message=f"the document has no {kind} words")
        elif failure is not None:
            row = row.having(value=float("nan"), status=failure.status, message=failure.message)
        table.append(row.having(frequency=plain_number(share)))
    return table


def kind_of_words(metric: str) -> str:
    """Which words a metric is about; those that tell the label unless its name says otherwise."""
    return next((kind for kind in data.KINDS_OF_WORDS[1:] if metric.endswith(kind)), data.KINDS_OF_WORDS[0])


def plain_number(value: float) -> float | None:
    """None for nan: JSON has none."""
    return None if value != value else value


@task("articles.show", version=2, spec="plot", factors="about")
def show(*, spec: DataSpec, factors: dict[str, str], samples: int | None) -> Cell:
    """The document that the page shows: its words, and which of them are articles of which kind."""
    documents = data.dataset(spec)
    rows = data.explained(documents, samples)
    row = rows[data.shown(documents, rows)]
    words = texts.decode(documents.dataset.x[row], documents.vocabulary)
    masks = data.word_masks(documents, row[None])
    articles = torch.cat([masks["correlating"], masks["non_correlating"]])[:, : len(words)]
    picture = {
        **factors,
        "model": NO_MODEL,
        "method": "",
        "shows": "document",
        "tensor": "shown",
        "words": words,
        "label": int(documents.dataset.y[row]),
    }
    return Cell(tensors={"shown": articles.float()}, facts={"pictures": [picture]})
