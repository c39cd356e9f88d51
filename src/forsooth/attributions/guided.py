"""Guided backpropagation and deconvolution: the gradient, with another rule at each ReLU."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from forsooth.attributions.intercept import Backward, Call, Intercept, Rule, forward, names, refusal, rows_at_once
from forsooth.chunks import over
from forsooth.records import Method

# Both methods are defined for ReLU only; the plain gradient at its relatives would be another method.
OTHER_RECTIFIERS = names(
    "celu clamp clamp_min elu gelu hardswish hardtanh leaky_relu maximum mish prelu relu6 rrelu selu silu softplus "
    "threshold"
)


def rectified(
    model: nn.Module, x: Tensor, target: Tensor, *, method: str, rule: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """The gradient of the targets' outputs by x, with `rule(z, gradient)` at each ReLU of a pre-activation z."""

    def relu(call: Call) -> Tensor:
        return Backward.apply(call.x, call, rule)

    def refuse(call: Call) -> Tensor:
        raise refusal(method, call)

    rules: dict[str, Rule | None] = {"relu": relu, **dict.fromkeys(OTHER_RECTIFIERS, refuse)}

    def part(x: Tensor, target: Tensor) -> Tensor:
        leaf, score = forward(model, x, target, Intercept(method, rules, otherwise=True))
        return torch.autograd.grad(score.sum(), leaf)[0]

    return over(part, x, target, size=rows_at_once(x))


def guided_backprop(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """The gradient, where a ReLU lets pass what is positive on the way back and was positive on the way forward.

    x        (n, *shape)
    target   (n,) int64
    returns  (n, *shape)

    [springenberg2015striving]
    """
    return rectified(
        model, x, target, method="guided_backprop", rule=lambda z, gradient: gradient.clamp(min=0) * (z > 0)
    )


def deconvolution(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """The gradient, where a ReLU lets pass what is positive on the way back, whatever it was on the way forward.

    x        (n, *shape)
    target   (n,) int64
    returns  (n, *shape)

    [zeiler2014visualizing]; max-pooling passes back to the winners, as its switches do.
    """
    return rectified(model, x, target, method="deconvolution", rule=lambda z, gradient: gradient.clamp(min=0))


GUIDED_BACKPROP = Method(
    name="guided_backprop",
    function=guided_backprop,
    needs=("module",),
    random=False,
    signed=True,
    cite="springenberg2015striving",
    version=1,
)
DECONVOLUTION = Method(
    name="deconvolution",
    function=deconvolution,
    needs=("module",),
    random=False,
    signed=True,
    cite="zeiler2014visualizing",
    version=1,
)
GUIDED = (GUIDED_BACKPROP, DECONVOLUTION)
