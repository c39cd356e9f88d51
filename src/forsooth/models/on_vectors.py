"""Models of text as functions of the vectors of their words, which tell what the model says of itself."""

import torch
from torch import Tensor, nn

from forsooth.models.rationale import Rationale
from forsooth.models.recurrent import OnVectors
from forsooth.models.text_encoder import TextEncoder


class NoModel(nn.Module):
    """Stands for the model of methods that ignore it: every word is a vector of one dimension."""

    def embedding(self, tokens: Tensor) -> Tensor:
        """Tokens (n, length) to x (n, length, 1)."""
        return torch.ones(*tokens.shape, 1, device=tokens.device)

    def forward(self, x: Tensor) -> Tensor:
        """One class. (n, 1)"""
        return x.new_zeros(len(x), 1)


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
    if isinstance(model, NoModel):
        return model
    if isinstance(model, Rationale):
        return Selecting(model)
    if isinstance(model, TextEncoder):
        return OnVectors(model)
    return Attending(model)
