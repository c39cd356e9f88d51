"""PatternNet and PatternAttribution: back-propagation with directions of signal that are estimated from data."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from forsooth.attributions.affine import AVERAGES, WEIGHTED, Affine, Origins, as_affine, fold
from forsooth.attributions.calls import Call
from forsooth.attributions.intercept import (
    DROPOUT,
    MAX_POOLS,
    SOFTMAX,
    STRUCTURAL,
    Backward,
    Rule,
    forward,
    rows_at_once,
)
from forsooth.attributions.rivals import Contests
from forsooth.chunks import over
from forsooth.records import Method, UsageError


@dataclass
class Step:
    """One layer as the model runs it, with batch normalisation folded in.

    x          (n, ...) its input
    rectified  whether a ReLU reads its output, directly or behind max-pooling and moves
    """

    layer: Affine
    x: Tensor
    rectified: bool = False


@dataclass(frozen=True)
class Moments:
    """Sums over samples and places, float64; `chosen` are those where the neuron fires if a ReLU follows, else all.

    n, y        (out,) count and Σ y over all
    chosen      (out,) count of the chosen
    x, xy       shaped like the weight, Σ x and Σ x y over the chosen
    """

    n: Tensor
    y: Tensor
    chosen: Tensor
    x: Tensor
    xy: Tensor

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


class PatternRules:
    """Rules that list the layers in `steps` as they run, and send signal back along `patterns` where given.

    origins  tensor -> number of the step that it came from, and whether it is that step's own output
    """

    def __init__(self, method: str, patterns: Sequence[Tensor] | None = None) -> None:
        self.method = method
        self.patterns = patterns
        self.steps: list[Step] = []
        self.origins = Origins()

    def table(self) -> dict[str, Rule | None]:
        """The rule of every operation."""
        plain: dict[str, Rule | None] = dict.fromkeys(AVERAGES | SOFTMAX)
        # A write into a part of a tensor has no result to follow: it runs as it is, and its origin is forgotten.
        plain["setitem"] = None
        moves = dict.fromkeys((STRUCTURAL - {"setitem"}) | MAX_POOLS | DROPOUT, self.moved)
        special = {"batch_norm": self.batch_norm, "relu": self.relu, **dict.fromkeys(WEIGHTED, self.weighted)}
        return {**plain, **moves, **special}

    def weighted(self, call: Call) -> Tensor:
        x, layer = as_affine(call, self.method)
        self.steps.append(Step(layer, x))
        return self.output(call, len(self.steps) - 1)

    def batch_norm(self, call: Call) -> Tensor:
        number, own = self.origins.of(call.given) or (0, False)
        folded = None
        if own:
            folded = fold(self.steps[number].layer, as_affine(call, self.method)[1], call.x)
        if folded is None:
            raise UsageError(
                f"`{self.method}` knows batch normalisation only right behind a linear or convolutional layer"
            )
        self.steps[number].layer = folded
        return self.output(call, number)

    def output(self, call: Call, number: int) -> Tensor:
        """What the call gives as the output of a step, through which signal goes back along its pattern."""
        if self.patterns is None:
            out = call()
        else:
            step = self.steps[number]
            out = Backward.apply(step.x, lambda _: call(), partial(along, step.layer, self.patterns[number]))
        self.origins.remember(out, (number, True))
        return out

    def moved(self, call: Call) -> Any:
        origin = None
        if isinstance(call.given, Tensor):
            origin = self.origins.of(call.given)
        out = call()
        if isinstance(out, Tensor) and origin is not None:
            self.origins.remember(out, (origin[0], False))
        return out

    def relu(self, call: Call) -> Tensor:
        origin = self.origins.of(call.given)
        if origin is not None:
            self.steps[origin[0]].rectified = True
        return call()


def along(layer: Affine, weight: Tensor, x: Tensor, gradient: Tensor) -> Tensor:
    """The gradient by x of a layer with another weight in its place."""
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        z = layer.apply(leaf, weight)
    return torch.autograd.grad(z, leaf, gradient)[0]


def moments(step: Step) -> Moments:
    """The sums of one batch. Σ x y over all places is the gradient by the weight: no patches are cut out."""
    with torch.enable_grad():
        weight = step.layer.weight.detach().requires_grad_()
        z = step.layer.apply(step.x.detach(), weight)
    y = z.detach()  # without the bias, which no covariance sees
    chosen = firing(step, y)

    def correlated(v: Tensor) -> Tensor:
        return torch.autograd.grad(z, weight, v, retain_graph=True)[0].double()

    def total(v: Tensor) -> Tensor:
        return v.movedim(step.layer.channel, 0).flatten(1).double().sum(1)

    return Moments(total(torch.ones_like(y)), total(y), total(chosen), correlated(chosen), correlated(chosen * y))


def firing(step: Step, y: Tensor) -> Tensor:
    """1 where a neuron of the step fires, and everywhere if no ReLU follows; y, its outputs without the bias."""
    if not step.rectified:
        return torch.ones_like(y)
    if step.layer.bias is None:
        return (y > 0).to(y)
    return (y + step.layer.bias > 0).to(y)


def pattern(m: Moments, weight: Tensor) -> Tensor:
    """a = (E₊[xy] - E₊[x] E[y]) / wᵀ(E₊[xy] - E₊[x] E[y]), shaped like the weight; zero where that is undefined."""
    w = weight.double()
    inner = tuple(range(1, weight.ndim))
    rows = (-1, *(1 for _ in inner))
    chosen = m.chosen.clamp(min=1).reshape(rows)
    covariance = (m.xy - m.x * (m.y / m.n).reshape(rows)) / chosen
    signal = (w * covariance).sum(inner, keepdim=True)
    power = (w * m.xy / chosen).sum(inner, keepdim=True)
    # A neuron that never fires, or always says the same, has no direction of signal.
    defined = signal.abs() > 10 * torch.finfo(weight.dtype).eps * power.abs()
    safe = torch.where(defined, signal, 1.0)
    return torch.where(defined, covariance / safe, 0.0).to(weight)


def fit_patterns(model: nn.Module, fit: Tensor, *, method: str = "pattern_net") -> list[tuple[Tensor, Tensor]]:
    """Weight and pattern of each layer, in the order in which they run, from one pass over the inputs `fit`.

    fit  (k, *shape)

    A layer behind which a ReLU stands gets a₊ of the two-component estimator S_a+-, the others the linear one S_a
    [kindermans2018learning]. For a linear model that is cov(x, y) / var(y) [haufe2014interpretation].
    """
    if len(fit) == 0:
        raise UsageError("`fit` must hold training inputs (k, *shape) with k > 0, got none")
    sums: list[Moments] = []
    for batch in fit.split(rows_at_once(fit)):
        steps = run_steps(model, batch, method)
        new = [moments(step) for step in steps]
        if sums:
            new = [old + more for old, more in zip(sums, new, strict=True)]
        sums = new
    weights = [step.layer.weight for step in steps]
    return [(weight, pattern(m, weight)) for weight, m in zip(weights, sums, strict=True)]


def run_steps(model: nn.Module, x: Tensor, method: str) -> list[Step]:
    """The layers of the model as they run on x (n, *shape)."""
    rules = PatternRules(method)
    target = torch.zeros(len(x), dtype=torch.int64, device=x.device)
    forward(model, x, target, Contests(method, rules.table()))
    return rules.steps


def pattern_net(model: nn.Module, x: Tensor, target: Tensor, *, fit: Tensor) -> Tensor:
    """The signal: the gradient with each layer's weights replaced by its patterns.

    x        (n, *shape)
    target   (n,) int64
    fit      (k, *shape) training inputs, from which the patterns are estimated
    returns  (n, *shape)

    [kindermans2018learning]. Departure: iNNvestigate conditions on y > 0 in all layers, the output included; we do it
    only before a ReLU, as the paper derives it.
    """
    patterns = [a for _, a in fit_patterns(model, fit, method="pattern_net")]
    return sent_back(model, x, target, method="pattern_net", patterns=patterns)


def pattern_attribution(model: nn.Module, x: Tensor, target: Tensor, *, fit: Tensor) -> Tensor:
    """The output, sent back with each layer's weights replaced by weight ⊙ pattern; arguments as in `pattern_net`.

    x, target, fit  (n, *shape), (n,) int64, (k, *shape)
    returns         (n, *shape)

    [kindermans2018learning]
    """
    patterns = [w * a for w, a in fit_patterns(model, fit, method="pattern_attribution")]
    return sent_back(model, x, target, method="pattern_attribution", patterns=patterns)


def sent_back(model: nn.Module, x: Tensor, target: Tensor, *, method: str, patterns: Sequence[Tensor]) -> Tensor:
    """One backward pass along `patterns`, from 1 (the signal) or from the targets' outputs (the attribution)."""

    def part(x: Tensor, target: Tensor) -> Tensor:
        leaf, score = forward(model, x, target, Contests(method, PatternRules(method, patterns).table()))
        start = torch.ones_like(score)
        if method == "pattern_attribution":
            start = score.detach()
        return torch.autograd.grad(score, leaf, start)[0]

    return over(part, x, target, size=rows_at_once(x))


PATTERN_NET = Method(
    name="pattern_net",
    function=pattern_net,
    needs=("module", "fit"),
    random=False,
    signed=True,
    cite="kindermans2018learning",
    version=2,
)
PATTERN_ATTRIBUTION = Method(
    name="pattern_attribution",
    function=pattern_attribution,
    needs=("module", "fit"),
    random=False,
    signed=True,
    cite="kindermans2018learning",
    version=2,
)
PATTERNS = (PATTERN_NET, PATTERN_ATTRIBUTION)
