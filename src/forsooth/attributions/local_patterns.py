"""PatternLocal: the weights of a local surrogate, turned into the local pattern of the data that they read."""

from collections.abc import Sequence

import torch
from torch import Tensor

from forsooth.games.draws import one_for_each
from forsooth.games.values import Model, target_outputs
from forsooth.records import Method, UsageError

WIDTH = 0.75  # of the kernel of LIME for tables, times the root of the number of features


def pattern_local(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    fit: Tensor,
    generators: Sequence[torch.Generator],
    samples: int | None = None,
    neighbours: float = 0.1,
) -> Tensor:
    """The local covariance of the data times the weights of a local linear surrogate.

    x           (n, *shape)
    target      (n,) int64, the explained class
    fit         (k, *shape), the data whose covariance around x is taken
    generators  one for each input, for its perturbations
    samples     perturbations of an input; None: twice the features, and at least 1,000
    neighbours  share of the data whose most distant row sets the width of the kernel, at least two rows
    returns     (n, *shape); where the surrogate reads a suppressor that varies with nothing it explains, about zero

    [gjolbye2025patternlocal], with the surrogate of LIME for tables [ribeiro2016why]: Gaussian perturbations of the
    spread of the data, ridge of penalty 1. Rows of the data count by a Gaussian kernel of their distance to x.
    """
    if fit.shape[1:] != x.shape[1:] or len(fit) < 2:
        raise UsageError(f"`fit` must be (k, {tuple(x.shape[1:])}) with k > 1, got {tuple(fit.shape)}")
    if not 0 < neighbours <= 1 or (samples is not None and samples < 2):
        raise UsageError(f"`neighbours` must lie in (0, 1] and `samples` be at least 2, got {neighbours} and {samples}")
    one_for_each(generators, x)
    rows = fit.to(x).flatten(1).double()
    features = x.flatten(1).double()
    result = torch.empty_like(features)
    for i, generator in enumerate(generators):
        points = perturbed(features[i], rows.std(0), samples, generator)
        outputs = target_outputs(model, points.to(x).view(-1, *x.shape[1:]), target[i].expand(len(points)))
        weight = surrogate(points, outputs.double(), features[i], rows.std(0))
        result[i] = local_covariance(rows, features[i], neighbours, weight)
    return result.view_as(x).to(x)


def perturbed(x: Tensor, spread: Tensor, samples: int | None, generator: torch.Generator) -> Tensor:
    """Points (samples, features) around x (features,), the first of them x itself."""
    count = samples or max(1000, 2 * len(x))
    noise = torch.randn(count, len(x), generator=generator, dtype=torch.float64).to(x)
    noise[0] = 0
    return x + noise * spread


def surrogate(points: Tensor, outputs: Tensor, x: Tensor, spread: Tensor) -> Tensor:
    """Coefficients (features,) of a ridge of outputs (m,) on points (m, features), near ones counting more.

    Features are measured in their spread, so that the penalty weighs all alike; one that never varies gets zero.
    """
    unit = torch.where(spread > 0, spread, 1.0)
    design = (points - x) / unit
    near = (-design.square().sum(1) / (WIDTH**2 * len(x))).exp()
    share = near / near.sum()
    centred = design - share @ design
    weighted = centred * near[:, None]
    gram = centred.T @ weighted
    gram.diagonal().add_(1.0)
    return torch.linalg.solve(gram, weighted.T @ (outputs - share @ outputs)) / unit


def local_covariance(rows: Tensor, x: Tensor, neighbours: float, weight: Tensor) -> Tensor:
    """Cov(rows) w (features,), with rows (k, features) counting by their distance to x; never the whole matrix."""
    distance = (rows - x).square().sum(1)
    nearest = max(2, round(neighbours * len(rows)))
    width = distance.kthvalue(nearest).values.clamp(min=torch.finfo(rows.dtype).tiny)
    near = (-distance / (2 * width)).softmax(0)  # (k,), summing to 1
    centred = rows - near @ rows
    return centred.T @ (near * (centred @ weight))


PATTERN_LOCAL = Method(
    name="pattern_local",
    function=pattern_local,
    needs=("fit", "generators"),
    random=True,
    signed=True,
    cite="gjolbye2025patternlocal",
    version=1,
    cost="forwards",
)
LOCAL_PATTERNS = (PATTERN_LOCAL,)
