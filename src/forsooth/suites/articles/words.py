"""The words of a document, weighed by a method: ask it on word vectors, score what it gives to the articles."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import seeds
from forsooth.datasets import articles
from forsooth.engine import known_as
from forsooth.models.recurrent import OnVectors, lengths_of
from forsooth.names import find
from forsooth.records import Cell
from forsooth.scores import METRICS, selection
from forsooth.suites import choose, explain
from forsooth.suites.articles import tasks as reading

# Derivatives along the dimensions of a word: their sum means nothing, so that of |.| is the word's weight. Every other
# map says what each dimension gave, and the word gave their sum.
NORMED = ("saliency", "gradient", "smooth_grad", "smooth_grad_50", "smooth_grad_absolute", "smooth_grad_squared")
BACKGROUND = 50  # training documents that stand for the background, cut to the length of the explained one


class Logits(nn.Module):
    """A model of text as a function of word vectors (n, length, dims), to logits (n, classes).

    A rationale model that selects nothing does not read its input, and autograd would refuse to differentiate it: its
    gradient is 0, as that of a neighbour in the batch would make it.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = OnVectors(model)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits: Tensor = self.model(x)
        return logits + 0 * x.flatten(1).sum(1, keepdim=True) if x.requires_grad else logits


class Attending(nn.Module):
    """An attention model as a function of word vectors (n, length, dims), which tells its weights."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        return self.model.from_embedded(x)[0]  # type: ignore[operator]

    def attention_of(self, x: Tensor) -> Tensor:
        """Weights (n, length)."""
        return self.model.from_embedded(x)[1]  # type: ignore[operator]


class Selecting(nn.Module):
    """A rationale model as a function of word vectors (n, length, dims), which tells its selection."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        return self.model.from_embedded(x)[0]  # type: ignore[operator]

    def selection_of(self, x: Tensor) -> Tensor:
        """z (n, length)."""
        return self.model.from_embedded(x)[1].z  # type: ignore[operator]


WRAPPED: dict[str, type[nn.Module]] = {"attention": Attending, "rationale": Selecting}


@known_as("articles.explain")
def explain_reader(
    *trained: Cell, plot: dict[str, Any], index: int, ask: dict[str, Any], about: dict[str, Any]
) -> Cell:
    """Rows of one method for one network (index -1: a method that ignores it).

    ask  method, version, code, seed, device; samples: documents of the test split, None: all; null; metrics (name ->
         version); show: keep the map of one document for the page; keep: store the weights of all words
    """
    given, method = reading.data(plot), ask["method"]
    shared = {**about, "suite": "articles", "part": "scores", "method": method}
    shared["dataset"] = given.dataset.facts["source"]
    passed = [cell.facts["passed"] for cell in trained]
    if not (passed[index] if index >= 0 else any(passed)):
        told = {"status": "below gate" if index >= 0 else "no sample", "sample": -1, "value": float("nan")}
        told["message"] = "the network is below its gate: not explained"
        return Cell(rows=tuple({**shared, **told, "metric": metric, "frequency": None} for metric in ask["metrics"]))
    rows = reading.explained(given, ask["samples"])
    model = reading.trained_from(trained[index], plot, device=ask["device"]) if index >= 0 else None
    found = weights_of_words(model, given, rows, ask, fit=given.dataset.splits["train"])
    table = judged(found, given, rows, ask["metrics"], shared)
    tensors = {"weights": found["weights"].float(), "rows": rows} if ask["keep"] else {}
    facts: dict[str, Any] = {"drawn": drawn(given, rows, about)}
    if any(found["told"]):
        facts["failed"] = True
    if ask["show"]:
        k = reading.shown(given, rows)
        tensors["shown"] = found["weights"][k, : int(lengths_of(given.dataset.x[rows[k]][None])[0])].float()
        facts["pictures"] = [{**about, "method": method, "shows": "weights", "tensor": "shown"}]
    return Cell(rows=tuple(table), tensors=tensors, facts=facts)


def weights_of_words(
    model: nn.Module | None, given: articles.Articles, rows: Tensor, ask: Mapping[str, Any], *, fit: Tensor
) -> dict[str, Any]:
    """What a method gives to every word of the documents rows (k,), with its sign where it has one.

    fit      (m,) training documents, of which the background is taken
    returns  weights (k, length) float64, 0 in padding; gap (k,) of a promise, nan without; told: for each document
             why there is no map, None where there is one

    Documents of one length are explained together, since a hidden word keeps its place and padding has none. A null
    draws for every document by itself, so that no number depends on the neighbours.
    """
    x, truth = given.dataset.x[rows], given.dataset.truth
    assert truth is not None
    lengths = lengths_of(x)
    weights = torch.zeros(x.shape, dtype=torch.float64)
    gap = torch.full((len(x),), torch.nan, dtype=torch.float64)
    told: list[dict[str, str] | None] = [None] * len(x)
    for places in batches(lengths, alone=ask["null"]):
        length = int(lengths[places[0]])
        if not length:
            continue
        here = places.tolist()
        seed = seeds.derive(ask["seed"], int(rows[here[0]])) if ask["null"] else ask["seed"]
        behind = background(given, fit, length)
        question = asked(model, x[places, :length], truth[rows[places], :length], behind, seed, ask)
        question = replace(question, samples=rows[places])
        made = explain.attribute(ask["method"], question)
        if "maps" not in made.tensors:
            weights[places] = torch.nan
            for k in here:
                told[k] = {name: made.facts[name] for name in ("status", "message")}
            continue
        maps = made.tensors["maps"].double()
        weights[places, :length] = maps.abs().sum(2) if ask["method"] in NORMED else maps.sum(2)
        missed = explain.gaps(made)
        if missed is not None:
            gap[places] = missed
    return {"weights": weights, "gap": gap, "told": told}


