"""A two-way LSTM whose states are averaged by attention [wiegrefe2019attention], as in [zhou2022feature, D.1]."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from forsooth.models.recurrent import (
    Embedding,
    Encoder,
    embedding_of,
    full_lengths,
    lengths_of,
    longest_of,
    present,
)
from forsooth.records import Architecture, UsageError

SIZES = {"paper": (200, 200, 200), "small": (32, 32, 32)}  # embedding, hidden units each way, keys


class Attended(NamedTuple):
    """logits (n, classes) and attention (n, length), which sums to 1 over the words of a row and is 0 in padding."""

    logits: Tensor
    weights: Tensor


class Attention(nn.Module):
    """Token ids (n, length), 0 is padding, to logits (n, classes); an empty row gets the logits of a zero summary.

    k_i = tanh(W h_i + b), a = softmax(q . k_i) over the words, logits = V (sum_i a_i h_i) + c
    """

    def __init__(self, embedding: Embedding, *, hidden: int, keys: int, classes: int = 2) -> None:
        super().__init__()
        self.embedding = embedding
        self.encoder = Encoder(embedding.dims, hidden)
        self.key = nn.Linear(2 * hidden, keys)
        self.query = nn.Linear(keys, 1, bias=False)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (n, classes)."""
        return self.attend(tokens).logits

    def attention(self, tokens: Tensor) -> Tensor:
        """The weight (n, length) of each word."""
        return self.attend(tokens).weights

    def attend(self, tokens: Tensor) -> Attended:
        """Logits and weights at once."""
        lengths = lengths_of(tokens)
        longest = longest_of(lengths)
        logits, weights = self.from_embedded(self.embedding(tokens[:, :longest]), lengths)
        return Attended(logits, nn.functional.pad(weights, (0, tokens.shape[1] - longest)))

    def from_embedded(self, embedded: Tensor, lengths: Tensor | None = None) -> Attended:
        """The same from vectors (n, length, dims) of the words, where methods that need a gradient begin.

        lengths  (n,) int64; None: no padding
        """
        if lengths is None:
            lengths = full_lengths(embedded)
        states = self.encoder(embedded, lengths).states
        scores = self.query(torch.tanh(self.key(states)))[..., 0]  # (n, length)
        weights = masked_softmax(scores, present(lengths, embedded.shape[1]))
        summary = (weights[..., None] * states).sum(1)
        return Attended(self.head(summary), weights)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of scores (n, length) over the places of the mask (n, length) bool; 0 elsewhere and in an empty row."""
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(1) * mask


def attention(*, words: int, variant: str = "small", vectors: Tensor | None = None, classes: int = 2) -> Attention:
    """The attention model for a vocabulary of so many words.

    variant  "paper": 200 units each way, so that h_i has 400 (the paper says 200, its code has 400); "small": 32, ours
    vectors  (words, dims), frozen, as in the paper; None: learned, of the size of the variant
    """
    if variant not in SIZES:
        raise UsageError(f"`variant` must be one of {', '.join(SIZES)}, got {variant!r}")
    dims, hidden, keys = SIZES[variant]
    embedding = embedding_of(words, vectors, dims=dims)
    return Attention(embedding, hidden=hidden, keys=keys, classes=classes)


ATTENTION = Architecture("attention", attention, layer=None, cite="wiegrefe2019attention", version=1)
