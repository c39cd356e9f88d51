"""Maps that never ask the model: the ends of every scale. A method that does not beat them has found nothing."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from forsooth.games.draws import each
from forsooth.games.values import Model
from forsooth.records import Method, UsageError


def random(model: Model, x: Tensor, target: Tensor, *, generators: Sequence[torch.Generator]) -> Tensor:
    """Uniform noise on [-1, 1) for every entry of x (n, *shape), from the generator of each. Returns (n, *shape)."""
    noise = each(lambda drawn: torch.rand(x.shape[1:], generator=drawn, dtype=torch.float64), generators, x)
    return noise.mul_(2).sub_(1).to(x)


def constant(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """Ones, shaped like x (n, *shape)."""
    return torch.ones_like(x)


def sobel(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """The magnitude of the Sobel gradient over the last two axes of x (n, *channels, h, w). Returns like x.

    [clark2024xaitris]. Edges are continued by reflection, as in scipy.
    """
    return torch.hypot(sobel_along(x, -1), sobel_along(x, -2))


def sobel_last_axis(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """The signed Sobel derivative along the last axis alone, x (n, *channels, h, w). Returns like x.

    What the released code of [clark2024xaitris] computes: scipy's default. The paper speaks of both directions.
    """
    return sobel_along(x, -1)


def laplace(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """The Laplace filter over the last two axes of x (n, *channels, h, w), kernel (1, -2, 1). Returns like x.

    [clark2024xaitris]. Edges are continued by reflection, as in scipy.
    """
    return sum((three_taps(x, (1.0, -2.0, 1.0), axis) for axis in (-1, -2)), start=torch.zeros_like(x))


def sobel_along(x: Tensor, axis: int) -> Tensor:
    """Sobel derivative of x (n, *channels, h, w) along one of the last two axes, smoothed along the other."""
    return three_taps(three_taps(x, (-1.0, 0.0, 1.0), axis), (1.0, 2.0, 1.0), -3 - axis)


def three_taps(x: Tensor, taps: tuple[float, float, float], axis: int) -> Tensor:
    """Correlation with three weights along axis -1 or -2; one reflected entry stands beyond each edge."""
    if x.ndim < 3:
        raise UsageError(f"`x` must be images with two spatial axes, (n, …, h, w), got shape {tuple(x.shape)}")
    size = x.shape[axis]
    planes = x.reshape(-1, 1, *x.shape[-2:])
    beyond = {-1: (1, 1, 0, 0), -2: (0, 0, 1, 1)}[axis]
    # half-sample reflection repeats the edge itself, and with one entry that is replication
    planes = pad(planes, beyond, mode="replicate")
    parts = (planes.narrow(axis, i, size) * tap for i, tap in enumerate(taps) if tap)
    return torch.stack(list(parts)).sum(dim=0).reshape(x.shape)


def rectified_input(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """max(x, 0), shaped like x (n, *shape), [clark2024xaitris]."""
    return x.clamp(min=0)


def absolute_input(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """|x|, shaped like x (n, *shape): what the released code of [clark2024xaitris] amounts to."""
    return x.abs()


def oracle(model: Model, x: Tensor, target: Tensor, *, truth: Tensor) -> Tensor:
    """The truth itself as a map: 1 where it is true, 0 elsewhere.

    truth    (n, *shape) or, without channels, (n, *spatial) bool
    returns  (n, *shape)
    """
    without_channels = (len(x), *x.shape[2:])
    if truth.shape != x.shape and tuple(truth.shape) != without_channels:
        raise UsageError(f"`truth` must have shape {tuple(x.shape)} or {without_channels}, got {tuple(truth.shape)}")
    if truth.shape != x.shape:
        truth = truth.unsqueeze(1).expand_as(x)
    return truth.to(x, copy=True)


RANDOM = Method(
    name="random",
    function=random,
    needs=("generators",),
    random=True,
    signed=True,
    cite="clark2024xaitris",
    version=2,
    null=True,
    blind=True,
)
CONSTANT = Method(
    name="constant",
    function=constant,
    needs=(),
    random=False,
    signed=False,
    cite="clark2024xaitris",
    version=1,
    null=True,
    blind=True,
)
SOBEL = Method(
    name="sobel",
    function=sobel,
    needs=(),
    random=False,
    signed=False,
    cite="clark2024xaitris",
    version=1,
    null=True,
    inputs=("image",),
)
SOBEL_RELEASED = replace(SOBEL, name="sobel_released", function=sobel_last_axis, signed=True, variant_of=SOBEL.name)
LAPLACE = replace(SOBEL, name="laplace", function=laplace, signed=True)
RECTIFIED_INPUT = Method(
    name="rectified_input",
    function=rectified_input,
    needs=(),
    random=False,
    signed=False,
    cite="clark2024xaitris",
    version=1,
    null=True,
)
ABSOLUTE_INPUT = replace(RECTIFIED_INPUT, name="absolute_input", function=absolute_input)
ORACLE = Method(
    name="oracle",
    function=oracle,
    needs=("truth",),
    random=False,
    signed=False,
    cite="clark2024xaitris",
    version=1,
    null=True,
)
NULLS = (RANDOM, CONSTANT, SOBEL, SOBEL_RELEASED, LAPLACE, RECTIFIED_INPUT, ABSOLUTE_INPUT, ORACLE)
