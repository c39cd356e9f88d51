"""How relevance goes through the operations of transformers: products, softmax and layer normalisation."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from forsooth.attributions.affine import Affine
from forsooth.attributions.calls import Call
from forsooth.attributions.composed import epsilon_of
from forsooth.attributions.intercept import OURS
from forsooth.attributions.shares import Shared, stabilised

Product = Callable[[Tensor, Tensor], Tensor]
PRODUCTS: dict[str, Product] = {"mul": torch.mul, "matmul": torch.matmul, "bmm": torch.bmm}
EPSILON = 1e-9


def factors(call: Call) -> tuple[Tensor, Tensor] | None:
    """The two factors of a product, where both depend on the input; None where one is a constant."""
    other = call.argument(1, "other", call.argument(1, "mat2"))
    if isinstance(other, Tensor) and other.requires_grad and call.x.requires_grad:
        return call.x, other
    return None


def share_product(
    product: Product, a: Tensor, b: Tensor, relevance: Tensor, *, weights: tuple[float, float]
) -> tuple[Tensor, Tensor, Tensor]:
    """R of a product to its factors by contribution, `weights` of it to each; and what ε keeps [achtibat2024attnlrp].

    relevance  shaped like the product, as what is kept; weights sum to 1
    """
    with torch.enable_grad():
        first = a.detach().requires_grad_()
        second = b.detach().requires_grad_()
        z = product(first, second)
    s, stabiliser = stabilised(relevance, z.detach(), EPSILON)
    to_first, to_second = torch.autograd.grad(z, (first, second), s)
    return weights[0] * a * to_first, weights[1] * b * to_second, s * stabiliser


def share_softmax(z: Tensor, relevance: Tensor, dim: int) -> Shared:
    """R_i = z_i (R_i - p_i Σ R_j), the first-order Taylor expansion at z [achtibat2024attnlrp].

    The constant of the expansion keeps the rest: it is no part of any input, like a bias.
    """
    inputs = z * (relevance - z.softmax(dim) * relevance.sum(dim, keepdim=True))
    return Shared(inputs, relevance - inputs)


def normalisation(call: Call) -> Affine:
    """Layer normalisation as an affine layer: its deviation is taken as a constant, its mean is not."""
    axes = tuple(range(-len(call.argument(1, "normalized_shape")), 0))
    x = call.x.detach()
    scale = (x.var(axes, correction=0, keepdim=True) + call.argument(4, "eps", 1e-5)).rsqrt()
    weight = call.argument(2, "weight")
    if weight is not None:
        scale = scale * weight
    return Affine("mix", lambda x, w: (x - x.mean(axes, keepdim=True)) * w, scale, call.argument(3, "bias"))


def rms_normalisation(call: Call) -> Affine:
    """Normalisation by the root of the mean square as a scaling: that root is taken as a constant."""
    axes = tuple(range(-len(call.argument(1, "normalized_shape")), 0))
    scale = (call.x.detach().square().mean(axes, keepdim=True) + epsilon_of(call)).rsqrt()
    weight = call.argument(2, "weight")
    if weight is not None:
        scale = scale * weight
    return Affine("scale", torch.mul, scale)


def made_by(tensor: Tensor, nodes: Iterable[Any]) -> bool:
    """Whether one of the nodes of the graph made the tensor, with nothing between but moves."""
    wanted = set(nodes)
    waiting = [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node in wanted:
            return True
        if node is not None and getattr(node, "_forward_cls", None) not in OURS:
            waiting += [parent for parent, _ in node.next_functions]
    return False
