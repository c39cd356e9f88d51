"""What a model of text says of itself: attention weights and rationales."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from forsooth.games.values import Model
from forsooth.records import Method, UsageError


@runtime_checkable
class Attends(Protocol):
    """A model of word vectors x (n, length, dims) that weighs its words: weights (n, length)."""

    def attention_of(self, x: Tensor) -> Tensor: ...


@runtime_checkable
class Selects(Protocol):
    """A model of word vectors x (n, length, dims) that selects words: z (n, length), 0 where a word is left out."""

    def selection_of(self, x: Tensor) -> Tensor: ...


def attention(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """The attention that the model pays to each word, whatever the target.

    x        (n, length, dims)
    returns  (n, length, dims): the dimensions of a word share its weight evenly, so that their sum is the weight

    [wiegrefe2019attention]
    """
    if not isinstance(model, Attends):
        raise UsageError(f"`model` must have attention weights (`attention_of`), got {type(model).__name__}")
    with torch.no_grad():
        return shared(model.attention_of(x), x)


def rationale(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """How far the model selects each word, z in [0, 1], whatever the target. Shapes as in `attention`.

    [lei2016rationalizing]
    """
    if not isinstance(model, Selects):
        raise UsageError(f"`model` must select words (`selection_of`), got {type(model).__name__}")
    with torch.no_grad():
        return shared(model.selection_of(x), x)


def shared(weights: Tensor, x: Tensor) -> Tensor:
    """Weights (n, length) as a map shaped like x (n, length, dims)."""
    return (weights / x.shape[-1])[..., None].expand_as(x).clone()


ATTENTION_WEIGHTS = Method(
    name="attention",
    function=attention,
    needs=("module",),
    random=False,
    signed=False,
    cite="wiegrefe2019attention",
    version=1,
    inputs=("words",),
    belongs_to=("attention",),
)
SELECTION = Method(
    name="rationale",
    function=rationale,
    needs=("module",),
    random=False,
    signed=False,
    cite="lei2016rationalizing",
    version=1,
    inputs=("words",),
    belongs_to=("rationale_relaxed", "rationale_reinforce"),
)
INTRINSIC = (ATTENTION_WEIGHTS, SELECTION)
