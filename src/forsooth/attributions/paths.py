"""Gradients along paths from a baseline to the input."""

from collections.abc import Sequence
from dataclasses import replace

import numpy
import torch
from torch import Tensor

from forsooth.attributions.gradients import Magnitude, gradients_at, points_at_once, smoothed
from forsooth.attributions.permutation import check_background
from forsooth.games.draws import each
from forsooth.games.values import Model, absent
from forsooth.records import Method, UsageError


def integrated_gradients(
    model: Model, x: Tensor, target: Tensor, *, steps: int = 50, baseline: Tensor | None = None
) -> Tensor:
    """The gradient along the straight way from the baseline to the input, integrated, times their difference.

    x         (n, *shape)
    target    (n,) int64, the explained class
    steps     nodes of the Gauss-Legendre rule
    baseline  (*shape); None: zeros
    returns   (n, *shape), summing to f(x) - f(baseline) up to the error of the rule

    [sundararajan2017axiomatic]. Across kinks of ReLUs that error falls as 1 / steps: of 50 it may be 0.002.
    """
    places, shares = (quadrature.to(x) for quadrature in gauss_legendre(steps))
    start = absent(x, baseline)
    total = torch.zeros_like(x)
    size = points_at_once(x)
    for place, share in zip(places.split(size), shares.split(size), strict=True):
        points = start + (x - start) * place.view(-1, *[1] * x.ndim)  # (places, n, *shape)
        total += torch.tensordot(share, gradients_at(model, points, target), dims=1)
    return total * (x - start)


def gauss_legendre(steps: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights of the rule on [0, 1], (steps,) float64 each."""
    if steps < 1:
        raise UsageError(f"`steps` must be at least 1, got {steps}")
    nodes, weights = numpy.polynomial.legendre.leggauss(steps)  # on [-1, 1]
    return torch.from_numpy(1 + nodes) / 2, torch.from_numpy(weights) / 2


def integrated_gradients_smooth(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generators: Sequence[torch.Generator],
    samples: int = 25,
    steps: int = 25,
    magnitude: Magnitude = "signed",
) -> Tensor:
    """The mean of the integrated gradients of noisy copies of the input, each from zeros to the copy.

    x          (n, *shape)
    target     (n,) int64, the explained class
    generators one for each input, for its noise
    samples    noisy copies; the noise is 15 % of max - min of the sample, as in `smooth_grad`
    steps      nodes for each copy
    magnitude  what is averaged: the "signed" maps, their "absolute" values or their squares ("squared")
    returns    (n, *shape); the signed maps sum to the mean output of the copies - f(0)

    [smilkov2017smoothgrad], [sundararajan2017axiomatic]; called IG-SmoothGrad by [yang2019benchmarking].
    """

    def explain(points: Tensor, target: Tensor) -> Tensor:
        return integrated_gradients(model, points, target, steps=steps)

    return smoothed(explain, x, target, generators=generators, samples=samples, noise=0.15, magnitude=magnitude)


def gradient_shap(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generators: Sequence[torch.Generator],
    background: Tensor | None = None,
    samples: int = 50,
) -> Tensor:
    """The mean of gradient times difference at random points between random baselines and the input.

    x           (n, *shape)
    target      (n,) int64, the explained class
    generators  one for each input, for its baselines and points
    background  (k, *shape), the baselines to draw from; None: zeros
    returns     (n, *shape)

    [lundberg2017unified], and as expected gradients [erion2021improving]. Departure: no noise on the input.
    """
    if samples < 1:
        raise UsageError(f"`samples` must be at least 1, got {samples}")
    if background is None:
        background = torch.zeros_like(x[:1])
    check_background(background, x)
    baselines = background.to(x)
    rows, places = random_starts(x, len(baselines), samples, generators)
    total = torch.zeros_like(x)
    size = points_at_once(x)
    for row, place in zip(rows.split(size), places.split(size), strict=True):
        start = baselines[row]  # (rows, n, *shape)
        way = x - start
        total += (gradients_at(model, start + way * place, target) * way).sum(dim=0)
    return total / samples


def random_starts(
    x: Tensor, baselines: int, samples: int, generators: Sequence[torch.Generator]
) -> tuple[Tensor, Tensor]:
    """For each input of x (n, *shape), which baselines to start from and how far to go.

    returns  (samples, n) int64 below `baselines`; (samples, n, 1, …) in [0, 1), ready to broadcast
    """
    drawn = each(lambda own: torch.rand(2, samples, generator=own, dtype=torch.float64), generators, x)
    rows, places = drawn.to(x.device).permute(1, 2, 0)  # (samples, n) each
    rows = (rows * baselines).long()  # a uniform number below 1 gives every baseline its even share
    return rows, places.to(x).view(*rows.shape, *[1] * (x.ndim - 1))


INTEGRATED_GRADIENTS = Method(
    name="integrated_gradients",
    function=integrated_gradients,
    needs=("gradient",),
    random=False,
    signed=True,
    cite="sundararajan2017axiomatic",
    version=1,
    settings={"steps": 50},
    promise="complete",
)
GRADIENT_SHAP = Method(
    name="gradient_shap",
    function=gradient_shap,
    needs=("gradient", "background", "generators"),
    random=True,
    signed=True,
    cite="lundberg2017unified",
    version=2,
    settings={"samples": 50},
)
GRADIENT_SHAP_5 = replace(
    GRADIENT_SHAP,
    name="gradient_shap_5",
    needs=("gradient", "generators"),
    cite="kokhlikyan2020captum",
    settings={"samples": 5},
    variant_of=GRADIENT_SHAP.name,
)
GRADIENT_SHAP_200 = replace(
    GRADIENT_SHAP,
    name="gradient_shap_200",
    cite="zhou2022feature",
    settings={"samples": 200},
    variant_of=GRADIENT_SHAP.name,
)
INTEGRATED_GRADIENTS_SMOOTH = Method(
    name="integrated_gradients_smooth",
    function=integrated_gradients_smooth,
    needs=("gradient", "generators"),
    random=True,
    signed=True,
    cite="smilkov2017smoothgrad",
    version=2,
    settings={"samples": 25, "steps": 25},
    cost="expensive",
)
INTEGRATED_GRADIENTS_SMOOTH_SQUARED = replace(  # what the released code of [yang2019benchmarking] runs
    INTEGRATED_GRADIENTS_SMOOTH,
    name="integrated_gradients_smooth_squared",
    signed=False,
    settings={"samples": 25, "steps": 25, "magnitude": "squared"},
    variant_of=INTEGRATED_GRADIENTS_SMOOTH.name,
)
PATHS = (
    INTEGRATED_GRADIENTS,
    INTEGRATED_GRADIENTS_SMOOTH,
    INTEGRATED_GRADIENTS_SMOOTH_SQUARED,
    GRADIENT_SHAP,
    GRADIENT_SHAP_5,
    GRADIENT_SHAP_200,
)
