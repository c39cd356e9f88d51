"""What a method gives to every word: it is asked on word vectors, and the dimensions of a word become one number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import chunks, plugins, seeds
from forsooth.attributions import METHODS
from forsooth.models.on_vectors import on_vectors
from forsooth.suites import explain as explaining
from forsooth.suites import networks
from forsooth.suites.articles import data
from forsooth.suites.articles.data import Chosen

Failure = Mapping[str, Any]  # status and message


@dataclass(frozen=True)
class Ask:
    """What a method is asked.

    version, code  are here to change the key when the method changes
    samples        documents of the test split; None: all
    null           whether the method ignores the model
    metrics        name -> version
    show           keep the weights of a few documents for the page
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


@dataclass(frozen=True)
class WordWeights:
    """What a method gives to the words of k documents, with its sign where it has one.

    weights   (k, length) float64, 0 in padding, nan where there is no map
    gap       (k,) of a promise, nan without
    failures  status and message by place, where there is no map
    notes     sentences for the page on what the method left behind
    """

    weights: Tensor
    gap: Tensor
    failures: Mapping[int, Failure]
    notes: tuple[str, ...] = ()


def weigh_words(model: nn.Module, chosen: Chosen, ask: Ask) -> WordWeights:
    """What a method gives to every word of the chosen documents.

    Documents of one length are explained together, since a hidden word keeps its place and padding has none. A null
    draws for every document by itself, so that no number depends on the neighbours.
    """
    shape = chosen.tokens.shape
    weights = torch.zeros(shape, dtype=torch.float64)
    gap = torch.full(shape[:1], torch.nan, dtype=torch.float64)
    failures: dict[int, Failure] = {}
    notes: list[str] = []
    for places in chunks.of_one_length(chosen.lengths, alone=ask.null):
        cell = explaining.attribute(ask.method, question(model, chosen.at(places), ask))
        notes += cell.facts.get("said", ())
        if "maps" not in cell.tensors:
            weights[places] = torch.nan
            failure = {name: cell.facts[name] for name in ("status", "message")}
            failures |= dict.fromkeys(places.tolist(), failure)
            continue
        by_word = summed(cell.tensors["maps"].double(), ask.method)
        weights[places, : by_word.shape[1]] = by_word
        missing = explaining.gaps(cell)
        if missing is not None:
            gap[places] = missing
    return WordWeights(weights, gap, failures, tuple(notes))


def summed(maps: Tensor, method: str) -> Tensor:
    """Weights (n, length) of words from maps (n, length, dims).

    Of derivatives along the dimensions of a word the sum means nothing, so that of |.| is the word's weight. Every
    other map says what each dimension gave, and the word gave their sum.
    """
    if plugins.method(method, METHODS).values == "derivative":
        return maps.abs().sum(2)
    return maps.sum(2)


def question(model: nn.Module, chosen: Chosen, ask: Ask) -> explaining.Question:
    """What a method is asked on documents that are all of one length, for the class that the model predicts."""
    length = int(chosen.lengths[0])
    seed = ask.seed
    if ask.null:  # it is asked about one document at a time, and draws by its number
        seed = seeds.derive(seed, int(chosen.rows[0]))
    tokens = (chosen.tokens[:, :length], data.background(chosen.documents, length))
    x, references = (model.embedding(part.to(ask.device)) for part in tokens)  # type: ignore[operator]
    reader = on_vectors(model)
    return explaining.Question(
        model=reader,
        x=x,
        target=networks.predicted(reader, x),
        background=references,
        fit=references,
        truth=chosen.masks()["correlating"][:, :length, None].to(ask.device).expand_as(x),
        layer=None,
        seed=seed,
        game={"players": torch.arange(length, device=ask.device)[:, None].expand(x.shape[1:])},
        samples=chosen.rows,
    )
