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
        self._made: dict[int, tuple[Tensor, int, Any]] = {}

    def remember(self, tensor: Tensor, origin: Any) -> None:
        # The tensor is kept as well, so that its id is not given to another one.
        self._made[id(tensor)] = (tensor, tensor._version, origin)

    def of(self, tensor: Tensor) -> Any:
        """What was remembered, or None."""
        _, version, origin = self._made.get(id(tensor), (None, -1, None))
        return origin if version == tensor._version else None


def as_affine(call: Call, method: str) -> tuple[Tensor, Affine]:
    """The input and the layer; for a sum of two tensors the input is both, stacked along a new first axis."""
    if call.name in SUMS:
        return _sum(call)
    carriers = [t for t in (*call.args, *call.kwargs.values()) if isinstance(t, Tensor) and t.requires_grad]
    if len(carriers) != 1 or (carriers[0] is not call.x and call.name != "mul"):
        raise refusal(method, call)  # such as a product of two things that both depend on the input
    if call.name in CONVOLUTIONS:
        return call.x, _convolution(call)
    if call.name in ("linear", "matmul"):
        return call.x, _linear(call, method)
    if call.name == "batch_norm":
        return call.x, _batch_norm(call, method)
    if call.name in AVERAGES:
        return call.x, Affine("mix", lambda x, w: call(x) * w, call.x.new_ones(()))
    return carriers[0], Affine("scale", torch.mul, _factor(call, carriers[0]))


def _linear(call: Call, method: str) -> Affine:
    weight, bias = call.argument(1, "weight"), call.argument(2, "bias")
    if call.name == "matmul":
        weight, bias = call.argument(1, "other"), None
        if weight is None or weight.ndim != 2:
            raise refusal(method, call)
        weight = weight.T
    return Affine("layer", F.linear, weight, bias, channel=-1)


def _convolution(call: Call) -> Affine:
    weight, bias, rest = call.argument(1, "weight"), call.argument(2, "bias"), call.args[3:]
    options = {key: value for key, value in call.kwargs.items() if key not in ("weight", "bias")}

    def apply(x: Tensor, w: Tensor) -> Tensor:
        return call.function(x, w, None, *rest, **options)

    return Affine("layer", apply, weight, None if bias is None else _along(bias, call.x.ndim - 1))


def _batch_norm(call: Call, method: str) -> Affine:
    mean, variance = call.argument(1, "running_mean"), call.argument(2, "running_var")
    if call.argument(5, "training", False) or mean is None:
        raise UsageError(
            f"`{method}` needs a model in eval mode, but its batch normalisation uses the statistics of the batch: "
            "call model.eval(), and keep running statistics"
        )
    gain, shift = call.argument(3, "weight"), call.argument(4, "bias")
    scale = (variance + call.argument(7, "eps", 1e-5)).rsqrt()
    scale = scale if gain is None else scale * gain
    bias = -mean * scale if shift is None else shift - mean * scale
    return Affine("scale", torch.mul, _along(scale, call.x.ndim - 1), _along(bias, call.x.ndim - 1))


def _factor(call: Call, x: Tensor) -> Tensor:
    if call.name == "neg":
        return x.new_tensor(-1.0)
    other = call.args[0] if x is not call.x else call.argument(1, "other")
    factor = torch.as_tensor(other, dtype=x.dtype, device=x.device)
    return 1 / factor if call.name == "div" else factor


def _sum(call: Call) -> tuple[Tensor, Affine]:
    """a + alpha b, a - alpha b, and b - a; a term that does not depend on the input is a bias."""
    a, b, alpha = call.x, call.argument(1, "other"), call.kwargs.get("alpha", 1)
    signs = {"add": (1, alpha), "sub": (1, -alpha), "rsub": (-1, 1)}[call.name]
    like = a if isinstance(a, Tensor) and a.requires_grad else b
    terms = [torch.as_tensor(term, dtype=like.dtype, device=like.device) for term in (a, b)]
    if all(term.requires_grad for term in terms):
        x = torch.stack(torch.broadcast_tensors(*terms))  # (2, ...)
        weight = _along(x.new_tensor(signs), x.ndim)
        return x, Affine("mix", lambda x, w: (x * w).sum(0), weight)
    mine = 0 if terms[0].requires_grad else 1
    return terms[mine], Affine("scale", torch.mul, like.new_tensor(signs[mine]), terms[1 - mine] * signs[1 - mine])


def _along(values: Tensor, ndim: int) -> Tensor:
    """values (c,) as (c, 1, ...) of `ndim` axes."""
    return values.reshape(-1, *(1,) * (ndim - 1))


def fold(layer: Affine, scale: Affine, out: Tensor) -> Affine | None:
    """Layer and batch normalisation as one layer; None where their channels are different axes of `out`."""
    if layer.kind != "layer" or (layer.channel == -1 and out.ndim != 2):
        return None
    weight = layer.weight * _along(scale.weight.flatten(), layer.weight.ndim)
    bias = torch.zeros_like(scale.weight) if layer.bias is None else layer.bias * scale.weight
    return replace(layer, weight=weight, bias=bias if scale.bias is None else bias + scale.bias)
