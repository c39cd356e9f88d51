"""Readers of token sequences: embedding and two-way recurrent encoders in which padding changes nothing.

Padding is behind the last token that is not 0. A 0 inside a document is a gap: a zero vector that keeps its place.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from forsooth.models import gated
from forsooth.records import UsageError

Cell = Literal["lstm", "rcnn"]


class Encoded(NamedTuple):
    """states (n, length, 2 * hidden), arbitrary in the padding; final (n, 2 * hidden), zeros for no token at all."""

    states: Tensor
    final: Tensor


class Embedding(nn.Module):
    """Vectors of words: learned, or those that come from outside, which stay as they are."""

    def __init__(self, *, words: int, dims: int, vectors: Tensor | None = None) -> None:
        super().__init__()
        if vectors is not None and tuple(vectors.shape) != (words, dims):
            raise UsageError(f"`vectors` must have shape {(words, dims)}, got {tuple(vectors.shape)}")
        self.words = words
        self.dims = dims
        self.weight: Tensor
        if vectors is None:
            self.weight = nn.Parameter(torch.zeros(words, dims))
        else:
            self.register_buffer("weight", vectors.clone())

    def forward(self, tokens: Tensor) -> Tensor:
        """(n, length) int64 to (n, length, dims); zeros for token 0."""
        if tokens.is_floating_point() or tokens.ndim != 2:
            raise UsageError(f"`tokens` must be whole numbers (n, length), got {tokens.dtype} {tuple(tokens.shape)}")
        if tokens.numel() and not (tokens.min() >= 0 and tokens.max() < self.words):
            span = f"{int(tokens.min())} .. {int(tokens.max())}"
            raise UsageError(f"`tokens` must lie in 0 .. {self.words - 1}, got {span}")
        return nn.functional.embedding(tokens, self.weight) * (tokens != 0)[..., None]


def embedding_of(words: int, vectors: Tensor | None, *, dims: int) -> Embedding:
    """The embedding of a vocabulary: the vectors (words, any dims) that come, else learned ones of `dims`."""
    if vectors is None:
        return Embedding(words=words, dims=dims)
    return Embedding(words=words, dims=vectors.shape[1], vectors=vectors)


class OnVectors(nn.Module):
    """A model of text as a function of the vectors of its words, for methods that change or differentiate inputs.

    x (n, length, dims), all rows without padding, to logits (n, classes): explain documents one by one, or those of
    one length together. A word is hidden by a zero vector, which keeps its place.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits: Tensor = self.model.from_embedded(x)[0]  # type: ignore[operator]
        return logits


