"""Attention maps of transformers of text: a token's value is its word's, and the head says whose attention counts."""

import pytest
import torch
from attributions import nets
from torch import Tensor, nn

from forsooth.attributions.attending import attention_rollout, gradient_attention, legrad
from forsooth.models.on_vectors import on_vectors
from forsooth.models.text_encoder import text_encoder
from forsooth.records import UsageError

X = nets.inputs(3, 5, 6)
TARGET = torch.tensor([0, 1, 1])
METHODS = (attention_rollout, gradient_attention, legrad)
READ = {"first": [0], "last": [4], "mean": [0, 1, 2, 3, 4], "no padding": [0, 1, 2]}


class Reader(nn.Module):
    """Two layers of attention over word vectors, whose head reads some of the tokens."""

    def __init__(self, read: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 18) for _ in range(2))
        self.head = nn.Linear(6, 2)
        self.read = READ[read]

    def forward(self, x: Tensor) -> Tensor:
        return self.both(x)[0]

    def both(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The logits, and the attention weights of both layers (n, 2 heads, 5, 5)."""
        found = []
        for layer in self.layers:
            query, key, value = (part.unflatten(2, (2, 3)).transpose(1, 2) for part in layer(x).chunk(3, 2))
            found.append((query @ key.transpose(2, 3)).softmax(-1))
            x = x + (found[-1] @ value).transpose(1, 2).flatten(2)
        return self.head(x[:, self.read].mean(1)), found


@pytest.mark.parametrize("read", READ)
def test_maps_of_words_equal_literal_ones(read: str) -> None:
    model = nets.drawn(Reader(read))
    logits, weights = model.both(X.clone().requires_grad_())
    slopes = torch.autograd.grad(logits.gather(1, TARGET[:, None]).sum(), weights)
    own = torch.eye(5).double()
    for i in range(3):
        rolled = (weights[1][i].mean(0) + own) / 2 @ (weights[0][i].mean(0) + own) / 2
        first = own + (weights[0][i] * slopes[0][i]).clamp(min=0).mean(0)
        chefer = first + (weights[1][i] * slopes[1][i]).clamp(min=0).mean(0) @ first - own
        sensitive = sum(slope[i].clamp(min=0).mean((0, 1)) for slope in slopes)
        expected = (rolled[model.read].mean(0), chefer[model.read].mean(0), sensitive)
        for ours, one in zip(METHODS, expected, strict=True):
            maps = ours(model, X, TARGET)
            assert maps.shape == X.shape and (maps == maps[:, :, :1]).all()
            torch.testing.assert_close(maps[i].sum(-1), one.detach())


def test_our_encoder_of_text_gives_them() -> None:
    model = on_vectors(nets.drawn(text_encoder(words=10)))
    x = model.model.embedding(torch.tensor([[3, 4, 5, 6], [7, 8, 2, 1]])).detach()
    for ours in METHODS:
        maps = ours(model, x, TARGET[:2])
        assert maps.shape == x.shape and maps.isfinite().all() and maps.std(1).max() > 0
    torch.testing.assert_close(attention_rollout(model, x, TARGET[:2]).sum((1, 2)), torch.ones(2).double())


def test_tokens_that_are_no_words_are_refused() -> None:
    class Shorter(Reader):
        def forward(self, x: Tensor) -> Tensor:
            return super().both(x[:, 1:].mean(1, keepdim=True).expand(-1, 4, -1))[0]

    with pytest.raises(
        UsageError, match=r"tokens that are the words of x \(3, 5, 6\), got 5 words, but the model has 4"
    ):
        legrad(nets.drawn(Shorter("first")), X, TARGET)
