"""A small transformer of text: words attend to one another, and their mean goes to the head."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from forsooth.models.recurrent import Embedding, embedding_of, lengths_of, longest_of, present
from forsooth.models.vit import Block
from forsooth.records import Architecture, UsageError

SIZES = {"paper": (64, 4, 2), "small": (32, 4, 1)}  # width, heads, blocks
SLOWEST = 10_000.0  # words after which the slowest wave of the places begins again, over 2π


class Read(NamedTuple):
    """logits (n, classes)"""

    logits: Tensor


class TextEncoder(nn.Module):
    """Token ids (n, length), 0 is padding, to logits (n, classes); an empty row gets the logits of a zero summary."""

    def __init__(self, embedding: Embedding, *, width: int, heads: int, blocks: int, classes: int = 2) -> None:
        super().__init__()
        self.embedding = embedding
        self.enter = nn.Linear(embedding.dims, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (n, classes)."""
        lengths = lengths_of(tokens)
        longest = max(1, longest_of(lengths))
        return self.from_embedded(self.embedding(tokens[:, :longest]), lengths).logits

    def from_embedded(self, embedded: Tensor, lengths: Tensor | None = None) -> Read:
        """The same from vectors (n, length, dims) of the words, where methods that need a gradient begin.

        lengths  (n,) int64; None: no padding
        """
        mask = None
        if lengths is not None:
            there = present(lengths, embedded.shape[1]) | (lengths == 0)[:, None]
            mask = there[:, None, None]  # a row of no words attends to something, and none of it is in the mean
        tokens = self.enter(embedded) + waves(embedded.shape[1], self.enter.out_features).to(embedded)
        for block in self.blocks:
            tokens = block(tokens, mask)
        return Read(self.head(mean_of(self.norm(tokens), lengths)))


def mean_of(tokens: Tensor, lengths: Tensor | None) -> Tensor:
    """The mean (n, width) of the words of tokens (n, length, width); zeros where there is no word."""
    if lengths is None:
        return tokens.mean(1)
    there = present(lengths, tokens.shape[1])
    return (tokens * there[..., None]).sum(1) / lengths.clamp(min=1)[:, None]


def waves(length: int, width: int) -> Tensor:
    """Sines and cosines of the places [vaswani2017attention], (length, width)."""
    speeds = torch.exp(-math.log(SLOWEST) * torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * speeds
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :width]


def text_encoder(*, words: int, variant: str = "small", vectors: Tensor | None = None, classes: int = 2) -> TextEncoder:
    """The transformer for a vocabulary of so many words.

    variant  "paper": two blocks of width 64; "small": one of width 32. Both are ours: the papers have none
    vectors  (words, dims), frozen; None: learned, as wide as the blocks
    """
    if variant not in SIZES:
        raise UsageError(f"`variant` must be one of {', '.join(SIZES)}, got {variant!r}")
    width, heads, blocks = SIZES[variant]
    return TextEncoder(
        embedding_of(words, vectors, dims=width), width=width, heads=heads, blocks=blocks, classes=classes
    )


TEXT_ENCODER = Architecture(
    "text_encoder", text_encoder, layer=None, cite="vaswani2017attention", version=1, attends=True
)
