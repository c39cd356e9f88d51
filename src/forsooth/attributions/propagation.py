"""Relevance propagation: layer-wise relevance propagation and deep Taylor decomposition.

The gradient of one backward pass carries relevance. Each affine layer hands the relevance R of its outputs to its
inputs in proportion to their contributions x_i w_ij; activations hand it through; max-pooling gives it to the winner;
a residual sum splits it between its terms; a softmax takes the ordinary gradient.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from forsooth.attributions.affine import AFFINE, Affine, Origins, as_affine, fold
from forsooth.attributions.intercept import (
    MAX_POOLS,
    SOFTMAX,
    STRUCTURAL,
    Backward,
    Call,
    Intercept,
    Rule,
    ancestry,
    forward,
    names,
    rows_at_once,
)
from forsooth.chunks import over
from forsooth.records import Method, UsageError

# Activations that are zero at zero: an input that is zero gets no relevance back.
ACTIVATIONS = names("celu elu gelu hardswish hardtanh leaky_relu mish prelu relu relu6 selu silu tanh")

Share = Callable[[Affine, Tensor, Tensor], Tensor]  # layer, x, relevance of the outputs -> relevance of x


def pulled(layer: Affine, x: Tensor, weight: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """z = apply(x, weight), and the function that brings s, shaped like z, back to x as x_i Σ_j w_ij s_j."""
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        z = layer.apply(leaf, weight)
    return z.detach(), lambda s: x * torch.autograd.grad(z, leaf, s, retain_graph=True)[0]


def divided(relevance: Tensor, z: Tensor) -> Tensor:
    """relevance / z, and zero where z is zero: nothing contributed, so nobody gets it."""
    return torch.where(z == 0, 0.0, relevance / torch.where(z == 0, 1.0, z))


def share_epsilon(layer: Affine, x: Tensor, relevance: Tensor, *, epsilon: float) -> Tensor:
    """R_i = Σ_j x_i w_ij / (z_j + ε sign z_j) R_j, with z_j = Σ_i x_i w_ij + b_j [bach2015pixelwise]."""
    z, pull = pulled(layer, x, layer.weight)
    z = z if layer.bias is None else z + layer.bias
    return pull(relevance / (z + torch.where(z < 0, -epsilon, epsilon)))


def share_zplus(layer: Affine, x: Tensor, relevance: Tensor) -> Tensor:
    """R_i = Σ_j (x_i w_ij)⁺ / Σ_i (x_i w_ij)⁺ R_j, without the bias [montavon2017explaining]; also α1β0."""
    if layer.kind == "scale":  # one input only, so it gets all, even where its contribution is negative
        return relevance.sum_to_size(x.shape)
    above, pull_above = pulled(layer, x.clamp(min=0), layer.weight.clamp(min=0))
    below, pull_below = pulled(layer, x.clamp(max=0), layer.weight.clamp(max=0))
    s = divided(relevance, above + below)
    return pull_above(s) + pull_below(s)


def share_gamma(layer: Affine, x: Tensor, relevance: Tensor, *, gamma: float, epsilon: float) -> Tensor:
    """Contributions that have the sign of the output count 1 + γ times [montavon2019layer].

    For inputs and outputs that are not negative this is the published rule, with w + γ w⁺ in place of w.
    """
    up, down = layer.weight.clamp(min=0), layer.weight.clamp(max=0)
    above, below = x.clamp(min=0), x.clamp(max=0)
    helping = [pulled(layer, above, up), pulled(layer, below, down)]
    hindering = [pulled(layer, above, down), pulled(layer, below, up)]
    plus, minus = helping[0][0] + helping[1][0], hindering[0][0] + hindering[1][0]
    bias = x.new_zeros(()) if layer.bias is None else layer.bias
    positive = plus + minus + bias >= 0
    more, less = 1 + gamma * positive, 1 + gamma * ~positive
    z = plus * more + minus * less + bias * (1 + gamma * (positive == (bias >= 0)))
    s = relevance / (z + torch.where(z < 0, -epsilon, epsilon))
    shared = [pull(s * more) for _, pull in helping] + [pull(s * less) for _, pull in hindering]
    return torch.stack(shared).sum(0)


def share_box(layer: Affine, x: Tensor, relevance: Tensor, *, bounds: tuple[float, float]) -> Tensor:
    """The z^B rule for l ≤ x ≤ h: R_i = Σ_j (x_i w_ij - l w_ij⁺ - h w_ij⁻) / Σ_i (...) R_j [montavon2017explaining]."""
    low, high = (torch.full_like(x, bound) for bound in bounds)
    z, pull = pulled(layer, x, layer.weight)
    z_low, pull_low = pulled(layer, low, layer.weight.clamp(min=0))
    z_high, pull_high = pulled(layer, high, layer.weight.clamp(max=0))
    s = divided(relevance, z - z_low - z_high)
    return pull(s) - pull_low(s) - pull_high(s)


def reads_input(x: Tensor) -> bool:
    """Whether x holds moved numbers of the model's input: no rule lies between the two."""
    return not any(getattr(node, "_forward_cls", None) is Backward for node in ancestry(x))


