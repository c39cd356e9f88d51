"""How good a model of text is."""

import torch
from torch import Tensor, nn

from forsooth import chunks
from forsooth.models.rationale import Gate, Rationale
from forsooth.models.recurrent import lengths_of


@torch.no_grad()
def judge(module: nn.Module, x: Tensor, y: Tensor, *, size: int = 256) -> tuple[float, float]:
    """Accuracy of a model on tokens x (n, length) and y (n,), and the share of all words it selects, nan without."""
    if isinstance(module, Rationale):
        return judge_rationale(module, x, y, size=size)
    classes = chunks.over(lambda tokens: module(tokens).argmax(1), x, size=size)
    return _accuracy(classes, y), float("nan")


def judge_rationale(module: Rationale, x: Tensor, y: Tensor, *, size: int) -> tuple[float, float]:
    """The same of a model that selects words."""

    def answer(tokens: Tensor) -> Tensor:  # (k, 2): class, words selected
        logits, gate = module.rationalise(tokens)
        return torch.stack([logits.argmax(1), selected(gate)], dim=1)

    classes, words_selected = chunks.over(answer, x, size=size).unbind(1)
    words = lengths_of(x).sum().clamp(min=1)
    return _accuracy(classes, y), (words_selected.sum() / words).item()


def selected(gate: Gate) -> Tensor:
    """(n,) how many words of each row have a z that is not 0."""
    return (gate.z > 0).sum(1)


def _accuracy(classes: Tensor, y: Tensor) -> float:
    return (classes == y).double().mean().item()
