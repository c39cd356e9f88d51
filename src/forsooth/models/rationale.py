"""Rationale models: a selector chooses words, a classifier sees nothing else.

REINFORCE after [lei2016rationalizing], continuous relaxation by the HardKuma distribution after
[bastings2019interpretable], both as [zhou2022feature, section 7] uses them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forsooth import chunks
from forsooth.models.recurrent import (
    Cell,
    Embedding,
    Encoder,
    compact,
    embedding_of,
    full_lengths,
    lengths_of,
    longest_of,
    present,
)
from forsooth.records import Architecture, UsageError

Kind = Literal["reinforce", "relaxed"]
LOW = -0.1  # support of the stretched Kumaraswamy distribution
HIGH = 1.1
SHAPE_LEAST = 1e-6
SHAPE_MOST = 100.0
NEAR = 1e-6  # uniform draws keep this distance from 0 and 1, where the inverse has no slope
WORDS_AT_ONCE = 2**16  # words in one forward of a model on tokens


@dataclass(frozen=True)
class Size:
    """state: units of the recurrent memory of earlier choices; 0: each word is chosen without regard to the others."""

    dims: int
    hidden: int
    state: int
    cell: Cell
    dropout: float


SIZES = {
    "paper": Size(dims=200, hidden=200, state=30, cell="rcnn", dropout=0.2),
    "fused": Size(dims=200, hidden=200, state=0, cell="lstm", dropout=0.2),
    "small": Size(dims=32, hidden=16, state=0, cell="lstm", dropout=0.0),
}


class Gate(NamedTuple):
    """For each word, elementwise: z in [0, 1], log-probability of this z (0 where z has a gradient), P(z != 0)."""

    z: Tensor
    log_prob: Tensor
    expected: Tensor


def bernoulli(raw: Tensor, u: Tensor | None) -> Gate:
    """z in {0, 1} from raw (..., 1): 1 where u (...) < p; without u, where p >= 0.5."""
    logit = raw[..., 0]
    z = bernoulli_z(raw, u)
    log_prob = F.logsigmoid(logit) * z + F.logsigmoid(-logit) * (1 - z)
    return Gate(z, log_prob, torch.sigmoid(logit))


def bernoulli_z(raw: Tensor, u: Tensor | None) -> Tensor:
    """The z of `bernoulli` alone."""
    p = torch.sigmoid(raw[..., 0].detach())
    if u is None:
        return (p >= 0.5).to(p.dtype)
    return (u < p).to(p.dtype)


def hard_kuma(raw: Tensor, u: Tensor | None) -> Gate:
    """z in [0, 1] from raw (..., 2): a Kumaraswamy variable, stretched to (-0.1, 1.1), then cut to [0, 1].

    Drawn by the inverse of its distribution function at u (...). Without u: 0, 1 or the mean of the stretched variable
    (cut to [0, 1]), whichever of z = 0, z = 1 and 0 < z < 1 is the most probable.
    """
    z = hard_kuma_z(raw, u)
    return Gate(z, torch.zeros_like(z), 1 - kuma_below(-LOW / (HIGH - LOW), *shapes(raw)))


def hard_kuma_z(raw: Tensor, u: Tensor | None) -> Tensor:
    """The z of `hard_kuma` alone."""
    a, b = shapes(raw)
    if u is not None:
        return stretched(kuma_inverse(u.clamp(NEAR, 1 - NEAR), a, b))
    zero = kuma_below(-LOW / (HIGH - LOW), a, b)
    one = 1 - kuma_below((1 - LOW) / (HIGH - LOW), a, b)
    between = 1 - zero - one
    certain = (one >= zero).to(a.dtype)
    return torch.where((between > zero) & (between > one), stretched(kuma_mean(a, b)), certain)


def stretched(k: Tensor) -> Tensor:
    """Values k in (0, 1), stretched to (-0.1, 1.1) and cut to [0, 1]."""
    return (LOW + (HIGH - LOW) * k).clamp(0, 1)


def shapes(raw: Tensor) -> tuple[Tensor, ...]:
    """a and b (...) of a Kumaraswamy variable from raw (..., 2)."""
    return F.softplus(raw).clamp(SHAPE_LEAST, SHAPE_MOST).unbind(-1)


def kuma_below(x: float, a: Tensor, b: Tensor) -> Tensor:
    """P(K <= x) = 1 - (1 - x^a)^b of a Kumaraswamy variable with shapes a and b (...)."""
    return 1 - (1 - x**a) ** b


def kuma_inverse(u: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The value k with P(K <= k) = u."""
    return (1 - (1 - u) ** (1 / b)).clamp(min=NEAR) ** (1 / a)


