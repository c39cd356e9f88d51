"""Read an operation as an affine layer, `apply(x, weight) + bias` with `apply` linear in x and in weight.

Linear and convolutional layers, batch normalisation, averages, sums and scalings all take this form, so a rule of
relevance propagation is written once.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from forsooth.attributions.calls import Call, names
from forsooth.attributions.intercept import refusal
from forsooth.records import UsageError

CONVOLUTIONS = names("conv1d conv2d conv3d")
WEIGHTED = CONVOLUTIONS | names("linear matmul")
AVERAGES = frozenset(f"{kind}avg_pool{d}d" for kind in ("", "adaptive_") for d in (1, 2, 3)) | names("mean sum")
SUMS = names("add sub rsub")
SCALES = names("mul div neg batch_norm")
AFFINE = WEIGHTED | AVERAGES | SUMS | SCALES


@dataclass(frozen=True)
class Affine:
    """One affine operation, without its input.

    kind     "layer": own weights (linear, convolution); "mix": a sum or mean; "scale": one input for each output
    channel  axis of the output along which the rows of `weight` lie; layers only
    bias     broadcasts over the output; None where there is none
    """

    kind: Literal["layer", "mix", "scale"]
    apply: Callable[[Tensor, Tensor], Tensor]
    weight: Tensor
    bias: Tensor | None = None
    channel: int = 1


class Origins:
    """Remembers what made a tensor, until the tensor is overwritten."""

    def __init__(self) -> None:
        self._by_id: dict[int, tuple[Tensor, int, Any]] = {}

    def remember(self, tensor: Tensor, origin: Any) -> None:
        # The tensor is kept as well, so that its id is not given to another one.
        self._by_id[id(tensor)] = (tensor, tensor._version, origin)

    def of(self, tensor: Tensor) -> Any:
        """What was remembered, or None."""
        _, version, origin = self._by_id.get(id(tensor), (None, -1, None))
        if version != tensor._version:
            return None
        return origin


def as_affine(call: Call, method: str) -> tuple[Tensor, Affine]:
    """The input and the layer; for a sum of two tensors the input is both, stacked along a new first axis."""
    if call.name in SUMS:
        return _sum(call)
    x = _carrier(call, method)
    if call.name in CONVOLUTIONS:
        return x, _convolution(call)
    if call.name == "linear":
        return x, Affine("layer", F.linear, call.argument(1, "weight"), call.argument(2, "bias"), channel=-1)
    if call.name == "matmul":
        return x, _product(call, method)
    if call.name == "batch_norm":
        return x, _batch_norm(call, method)
    if call.name in AVERAGES:
        return x, Affine("mix", lambda x, w: call(x) * w, x.new_ones(()))
    return x, Affine("scale", torch.mul, _factor(call, x))


def _carrier(call: Call, method: str) -> Tensor:
    """The one argument that depends on the input; an error where it is not the first, or there are more."""
    carriers = [t for t in (*call.args, *call.kwargs.values()) if isinstance(t, Tensor) and t.requires_grad]
    if len(carriers) != 1 or (carriers[0] is not call.x and call.name != "mul"):
        raise refusal(method, call)  # such as a product of two things that both depend on the input
    return carriers[0]


def _product(call: Call, method: str) -> Affine:
    """The product with a matrix."""
    matrix = call.argument(1, "other")
    if matrix is None or matrix.ndim != 2:
        raise refusal(method, call)
    return Affine("layer", F.linear, matrix.T, channel=-1)


def _convolution(call: Call) -> Affine:
    options = {key: value for key, value in call.kwargs.items() if key not in ("weight", "bias")}

    def apply(x: Tensor, w: Tensor) -> Tensor:
        return call.function(x, w, None, *call.args[3:], **options)

    bias = call.argument(2, "bias")
    if bias is not None:
        bias = _along(bias, call.x.ndim - 1)
    return Affine("layer", apply, call.argument(1, "weight"), bias)


def _batch_norm(call: Call, method: str) -> Affine:
    mean = call.argument(1, "running_mean")
    if call.argument(5, "training", False) or mean is None:
        raise UsageError(
            f"`{method}` needs a model in eval mode, but its batch normalisation uses the statistics of the batch: "
            "call model.eval(), and keep running statistics"
        )
    scale = _gain(call)
    shift = call.argument(4, "bias")
    bias = -mean * scale
    if shift is not None:
        bias = shift - mean * scale
    axes = call.x.ndim - 1
    return Affine("scale", torch.mul, _along(scale, axes), _along(bias, axes))


def _gain(call: Call) -> Tensor:
    """What a batch normalisation multiplies each channel by, (c,)."""
    scale = (call.argument(2, "running_var") + call.argument(7, "eps", 1e-5)).rsqrt()
    weight = call.argument(3, "weight")
    if weight is None:
        return scale
    return scale * weight


def _factor(call: Call, x: Tensor) -> Tensor:
    if call.name == "neg":
        return x.new_tensor(-1.0)
    other = call.argument(1, "other")
    if x is not call.x:
        other = call.x
    factor = torch.as_tensor(other, dtype=x.dtype, device=x.device)
    if call.name == "div":
        return 1 / factor
    return factor


def _sum(call: Call) -> tuple[Tensor, Affine]:
    """a + alpha b, a - alpha b, and b - a; a term that does not depend on the input is a bias."""
    signs = _signs(call)
    pair = (call.x, call.argument(1, "other"))
    like = next((term for term in pair if isinstance(term, Tensor) and term.requires_grad), pair[1])
    terms = [torch.as_tensor(term, dtype=like.dtype, device=like.device) for term in pair]
    if all(term.requires_grad for term in terms):
        return _mix(terms, signs)
    mine = int(not terms[0].requires_grad)
    other = 1 - mine
    return terms[mine], Affine("scale", torch.mul, like.new_tensor(signs[mine]), terms[other] * signs[other])


def _mix(terms: list[Tensor], signs: tuple[float, float]) -> tuple[Tensor, Affine]:
    """The sum of two terms that both depend on the input, stacked."""
    x = torch.stack(torch.broadcast_tensors(*terms))  # (2, ...)
    weight = _along(x.new_tensor(signs), x.ndim)
    return x, Affine("mix", lambda x, w: (x * w).sum(0), weight)


def _signs(call: Call) -> tuple[float, float]:
    """What the first and the second term of a sum are multiplied by."""
    alpha = call.kwargs.get("alpha", 1)
    return {"add": (1, alpha), "sub": (1, -alpha), "rsub": (-1, 1)}[call.name]


def _along(values: Tensor, ndim: int) -> Tensor:
    """values (c,) as (c, 1, ...) of `ndim` axes."""
    return values.reshape(-1, *(1,) * (ndim - 1))


def fold(layer: Affine, scale: Affine, out: Tensor) -> Affine | None:
    """Layer and batch normalisation as one layer; None where their channels are different axes of `out`."""
    if layer.kind != "layer" or (layer.channel == -1 and out.ndim != 2):
        return None
    weight = layer.weight * _along(scale.weight.flatten(), layer.weight.ndim)
    bias = torch.zeros_like(scale.weight)
    if layer.bias is not None:
        bias = layer.bias * scale.weight
    if scale.bias is not None:
        bias = bias + scale.bias
    return replace(layer, weight=weight, bias=bias)
