"""How much a concept, given by examples, matters to a class: TCAV [kim2018interpretability].

A concept has no map: the answer is one share for a class and a layer, so there are no Method records here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from scipy.special import stdtr
from torch import Tensor, nn

from forsooth.chunks import over
from forsooth.games.layers import split
from forsooth.games.values import class_outputs, classes_for, rows_at_once
from forsooth.names import unknown
from forsooth.records import UsageError

LEVEL = 0.01  # of the t-test, as in [yang2019benchmarking]


@dataclass(frozen=True)
class Settings:
    """How TCAV is run.

    rule      of the concept vectors. "ridge": least squares on ±1 with a penalty, in closed form; the direction is that
              of regularised linear discriminant analysis. "sgd": a linear support vector machine by stochastic gradient
              descent, as in the authors' code
    strength  of the penalty. For "ridge" times the mean squared length of the centred examples, so that the scale of
              the activations does not matter; for "sgd" scikit-learn's alpha
    held_out  share of each side that is kept to tell how well the two can be told apart
    of        what is derived: the target's "logit", as in the paper; or its "log_probability", as in the authors' code,
              which takes the gradient of the loss
    against   the t-test's other side: the "random" scores, as in the authors' code; or "half", as in the paper
    """

    rule: Literal["ridge", "sgd"] = "ridge"
    strength: float = 0.1
    held_out: float = 0.33
    of: Literal["logit", "log_probability"] = "logit"
    against: Literal["random", "half"] = "random"

    def __post_init__(self) -> None:
        words = {"rule": ("ridge", "sgd"), "of": ("logit", "log_probability"), "against": ("random", "half")}
        for name, known in words.items():
            if getattr(self, name) not in known:
                raise unknown(getattr(self, name), known, argument=name)
        if self.strength <= 0 or not 0 <= self.held_out < 1:
            came = f"{self.strength} and {self.held_out}"
            raise UsageError(f"`strength` must be above 0 and `held_out` in [0, 1), got {came}")


CLOSED_FORM = Settings()
RELEASED = Settings(rule="sgd", of="log_probability")


class ConceptVector(NamedTuple):
    """A direction (d,) of length one towards the concept; and the accuracy on what was held out, nan without any."""

    direction: Tensor
    accuracy: float


@dataclass(frozen=True)
class LayerTest:
    """TCAV at one layer.

    scores         (sets,) share of the inputs with a positive sensitivity, for the concept against each random set
    random_scores  (sets,) the same for a random set in the place of the concept
    p              of the two-sided t-test
    accuracy       (sets,) of the concept's vectors on held-out examples
    inputs         (n,) share of the concept's vectors along which the sensitivity of an input is positive; their mean
                   is that of the scores
    """

    layer: str
    scores: Tensor
    random_scores: Tensor
    p: float
    accuracy: Tensor
    inputs: Tensor


def tcav(
    model: nn.Module,
    inputs: tuple[Tensor, Tensor],
    sets: tuple[Tensor, Sequence[Tensor]],
    *,
    layers: Sequence[str],
    generator: torch.Generator,
    settings: Settings = CLOSED_FORM,
) -> tuple[LayerTest, ...]:
    """TCAV of one concept at several layers, each with its test against random concepts.

    model      in eval mode, x -> (n, classes)
    inputs     x (n, *shape), and the class (n,) int64 whose output is asked
    sets       the concept's examples (k, *shape); and two or more random sets (k, *shape). The concept is set against
               each of them, and each of them against the next, the last against the first
    layers     dotted names of modules
    returns    one test for each layer; `averaged` makes one number of them

    [kim2018interpretability]; [yang2019benchmarking], appendix F. The released code of the latter has two random sets.
    Their two vectors are nearly opposite, so the test can hardly pass. Scores of random sets are often near 0 or 1, so
    take twenty of them.
    """
    concept, randoms = sets
    if len(randoms) < 2:
        raise UsageError(f"`sets` must hold two or more random sets, got {len(randoms)}")
    tests = []
    for layer in layers:
        own, *others = (activations(model, examples, layer=layer) for examples in (concept, *randoms))
        pairs = [(own, other) for other in others] + list(zip(others, [*others[1:], others[0]], strict=True))
        found = [concept_vector(one, two, generator=generator, settings=settings) for one, two in pairs]
        vectors = torch.stack([one.direction for one in found])
        slopes = sensitivity(model, *inputs, layer=layer, vectors=vectors, of=settings.of)  # (n, 2 sets)
        mine, theirs = tcav_score(slopes).chunk(2)
        p = t_test(mine, theirs if settings.against == "random" else 0.5)
        accuracy = torch.tensor([one.accuracy for one in found[: len(randoms)]], dtype=torch.float64)
        each = tcav_score(slopes[:, : len(randoms)].T)  # (n,)
        tests.append(LayerTest(layer, mine, theirs, p, accuracy, each))
    return tuple(tests)


def activations(model: nn.Module, x: Tensor, *, layer: str) -> Tensor:
    """What a layer gives for x (n, *shape), flattened: (n, d)."""
    head, _ = split(model, layer)
    with torch.no_grad():
        return over(lambda part: head(part).flatten(1), x, size=rows_at_once(x, model))


def concept_vector(
    concept: Tensor, other: Tensor, *, generator: torch.Generator, settings: Settings = CLOSED_FORM
) -> ConceptVector:
    """The direction in which examples of a concept, activations (k, d), lie from the others (m, d).

    nan where the two cannot be told apart at all, such as activations that are all the same.
    """
    for name, side in (("concept", concept), ("other", other)):
        if side.ndim != 2 or len(side) - _held(len(side), settings) < 1 or side.shape[1] != concept.shape[1]:
            came = f"{tuple(concept.shape)} and {tuple(other.shape)}"
            raise UsageError(f"`{name}` must be (examples, d) with the same d and some not held out, got {came}")
    sides = [side[torch.randperm(len(side), generator=generator).to(side.device)] for side in (concept, other)]
    parts = [side.tensor_split([_held(len(side), settings)]) for side in sides]
    x, y = _labelled(parts[0][1], parts[1][1])
    if settings.rule == "ridge":
        weight, shift = ridge(x, y, strength=settings.strength)
    else:
        weight, shift = _sgd(x, y, strength=settings.strength, generator=generator)
    held, truth = _labelled(parts[0][0], parts[1][0])
    right = (held.to(weight) @ weight + shift > 0) == (truth > 0)
    length = weight.norm()
    direction = weight / length.masked_fill(length == 0, torch.nan)
    return ConceptVector(direction.to(concept), right.double().mean().item() if len(right) else math.nan)


def _held(count: int, settings: Settings) -> int:
    """How many of so many examples are held out."""
    return round(settings.held_out * count)


def _labelled(concept: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Both sides in one (k + m, d), and their labels (k + m,): 1 for the concept, -1 for the others."""
    y = torch.ones(len(concept) + len(other), dtype=torch.float64, device=concept.device)
    y[len(concept) :] = -1
    return torch.cat([concept, other]), y


