"""The gradient of the target's output with respect to the input, and what is made of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from forsooth.chunks import over
from forsooth.games.draws import each
from forsooth.games.values import Model, rows_at_once
from forsooth.records import Method, UsageError

Magnitude = Literal["signed", "absolute", "squared"]
MAGNITUDES: dict[Magnitude, Callable[[Tensor], Tensor]] = {
    "signed": lambda maps: maps,
    "absolute": torch.abs,
    "squared": torch.square,
}


def gradient(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """The signed gradient of the target's output.

    x        (n, *shape)
    target   (n,) int64, the explained class
    returns  (n, *shape)

    [simonyan2014deep], without the absolute value.
    """
    return over(lambda part, wanted: gradient_of_sum(model, part, wanted), x, target, size=gradients_at_once(x))


def gradient_of_sum(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """The gradient in one pass: the samples of a batch do not meet, so that of the sum holds that of each.

    Works inside `no_grad` and `inference_mode`, leaves x as it is and parameters without gradients.
    """
    with torch.inference_mode(False), torch.enable_grad():
        leaf = x.detach().clone().requires_grad_()
        output = model(leaf).gather(1, target.clone()[:, None]).sum()
        return torch.autograd.grad(output, leaf)[0]


def gradients_at(model: Model, points: Tensor, target: Tensor) -> Tensor:
    """The gradient at several points for each sample. points (k, n, *shape), target (n,); returns like points."""
    return gradient(model, points.flatten(0, 1), target.repeat(len(points))).view_as(points)


def points_at_once(x: Tensor) -> int:
    """How many points for each sample of x (n, *shape) fill a forward."""
    return max(1, gradients_at_once(x) // max(1, len(x)))


def gradients_at_once(x: Tensor) -> int:
    """How many inputs like those of x (n, *shape) go into one pass: fewer than forward, since activations stay."""
    return max(8, rows_at_once(x) // 4)


def saliency(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """The absolute gradient of the target's output, [simonyan2014deep]. Shapes as in `gradient`."""
    return gradient(model, x, target).abs()


