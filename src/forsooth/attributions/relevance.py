"""Rules under which the gradient of one backward pass carries relevance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Literal

import torch
from torch import Tensor

from forsooth.attributions.affine import AFFINE, Affine, Origins, as_affine, fold
from forsooth.attributions.calls import Call, names
from forsooth.attributions.intercept import (
    MAX_POOLS,
    OURS,
    SOFTMAX,
    STRUCTURAL,
    Backward,
    BackwardOfTwo,
    Rule,
    ancestry,
)
from forsooth.attributions.shares import Share, Shared
from forsooth.attributions.transformers import (
    PRODUCTS,
    Product,
    factors,
    made_by,
    normalisation,
    rms_normalisation,
    share_product,
    share_softmax,
)
from forsooth.records import UsageError

# Activations that are zero at zero: an input that is zero gets no relevance back.
ACTIVATIONS = names("celu elu gelu hardswish hardtanh leaky_relu mish prelu relu relu6 selu silu tanh")

Softmax = Literal["refuse", "gradient"]
Attention = Literal["refuse", "attn", "cp"]


def reads_input(x: Tensor) -> bool:
    """Whether x holds moved numbers of the model's input: no rule lies between the two."""
    return not any(getattr(node, "_forward_cls", None) in OURS for node in ancestry(x))


@dataclass(frozen=True)
class Rules:
    """How relevance is shared.

    share      in all layers
    first      in layers that read the input itself, where that is another one
    softmax    "refuse", or "gradient": the plain gradient, as libraries give that do not see a functional softmax
    attention  "refuse": products of two values that depend on the input, and layer normalisation; "attn": AttnLRP, half
               of a product to each factor, and a softmax by its Taylor expansion; "cp": CP-LRP, all of it to what is
               attended to, and none to the softmax
    """

    share: Share
    first: Share | None = None
    softmax: Softmax = "refuse"
    attention: Attention = "refuse"


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
        self.softmaxes: list[Any] = []  # nodes of the graph

    def table(self) -> dict[str, Rule | None]:
        """The rule of every operation."""
        rules: dict[str, Rule | None] = dict.fromkeys(STRUCTURAL | MAX_POOLS | SOFTMAX)
        if self.rules.softmax == "refuse":
            rules |= dict.fromkeys(SOFTMAX, self.softmax)
        rules |= dict.fromkeys(AFFINE, self.affine)
        rules |= dict.fromkeys(ACTIVATIONS, self.activation)
        if self.rules.attention != "refuse":
            rules |= {"softmax": self.attended, "layer_norm": self.normalised, "rms_norm": self.normalised}
            rules |= dict.fromkeys(PRODUCTS, self.product)
        return rules

    def product(self, call: Call) -> Tensor:
        pair = factors(call)
        if pair is None:
            return self.affine(call)
        weights = (0.5, 0.5)
        if self.rules.attention == "cp" and made_by(pair[0], self.softmaxes):
            weights = (0.0, 1.0)
        handed = hand_to_both(PRODUCTS[call.name], weights, self.kept, next(self.place))
        return self.noted(BackwardOfTwo.apply(*pair, PRODUCTS[call.name], handed))

    def attended(self, call: Call) -> Tensor:
        if call.x.ndim < 3:
            self.softmax(call)  # of classes, behind the logits: no attention, and refused
        share: Share = partial(through_softmax, dim=call.argument(1, "dim"))
        if self.rules.attention == "cp":
            share = keep_all
        nothing = Affine("scale", torch.mul, call.x.new_ones(()))
        handed = hand_over(share, nothing, self.kept, next(self.place))
        out = self.noted(Backward.apply(call.x, lambda _: call(), handed))
        self.softmaxes.append(out.grad_fn)
        return out

    def normalised(self, call: Call) -> Tensor:
        layer = {"layer_norm": normalisation, "rms_norm": rms_normalisation}[call.name](call)
        handed = hand_over(self.rules.share, layer, self.kept, next(self.place))
        return self.noted(Backward.apply(call.x, lambda _: call(), handed))

    def noted(self, out: Tensor) -> Tensor:
        """The output of a layer, whose shape is kept where what layers keep is gathered."""
        if self.kept is not None:
            self.kept.shapes.append(out.shape)
        return out

    def affine(self, call: Call) -> Tensor:
        x, layer = self.folded(call)
        handed = hand_over(self.share(call, x, layer), layer, self.kept, next(self.place))
        out = self.noted(Backward.apply(x, lambda _: call(), handed))
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


def through_softmax(layer: Affine, z: Tensor, relevance: Tensor, *, dim: int) -> Shared:
    """`share_softmax` as the share of a layer; a softmax has no weights."""
    return share_softmax(z, relevance, dim)


def keep_all(layer: Affine, z: Tensor, relevance: Tensor) -> Shared:
    """No relevance to the inputs of a softmax whose weights are constants."""
    return Shared(torch.zeros_like(z), relevance)


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


def hand_to_both(
    product: Product, weights: tuple[float, float], kept: Kept | None, number: int
) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The way back of a product, from its factors and its relevance to that of each."""

    def handed(a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        first, second, rest = share_product(product, a, b, relevance, weights=weights)
        if kept is not None:
            kept.add(number, rest)
        return first, second

    return handed