def ridge(x: Tensor, y: Tensor, *, strength: float) -> tuple[Tensor, Tensor]:
    """The weight (d,) and shift () that minimise Σ (x·w + b - y)² + λ ‖w‖², λ = strength · mean ‖x - x̄‖².

    x  (n, d), y (n,)

    Solved among the n examples, since a layer has far more units than there are examples.
    """
    mean = x.mean(0)
    centred = (x - mean).to(torch.float64)
    gram = centred @ centred.T  # (n, n)
    penalty = strength * gram.diagonal().mean()
    if penalty == 0:
        return torch.zeros_like(centred[0]), y.mean()
    share = torch.linalg.solve(gram + penalty * torch.eye(len(gram)).to(gram), y - y.mean())
    weight = centred.T @ share
    return weight, y.mean() - mean.to(weight) @ weight


def _sgd(x: Tensor, y: Tensor, *, strength: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Weight (d,) and shift () of scikit-learn's linear classifier by stochastic gradient descent."""
    from sklearn.linear_model import SGDClassifier  # takes most of a second, and the closed form does without

    seed = int(torch.randint(2**31, (), generator=generator))
    fitted = SGDClassifier(alpha=strength, max_iter=1000, tol=1e-3, random_state=seed)
    fitted.fit(x.double().cpu().numpy(), y.cpu().numpy())
    return torch.from_numpy(fitted.coef_[0]).to(x.device), torch.tensor(fitted.intercept_[0]).to(x.device)


@torch.inference_mode(False)  # gradients are needed, also where the caller wants none
def sensitivity(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    *,
    layer: str,
    vectors: Tensor,
    of: Literal["logit", "log_probability"] = "logit",
) -> Tensor:
    """S: how fast the target's output grows when the layer's activations move along each vector.

    x        (n, *shape)
    target   (n,) int64
    vectors  (k, d), with d the units of the layer
    returns  (n, k)

    [kim2018interpretability], equation 1.
    """
    if target.shape != x.shape[:1]:
        raise UsageError(f"`target` must have shape {tuple(x.shape[:1])}, got {tuple(target.shape)}")
    head, tail = split(model, layer)
    classes = classes_for(target)

    def part(x: Tensor, target: Tensor) -> Tensor:
        with torch.no_grad():
            h = head(x)
        h.requires_grad_()  # the same tensor, which a network that cannot be cut must see again
        with torch.enable_grad():
            outputs = class_outputs(tail, h, classes)
            outputs = outputs if of == "logit" else outputs.log_softmax(1)
            (gradient,) = torch.autograd.grad(outputs.gather(1, target[:, None]).sum(), h)
        if gradient[0].numel() != vectors.shape[1]:
            wanted = f"the {gradient[0].numel()} units of the layer {layer!r}"
            raise UsageError(f"`vectors` must have {wanted}, got {vectors.shape[1]}")
        return gradient.flatten(1) @ vectors.T.to(gradient)

    x, target = x.detach().clone(), target.clone()  # a clone of an inference tensor is an ordinary one
    return over(part, x, target, size=max(8, rows_at_once(x, model) // 4))


def tcav_score(sensitivities: Tensor) -> Tensor:
    """(k,) float64: the share of the inputs of sensitivities (n, k) that are positive; nan where one is undefined."""
    share = (sensitivities > 0).double().mean(0)
    return share.masked_fill(sensitivities.isnan().any(0), torch.nan)


def t_test(scores: Tensor, other: Tensor | float) -> float:
    """p of the two-sided t-test: of scores (m,) against other (k,) with one variance, or against a number.

    nan with too few scores. Scores that do not vary give 0 where the means differ, else 1.
    """
    mean, squares = _moments(scores)
    if isinstance(other, Tensor):
        theirs, more = _moments(other)
        freedom, each = len(scores) + len(other) - 2, 1 / len(scores) + 1 / len(other)
        gap, squares = mean - theirs, squares + more
    else:
        freedom, each, gap = len(scores) - 1, 1 / len(scores), mean - other
    if freedom < 1 or math.isnan(gap):
        return math.nan
    if squares == 0:
        return float(gap == 0)
    return float(2 * stdtr(freedom, -abs(gap) / math.sqrt(squares / freedom * each)))


def _moments(scores: Tensor) -> tuple[float, float]:
    """Mean and sum of squares around it; exact for scores that are all the same, where rounding would leave a rest."""
    scores = scores.double()
    mean = scores.mean() if (scores != scores[0]).any() else scores[0]
    return mean.item(), (scores - mean).square().sum().item()


def averaged(tests: Sequence[LayerTest], *, level: float = LEVEL) -> float:
    """The mean score of the layers whose p is at most `level`; nan where none passes."""
    passed = [test.scores.mean().item() for test in tests if test.p <= level]
    return sum(passed) / len(passed) if passed else math.nan


def parted(tests: Sequence[LayerTest], *, level: float = LEVEL) -> tuple[Tensor, Tensor]:
    """What `averaged` is the mean of: shares by input (n,), and by random set (sets,); both empty where none passes."""
    passed = [test for test in tests if test.p <= level]
    if not passed:
        return torch.empty(0), torch.empty(0)
    inputs, scores = (torch.stack([getattr(test, name) for test in passed]) for name in ("inputs", "scores"))
    return inputs.mean(0), scores.mean(0)
