"""PatternLocal: the weights of a local surrogate, turned into the local pattern of the data that they read."""

from collections.abc import Sequence

import torch
from torch import Tensor

from forsooth.games.draws import one_for_each
from forsooth.games.values import Model, target_outputs
from forsooth.records import Method, UsageError

AT_ONCE = 2**18  # entries of the perturbations of inputs solved together: more would leave the cache
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
    projected: bool = True,
) -> Tensor:
    """The local covariance of the data times the weights of a local linear surrogate.

    x           (n, *shape)
    target      (n,) int64, the explained class
    fit         (k, *shape), the data whose covariance around x is taken
    generators  one for each input, for its perturbations
    samples     perturbations of an input; None: twice the features, and at least 1,000
    neighbours  share of the data, the nearest, whose covariance is taken; at least two rows
    projected   whether they are nearest to the point next to x at which the surrogate gives 0, as its authors have it
    returns     (n, *shape); where the surrogate reads a suppressor that varies with nothing it explains, about zero

    [gjolbye2025patternlocal], with the surrogate of LIME for tables [ribeiro2016why]: Gaussian perturbations of the
    spread of the data, ridge of penalty 1. Neighbours count by a Gaussian kernel as wide as their median distance.
    """
    _check(x, fit, samples, neighbours)
    one_for_each(generators, x)
    rows = fit.to(x).flatten(1).double()
    features = x.flatten(1).double()
    count = samples or max(1000, 2 * features.shape[1])

    def outputs(points: Tensor, some: Tensor) -> Tensor:
        asked = points.to(x).view(-1, *x.shape[1:])
        return target_outputs(model, asked, target[some].repeat_interleave(count)).view(len(some), count).double()

    parts = []
    for some in torch.arange(len(x)).split(max(1, AT_ONCE // (count * features.shape[1]))):
        here = features[some]
        points = torch.stack([perturbed(features[i], rows.std(0), count, generators[i]) for i in some.tolist()])
        weight, height = surrogate(points, outputs(points, some), here, rows.std(0))
        centre = on_plane(here, weight, height) if projected else here
        parts.append(local_covariance(rows, centre, neighbours, weight))
    return torch.cat(parts).view_as(x).to(x)


def _check(x: Tensor, fit: Tensor, samples: int | None, neighbours: float) -> None:
    if fit.shape[1:] != x.shape[1:] or len(fit) < 2:
        raise UsageError(f"`fit` must be (k, {tuple(x.shape[1:])}) with k > 1, got {tuple(fit.shape)}")
    if not 0 < neighbours <= 1 or (samples is not None and samples < 2):
        raise UsageError(f"`neighbours` must lie in (0, 1] and `samples` be at least 2, got {neighbours} and {samples}")


def perturbed(x: Tensor, spread: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Points (count, features) around x (features,), the first of them x itself."""
    noise = torch.randn(count, len(x), generator=generator, dtype=torch.float64).to(x)
    noise[0] = 0
    return x + noise * spread


def surrogate(points: Tensor, outputs: Tensor, x: Tensor, spread: Tensor) -> tuple[Tensor, Tensor]:
    """A ridge of outputs (n, m) on points (n, m, features), near ones counting more.

    Features are measured in their spread, so that the penalty weighs all alike; one that never varies gets zero.
    returns  its coefficients (n, features), and what it gives at x (n,)
    """
    unit = torch.where(spread > 0, spread, 1.0)
    design = (points - x[:, None]) / unit
    near = (-design.square().sum(2) / (2 * WIDTH**2 * x.shape[1])).exp()  # (n, m)
    share = (near / near.sum(1, keepdim=True))[:, None]  # (n, 1, m)
    middle = share @ design  # (n, 1, features)
    mean = (share @ outputs[:, :, None])[:, 0]  # (n, 1)
    centred = design - middle
    weighted = (centred * near[:, :, None]).mT
    gram = weighted @ centred
    gram.diagonal(dim1=1, dim2=2).add_(1.0)
    goal = weighted @ (outputs - mean)[:, :, None]
    slopes = torch.cholesky_solve(goal, torch.linalg.cholesky(gram))[:, :, 0]
    return slopes / unit, mean[:, 0] - (middle[:, 0] * slopes).sum(1)


def on_plane(x: Tensor, weight: Tensor, height: Tensor) -> Tensor:
    """The point nearest to x (n, features) at which a plane of these slopes, and of this height at x (n,), is 0."""
    steepness = weight.square().sum(1).clamp(min=torch.finfo(weight.dtype).tiny)
    return x - (height / steepness)[:, None] * weight


def local_covariance(rows: Tensor, x: Tensor, neighbours: float, weight: Tensor) -> Tensor:
    """Cov(nearest rows) w (n, features), with rows (k, features) counting by their distance to x; never the matrix."""
    count = max(2, int(neighbours * len(rows)))
    distance = torch.stack([(rows - one).square().sum(1).sqrt() for one in x])  # (n, k)
    nearest = distance.topk(count, dim=1, largest=False)
    width = nearest.values.quantile(0.5, dim=1, keepdim=True).clamp(min=torch.finfo(rows.dtype).eps)
    near = (-0.5 * (nearest.values / width).square()).softmax(1)[:, None]  # (n, 1, count), each row summing to 1
    centred = rows[nearest.indices]  # (n, count, features)
    centred = centred - near @ centred
    along = (centred @ weight[:, :, None]).mT  # (n, 1, count)
    return ((near * along) @ centred)[:, 0]


PATTERN_LOCAL = Method(
    name="pattern_local",
    function=pattern_local,
    needs=("fit", "generators"),
    random=True,
    signed=True,
    cite="gjolbye2025patternlocal",
    version=2,
    cost="forwards",
)
LOCAL_PATTERNS = (PATTERN_LOCAL,)
