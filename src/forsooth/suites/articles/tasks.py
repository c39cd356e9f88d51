"""The tasks of the articles suite: train a model of text, ask a method about its words, score. Results are cells."""

from collections.abc import Iterable
from dataclasses import asdict, replace

import torch
from torch import nn

from forsooth import models, scores
from forsooth.datasets import texts
from forsooth.datasets.remarks import split_sizes
from forsooth.engine import task
from forsooth.models import train_text
from forsooth.models.on_vectors import NoModel
from forsooth.records import NO_MODEL, Cell, Metric, Row
from forsooth.scores import selection
from forsooth.suites import explain as explaining
from forsooth.suites import networks
from forsooth.suites.album import Album
from forsooth.suites.articles import data
from forsooth.suites.articles.data import Chosen, DataSpec, Panel
from forsooth.suites.articles.questions import Ask, WordWeights, weigh_words
from forsooth.suites.networks import NetSpec


@task("articles.train", version=2, spec="plot", panel="about")
def train(*, spec: DataSpec, net: NetSpec, recipe: train_text.TextRecipe, panel: Panel, seed: int, device: str) -> Cell:
    """One training. The cell holds the weights and the row of its accuracy."""
    documents = data.dataset(spec)
    trained = train_text.fit_text(
        lambda: untrained(net.name, net.variant, spec), documents.dataset, recipe, seed=seed, device=device
    )
    template = panel.row("training", data.source(documents))
    template = template.having(selected=trained.test_rate, sizes=split_sizes(documents))
    row = networks.accuracy_row(template, trained.test_accuracy, gate=recipe.gate, passed=trained.passed)
    facts = {
        "net": net.name,
        "variant": net.variant,
        "said": data.notes(spec),
        "passed": trained.passed,
        "reached": trained.reached,
        "attempts": list(trained.attempts),
        "epochs": len(trained.history),
        "rate": plain_number(trained.test_rate),
    }
    return Cell(rows=(row,), tensors=networks.weights_of(trained.module), facts=facts)


def untrained(net: str, variant: str, spec: DataSpec) -> nn.Module:
    """The network for the vocabulary of the documents; with given word vectors where the spec names a file of them."""
    words = data.dataset(spec).vocabulary
    vectors = None
    if spec.vectors:
        vectors = texts.word_vectors(spec.vectors, words, seed=spec.seed)[0]
        data.require_same_vectors(spec)
    return models.architecture(net).function(words=len(words), variant=variant, vectors=vectors)


def loaded(trained: Cell, spec: DataSpec, *, device: str) -> nn.Module:
    """The network of a cell of `train`, ready to be explained."""
    module = untrained(trained.facts["net"], trained.facts["variant"], spec)
    return networks.loaded(module, trained.tensors, device=device)


@task("articles.explain", version=2, spec="plot", panel="about")
def explain(*trained: Cell, spec: DataSpec, index: int, ask: Ask, panel: Panel) -> Cell:
    """Rows of one method for one network (index -1: a method that ignores them all)."""
    documents = data.dataset(spec)
    template = panel.row("scores", data.source(documents), ask.method).having(frequency=None)
    refusal = networks.refusal([cell.facts["passed"] for cell in trained], index)
    if refusal:
        return Cell(rows=tuple(explaining.no_scores(template, ask.metrics, [-1], refusal)))
    model: nn.Module = NoModel()
    if index >= 0:
        model = loaded(trained[index], spec, device=ask.device)
    return scored(model, data.explained(documents, ask.samples), ask, panel, template)


def scored(model: nn.Module, chosen: Chosen, ask: Ask, panel: Panel, template: Row) -> Cell:
    """The weights of the words of the chosen documents, scored.

    All weights (k, length) are kept where others read them, and those of the documents that the page shows.
    """
    weighed = weigh_words(model, chosen, ask)
    weights = weighed.weights.float()
    album = Album({**asdict(panel), "method": ask.method, "shows": "weights"})
    if ask.keep:
        album.tensors.update(weights=weights, rows=chosen.rows)
    if ask.show:
        for number, place in enumerate(data.shown(chosen)):
            own = weights[place, : int(chosen.lengths[place])]
            album.add(own.clone(), "shown", number)  # a file holds no memory twice
    return album.cell(
        score(weighed, chosen, ask.metrics, template),
        drawn=data.drawn(chosen, panel.kind),
        failed=bool(weighed.failures),
        said=list(dict.fromkeys(weighed.notes)),
    )


def score(weighed: WordWeights, chosen: Chosen, metrics: Iterable[str], template: Row) -> list[Row]:
    """One row per document and metric, and the gaps of promises.

    Attr% of other words is a row of the part "shares", which nobody ranks.
    """
    parts = [(metric, template) for metric in scores.metrics(metrics)]
    parts.append((replace(selection.ATTR_WORDS, name="attr_words_other"), template.having(part="shares")))
    table = [row for metric, own in parts for row in attr_rows(metric, weighed, chosen, own)]
    return explaining.promise_rows(template, table, weighed.gap, chosen.rows.tolist())


def attr_rows(metric: Metric, weighed: WordWeights, chosen: Chosen, template: Row) -> list[Row]:
    """One row per document; `frequency` is what a constant map scores there."""
    kind = data.WORDS.get(metric.name, "correlating")
    truth = chosen.masks()[kind]
    if not truth.any():
        row = lacking(template.having(metric=metric.name, sample=-1), f"no document has {kind} words")
        return [row.having(frequency=0.0)]
    reads = {"truth": truth, "x": chosen.tokens}
    rows = list(explaining.score_rows(template, weighed.weights.abs(), reads, [metric], chosen.rows.tolist()))
    for place, failure in weighed.failures.items():
        rows[place] = rows[place].having(value=torch.nan, **failure)
    table = []
    for row, frequency in zip(rows, selection.frequency(truth, chosen.tokens).tolist(), strict=True):
        if not frequency > 0:
            row = lacking(row, f"the document has no {kind} words")
        table.append(row.having(frequency=plain_number(frequency)))
    return table


def lacking(row: Row, message: str) -> Row:
    """The row of documents without such words."""
    return row.having(value=torch.nan, status="no such words", message=message)


def plain_number(value: float) -> float | None:
    """None for nan: JSON has none."""
    return None if value != value else value


@task("articles.show", version=3, spec="plot", factors="about")
def show(*, spec: DataSpec, factors: dict[str, str], samples: int | None) -> Cell:
    """The documents that the page shows: their words, and which of them are articles of which kind."""
    documents = data.dataset(spec)
    chosen = data.explained(documents, samples)
    masks = chosen.masks()
    album = Album({**factors, "model": NO_MODEL, "method": "", "shows": "document"})
    for number, place in enumerate(data.shown(chosen)):
        words = texts.decode(chosen.tokens[place], documents.vocabulary)
        articles = torch.stack([masks[kind][place, : len(words)] for kind in ("correlating", "non_correlating")])
        album.add(articles.float(), "shown", number, label=int(chosen.labels[place]), words=words)
    return album.cell()
