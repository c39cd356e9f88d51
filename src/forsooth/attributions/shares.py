"""How one affine layer shares the relevance of its outputs among its inputs: the rules of relevance propagation."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from forsooth.attributions.affine import Affine


@dataclass(frozen=True)
class Shared:
    """Where the relevance of a layer's outputs went: to its inputs, and what bias, ε or an empty sum keep of it.

    inputs  shaped like x
    kept    shaped like the outputs, or one that broadcasts
    """

    inputs: Tensor
    kept: Tensor


Share = Callable[[Affine, Tensor, Tensor], Shared]  # layer, x, relevance of the outputs -> where it went


def pulled(layer: Affine, x: Tensor, weight: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """z = apply(x, weight), and the function that brings s, shaped like z, back to x as x_i Σ_j w_ij s_j."""
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        z = layer.apply(leaf, weight)
    return z.detach(), lambda s: x * torch.autograd.grad(z, leaf, s, retain_graph=True)[0]


def divided(relevance: Tensor, z: Tensor) -> Tensor:
    """relevance / z, and zero where z is zero: nothing contributed, so nobody gets it."""
    return torch.where(z == 0, 0.0, relevance / torch.where(z == 0, 1.0, z))


def share_epsilon(layer: Affine, x: Tensor, relevance: Tensor, *, epsilon: float) -> Shared:
    """R_i = Σ_j x_i w_ij / (z_j + ε sign z_j) R_j, with z_j = Σ_i x_i w_ij + b_j [bach2015pixelwise]."""
    z, pull = pulled(layer, x, layer.weight)
    bias = bias_of(layer, z)
    s, stabiliser = stabilised(relevance, z + bias, epsilon)
    return Shared(pull(s), s * (bias + stabiliser))


def stabilised(relevance: Tensor, z: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """relevance / (z + ε sign z), and ε sign z; all are shaped like the outputs z."""
    stabiliser = torch.where(z < 0, -epsilon, epsilon)
    return relevance / (z + stabiliser), stabiliser


def bias_of(layer: Affine, like: Tensor) -> Tensor:
    """The bias of a layer; zero of the type of `like` where there is none."""
    if layer.bias is None:
        return like.new_zeros(())
    return layer.bias


def share_zplus(layer: Affine, x: Tensor, relevance: Tensor) -> Shared:
    """R_i = Σ_j (x_i w_ij)⁺ / Σ_i (x_i w_ij)⁺ R_j, without the bias [montavon2017explaining]; also α1β0."""
    if layer.kind == "scale":  # one input only, so it gets all, even where its contribution is negative
        return Shared(relevance.sum_to_size(x.shape), relevance.new_zeros(relevance.shape))
    above, pull_above = pulled(layer, x.clamp(min=0), layer.weight.clamp(min=0))
    below, pull_below = pulled(layer, x.clamp(max=0), layer.weight.clamp(max=0))
    s = divided(relevance, above + below)
    return Shared(pull_above(s) + pull_below(s), relevance * (above + below == 0))


def share_gamma(layer: Affine, x: Tensor, relevance: Tensor, *, gamma: float, epsilon: float) -> Shared:
    """Contributions that have the sign of the output count 1 + γ times [montavon2019layer].

    For inputs and outputs that are not negative this is the published rule, with w + γ w⁺ in place of w.
    """
    up = layer.weight.clamp(min=0)
    down = layer.weight.clamp(max=0)
    plus, helping = pulled_by_sign(layer, x, above=up, below=down)
    minus, hindering = pulled_by_sign(layer, x, above=down, below=up)
    bias = bias_of(layer, x)
    positive = plus + minus + bias >= 0
    more = 1 + gamma * positive
    less = 1 + gamma * ~positive
    raised = bias * (1 + gamma * (positive == (bias >= 0)))
    s, stabiliser = stabilised(relevance, plus * more + minus * less + raised, epsilon)
    shared = [*(pull(s * more) for pull in helping), *(pull(s * less) for pull in hindering)]
    return Shared(torch.stack(shared).sum(0), s * (raised + stabiliser))


def pulled_by_sign(
    layer: Affine, x: Tensor, *, above: Tensor, below: Tensor
) -> tuple[Tensor, list[Callable[[Tensor], Tensor]]]:
    """`pulled` with one weight for what is above zero in x and another for what is below, and their sum."""
    first, pull_first = pulled(layer, x.clamp(min=0), above)
    second, pull_second = pulled(layer, x.clamp(max=0), below)
    return first + second, [pull_first, pull_second]


def share_box(layer: Affine, x: Tensor, relevance: Tensor, *, bounds: tuple[float, float]) -> Shared:
    """The z^B rule for l ≤ x ≤ h: R_i = Σ_j (x_i w_ij - l w_ij⁺ - h w_ij⁻) / Σ_i (...) R_j [montavon2017explaining]."""
    low, high = (torch.full_like(x, bound) for bound in bounds)
    z, pull = pulled(layer, x, layer.weight)
    z_low, pull_low = pulled(layer, low, layer.weight.clamp(min=0))
    z_high, pull_high = pulled(layer, high, layer.weight.clamp(max=0))
    s = divided(relevance, z - z_low - z_high)
    return Shared(pull(s) - pull_low(s) - pull_high(s), relevance * (z - z_low - z_high == 0))
