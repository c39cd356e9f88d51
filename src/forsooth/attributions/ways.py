"""Gradients along other ways than the straight one: where gradients are small first, from blur, from many starts."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from forsooth.attributions.gradients import gradient, gradients_at, points_at_once
from forsooth.attributions.permutation import check_background
from forsooth.games.draws import each
from forsooth.games.values import Model, absent
from forsooth.records import Method, UsageError


@dataclass(frozen=True)
class Way:
    """A way from starts to ends (n, features), of which a step may use the part from `low` to `high`."""

    start: Tensor
    end: Tensor
    low: Tensor
    high: Tensor
    left: Tensor  # (n, 1), the L1 distance to the end that is left after the step


def guided_ig(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    steps: int = 100,
    fraction: float = 0.25,
    distance: float = 0.02,
    baseline: Tensor | None = None,
) -> Tensor:
    """Integrated gradients along a way that moves the features of least gradient first.

    x         (n, *shape)
    target    (n,) int64, the explained class
    steps     gradients; each covers the same L1 distance
    fraction  of the features that move at a time
    distance  how far a feature may be ahead of the straight way or behind it, as a share of it
    baseline  (*shape) or (n, *shape); None: zeros
    returns   (n, *shape); in smooth networks it sums to f(x) - f(baseline) up to the error of the steps

    [kapishnikov2021guided]. No promise: a way of small gradients runs along the kinks of a ReLU network, and there the
    sum stays off by some per cent however many steps it has. All inputs walk at once, each its own way. Departure: a
    step counts the mean of the gradients at its two ends, since at kinks that of one end misses several times as much.
    """
    if steps < 1 or not 0 < fraction <= 1 or not 0 <= distance <= 1:
        came = f"{steps}, {fraction} and {distance}"
        raise UsageError(f"`steps` must be at least 1, `fraction` in (0, 1], `distance` in [0, 1], got {came}")
    end = x.flatten(1)
    start = absent(x, baseline).expand_as(x).flatten(1)
    point = start.clone()
    total = torch.zeros_like(end)
    slope = gradient(model, point.view_as(x), target).flatten(1)
    for step in range(1, steps + 1):
        reached = moved(point, slope.abs(), stretch(start, end, step / steps, distance), fraction)
        ahead = gradient(model, reached.view_as(x), target).flatten(1)
        total += (slope + ahead) / 2 * (reached - point)
        point = reached
        slope = ahead
    return total.view_as(x)


def stretch(start: Tensor, end: Tensor, place: float, distance: float) -> Way:
    """The part of the way around `place` in [0, 1] that the next step may use; see `Way`."""
    low = start + (end - start) * max(0.0, place - distance)
    high = start + (end - start) * min(1.0, place + distance)
    left = (end - start).abs().sum(1, keepdim=True) * (1 - place)
    return Way(start, end, low, high, left)


def moved(point: Tensor, steepness: Tensor, way: Way, fraction: float) -> Tensor:
    """The next point (n, features): the flattest features go to their `high` until the distance left is reached."""
    behind = (point - way.start).abs() < (way.low - way.start).abs()
    point = torch.where(behind, way.low, point)
    while True:  # each round uses up at least one feature, or ends the step
        gone = (way.end - point).abs().sum(1, keepdim=True) - way.left  # still to go in this step
        room = (way.high - point).abs()
        chosen = flattest(steepness.masked_fill(room == 0, torch.inf), fraction)
        fits = (room * chosen).sum(1, keepdim=True)
        share = torch.where(fits > 0, gone / torch.where(fits > 0, fits, 1.0), 0.0).clamp(0, 1)
        point = torch.where(chosen, point + (way.high - point) * share, point)
        point = torch.where(chosen & (share == 1), way.high, point)  # exactly, so that nothing is left of it
        if bool((share < 1).all()):
            return point


def flattest(steepness: Tensor, fraction: float) -> Tensor:
    """Which features (n, features) are among the given fraction of least steepness of those that can move."""
    free = steepness.isfinite()
    rank = steepness.argsort(dim=1, stable=True).argsort(dim=1)
    count = (free.sum(1, keepdim=True) * fraction).ceil()
    return free & (rank < count)


def blur_ig(model: Model, x: Tensor, target: Tensor, *, steps: int = 50, widest: float | None = None) -> Tensor:
    """Gradients along the way from the blurred image to the image, as the blur is taken away.

    x        (n, channels, h, w)
    target   (n,) int64, the explained class
    steps    parts of the way, equal in the width of the blur
    widest   standard deviation of the first blur, in pixels; None: half the longer side
    returns  (n, channels, h, w), summing to f(x) - f(x at its most blurred) up to the error of the steps

    [xu2020attribution]; there 50 pixels of 224. Departures: the gradient is taken in the middle of each part, and the
    blur at the border is that of the pixels that are there.
    """
    if x.ndim != 4:
        raise UsageError(f"`x` must be images (n, channels, h, w), got {tuple(x.shape)}")
    if steps < 1 or (widest is not None and widest <= 0):
        raise UsageError(f"`steps` must be at least 1 and `widest` above 0, got {steps} and {widest}")
    if widest is None:
        widest = max(x.shape[2:]) / 2
    step = widest / steps
    total = torch.zeros_like(x)
    for part in range(steps):
        way = blurred(x, part * step) - blurred(x, (part + 1) * step)
        total += gradient(model, blurred(x, (part + 0.5) * step), target) * way
    return total


def blurred(x: Tensor, width: float) -> Tensor:
    """Images x (n, channels, h, w) under a Gaussian blur of that standard deviation, in pixels."""
    rows = blur_matrix(x.shape[2], width).to(x)
    columns = blur_matrix(x.shape[3], width).to(x)
    return rows @ x @ columns.T


def blur_matrix(side: int, width: float) -> Tensor:
    """What each pixel of an axis takes from each, (side, side) float64, rows summing to 1."""
    place = torch.arange(side, dtype=torch.float64)
    if width == 0:
        return torch.eye(side, dtype=torch.float64)
    return (-((place[:, None] - place) ** 2) / (2 * width**2)).softmax(dim=1)


def expected_gradients(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generators: Sequence[torch.Generator],
    background: Tensor,
    samples: int = 200,
) -> Tensor:
    """The mean of integrated gradients over all starts in the background, from one random point for each.

    x           (n, *shape)
    target      (n,) int64, the explained class
    generators  one for each input, for its starts and points
    background  (k, *shape)
    returns     (n, *shape), summing to f(x) less the mean of f over the background up to the error of the draws

    [erion2021improving]. Departure: starts take turns, and points lie one in each of `samples` equal parts of the way
    in random order, so that with the same number of gradients the error is less than in `gradient_shap`.
    """
    if samples < 1:
        raise UsageError(f"`samples` must be at least 1, got {samples}")
    check_background(background, x)
    starts = background.to(x)
    drawn = each(lambda own: turns(samples, len(starts), own), generators, x).to(x.device)  # (n, 2, samples)
    rows = drawn[:, 0].long().T  # (samples, n)
    places = drawn[:, 1].T.to(x).view(*rows.shape, *[1] * (x.ndim - 1))
    total = torch.zeros_like(x)
    size = points_at_once(x)
    for row, place in zip(rows.split(size), places.split(size), strict=True):
        way = x - starts[row]
        total += (gradients_at(model, starts[row] + way * place, target) * way).sum(dim=0)
    return total / samples


def turns(samples: int, count: int, generator: torch.Generator) -> Tensor:
    """Which of `count` starts, and how far from it: (2, samples) float64."""
    order = torch.randperm(count, generator=generator).repeat(-(-samples // count))[:samples]
    parts = torch.randperm(samples, generator=generator)
    places = (parts + torch.rand(samples, generator=generator, dtype=torch.float64)) / samples
    return torch.stack([order.double(), places])


GUIDED_IG = Method(
    name="guided_ig",
    function=guided_ig,
    needs=("gradient",),
    random=False,
    signed=True,
    cite="kapishnikov2021guided",
    version=1,
    settings={"steps": 100},
)
BLUR_IG = Method(
    name="blur_ig",
    function=blur_ig,
    needs=("gradient",),
    random=False,
    signed=True,
    cite="xu2020attribution",
    version=1,
    settings={"steps": 50},
    inputs=("image",),
)
EXPECTED_GRADIENTS = Method(
    name="expected_gradients",
    function=expected_gradients,
    needs=("gradient", "background", "generators"),
    random=True,
    signed=True,
    cite="erion2021improving",
    version=1,
    settings={"samples": 200},
)
WAYS = (GUIDED_IG, BLUR_IG, EXPECTED_GRADIENTS)