def gradient_x_input(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """The gradient times the input, [shrikumar2016not]. Shapes as in `gradient`."""
    return gradient(model, x, target) * x


def smooth_grad(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generators: Sequence[torch.Generator],
    samples: int = 50,
    noise: float = 0.15,
    magnitude: Magnitude = "signed",
) -> Tensor:
    """The mean gradient around the input, under Gaussian noise.

    x          (n, *shape)
    target     (n,) int64, the explained class
    noise      standard deviation as a share of max - min of the sample
    magnitude  what is averaged: the "signed" gradients, their "absolute" values or their squares ("squared")
    returns    (n, *shape)

    [smilkov2017smoothgrad].
    """

    def explain(points: Tensor, target: Tensor) -> Tensor:
        return gradient(model, points, target)

    return smoothed(explain, x, target, generators=generators, samples=samples, noise=noise, magnitude=magnitude)


def smoothed(
    explain: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    target: Tensor,
    *,
    generators: Sequence[torch.Generator],
    samples: int,
    noise: float,
    magnitude: Magnitude,
) -> Tensor:
    """The mean of the maps of noisy copies of x (n, *shape).

    explain  (points (k, *shape), target (k,)) -> maps like points
    """
    check_noise(samples, noise, magnitude)

    def mean(places: Tensor, x: Tensor, target: Tensor) -> Tensor:
        own = [generators[place] for place in places.tolist()]
        points = noisy(x, own, samples=samples, noise=noise)
        maps = explain(points.flatten(0, 1), target.repeat_interleave(samples))
        return MAGNITUDES[magnitude](maps).view_as(points).mean(dim=1)

    size = max(1, gradients_at_once(x) // samples)  # inputs, since the draws of an input are made at once
    return over(mean, torch.arange(len(x)), x, target, size=size)


def var_grad(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generators: Sequence[torch.Generator],
    samples: int = 50,
    noise: float = 0.15,
) -> Tensor:
    """The variance of the gradient around the input, under Gaussian noise.

    x        (n, *shape)
    target   (n,) int64, the explained class
    samples  noisy copies, at least 2
    noise    standard deviation as a share of max - min of the sample
    returns  (n, *shape), never negative

    [adebayo2018local]
    """
    check_noise(samples - 1, noise, "signed")  # a variance needs two

    def spread(places: Tensor, x: Tensor, target: Tensor) -> Tensor:
        own = [generators[place] for place in places.tolist()]
        points = noisy(x, own, samples=samples, noise=noise)
        maps = gradient(model, points.flatten(0, 1), target.repeat_interleave(samples))
        return maps.view_as(points).var(dim=1)

    size = max(1, gradients_at_once(x) // samples)
    return over(spread, torch.arange(len(x)), x, target, size=size)


def check_noise(samples: int, noise: float, magnitude: str) -> None:
    """UsageError where an argument of `smooth_grad` cannot be."""
    if samples < 1 or noise < 0:
        raise UsageError(f"`samples` must be at least 1 and `noise` at least 0, got {samples} and {noise}")
    if magnitude not in MAGNITUDES:
        raise UsageError(f"`magnitude` must be one of {', '.join(MAGNITUDES)}, got {magnitude!r}")


def noisy(x: Tensor, generators: Sequence[torch.Generator], *, samples: int, noise: float) -> Tensor:
    """Copies (n, samples, *shape) of x (n, *shape) under Gaussian noise; arguments as in `smooth_grad`."""
    flat = x.flatten(1)
    scale = noise * (flat.amax(dim=1) - flat.amin(dim=1))  # (n,)
    draws = each(lambda drawn: standard_normal(samples, x, drawn), generators, x)
    return draws.to(x).mul_(scale.view(-1, *[1] * x.ndim)).add_(x[:, None])


def standard_normal(samples: int, x: Tensor, generator: torch.Generator) -> Tensor:
    """Draws (samples, *shape) for one input of x (n, *shape).

    In single precision, which is enough for noise and five times as fast: in double it costs as much as the gradients
    of a small network.
    """
    return torch.randn(samples, *x.shape[1:], generator=generator)


SALIENCY = Method(
    name="saliency",
    function=saliency,
    needs=("gradient",),
    random=False,
    signed=False,
    cite="simonyan2014deep",
    version=1,
    values="derivative",
)
GRADIENT = Method(
    name="gradient",
    function=gradient,
    needs=("gradient",),
    random=False,
    signed=True,
    cite="simonyan2014deep",
    version=1,
    values="derivative",
)
GRADIENT_X_INPUT = Method(
    name="gradient_x_input",
    function=gradient_x_input,
    needs=("gradient",),
    random=False,
    signed=True,
    cite="shrikumar2016not",
    version=1,
)
SMOOTH_GRAD = Method(
    name="smooth_grad",
    function=smooth_grad,
    needs=("gradient", "generators"),
    random=True,
    signed=True,
    cite="smilkov2017smoothgrad",
    version=2,
    settings={"samples": 50, "noise": 0.15},
    values="derivative",
)
SMOOTH_GRAD_50 = replace(
    SMOOTH_GRAD,
    name="smooth_grad_50",
    signed=False,
    cite="zhou2022feature",
    settings={"samples": 50, "noise": 0.15, "magnitude": "absolute"},
    variant_of=SMOOTH_GRAD.name,
)
SMOOTH_GRAD_ABSOLUTE = replace(
    SMOOTH_GRAD,
    name="smooth_grad_absolute",
    signed=False,
    settings={"samples": 25, "noise": 0.15, "magnitude": "absolute"},
    variant_of=SMOOTH_GRAD.name,
)
SMOOTH_GRAD_SQUARED = replace(  # what the released code of [yang2019benchmarking] calls SmoothGrad
    SMOOTH_GRAD_ABSOLUTE,
    name="smooth_grad_squared",
    settings={"samples": 25, "noise": 0.15, "magnitude": "squared"},
)
VAR_GRAD = Method(
    name="var_grad",
    function=var_grad,
    needs=("gradient", "generators"),
    random=True,
    signed=False,
    cite="adebayo2018local",
    version=1,
    settings={"samples": 50, "noise": 0.15},
    values="derivative",
)
GRADIENTS = (
    SALIENCY,
    GRADIENT,
    GRADIENT_X_INPUT,
    SMOOTH_GRAD,
    SMOOTH_GRAD_50,
    SMOOTH_GRAD_ABSOLUTE,
    SMOOTH_GRAD_SQUARED,
    VAR_GRAD,
)
