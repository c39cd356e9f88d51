"""Rules under which the gradient of one backward pass carries relevance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

import torch
from torch import Tensor

from forsooth.attributions.affine import AFFINE, Affine, Origins, as_affine, fold
from forsooth.attributions.calls import Call, names
from forsooth.attributions.intercept import MAX_POOLS, SOFTMAX, STRUCTURAL, Backward, Rule, ancestry
from forsooth.attributions.shares import Share
from forsooth.records import UsageError

# Activations that are zero at zero: an input that is zero gets no relevance back.
ACTIVATIONS = names("celu elu gelu hardswish hardtanh leaky_relu mish prelu relu relu6 selu silu tanh")

Softmax = Literal["refuse", "gradient"]


def reads_input(x: Tensor) -> bool:
    """Whether x holds moved numbers of the model's input: no rule lies between the two."""
    return not any(getattr(node, "_forward_cls", None) is Backward for node in ancestry(x))


@dataclass(frozen=True)
class Rules:
    """How relevance is shared.

    share    in all layers
    first    in layers that read the input itself, where that is another one
    softmax  "refuse", or "gradient": the plain gradient, as libraries give that do not see a functional softmax
    """

    share: Share
    first: Share | None = None
    softmax: Softmax = "refuse"


class Kept:
    """Gathers for each sample the relevance that biases, ε and empty sums keep on the way back.

    shapes  of the outputs of all layers, in the order in which they run
    axes    of the samples in them; none: there is one sample
    """

    def __init__(self, axes: Sequence[int] = ()) -> None:
        self.shapes: list[torch.Size] = []
        self.axes = axes
        self.total: Tensor | float = 0.0

    def add(self, number: int, kept: Tensor) -> None:
        """kept  shaped like the outputs of the layer with that number"""
        rows = kept.reshape(1, -1)
        if self.axes:
            rows = kept.movedim(self.axes[number], 0).flatten(1)
        self.total = self.total + rows.double().sum(1)


class RelevanceRules:
    """The rules of one forward pass; `kept` gathers what the layers keep of the relevance.

    origins  tensor -> input and layer that it came from
    """

    def __init__(self, method: str, rules: Rules, kept: Kept | None = None) -> None:
        self.method = method
        self.rules = rules
        self.kept = kept
        self.origins = Origins()
        self.place = count()

    def table(self) -> dict[str, Rule | None]:
        """The rule of every operation."""
        rules: dict[str, Rule | None] = dict.fromkeys(STRUCTURAL | MAX_POOLS | SOFTMAX)
        if self.rules.softmax == "refuse":
            rules |= dict.fromkeys(SOFTMAX, self.softmax)
        rules |= dict.fromkeys(AFFINE, self.affine)
        rules |= dict.fromkeys(ACTIVATIONS, self.activation)
        return rules

    def affine(self, call: Call) -> Tensor:
        x, layer = self.folded(call)
        handed = hand_over(self.share(call, x, layer), layer, self.kept, next(self.place))
        out = Backward.apply(x, lambda _: call(), handed)
        if self.kept is not None:
            self.kept.shapes.append(out.shape)
        self.origins.remember(out, (x, layer))
        return out

    def folded(self, call: Call) -> tuple[Tensor, Affine]:
        """The input and the layer of a call; batch normalisation is folded into the layer before it if it can be."""
        x, layer = as_affine(call, self.method)
        origin = self.origins.of(x)
        if call.name != "batch_norm" or origin is None:
            return x, layer
        source, before = origin
        both = fold(before, layer, x)
        if both is None:
            return x, layer
        return source, both

    def share(self, call: Call, x: Tensor, layer: Affine) -> Share:
        """How the layer shares its relevance: otherwise than the others where it reads the input itself."""
        if self.rules.first is None or not reads_input(x):
            return self.rules.share
        if layer.kind != "layer":
            raise UsageError(
                f"`bounds` are those of the first layer's input, but `{call.full}` changes the input before"
            )
        return self.rules.first

    def activation(self, call: Call) -> Tensor:
        return Backward.apply(call.x, lambda _: call(), lambda x, relevance: relevance)

    def softmax(self, call: Call) -> Tensor:
        raise UsageError(
            f"`{self.method}` has no rule for the operation `{call.full}` in this model: relevance starts at the "
            "logits: the plain gradient would not conserve it. Explain the model without its softmax, or take a "
            "method that needs gradients only (such as integrated_gradients)"
        )


def hand_over(share: Share, layer: Affine, kept: Kept | None, number: int) -> Callable[[Tensor, Tensor], Tensor]:
    """The way back of a layer, from x and the relevance of its outputs to that of x.

    It holds no `RelevanceRules`, which hold the graph: a circle of the two would keep the memory of every pass.
    """

    def handed(x: Tensor, relevance: Tensor) -> Tensor:
        shared = share(layer, x, relevance)
        if kept is not None:
            kept.add(number, shared.kept.expand_as(relevance))
        return shared.inputs

    return handed
