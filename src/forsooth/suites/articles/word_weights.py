"""What a method gives to every word: it is asked on word vectors, and the dimensions of a word become one number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from forsooth import plugins, seeds
from forsooth.attributions import METHODS
from forsooth.datasets.articles import Articles
from forsooth.models.rationale import Rationale
from forsooth.models.recurrent import OnVectors, lengths_of
from forsooth.records import Cell, Method
from forsooth.suites import explain as explaining
from forsooth.suites.articles import data


@dataclass(frozen=True)
class Ask:
    """What a method is asked.

    version, code  are here to change the key when the method changes
    samples        documents of the test split; None: all
    null           whether the method ignores the model
    metrics        name -> version
    show           keep the weights of one document for the page
    keep           keep the weights of all words
    """

    method: str
    version: int
    code: str
    samples: int | None
    null: bool
    metrics: Mapping[str, int]
    show: bool
    keep: bool
    seed: int
    device: str


class Failure(NamedTuple):
    """Why a document has no map."""

    status: str
    message: str


@dataclass(frozen=True)
class WordWeights:
    """What a method gives to the words of k documents, with its sign where it has one.

    weights   (k, length) float64, 0 in padding, nan where there is no map
    gap       (k,) of a promise, nan without
    failures  (k,) None where there is a map
    """

    weights: Tensor
    gap: Tensor
    failures: list[Failure | None]


class Attending(OnVectors):
    """An attention model as a function of word vectors (n, length, dims), which tells its weights."""

    def attention_of(self, x: Tensor) -> Tensor:
        """Weights (n, length)."""
        weights: Tensor = self.model.from_embedded(x)[1]  # type: ignore[operator]
        return weights


class Selecting(OnVectors):
    """A rationale model as a function of word vectors (n, length, dims), which tells its selection.

    One that selects nothing does not read its input, and autograd would refuse to differentiate it: its gradient is 0,
    as that of a neighbour in the batch would make it.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits = super().forward(x)
        if not x.requires_grad:
            return logits
        return logits + 0 * x.flatten(1).sum(1, keepdim=True)

    def selection_of(self, x: Tensor) -> Tensor:
        """z (n, length)."""
        z: Tensor = self.model.from_embedded(x)[1].z  # type: ignore[operator]
        return z


def on_vectors(model: nn.Module) -> nn.Module:
    """The model as a function of word vectors, which also tells what the model says of itself."""
    if isinstance(model, Rationale):
        return Selecting(model)
    return Attending(model)


def weigh_words(model: nn.Module | None, documents: Articles, rows: Tensor, ask: Ask, *, fit: Tensor) -> WordWeights:
    """What a method gives to every word of the documents rows (k,); model None: for methods that ignore it.

    fit  (m,) training documents, of which the background is taken

    Documents of one length are explained together, since a hidden word keeps its place and padding has none. A null
    draws for every document by itself, so that no number depends on the neighbours.
    """
    x = documents.dataset.x[rows]
    lengths = lengths_of(x)
    weights = torch.zeros(x.shape, dtype=torch.float64)
    gap = torch.full((len(x),), torch.nan, dtype=torch.float64)
    failures: list[Failure | None] = [None] * len(x)
    method = plugins.method(ask.method, METHODS)
    for places in batches(lengths, alone=ask.null):
        length = int(lengths[places[0]])
        if not length:
            continue
        cell = ask_method(model, documents, rows[places], length, ask, fit=fit)
        if "maps" not in cell.tensors:
            weights[places] = torch.nan
            for place in places.tolist():
                failures[place] = Failure(cell.facts["status"], cell.facts["message"])
            continue
        weights[places, :length] = by_word(cell.tensors["maps"].double(), method)
        missing = explaining.gaps(cell)
        if missing is not None:
            gap[places] = missing
    return WordWeights(weights, gap, failures)


def batches(lengths: Tensor, *, alone: bool) -> list[Tensor]:
    """Places of the documents of each length in lengths (n,); each by itself if `alone`."""
    if alone:
        return [torch.tensor([place]) for place in range(len(lengths))]
    return [(lengths == length).nonzero()[:, 0] for length in lengths.unique().tolist()]


def by_word(maps: Tensor, method: Method) -> Tensor:
    """Weights (n, length) of words from maps (n, length, dims).

    Of derivatives along the dimensions of a word the sum means nothing, so that of |.| is the word's weight. Every
    other map says what each dimension gave, and the word gave their sum.
    """
    if method.values == "derivative":
        return maps.abs().sum(2)
    return maps.sum(2)


class Reading(NamedTuple):
    """Tokens as they are explained: x (n, length, dims), target (n,), background (m, length, dims)."""

    model: nn.Module
    x: Tensor
    target: Tensor
    background: Tensor


def ask_method(
    model: nn.Module | None, documents: Articles, rows: Tensor, length: int, ask: Ask, *, fit: Tensor
) -> Cell:
    """The maps of the documents rows (n,), all of `length` words, for the class that the model predicts."""
    tokens = documents.dataset.x[rows, :length].to(ask.device)
    seed = ask.seed
    if ask.null:
        seed = seeds.derive(ask.seed, int(rows[0]))
    if model is None:
        reading = read_by_nobody(tokens)
    else:
        reading = read_by(model, tokens, data.background(documents, fit, length).to(ask.device))
    truth = data.truth(documents)[rows, :length].to(ask.device)
    words = torch.arange(length, device=ask.device)[:, None]
    question = explaining.Question(
        model=reading.model,
        x=reading.x,
        target=reading.target.to(ask.device),
        background=reading.background,
        fit=reading.background,
        truth=truth[..., None].expand_as(reading.x),
        layer=None,
        seed=seed,
        game={"players": words.expand(length, reading.x.shape[2])},
        samples=rows,
    )
    return explaining.attribute(ask.method, question)


def read_by_nobody(tokens: Tensor) -> Reading:
    """Tokens (n, length) for methods that ignore the model: every word is one dimension."""
    x = torch.ones(*tokens.shape, 1, device=tokens.device)
    return Reading(nn.Identity(), x, torch.zeros(len(tokens), dtype=torch.int64), x[:1])


def read_by(model: nn.Module, tokens: Tensor, background: Tensor) -> Reading:
    """Tokens (n, length) and background (m, length) as the model's word vectors, for the class that it predicts."""
    x = model.embedding(tokens)  # type: ignore[operator]
    reader = on_vectors(model)
    with torch.no_grad():
        target = reader(x).argmax(1)
    return Reading(reader, x, target, model.embedding(background))  # type: ignore[operator]
