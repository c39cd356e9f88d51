"""Differences from a reference: DeepLIFT with the Rescale rule, and Deep SHAP.

The baseline runs first and leaves its pre-activations behind; then the input runs once, and each backward pass turns
into multipliers against one baseline. Affine operations keep their gradient. An activation f takes the slope
(f(x) - f(x')) / (x - x'). Max-pooling is a tournament of max(a, b) = b + relu(a - b), whose relu takes that slope too:
so the map is complete also for overlapping windows and for any baseline. A softmax is exp(z - log Σ exp z), whose
exponentials and logarithm take that slope (see the module `softmax`). A product a b of two values that both depend on
the input has Δ(ab) = Δa (b + b') / 2 + Δb (a + a') / 2, so that each has the mean of the other as its multiplier. With
that attention and layer normalisation, written out in their parts, are complete as well.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from forsooth.attributions.affine import AFFINE, SUMS, as_affine
from forsooth.attributions.calls import Call, names, tensors
from forsooth.attributions.composed import COMPOSED
from forsooth.attributions.intercept import (
    MAX_POOLS,
    SOFTMAX,
    STRUCTURAL,
    Intercept,
    Rule,
    forward,
    refusal,
    rows_at_once,
)
from forsooth.attributions.pooling import tournament
from forsooth.attributions.references import Activate, Join, Multiply, Product, References, another_way
from forsooth.attributions.rescale import Function, rescaled
from forsooth.attributions.softmax import multiplied
from forsooth.chunks import over
from forsooth.records import Method, UsageError

ELEMENTWISE = names(
    "abs celu clamp clamp_max clamp_min elu exp gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log log1p "
    "logsigmoid mish pow prelu relu relu6 rsqrt selu sigmoid silu softplus softshrink softsign sqrt square tanh "
    "tanhshrink threshold"
)
Softmax = Literal["rescale", "gradient"]
PRODUCTS: dict[str, Product] = {"mul": torch.mul, "matmul": torch.matmul, "bmm": torch.bmm}


class DifferenceRules:
    """Rules under which `activate(f, multiply, x)` runs all that is not affine, inside max-pooling as well.

    join  runs products of two values that both depend on the input
    """

    def __init__(self, method: str, activate: Activate, join: Join, through_softmax: Softmax) -> None:
        self.method = method
        self.activate = activate
        self.join = join
        self.through_softmax = through_softmax

    def table(self) -> dict[str, Rule | None]:
        """The rule of every operation."""
        rules: dict[str, Rule | None] = dict.fromkeys(STRUCTURAL | SOFTMAX)
        if self.through_softmax == "rescale":
            rules |= dict.fromkeys(SOFTMAX, self.normalised)
        rules |= dict.fromkeys(AFFINE, self.affine)
        rules |= dict.fromkeys(MAX_POOLS, self.pooled)
        rules |= dict.fromkeys(ELEMENTWISE, self.elementwise)
        rules |= dict.fromkeys(PRODUCTS, self.product)
        return rules

    def product(self, call: Call) -> Tensor:
        other = call.argument(1, "other", call.argument(1, "mat2"))
        if not (isinstance(other, Tensor) and other.requires_grad and call.x.requires_grad):
            return self.affine(call)
        return self.join(PRODUCTS[call.name], call.x, other)

    def affine(self, call: Call) -> Tensor:
        if call.name not in SUMS:
            as_affine(call, self.method)  # refuses products of two terms that both depend on the input
        return call()

    def elementwise(self, call: Call) -> Tensor:
        if any(tensor.requires_grad for tensor in tensors((call.args[1:], dict(call.kwargs)))):
            raise refusal(self.method, call)
        return self.activate(call, partial(rescaled, call), call.x)

    def normalised(self, call: Call) -> Tensor:
        dim = call.argument(1, "dim")
        if dim is None:
            raise refusal(self.method, call)  # an axis that PyTorch guesses
        return self.activate(call, partial(multiplied, dim=dim, log=call.name == "log_softmax"), call.x)

    def pooled(self, call: Call) -> Tensor:
        return tournament(call, self.rectify)

    def rectify(self, x: Tensor) -> Tensor:
        return self.activate(torch.relu, partial(rescaled, torch.relu), x)


def recorded(model: nn.Module, baselines: Tensor, method: str, through_softmax: Softmax) -> list[Tensor]:
    """Inputs (k, ...) of all activations, in the order in which they run, for baselines (k, *shape)."""
    kept: list[Tensor] = []

    def keep(function: Function, multiply: Multiply, x: Tensor) -> Tensor:
        kept.append(x.detach())
        return function(x)

    def keep_both(product: Product, a: Tensor, b: Tensor) -> Tensor:
        kept.extend((a.detach(), b.detach()))
        return product(a, b)

    target = torch.zeros(len(baselines), dtype=torch.int64, device=baselines.device)
    rules = DifferenceRules(method, keep, keep_both, through_softmax)
    forward(model, baselines, target, Intercept(method, rules.table(), COMPOSED))
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
    rows = baselines
    if not paired and len(x) == len(baselines):
        # One row more: different numbers of baselines and samples tell which axis is theirs.
        rows = torch.cat([baselines, baselines[:1]])
    kept = recorded(model, rows, method, through_softmax)
    references = References(kept, counts=(len(x), len(rows)), paired=paired, method=method)
    rules = DifferenceRules(method, references.activate, references.join, through_softmax)
    leaf, score = forward(model, x, target, Intercept(method, rules.table(), COMPOSED))
    if references.place != len(kept):
        raise another_way(method)
    parts = baselines.split(1)
    if paired:
        parts = (baselines,)
    return against_each(leaf, score, references, parts)


def against_each(leaf: Tensor, score: Tensor, references: References, parts: Sequence[Tensor]) -> Tensor:
    """Σ over parts of the baselines of the maps (n, *shape), with a backward pass from the outputs (n,) for each.

    parts  (1, *shape) each, or one (n, *shape) with a baseline for every sample
    """
    x = leaf.detach()
    total = torch.zeros_like(x)
    for number, baseline in enumerate(parts):
        references.choose(number)
        (multipliers,) = torch.autograd.grad(score.sum(), leaf, retain_graph=number + 1 < len(parts))
        total += multipliers * (x - baseline.detach())
    return total


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
    baselines = expanded(torch.as_tensor(baseline, dtype=x.dtype, device=x.device), x)
    paired = len(baselines) == len(x)

    def part(x: Tensor, target: Tensor, mine: Tensor) -> Tensor:
        if not paired:
            mine = baselines
        return summed(model, x, target, baselines=mine, paired=paired, method="deep_lift", through_softmax=softmax)

    return over(part, x, target, baselines.expand_as(x), size=rows_at_once(x))


def expanded(baseline: Tensor, x: Tensor) -> Tensor:
    """The baseline of all inputs (1, *shape), or of each (n, *shape) where it is given so, for x (n, *shape)."""
    shape = (1, *x.shape[1:])
    if baseline.ndim == x.ndim and len(baseline) == len(x):
        shape = tuple(x.shape)
    try:
        return baseline.expand(shape)
    except RuntimeError as error:
        wanted = f"a number, {tuple(x.shape[1:])} or {tuple(x.shape)}"
        raise UsageError(f"`baseline` must be {wanted}, got {tuple(baseline.shape)}") from error


def check_background(background: Tensor, x: Tensor) -> None:
    """UsageError unless the background is (k, *shape) with k > 0, for x (n, *shape)."""
    if background.shape[1:] != x.shape[1:] or len(background) == 0:
        wanted = f"(k, {', '.join(map(str, x.shape[1:]))}) with k > 0"
        raise UsageError(f"`background` must be {wanted}, got {tuple(background.shape)}")


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
    check_background(background, x)
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