def relevance_rules(method: str, share: Share, first: Share | None = None) -> dict[str, Rule | None]:
    """Rules under which the gradient carries relevance; `first` is the share in layers that read the input itself."""
    origins = Origins()  # tensor -> input and layer that it came from

    def affine(call: Call) -> Tensor:
        x, layer = as_affine(call, method)
        if call.name == "batch_norm" and origins.of(x) is not None:
            source, before = origins.of(x)
            folded = fold(before, layer, x)
            x, layer = (x, layer) if folded is None else (source, folded)
        chosen = share if first is None or not reads_input(x) else first
        if chosen is first and layer.kind != "layer":
            raise UsageError(
                f"`bounds` are those of the first layer's input, but `{call.full}` changes the input before"
            )
        out = Backward.apply(x, lambda _: call(), partial(chosen, layer))
        origins.remember(out, (x, layer))
        return out

    def activation(call: Call) -> Tensor:
        return Backward.apply(call.x, lambda _: call(), lambda x, relevance: relevance)

    rules: dict[str, Rule | None] = dict.fromkeys(STRUCTURAL | MAX_POOLS | SOFTMAX)
    return {**rules, **dict.fromkeys(AFFINE, affine), **dict.fromkeys(ACTIVATIONS, activation)}


def propagated(
    model: nn.Module, x: Tensor, target: Tensor, *, method: str, shares: tuple[Share, Share | None]
) -> Tensor:
    """Relevance (n, *shape) of each input, starting from the outputs (n,) of the targets."""

    def part(x: Tensor, target: Tensor) -> Tensor:
        leaf, score = forward(model, x, target, Intercept(method, relevance_rules(method, *shares)))
        start = score.detach().clamp(min=0) if method == "deep_taylor" else score.detach()
        return torch.autograd.grad(score, leaf, start)[0]

    return over(part, x, target, size=rows_at_once(x))


def lrp(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    *,
    rule: Literal["epsilon", "zplus", "gamma"] = "epsilon",
    epsilon: float = 1e-9,
    gamma: float = 0.25,
) -> Tensor:
    """Layer-wise relevance propagation with one rule in all layers.

    x        (n, *shape)
    target   (n,) int64
    returns  (n, *shape); sums to the target's output as far as biases (and ε) absorb nothing

    [bach2015pixelwise]. `zplus` is the α=1, β=0 rule without bias, `gamma` is from [montavon2019layer]. Batch
    normalisation is folded into the layer before it, or is an affine layer of its own. A residual sum a + b hands
    a / (a + b) to a. With ε near 0 this equals gradient × input in ReLU networks [ancona2018towards].
    """
    shares: dict[str, Share] = {
        "epsilon": partial(share_epsilon, epsilon=epsilon),
        "zplus": share_zplus,
        "gamma": partial(share_gamma, gamma=gamma, epsilon=epsilon),
    }
    if rule not in shares:
        raise UsageError(f"`rule` must be one of {', '.join(shares)}, got {rule!r}")
    if epsilon <= 0 or gamma < 0:
        raise UsageError(f"`epsilon` must be above 0 and `gamma` at least 0, got {epsilon} and {gamma}")
    return propagated(model, x, target, method="lrp", shares=(shares[rule], None))


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
    if bounds is None:
        return propagated(model, x, target, method="deep_taylor", shares=(share_zplus, None))
    low, high = bounds
    if low > min(0.0, x.min().item()) or high < max(0.0, x.max().item()):
        found = f"{x.min().item():g} to {x.max().item():g}"
        raise UsageError(f"`bounds` must contain 0 and all of x, which goes from {found}, got {bounds}")
    box = partial(share_box, bounds=bounds)
    return propagated(model, x, target, method="deep_taylor", shares=(share_zplus, box))


LRP = Method(
    name="lrp",
    function=lrp,
    needs=("module",),
    random=False,
    signed=True,
    cite="bach2015pixelwise",
    version=1,
    promise="conserve",
)
DEEP_TAYLOR = Method(
    name="deep_taylor",
    function=deep_taylor,
    needs=("module",),
    random=False,
    signed=False,
    cite="montavon2017explaining",
    version=1,
    promise="conserve",
)
PROPAGATION = (LRP, DEEP_TAYLOR)
