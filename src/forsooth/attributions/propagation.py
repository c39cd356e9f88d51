"""Relevance propagation: layer-wise relevance propagation and deep Taylor decomposition.

The gradient of one backward pass carries relevance. Each affine layer hands the relevance R of its outputs to its
inputs in proportion to their contributions x_i w_ij; activations hand it through; max-pooling gives it to the winner;
a residual sum splits it between its terms. A softmax is refused: no published rule brings relevance through it, and
relevance starts at the logits.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from forsooth.attributions.composed import ATTENTIONS
from forsooth.attributions.intercept import Intercept, Rule, forward, rows_at_once, sample_axis
from forsooth.attributions.relevance import Kept, RelevanceRules, Rules, Softmax
from forsooth.attributions.shares import Share, share_box, share_epsilon, share_gamma, share_zplus
from forsooth.chunks import over
from forsooth.records import Method, UsageError


def start(method: str, score: Tensor) -> Tensor:
    """The relevance of the outputs (n,): deep Taylor decomposition is defined for positive ones alone."""
    if method == "deep_taylor":
        return score.detach().clamp(min=0)
    return score.detach()


def written(rules: Rules) -> Mapping[str, Rule]:
    """Operations that are written out in others, where these have rules."""
    if rules.attention == "refuse":
        return {}
    return ATTENTIONS


def propagated(model: nn.Module, x: Tensor, target: Tensor, *, method: str, rules: Rules) -> Tensor:
    """Relevance (n, *shape) of each input, starting from the outputs (n,) of the targets."""

    def part(x: Tensor, target: Tensor) -> Tensor:
        leaf, score = forward(
            model, x, target, Intercept(method, RelevanceRules(method, rules).table(), written(rules))
        )
        return torch.autograd.grad(score, leaf, start(method, score))[0]

    return over(part, x, target, size=rows_at_once(x))


def retained(model: nn.Module, x: Tensor, target: Tensor, *, method: str, rules: Rules) -> Tensor:
    """The rest (n,) of the outputs (n,): relevance that biases, ε and empty sums keep, so that no input gets it."""
    axes = sample_axes(model, x, target, method=method, rules=rules)

    def part(x: Tensor, target: Tensor) -> Tensor:
        kept = Kept(axes)
        leaf, score = forward(
            model, x, target, Intercept(method, RelevanceRules(method, rules, kept).table(), written(rules))
        )
        torch.autograd.grad(score, leaf, start(method, score))
        return (score.detach() - start(method, score)).double() + kept.total

    size = 1
    if axes:
        size = rows_at_once(x)
    return over(part, x, target, size=size)


def sample_axes(model: nn.Module, x: Tensor, target: Tensor, *, method: str, rules: Rules) -> list[int]:
    """The axis of the samples in the outputs of all layers, from one row and from two; none where one has none."""
    probes = [Kept(), Kept()]
    for n, probe in enumerate(probes, start=1):
        mode = Intercept(method, RelevanceRules(method, rules, probe).table(), written(rules))
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


def attn_lrp(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """Layer-wise relevance propagation for transformers: half of a product to each factor, softmax by Taylor expansion.

    x        (n, *shape)
    target   (n,) int64
    returns  (n, *shape); sums to the target's output less what biases and the constants of the expansions keep

    [achtibat2024attnlrp], with the ε rule in all layers. GELU and SiLU hand relevance through; layer normalisation is
    an affine layer whose deviation is a constant, and so is `rms_norm`. Without attention it is `lrp`. What the
    constants of the expansions keep may be a third of the output; `cp_lrp` keeps nothing there.
    """
    return propagated(model, x, target, method="attn_lrp", rules=ATTN_RULES)


def attn_lrp_retained(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """What biases and Taylor expansions keep of the outputs (n,): the map of `attn_lrp` and this sum to the output."""
    return retained(model, x, target, method="attn_lrp", rules=ATTN_RULES)


def cp_lrp(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """Layer-wise relevance propagation for transformers in which attention weights are constants.

    x        (n, *shape)
    target   (n,) int64
    returns  (n, *shape); sums to the target's output less what biases keep

    [ali2022xai]: all relevance of attention goes to what is attended to. The rest is as in `attn_lrp`.
    """
    return propagated(model, x, target, method="cp_lrp", rules=CP_RULES)


def cp_lrp_retained(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """What biases and ε keep of the outputs (n,), for `cp_lrp`."""
    return retained(model, x, target, method="cp_lrp", rules=CP_RULES)


ATTN_RULES = replace(lrp_rules(), attention="attn")
CP_RULES = replace(lrp_rules(), attention="cp")


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
        came = f"{x.min().item():g} to {x.max().item():g}"
        raise UsageError(f"`bounds` must contain 0 and all of x, which goes from {came}, got {bounds}")
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
ATTN_LRP = replace(
    LRP, name="attn_lrp", function=attn_lrp, cite="achtibat2024attnlrp", version=1, retained=attn_lrp_retained
)
CP_LRP = replace(ATTN_LRP, name="cp_lrp", function=cp_lrp, cite="ali2022xai", retained=cp_lrp_retained)
PROPAGATION = (LRP, ATTN_LRP, CP_LRP, DEEP_TAYLOR)