def kuma_mean(a: Tensor, b: Tensor) -> Tensor:
    """E K = b B(1 + 1 / a, b)."""
    log_mean = b.log() + torch.lgamma(1 + 1 / a) + torch.lgamma(b) - torch.lgamma(1 + 1 / a + b)
    return torch.exp(log_mean)


class GateKind(NamedTuple):
    """How many numbers a word's gate reads, the gate, and its z alone."""

    numbers: int
    gate: Callable[[Tensor, Tensor | None], Gate]
    z: Callable[[Tensor, Tensor | None], Tensor]


GATES = {"reinforce": GateKind(1, bernoulli, bernoulli_z), "relaxed": GateKind(2, hard_kuma, hard_kuma_z)}


class Selector(nn.Module):
    """Vectors of words (n, length, dims) to a gate for each; with a state, choices depend on those before."""

    def __init__(self, kind: Kind, size: Size, *, dims: int) -> None:
        super().__init__()
        if kind not in GATES:
            raise UsageError(f"`kind` must be one of {', '.join(GATES)}, got {kind!r}")
        self.numbers, self.gate, self.z = GATES[kind]
        self.encoder = Encoder(dims, size.hidden, cell=size.cell)
        self.layer = nn.Linear(self.encoder.size + size.state, self.numbers)
        self.memory: nn.LSTMCell | None = None
        if size.state:
            self.memory = nn.LSTMCell(self.encoder.size + 1, size.state)

    def forward(self, embedded: Tensor, lengths: Tensor, u: Tensor | None) -> Gate:
        """Gates (k * n, length) for uniform draws u (k * n, length), k for each row; without u (n, length)."""
        states = self.encoder(embedded, lengths).states
        if u is not None and len(u) != len(states):
            states = states.repeat(len(u) // len(states), 1, 1)
        if self.memory is None:
            return self.gate(self.layer(states), u)
        if not states.shape[1]:
            return self.gate(states.new_zeros(len(states), 0, self.numbers), u)
        return self.gate(self._in_turn(self.memory, states, u), u)

    def _in_turn(self, memory: nn.LSTMCell, states: Tensor, u: Tensor | None) -> Tensor:
        """What the gates read, (k * n, length, numbers), word by word: a choice depends on those before it.

        What the states (k * n, length, size) say of a choice does not, and is worked out for all words at once.
        """
        of_state, of_memory = self.layer.weight.split([self.encoder.size, memory.hidden_size], dim=1)
        by_state = F.linear(states, of_state, self.layer.bias).unbind(1)
        h = c = states.new_zeros(len(states), memory.hidden_size)
        raws: list[Tensor] = []
        for state, own, draw in zip(states.unbind(1), by_state, _by_word(u, len(by_state)), strict=True):
            raw = torch.addmm(own, h, of_memory.T)
            h, c = memory(torch.cat([state, self.z(raw, draw)[:, None]], dim=1), (h, c))
            raws.append(raw)
        return torch.stack(raws, dim=1)


def _by_word(u: Tensor | None, length: int) -> Sequence[Tensor | None]:
    """The draws (n,) of each word from u (n, length); without u there are none."""
    if u is None:
        return [None] * length
    return u.unbind(1)


class Rationale(nn.Module):
    """Token ids (n, length), 0 is padding, to logits (n, classes) from the selected words alone.

    The classifier reads the selected words, each times its z, as if the others were not there: its recurrent state
    passes over them. A row of which nothing is selected gets the logits of a zero summary.
    """

    def __init__(self, embedding: Embedding, kind: Kind, size: Size, *, classes: int = 2) -> None:
        super().__init__()
        self.kind = kind
        self.embedding = embedding
        self.dropout = nn.Dropout(size.dropout)
        self.selector = Selector(kind, size, dims=embedding.dims)
        self.encoder = Encoder(embedding.dims, size.hidden, cell=size.cell)
        self.head = nn.Linear(self.encoder.size, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (n, classes), selection as at test time."""
        return self.rationalise(tokens)[0]

    def selection(self, tokens: Tensor) -> Tensor:
        """z (n, length) as at test time: 0 is not selected, padding never is."""
        z = self.rationalise(tokens)[1].z
        return F.pad(z, (0, tokens.shape[1] - z.shape[1]))

    def rationalise(self, tokens: Tensor, u: Tensor | None = None) -> tuple[Tensor, Gate]:
        """Logits (k * n, classes) and gates (k * n, longest), all 0 in padding.

        u  (k * n, at least longest) uniform draws, k for each row; None: as at test time, and k = 1
        """
        lengths = lengths_of(tokens)
        longest = longest_of(lengths)
        if u is not None:
            u = u[:, :longest]
        return self.from_embedded(self.embedding(tokens[:, :longest]), lengths, u=u)

    def from_embedded(
        self, embedded: Tensor, lengths: Tensor | None = None, *, u: Tensor | None = None
    ) -> tuple[Tensor, Gate]:
        """The same from vectors (n, length, dims) of the words; lengths (n,), None: no padding."""
        if lengths is None:
            lengths = full_lengths(embedded)
        embedded = self.dropout(embedded)
        words = present(lengths, embedded.shape[1])
        raw_gate = self.selector(embedded, lengths, u)
        samples = len(raw_gate.z) // max(len(embedded), 1)
        if samples > 1:
            embedded = embedded.repeat(samples, 1, 1)
            words = words.repeat(samples, 1)
        gate = _without_padding(raw_gate, words)
        chosen, counts = compact(embedded * gate.z[..., None], gate.z > 0)
        summary = self.encoder(chosen, counts).final
        return self.head(self.dropout(summary)), gate


def _without_padding(gate: Gate, words: Tensor) -> Gate:
    """The gate (n, length) with 0 where there is no word (n, length)."""
    return Gate(*(torch.where(words, part, torch.zeros_like(part)) for part in gate))


def rationale(
    *, kind: Kind, words: int, variant: str = "small", vectors: Tensor | None = None, classes: int = 2
) -> Rationale:
    """A rationale model for a vocabulary of so many words.

    variant  "paper": recurrent convolutions of 200 each way, a state of 30. Ours: "fused", LSTMs of the same width and
             no state, for which accelerators have one kernel instead of one a word; "small", LSTMs of 16 each way
    vectors  (words, dims), frozen, as in the paper; None: learned, of the size of the variant
    """
    if variant not in SIZES:
        raise UsageError(f"`variant` must be one of {', '.join(SIZES)}, got {variant!r}")
    size = SIZES[variant]
    embedding = embedding_of(words, vectors, dims=size.dims)
    return Rationale(embedding, kind, size, classes=classes)


def reinforce(*, words: int, variant: str = "small", vectors: Tensor | None = None, classes: int = 2) -> Rationale:
    """Choices are drawn, and the selector learns from their cost. [lei2016rationalizing]"""
    return rationale(kind="reinforce", words=words, variant=variant, vectors=vectors, classes=classes)


def relaxed(*, words: int, variant: str = "small", vectors: Tensor | None = None, classes: int = 2) -> Rationale:
    """Choices are HardKuma variables, through which the loss has a gradient. [bastings2019interpretable]"""
    return rationale(kind="relaxed", words=words, variant=variant, vectors=vectors, classes=classes)


@torch.no_grad()
def selected_words(model: nn.Module, tokens: Tensor) -> Tensor:
    """z (k, length) of a rationale model for tokens (k, length)."""
    size = max(1, WORDS_AT_ONCE // tokens.shape[1])
    return chunks.over(lambda part: model.selection(part), tokens, size=size)  # type: ignore[operator]


REINFORCE = Architecture("rationale_reinforce", reinforce, layer=None, cite="lei2016rationalizing", version=1)
RELAXED = Architecture("rationale_relaxed", relaxed, layer=None, cite="bastings2019interpretable", version=1)