class Lstm(nn.Module):
    """A long short-term memory in one direction: x (n, length, dims) to states (n, length, hidden)."""

    def __init__(self, dims: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(dims, hidden, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """States at each place."""
        # cuDNN can go back through a recurrent net in train mode alone, and gradient methods explain in eval mode
        fused = self.training or not torch.is_grad_enabled()
        with torch.backends.cudnn.flags(enabled=fused and torch.backends.cudnn.enabled):
            states: Tensor = self.lstm(x)[0]
        return states


def one_by_one(cells: tuple[nn.Module, ...], inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """States (n, length, hidden) of each cell for its own x (n, length, dims)."""
    return tuple(cell(x) for cell, x in zip(cells, inputs, strict=True))


class Pair(NamedTuple):
    """A cell, and how two of them read."""

    cell: Callable[[int, int], nn.Module]
    read: Callable[[tuple[Any, ...], tuple[Tensor, ...]], tuple[Tensor, ...]]


CELLS = {"lstm": Pair(Lstm, one_by_one), "rcnn": Pair(gated.Rcnn, gated.together)}


class Encoder(nn.Module):
    """One cell that reads forwards and one that reads backwards.

    The backward one reads each row reversed within its own length. So padding comes last for both, and no state of a
    word has seen any: no packing, which takes four times as long on a CPU.
    """

    def __init__(self, dims: int, hidden: int, *, cell: Cell = "lstm") -> None:
        super().__init__()
        if cell not in CELLS:
            raise UsageError(f"`cell` must be one of {', '.join(CELLS)}, got {cell!r}")
        self.size = 2 * hidden
        make_cell, self.read = CELLS[cell]
        self.ahead = make_cell(dims, hidden)
        self.back = make_cell(dims, hidden)

    def forward(self, x: Tensor, lengths: Tensor) -> Encoded:
        """x (n, length, dims) and lengths (n,) to the states, and those after the last word read."""
        if not x.shape[1]:
            return Encoded(x.new_zeros(len(x), 0, self.size), x.new_zeros(len(x), self.size))
        ahead, back = self.read((self.ahead, self.back), (x, mirrored(x, lengths)))
        final = torch.cat([_last(ahead, lengths), _last(back, lengths)], dim=1)
        states = torch.cat([ahead, mirrored(back, lengths)], dim=2)
        return Encoded(states, final * (lengths > 0)[:, None])


def _last(states: Tensor, lengths: Tensor) -> Tensor:
    """(n, hidden): of states (n, length, hidden) those at the end of each row; the first where a row is empty."""
    place = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, states.shape[2])
    return states.gather(1, place)[:, 0]


def lengths_of(tokens: Tensor) -> Tensor:
    """(n,) int64: tokens of each row of (n, length), up to the last that is not 0."""
    if not tokens.shape[1]:
        return tokens.new_zeros(len(tokens))
    places = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
    return (places * (tokens != 0)).amax(1)


def full_lengths(embedded: Tensor) -> Tensor:
    """(n,) int64: the lengths of (n, length, dims) without padding."""
    return torch.full((len(embedded),), embedded.shape[1], device=embedded.device)


def longest_of(lengths: Tensor) -> int:
    """The largest of (n,), 0 where there is none."""
    return max(lengths.tolist(), default=0)


def present(lengths: Tensor, width: int) -> Tensor:
    """(n, width) bool: True up to the length (n,) of each row."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


def mirrored(x: Tensor, lengths: Tensor) -> Tensor:
    """x (n, length, dims) with each row reversed within its length (n,); its own inverse."""
    places = torch.arange(x.shape[1], device=x.device)
    source = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
    return x.gather(1, source[..., None].expand_as(x))


def compact(x: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The chosen places of x (n, length, dims), moved to the front: (n, most, dims), and how many (n,) there are.

    chosen  (n, length) bool
    """
    counts = chosen.sum(1)
    order = (~chosen).long().argsort(dim=1, stable=True)[:, : longest_of(counts)]
    moved = x.gather(1, order[..., None].expand(-1, -1, x.shape[2]))
    return moved * present(counts, order.shape[1])[..., None], counts


def initialise(module: nn.Module, generator: torch.Generator) -> nn.Module:
    """Draw every matrix from the uniform distribution of [glorot2010understanding], each gate of an LSTM by itself.

    Vectors become 0, but for the scales of a layer normalisation, which are 1; embeddings are drawn from U(-0.1, 0.1).
    """
    scales = {id(layer.weight) for layer in module.modules() if isinstance(layer, nn.LayerNorm)}
    embeddings = {id(layer.weight) for layer in module.modules() if isinstance(layer, Embedding)}
    gates = _gates(module)
    with torch.no_grad():
        for parameter in module.parameters():
            if id(parameter) in scales:
                parameter.fill_(1)
                continue
            if id(parameter) in embeddings:
                bound = 0.1
            else:
                bound = _glorot(parameter, gates=gates.get(id(parameter), 1))
            draws = torch.rand(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_((2 * draws - 1) * bound)
    return module


def _gates(module: nn.Module) -> dict[int, int]:
    """id -> 4 for each parameter of an LSTM, whose rows are those of four gates."""
    memories = [layer for layer in module.modules() if isinstance(layer, nn.LSTM | nn.LSTMCell)]
    return {id(parameter): 4 for layer in memories for parameter in layer.parameters()}


def _glorot(parameter: Tensor, *, gates: int) -> float:
    """The bound of the uniform distribution for a matrix of so many gates, one below the other; 0 for a vector."""
    if parameter.ndim < 2:
        return 0.0
    return math.sqrt(6 / (parameter.shape[0] / gates + parameter.shape[1]))
