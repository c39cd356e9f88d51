"""Guided backpropagation and deconvolution: the gradient, with another rule at each ReLU.

Both are defined for ReLU only, and a ReLU can be written in many ways. So operations that cannot hide one pass by the
plain gradient, those that are one follow the rule, and all others are refused by name. A maximum over places passes to
the winner, as max-pooling does, unless a constant was put among the places (see `rivals`).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from forsooth.attributions.affine import AFFINE, as_affine
from forsooth.attributions.calls import Call, names, tensors
from forsooth.attributions.intercept import (
    MAX_POOLS,
    SOFTMAX,
    STRUCTURAL,
    Backward,
    Rule,
    forward,
    refusal,
    rows_at_once,
)
from forsooth.attributions.rivals import WINNERS, Contests
from forsooth.chunks import over
from forsooth.records import Method

# Linear in what depends on the input, or smooth squashing and normalising: no rectifier is made of these alone.
SMOOTH = names(
    "addmm bmm baddbmm conv_transpose1d conv_transpose2d conv_transpose3d cumsum fold group_norm gru instance_norm "
    "interpolate layer_norm local_response_norm lstm multi_head_attention_forward normalize pixel_shuffle "
    "pixel_unshuffle rms_norm rnn_tanh scaled_dot_product_attention sigmoid tanh unfold upsample"
)
SMOOTHED = names("gelu silu")  # ReLUs with a round corner: they follow the rule of the ReLU that they smooth


def rectified(
    model: nn.Module, x: Tensor, target: Tensor, *, method: str, rule: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """The gradient of the targets' outputs by x, with `rule(z, gradient)` at each ReLU of a pre-activation z."""
    rules = RectifiedRules(method, rule).table()

    def part(x: Tensor, target: Tensor) -> Tensor:
        leaf, score = forward(model, x, target, Contests(method, rules))
        return torch.autograd.grad(score.sum(), leaf)[0]

    return over(part, x, target, size=rows_at_once(x))


class RectifiedRules:
    """Rules under which a ReLU follows `rule`, and nothing that may be another rectifier passes."""

    def __init__(self, method: str, rule: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.method = method
        self.rule = rule

    def table(self) -> dict[str, Rule | None]:
        """The rule of every operation."""
        plain: dict[str, Rule | None] = dict.fromkeys(STRUCTURAL | MAX_POOLS | SOFTMAX | AFFINE | SMOOTH)
        plain |= dict.fromkeys(SMOOTHED, self.relu)
        special = {"relu": self.relu, "mul": self.scaled, "div": self.scaled, "batch_norm": self.batch_norm}
        return {**plain, **special, **dict.fromkeys(WINNERS, self.winner)}

    def relu(self, call: Call) -> Tensor:
        return Backward.apply(call.x, call, self.rule)

    def scaled(self, call: Call) -> Tensor:
        factors = [t for t in call.args if isinstance(t, Tensor) and t.requires_grad]
        # z * sigmoid(z) is a rectifier too; a weight for each channel or word is of another shape than what it weighs.
        if len(factors) == 2 and (factors[0].shape == factors[1].shape or call.name == "div"):
            raise refusal(self.method, call)
        if len(factors) == 1 and call.name == "div" and factors[0] is not call.x:
            raise refusal(self.method, call)  # a constant over something that depends on the input
        return call()

    def winner(self, call: Call) -> Tensor:
        if any(True for _ in tensors((call.args[1:], dict(call.kwargs)))):
            raise refusal(self.method, call)  # of two tensors, place by place: max(a, b) = b + relu(a - b)
        return call()

    def batch_norm(self, call: Call) -> Tensor:
        as_affine(call, self.method)  # refuses statistics of the batch
        return call()


def guided_backprop(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """The gradient, where a ReLU lets pass what is positive on the way back and was positive on the way forward.

    x        (n, *shape)
    target   (n,) int64
    returns  (n, *shape)

    [springenberg2015striving]. GELU and SiLU, of which the paper says nothing, follow the rule of the ReLU.
    """
    return rectified(
        model, x, target, method="guided_backprop", rule=lambda z, gradient: gradient.clamp(min=0) * (z > 0)
    )


def deconvolution(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """The gradient, where a ReLU lets pass what is positive on the way back, whatever it was on the way forward.

    x        (n, *shape)
    target   (n,) int64
    returns  (n, *shape)

    [zeiler2014visualizing]; max-pooling passes back to the winners, as its switches do. GELU and SiLU follow
    the rule of the ReLU.
    """
    return rectified(model, x, target, method="deconvolution", rule=lambda z, gradient: gradient.clamp(min=0))


GUIDED_BACKPROP = Method(
    name="guided_backprop",
    function=guided_backprop,
    needs=("module",),
    random=False,
    signed=True,
    cite="springenberg2015striving",
    version=2,
    values="derivative",
)
DECONVOLUTION = Method(
    name="deconvolution",
    function=deconvolution,
    needs=("module",),
    random=False,
    signed=True,
    cite="zeiler2014visualizing",
    version=2,
    values="derivative",
)
GUIDED = (GUIDED_BACKPROP, DECONVOLUTION)