def batches(lengths: Tensor, *, alone: bool) -> list[Tensor]:
    """Places of the documents of each length in lengths (n,); each by itself if `alone`."""
    if alone:
        return list(torch.arange(len(lengths)).split(1)) if len(lengths) else []
    return [(lengths == length).nonzero()[:, 0] for length in lengths.unique().tolist()]


def asked(
    model: nn.Module | None, tokens: Tensor, truth: Tensor, behind: Tensor, seed: int, ask: Mapping[str, Any]
) -> explain.Question:
    """The question on tokens (n, length) without padding, for the class that the model predicts.

    truth (n, length) bool; behind (m, length) tokens of the background
    """
    device, length = ask["device"], tokens.shape[1]
    given = tokens.to(device)
    if model is None:
        x, target = torch.ones(*tokens.shape, 1, device=device), torch.zeros(len(tokens), dtype=torch.int64)
        reader: nn.Module = nn.Identity()
        background = x[:1]
    else:
        x, background = (model.embedding(part) for part in (given, behind.to(device)))  # type: ignore[operator]
        reader = WRAPPED.get(ask["method"], Logits)(model)
        with torch.no_grad():
            target = reader(x).argmax(1)
    return explain.Question(
        model=reader,
        x=x,
        target=target.to(device),
        background=background,
        fit=background,
        truth=truth.to(device)[..., None].expand_as(x),
        layer=None,
        seed=seed,
        game={"players": torch.arange(length, device=device)[:, None].expand(length, x.shape[2])},
    )


def background(given: articles.Articles, fit: Tensor, length: int) -> Tensor:
    """Tokens (k, length) of training documents that are as long, cut; padding where none is."""
    rows = background_rows(given, fit, length)
    return given.dataset.x[rows, :length] if len(rows) else torch.zeros(1, length, dtype=torch.int64)


def background_rows(given: articles.Articles, fit: Tensor, length: int) -> Tensor:
    """(k,) of the training documents fit (m,), drawn among those of `length` words or more, evenly over labels."""
    dataset = given.dataset
    long = fit[lengths_of(dataset.x[fit]) >= length]
    return choose.rows_of(dataset, long, BACKGROUND, seed=dataset.facts["seed"], role="background")


def drawn(given: articles.Articles, rows: Tensor, about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Who took part in each role, by label, for the run to keep; the background is that of the longest document."""
    dataset = given.dataset
    behind = background_rows(given, dataset.splits["train"], int(lengths_of(dataset.x[rows]).max()))
    roles = {"explained": rows, "background": behind}
    where = {"kind": about["kind"]}
    return [line for role, own in roles.items() for line in choose.classes_of(dataset.y[own], role=role, where=where)]


def judged(
    found: Mapping[str, Any],
    given: articles.Articles,
    rows: Tensor,
    metrics: Mapping[str, int],
    shared: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """One row per document and metric; `frequency` is what a constant map scores there.

    Attr% of other words is a row of the part "shares", which nobody ranks.
    """
    masks, tokens, samples = reading.words_of(given, rows), given.dataset.x[rows], rows.tolist()
    scored = {name: find(name, METRICS, argument="metrics") for name in metrics}
    table: list[dict[str, Any]] = []
    for name, metric in {**scored, "attr_words_other": selection.ATTR_WORDS}.items():
        mask = masks[kind_of_words(name)]
        part = {"part": "scores" if name in scored else "shares", "metric": name}
        if not mask.any():
            none = {"status": "no sample", "message": f"no document has {kind_of_words(name)} words", "sample": -1}
            table.append({**shared, **part, **none, "value": float("nan"), "frequency": 0.0})
            continue
        told = explain.score(found["weights"].abs(), {"truth": mask, "x": tokens}, [metric], samples)
        shares = selection.frequency(mask, tokens).tolist()
        for row, share, there, reason in zip(told, shares, mask.any(1).tolist(), found["told"], strict=True):
            told_so = reason or {}
            if not there:
                told_so = {"status": "no sample", "message": f"the document has no {kind_of_words(name)} words"}
            value = float("nan") if told_so else row["value"]
            table.append({**shared, **row, **told_so, **part, "value": value, "frequency": reading.number(share)})
    return [{**shared, **row} for row in explain.with_gaps(table, found["gap"], samples, frequency=None)]


def kind_of_words(metric: str) -> str:
    """Which words a metric is about; those that tell the label unless its name says otherwise."""
    return next((kind for kind in reading.KINDS_OF_WORDS[1:] if metric.endswith(kind)), reading.KINDS_OF_WORDS[0])
