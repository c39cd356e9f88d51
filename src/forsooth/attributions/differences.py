"""Differences from a reference: DeepLIFT with the Rescale rule, and Deep SHAP.

The baseline runs first and leaves its pre-activations behind; then the input runs once, and each backward pass turns
into multipliers against one baseline. Affine operations keep their gradient. An activation f takes the slope
(f(x) - f(x')) / (x - x'). Max-pooling is a tournament of max(a, b) = b + relu(a - b), whose relu takes that slope too:
so the map is complete also for overlapping windows and for any baseline. A softmax is exp(z - log Σ exp z), whose
exponentials and logarithm take that slope (see the module `softmax`).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Literal

import torch
from torch import Tensor, nn

from forsooth.attributions.affine import AFFINE, SUMS, as_affine
from forsooth.attributions.calls import Call, names, tensors
from forsooth.attributions.intercept import (
    MAX_POOLS,
    SOFTMAX,
    STRUCTURAL,
    Backward,
    Intercept,
    Rule,
    forward,
    refusal,
    rows_at_once,
    sample_axis,
)
from forsooth.attributions.softmax import multiplied
from forsooth.chunks import over
from forsooth.records import Method, UsageError

ELEMENTWISE = names(
    "abs celu clamp clamp_max clamp_min elu exp gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log log1p "
    "logsigmoid mish pow prelu relu relu6 selu sigmoid silu softplus softshrink softsign sqrt square tanh "
    "tanhshrink threshold"
)
Function = Callable[[Tensor], Tensor]
Multiply = Callable[[Tensor, Tensor, Tensor], Tensor]  # x, its reference, multipliers of the outputs -> those of x
Softmax = Literal["rescale", "gradient"]


def slope(function: Function, x: Tensor, reference: Tensor) -> Tensor:
    """(f(x) - f(x')) / (x - x'), and the derivative halfway where the two are too near to be subtracted.

    Near is relative to the size of x and x', so values on two sides of a kink at zero never count as near.
    """
    difference = x - reference
    size = torch.maximum(x.abs(), reference.abs())
    far = difference.abs() > torch.finfo(x.dtype).eps ** 0.5 * size
    with torch.enable_grad():
        middle = ((x + reference) / 2).requires_grad_()
        (derivative,) = torch.autograd.grad(function(middle).sum(), middle)
    secant = (function(x) - function(reference)) / torch.where(far, difference, 1.0)
    return torch.where(far, secant, derivative)


def windows(call: Call, axis: int, length: int, out: int) -> Tensor:
    """Places (out, k) along one axis that a max-pool's windows read; one in the padding repeats a real one."""
    first = torch.arange(out).unsqueeze(1)
    if call.name.startswith("adaptive"):
        start, stop = first * length // out, -(-(first + 1) * length // out)
        return torch.minimum(start + torch.arange(int((stop - start).max())), stop - 1)
    kernel = call.argument(1, "kernel_size")
    options = (call.argument(2, "stride") or kernel, call.argument(3, "padding", 0), call.argument(4, "dilation", 1))
    size, stride, padding, dilation = (o if isinstance(o, int) else o[axis % len(o)] for o in (kernel, *options))
    places = first * stride - padding + torch.arange(size) * dilation
    real = (places >= 0) & (places < length)
    if not real.any(1).all():
        raise UsageError(f"a window of `{call.full}` lies wholly in its padding, where the maximum is minus infinity")
    return torch.where(real, places, places.gather(1, real.int().argmax(1, keepdim=True)))


def tournament(call: Call, rectify: Function) -> Tensor:
    """The max-pool of `call` as max(a, b) = b + rectify(a - b), one axis after the other."""
    pooled, dims = call.x, int(call.name[-2])
    shape = call(torch.empty_like(pooled, device="meta")).shape
    for axis in range(dims):
        place = axis - dims
        taken = windows(call, axis, pooled.shape[place], shape[place]).to(pooled.device)
        best = pooled.index_select(place, taken[:, 0])
        for other in taken[:, 1:].unbind(1):
            b = pooled.index_select(place, other)
            best = b + rectify(best - b)
        pooled = best
    return pooled


def rescaled(function: Function, x: Tensor, reference: Tensor, multipliers: Tensor) -> Tensor:
    """The Rescale rule for a function of one number at a time."""
    return multipliers * slope(function, x, reference)


def difference_rules(
    method: str, activate: Callable[[Function, Multiply, Tensor], Tensor], through_softmax: Softmax
) -> dict[str, Rule | None]:
    """Rules under which `activate(f, multiply, x)` runs all that is not affine, inside max-pooling as well."""

    def affine(call: Call) -> Tensor:
        if call.name not in SUMS:
            as_affine(call, method)  # refuses products of two terms that both depend on the input
        return call()

    def elementwise(call: Call) -> Tensor:
        if any(tensor.requires_grad for tensor in tensors((call.args[1:], dict(call.kwargs)))):
            raise refusal(method, call)
        return activate(call, partial(rescaled, call), call.x)

    def normalised(call: Call) -> Tensor:
        dim = call.argument(1, "dim")
        if dim is None:
            raise refusal(method, call)  # an axis that PyTorch guesses
        return activate(call, partial(multiplied, dim=dim, log=call.name == "log_softmax"), call.x)

    def rectify(x: Tensor) -> Tensor:
        return activate(torch.relu, partial(rescaled, torch.relu), x)

    rules: dict[str, Rule | None] = dict.fromkeys(STRUCTURAL)
    softmaxes = dict.fromkeys(SOFTMAX, normalised if through_softmax == "rescale" else None)
    pools = dict.fromkeys(MAX_POOLS, lambda call: tournament(call, rectify))
    curved = {**softmaxes, **pools, **dict.fromkeys(ELEMENTWISE, elementwise)}
    return {**rules, **dict.fromkeys(AFFINE, affine), **curved}


def recorded(model: nn.Module, baselines: Tensor, method: str, through_softmax: Softmax) -> list[Tensor]:
    """Inputs (k, ...) of all activations, in the order in which they run, for baselines (k, *shape)."""
    kept: list[Tensor] = []

    def keep(function: Function, multiply: Multiply, x: Tensor) -> Tensor:
        kept.append(x.detach())
        return function(x)

    target = torch.zeros(len(baselines), dtype=torch.int64, device=baselines.device)
    forward(model, baselines, target, Intercept(method, difference_rules(method, keep, through_softmax)))
    return kept


def summed(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    *,
    baselines: Tensor,
    paired: bool,
    method: str,
    through_softmax: Softmax,
) -> Tensor:
    """Σ over baselines of the DeepLIFT map of x against each: (n, *shape).

    baselines  (k, *shape); where `paired`, row i is the one baseline of x's row i
    """
    paired = paired or len(x) == len(baselines) == 1
    # One row more where there are as many baselines as samples: different numbers tell which axis is theirs.
    more = baselines[:1] if not paired and len(x) == len(baselines) else baselines[:0]
    rows = torch.cat([baselines, more])
    kept = recorded(model, rows, method, through_softmax)
    axes: list[int] = []
    current: list[Tensor] = []
    order = count()

    def compare(function: Function, multiply: Multiply, x_here: Tensor) -> Tensor:
        place = next(order)
        if place >= len(kept) or (paired and x_here.shape != kept[place].shape):
            raise another_way(method)
        if not paired:
            axes.append(sample_axis(x_here.shape, kept[place].shape, counts=(len(x), len(rows)), method=method))
        # `current` is read on the way back: one forward pass of x serves all baselines.
        return Backward.apply(x_here, function, lambda z, m: multiply(z, current[place], m))

    leaf, score = forward(model, x, target, Intercept(method, difference_rules(method, compare, through_softmax)))
    if next(order) != len(kept):
        raise another_way(method)
    total = torch.zeros_like(x, requires_grad=False)
    for j in range(1 if paired else len(baselines)):
        current[:] = kept if paired else [value.narrow(axis, j, 1) for value, axis in zip(kept, axes, strict=True)]
        (multipliers,) = torch.autograd.grad(score.sum(), leaf, retain_graph=not paired and j + 1 < len(baselines))
        against = baselines if paired else baselines[j : j + 1]
        total += multipliers * (x.detach() - against.detach())
    return total


def another_way(method: str) -> UsageError:
    """What to say of a model whose code takes another branch for the baseline than for x."""
    return UsageError(
        f"`{method}` needs a model that runs the same operations on x and on its baseline, but this one branches on "
        "the numbers it is given"
    )


def deep_lift(
    model: nn.Module, x: Tensor, target: Tensor, *, baseline: Tensor | float = 0.0, softmax: Softmax = "rescale"
) -> Tensor:
    """DeepLIFT with the Rescale rule.

    x         (n, *shape)
    target    (n,) int64
    baseline  a number, or (*shape), (1, *shape) or (n, *shape)
    softmax   "rescale": the rule for its exponentials and its logarithm, so the map stays complete; "gradient": the
              plain gradient, as libraries give that do not see a functional softmax: the map is then not complete
    returns   (n, *shape); sums to the target's output at x minus that at the baseline

    [shrikumar2017learning]. Departure: max-pooling is a tournament of pairs, because the published treatment of it
    leaves completeness where two windows overlap, or where the baseline has another winner than x.
    """
    given = torch.as_tensor(baseline, dtype=x.dtype, device=x.device)
    paired = given.ndim == x.ndim and len(given) == len(x)
    try:
        baselines = given.expand_as(x) if paired else given.expand(1, *x.shape[1:])
    except RuntimeError as error:
        wanted = f"a number, {tuple(x.shape[1:])} or {tuple(x.shape)}"
        raise UsageError(f"`baseline` must be {wanted}, got {tuple(given.shape)}") from error

    def part(x: Tensor, target: Tensor, mine: Tensor) -> Tensor:
        against = mine if paired else baselines
        return summed(model, x, target, baselines=against, paired=paired, method="deep_lift", through_softmax=softmax)

    return over(part, x, target, baselines.expand_as(x), size=rows_at_once(x))


def deep_shap(
    model: nn.Module, x: Tensor, target: Tensor, *, background: Tensor, softmax: Softmax = "rescale"
) -> Tensor:
    """The mean of the DeepLIFT maps against each background sample.

    x           (n, *shape)
    target      (n,) int64
    background  (k, *shape)
    softmax     as in `deep_lift`
    returns     (n, *shape); sums to the target's output at x minus its mean over the background

    [lundberg2017unified]
    """
    if background.shape[1:] != x.shape[1:] or len(background) == 0:
        wanted = f"(k, {', '.join(map(str, x.shape[1:]))}) with k > 0"
        raise UsageError(f"`background` must be {wanted}, got {tuple(background.shape)}")
    groups = background.to(x).split(rows_at_once(x))

    def against(group: Tensor, x: Tensor, target: Tensor) -> Tensor:
        return summed(model, x, target, baselines=group, paired=False, method="deep_shap", through_softmax=softmax)

    def part(x: Tensor, target: Tensor) -> Tensor:
        maps = [against(group, x, target) for group in groups]
        return torch.stack(maps).sum(0) / len(background)

    return over(part, x, target, size=rows_at_once(x))


DEEP_LIFT = Method(
    name="deep_lift",
    function=deep_lift,
    needs=("module",),
    random=False,
    signed=True,
    cite="shrikumar2017learning",
    version=2,
    promise="complete",
)
DEEP_SHAP = Method(
    name="deep_shap",
    function=deep_shap,
    needs=("module", "background"),
    random=False,
    signed=True,
    cite="lundberg2017unified",
    version=2,
    promise="complete to background",
)
# XAI-TRIS gave Deep SHAP fifty baselines of zeros, which is DeepLIFT with one [clark2024xaitris].
DEEP_SHAP_ZERO = replace(DEEP_LIFT, name="deep_shap_zero", cite="lundberg2017unified", variant_of=DEEP_SHAP.name)
DIFFERENCES = (DEEP_LIFT, DEEP_SHAP, DEEP_SHAP_ZERO)
