"""Relevance propagation: layer-wise relevance propagation and deep Taylor decomposition.

The gradient of one backward pass carries relevance. Each affine layer hands the relevance R of its outputs to its
inputs in proportion to their contributions x_i w_ij; activations hand it through; max-pooling gives it to the winner;
a residual sum splits it between its terms. A softmax is refused: no published rule brings relevance through it, and
relevance starts at the logits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Literal

import torch
from torch import Tensor, nn

from forsooth.attributions.affine import AFFINE, Origins, as_affine, fold
from forsooth.attributions.calls import Call, names
from forsooth.attributions.intercept import (
    MAX_POOLS,
    SOFTMAX,
    STRUCTURAL,
    Backward,
    Intercept,
    Rule,
    ancestry,
    forward,
    rows_at_once,
    sample_axis,
)
from forsooth.attributions.shares import Share, share_box, share_epsilon, share_gamma, share_zplus
from forsooth.chunks import over
from forsooth.records import Method, UsageError

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


def relevance_rules(method: str, rules: Rules, kept: "Kept | None" = None) -> dict[str, Rule | None]:
    """Rules under which the gradient carries relevance; `kept` gathers what the layers keep of it."""
    origins = Origins()  # tensor -> input and layer that it came from
    place = count()

    def affine(call: Call) -> Tensor:
        x, layer = as_affine(call, method)
        if call.name == "batch_norm" and origins.of(x) is not None:
            source, before = origins.of(x)
            folded = fold(before, layer, x)
            x, layer = (x, layer) if folded is None else (source, folded)
        chosen = rules.share if rules.first is None or not reads_input(x) else rules.first
        if chosen is rules.first and layer.kind != "layer":
            raise UsageError(
                f"`bounds` are those of the first layer's input, but `{call.full}` changes the input before"
            )
        number = next(place)

        def handed(x: Tensor, relevance: Tensor) -> Tensor:
            shared = chosen(layer, x, relevance)
            if kept is not None:
                kept.add(number, shared.kept.expand_as(relevance))
            return shared.inputs

        out = Backward.apply(x, lambda _: call(), handed)
        if kept is not None:
            kept.shapes.append(out.shape)
        origins.remember(out, (x, layer))
        return out

    def activation(call: Call) -> Tensor:
        return Backward.apply(call.x, lambda _: call(), lambda x, relevance: relevance)

    def softmax(call: Call) -> Tensor:
        raise UsageError(
            f"`{method}` has no rule for the operation `{call.full}` in this model: relevance starts at the logits: "
            "the plain gradient would not conserve it. Explain the model without its softmax, or take a method that "
            "needs gradients only (such as integrated_gradients)"
        )

    passed: dict[str, Rule | None] = dict.fromkeys(STRUCTURAL | MAX_POOLS)
    softmaxes = dict.fromkeys(SOFTMAX, softmax if rules.softmax == "refuse" else None)
    return {**passed, **softmaxes, **dict.fromkeys(AFFINE, affine), **dict.fromkeys(ACTIVATIONS, activation)}


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
        rows = kept.movedim(self.axes[number], 0).flatten(1) if self.axes else kept.reshape(1, -1)
        self.total = self.total + rows.double().sum(1)


def start(method: str, score: Tensor) -> Tensor:
    """The relevance of the outputs (n,): deep Taylor decomposition is defined for positive ones alone."""
    return score.detach().clamp(min=0) if method == "deep_taylor" else score.detach()


def propagated(model: nn.Module, x: Tensor, target: Tensor, *, method: str, rules: Rules) -> Tensor:
    """Relevance (n, *shape) of each input, starting from the outputs (n,) of the targets."""

    def part(x: Tensor, target: Tensor) -> Tensor:
        leaf, score = forward(model, x, target, Intercept(method, relevance_rules(method, rules)))
        return torch.autograd.grad(score, leaf, start(method, score))[0]

    return over(part, x, target, size=rows_at_once(x))


def retained(model: nn.Module, x: Tensor, target: Tensor, *, method: str, rules: Rules) -> Tensor:
    """The rest (n,) of the outputs (n,): relevance that biases, ε and empty sums keep, so that no input gets it."""
    axes = sample_axes(model, x, target, method=method, rules=rules)

    def part(x: Tensor, target: Tensor) -> Tensor:
        kept = Kept(axes)
        leaf, score = forward(model, x, target, Intercept(method, relevance_rules(method, rules, kept)))
        torch.autograd.grad(score, leaf, start(method, score))
        return (score.detach() - start(method, score)).double() + kept.total

    return over(part, x, target, size=rows_at_once(x) if axes else 1)


def sample_axes(model: nn.Module, x: Tensor, target: Tensor, *, method: str, rules: Rules) -> list[int]:
    """The axis of the samples in the outputs of all layers, told by one row and by two; none where one has none."""
    probes = [Kept(), Kept()]
    for n, probe in enumerate(probes, start=1):
        mode = Intercept(method, relevance_rules(method, rules, probe))
        forward(model, x[:1].expand(n, *x.shape[1:]), target[:1].expand(n), mode)
    shapes = zip(probes[0].shapes, probes[1].shapes, strict=True)
    try:
        return [sample_axis(one, two, counts=(1, 2), method=method) for one, two in shapes]
    except UsageError:  # rows and samples share an axis: each sample is then asked alone
        return []


def lrp_rules(
    rule: Literal["epsilon", "zplus", "gamma"] = "epsilon",
    epsilon: float = 1e-9,
    gamma: float = 0.25,
    softmax: Softmax = "refuse",
) -> Rules:
    """The rules of `lrp`; its settings are checked here."""
    shares: dict[str, Share] = {
        "epsilon": partial(share_epsilon, epsilon=epsilon),
        "zplus": share_zplus,
        "gamma": partial(share_gamma, gamma=gamma, epsilon=epsilon),
    }
    if rule not in shares:
        raise UsageError(f"`rule` must be one of {', '.join(shares)}, got {rule!r}")
    if epsilon <= 0 or gamma < 0:
        raise UsageError(f"`epsilon` must be above 0 and `gamma` at least 0, got {epsilon} and {gamma}")
    if softmax not in ("refuse", "gradient"):
        raise UsageError(f"`softmax` must be refuse or gradient, got {softmax!r}")
    return Rules(shares[rule], softmax=softmax)


def lrp(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    *,
    rule: Literal["epsilon", "zplus", "gamma"] = "epsilon",
    epsilon: float = 1e-9,
    gamma: float = 0.25,
    softmax: Softmax = "refuse",
) -> Tensor:
    """Layer-wise relevance propagation with one rule in all layers.

    x        (n, *shape)
    target   (n,) int64
    softmax  "refuse", or "gradient": the plain gradient through it, as libraries give that do not see a functional one
    returns  (n, *shape); sums to the target's output less what biases and ε keep (`lrp_retained`)

    [bach2015pixelwise]. `zplus` is the α=1, β=0 rule without bias, `gamma` is from [montavon2019layer]. Batch
    normalisation is folded into the layer before it, or is an affine layer of its own. A residual sum a + b hands
    a / (a + b) to a. With ε near 0 this equals gradient × input in ReLU networks [ancona2018towards].
    """
    rules = lrp_rules(rule, epsilon, gamma, softmax)
    return propagated(model, x, target, method="lrp", rules=rules)


def lrp_retained(model: nn.Module, x: Tensor, target: Tensor, **settings: Any) -> Tensor:
    """What biases and ε keep of the outputs (n,), for the settings of `lrp`: its map and this sum to the output."""
    return retained(model, x, target, method="lrp", rules=lrp_rules(**settings))


def deep_taylor(model: nn.Module, x: Tensor, target: Tensor, *, bounds: tuple[float, float] | None = None) -> Tensor:
    """Deep Taylor decomposition: the z⁺ rule in all layers.

    x        (n, *shape)
    target   (n,) int64
    bounds   lowest and highest value an input can take: the first layer then follows the z^B rule
    returns  (n, *shape), never negative; all zero where the output is not positive, for which it is undefined

    [montavon2017explaining]. Departure: the paper has w² or z^B in the first layer; without `bounds` we take z⁺ on
    signed inputs (x⁺w⁺ + x⁻w⁻), as the authors' toolbox iNNvestigate does. Unlike its version 1.0 we leave the bias
    out of the denominator, and split residual sums and averages by contribution, so relevance is conserved.
    """
    return propagated(model, x, target, method="deep_taylor", rules=taylor_rules(x, bounds))


def taylor_rules(x: Tensor, bounds: tuple[float, float] | None) -> Rules:
    """The rules of `deep_taylor`; its bounds are checked here."""
    if bounds is None:
        return Rules(share_zplus)
    low, high = bounds
    if low > min(0.0, x.min().item()) or high < max(0.0, x.max().item()):
        found = f"{x.min().item():g} to {x.max().item():g}"
        raise UsageError(f"`bounds` must contain 0 and all of x, which goes from {found}, got {bounds}")
    return Rules(share_zplus, first=partial(share_box, bounds=bounds))


def taylor_retained(
    model: nn.Module, x: Tensor, target: Tensor, *, bounds: tuple[float, float] | None = None
) -> Tensor:
    """What no input gets of the outputs (n,): negative outputs, and relevance of sums to which nothing contributed."""
    return retained(model, x, target, method="deep_taylor", rules=taylor_rules(x, bounds))


LRP = Method(
    name="lrp",
    function=lrp,
    needs=("module",),
    random=False,
    signed=True,
    cite="bach2015pixelwise",
    version=2,
    promise="conserve",
    retained=lrp_retained,
)
DEEP_TAYLOR = Method(
    name="deep_taylor",
    function=deep_taylor,
    needs=("module",),
    random=False,
    signed=False,
    cite="montavon2017explaining",
    version=2,
    promise="conserve",
    retained=taylor_retained,
)
PROPAGATION = (LRP, DEEP_TAYLOR)
