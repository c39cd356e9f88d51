"""How much a concept, given by examples, matters to a class: TCAV [kim2018interpretability].

A concept has no map: the answer is one share for a class and a layer, so there are no Method records here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from forsooth.attributions.linear import accuracy, labelled, ridge, sgd
from forsooth.attributions.student import t_test
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
        examples = [activations(model, one, layer=layer) for one in (concept, *randoms)]
        vectors = concept_vectors(examples, generator=generator, settings=settings)
        directions = torch.stack([vector.direction for vector in vectors])
        slopes = sensitivity(model, *inputs, layer=layer, vectors=directions, of=settings.of)  # (n, 2 sets)
        held_out = [vector.accuracy for vector in vectors[: len(randoms)]]
        tests.append(layer_test(layer, slopes, held_out, settings))
    return tuple(tests)


def concept_vectors(
    examples: Sequence[Tensor], *, generator: torch.Generator, settings: Settings
) -> list[ConceptVector]:
    """The vectors of a concept against each random set, then of each random set against the next.

    examples  activations (k, d) of the concept, and of each random set
    """
    own, *others = examples
    pairs = [(own, other) for other in others]
    pairs += zip(others, [*others[1:], others[0]], strict=True)
    return [concept_vector(one, two, generator=generator, settings=settings) for one, two in pairs]


def layer_test(layer: str, slopes: Tensor, held_out: Sequence[float], settings: Settings) -> LayerTest:
    """The test at one layer.

    slopes    (n, 2 sets) sensitivities along the vectors of the concept, then along those of the random sets
    held_out  (sets,) accuracy of the concept's vectors
    """
    mine, theirs = tcav_score(slopes).chunk(2)
    other: Tensor | float = theirs
    if settings.against == "half":
        other = 0.5
    inputs = tcav_score(slopes[:, : len(mine)].T)  # (n,)
    accuracies = torch.tensor(held_out, dtype=torch.float64)
    return LayerTest(layer, mine, theirs, t_test(mine, other), accuracies, inputs)


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
    _check(concept, other, settings)
    parts = [_divided(side, generator, settings) for side in (concept, other)]
    tests, trains = zip(*parts, strict=True)
    weight, shift = _fitted(*labelled(*trains), settings, generator)
    length = weight.norm()
    direction = weight / length.masked_fill(length == 0, torch.nan)
    return ConceptVector(direction.to(concept), accuracy(*labelled(*tests), weight, shift))


def _fitted(x: Tensor, y: Tensor, settings: Settings, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Weight (d,) and shift () that tell the labels y (n,) of x (n, d)."""
    if settings.rule == "ridge":
        return ridge(x, y, strength=settings.strength)
    return sgd(x, y, strength=settings.strength, generator=generator)


def _check(concept: Tensor, other: Tensor, settings: Settings) -> None:
    """UsageError unless both sides are (examples, d), and some are left when others are held out."""
    for name, side in (("concept", concept), ("other", other)):
        if side.ndim != 2 or len(side) - _held(len(side), settings) < 1 or side.shape[1] != concept.shape[1]:
            came = f"{tuple(concept.shape)} and {tuple(other.shape)}"
            raise UsageError(f"`{name}` must be (examples, d) with the same d and some not held out, got {came}")


def _divided(side: Tensor, generator: torch.Generator, settings: Settings) -> tuple[Tensor, ...]:
    """Examples (k, d) in a random order, cut into those that are held out and the others."""
    order = torch.randperm(len(side), generator=generator).to(side.device)
    return side[order].tensor_split([_held(len(side), settings)])


def _held(count: int, settings: Settings) -> int:
    """How many of so many examples are held out."""
    return round(settings.held_out * count)


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

    def outputs_at(h: Tensor) -> Tensor:
        outputs = class_outputs(tail, h, classes)
        if of == "logit":
            return outputs
        return outputs.log_softmax(1)

    def part(x: Tensor, target: Tensor) -> Tensor:
        with torch.no_grad():
            h = head(x)
        h.requires_grad_()  # the same tensor, which a network that cannot be cut must see again
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(outputs_at(h).gather(1, target[:, None]).sum(), h)
        return _along(gradient.flatten(1), vectors, layer)

    x = x.detach().clone()  # a clone of an inference tensor is an ordinary one
    return over(part, x, target.clone(), size=max(8, rows_at_once(x, model) // 4))


def _along(gradient: Tensor, vectors: Tensor, layer: str) -> Tensor:
    """The slopes (n, k) of gradients (n, d) along vectors (k, d), or an error."""
    if gradient.shape[1] != vectors.shape[1]:
        wanted = f"the {gradient.shape[1]} units of the layer {layer!r}"
        raise UsageError(f"`vectors` must have {wanted}, got {vectors.shape[1]}")
    return gradient @ vectors.T.to(gradient)


def tcav_score(sensitivities: Tensor) -> Tensor:
    """(k,) float64: the share of the inputs of sensitivities (n, k) that are positive; nan where one is undefined."""
    share = (sensitivities > 0).double().mean(0)
    return share.masked_fill(sensitivities.isnan().any(0), torch.nan)


def averaged(tests: Sequence[LayerTest], *, level: float = LEVEL) -> float:
    """The mean score of the layers whose p is at most `level`; nan where none passes."""
    passed = [test.scores.mean().item() for test in tests if test.p <= level]
    if not passed:
        return math.nan
    return sum(passed) / len(passed)


def parted(tests: Sequence[LayerTest], *, level: float = LEVEL) -> tuple[Tensor, Tensor]:
    """What `averaged` is the mean of: shares by input (n,), and by random set (sets,); both empty where none passes."""
    passed = [test for test in tests if test.p <= level]
    if not passed:
        return torch.empty(0), torch.empty(0)
    inputs, scores = (torch.stack([getattr(test, name) for test in passed]) for name in ("inputs", "scores"))
    return inputs.mean(0), scores.mean(0)
