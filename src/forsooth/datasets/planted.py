"""Labels reassigned and artefacts planted, so that a model that does well must use a known region [zhou2022feature]."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch
from scipy.special import bdtrc
from torch import Tensor

from forsooth.datasets.manipulations import UNIT, Manipulation, apply, joint_region
from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator

KINDS = 2**20  # more than there are kinds of pictures: a stratum is new label * KINDS + old kind
CHUNK = 64  # pictures edited and copied at once, to bound the memory


@dataclass(frozen=True)
class Border:
    """A white border on a random `share` of the pictures, whatever their label: the non-informative features F_N.

    width  px at a side of 224; the paper names the border but neither its width nor the share
    """

    share: float = 0.5
    width: float = 8


def plant(
    base: Dataset,
    manipulations: Sequence[Manipulation | None],
    *,
    r: float | Sequence[Sequence[float]] | Tensor,
    seed: int,
    border: Border | None = None,
) -> Dataset:
    """The pictures of `base` with new labels, and on each the manipulation of its new class.

    base           x (n, 3, h, w) in [0, 1], y (n,) in 0 .. classes - 1
    manipulations  one for each class; None leaves its pictures as they are
    r              chance to keep the label (see `keep`), or the matrix R (classes, classes) of the paper's appendix B
    border         painted last, over artefacts too
    returns        x (n, 3, h, w); y (n,), the new labels; truth (n, h, w) bool, the joint effective region, one mask
                   seen n times; splits of `base`; strata (n,), new label × old kind, see `kinds_of`; facts from which
                   `plant` can make it again

    All splits are reassigned, as in the released code. Picture k depends on `seed` and k alone. Same seed, same labels:
    two calls that differ in the visibility differ in nothing else.
    """
    classes, size = len(manipulations), (base.x.shape[-2], base.x.shape[-1])
    if len(set(manipulations)) < 2:
        raise UsageError("`manipulations` must differ between at least two classes, got the same for all")
    matrix = keep(r, classes) if isinstance(r, int | float) else stochastic(r, classes)
    y = reassign(base.y, matrix, seed=seed)
    joint = joint_region(manipulations, size=size)
    x = base.x.clone()
    for label, manipulation in enumerate(manipulations):
        if manipulation is not None:
            for which in (y == label).nonzero()[:, 0].split(CHUNK):
                x[which] = apply(manipulation, base.x[which], seed=seed, which=which.tolist())
    if border is not None:
        frame, chosen = border_region(border, size=size), bordered(len(x), border, seed=seed)
        x.masked_fill_(chosen.to(x.device)[:, None, None, None] & frame.to(x.device), 1.0)
    names = "-".join("none" if m is None else m.name for m in manipulations)
    facts = _facts(base, manipulations, matrix, y) | {"seed": seed, "border": asdict(border) if border else None}
    truth = joint.to(x.device).expand(len(x), *size)
    facts |= {"er": joint.double().mean().item()}
    strata = y * KINDS + kinds_of(base)
    return Dataset(f"planted-{base.name}-{names}", x, y, truth, base.splits, facts, strata)


def kinds_of(dataset: Dataset) -> Tensor:
    """(n,) int: the old kind of every picture, before or after `plant`."""
    return (dataset.y if dataset.strata is None else dataset.strata) % KINDS


def _facts(base: Dataset, manipulations: Sequence[Manipulation | None], matrix: Tensor, y: Tensor) -> dict[str, object]:
    prior = torch.bincount(base.y.cpu(), minlength=len(matrix)).double() / max(len(y), 1)
    return {
        "base": base.name,
        "base_facts": dict(base.facts),
        "manipulations": [None if m is None else asdict(m) for m in manipulations],
        "r": matrix.tolist(),
        "p_star": bound(matrix),
        "reachable": reachable(matrix, manipulations, prior=prior),
        "kept": (y == base.y).double().mean().item(),
    }


def keep(r: float, classes: int) -> Tensor:
    """The matrix R that keeps a label with probability r, and else takes any other with equal chance.

    returns  (classes, classes) float64, [[r, 1 - r], [1 - r, r]] for two
    """
    if not 0 <= r <= 1:
        raise UsageError(f"`r` must lie in [0, 1], got {r}")
    if classes < 2:
        raise UsageError(f"`classes` must be at least 2, got {classes}")
    matrix = torch.full((classes, classes), (1 - r) / (classes - 1), dtype=torch.float64)
    return matrix.fill_diagonal_(r)


def stochastic(matrix: Sequence[Sequence[float]] | Tensor, classes: int) -> Tensor:
    """The matrix R as float64 (classes, classes); UsageError unless every row is a distribution."""
    if not isinstance(matrix, Tensor):
        lengths = {len(row) for row in matrix}
        if lengths != {len(matrix)}:
            raise UsageError(f"`r` must be a square matrix, got {len(matrix)} rows of length {sorted(lengths)}")
    found = torch.as_tensor(matrix, dtype=torch.float64).cpu()
    if found.shape != (classes, classes):
        raise UsageError(f"`r` must have shape {(classes, classes)}, one row for each class, got {tuple(found.shape)}")
    for k, row in enumerate(found):
        if not (row >= 0).all():
            raise UsageError(f"`r` must hold probabilities, got {row.tolist()} in row {k}")
        if abs(row.sum().item() - 1) > 1e-6:
            raise UsageError(f"`r` must have rows that sum to 1, got {row.sum().item():.6g} in row {k}")
    return found


def reassign(y: Tensor, matrix: Tensor, *, seed: int) -> Tensor:
    """(n,) new labels, each drawn on its own: label i becomes j with probability matrix[i, j].

    y       (n,) int in 0 .. classes - 1
    matrix  (classes, classes) float64, see `keep` and `stochastic`
    """
    if y.is_floating_point() or (len(y) and not (y.min() >= 0 and y.max() < len(matrix))):
        came = f"{y.dtype} with {y.unique().tolist()[:10]}"
        raise UsageError(f"`y` must be whole numbers in 0 .. {len(matrix) - 1}, got {came}")
    u = torch.rand(len(y), 1, generator=generator(seed, "labels"), dtype=torch.float64)
    below = matrix.cumsum(1)
    last = (matrix > 0).long().cumsum(1).argmax(1)  # rounding in the sums must not reach a class of probability 0
    old = y.cpu().long()
    new = (u >= below[old]).sum(1).minimum(last[old])
    return new.to(y)


def bound(matrix: Tensor) -> float:
    """p*: no model that knows the original picture only can expect to be right more often.

    The largest entry of R [zhou2022feature, appendix B]; max(r, 1 - r) for two classes.
    """
    return matrix.max().item()


def reachable(matrix: Tensor, manipulations: Sequence[Manipulation | None], *, prior: Tensor) -> float:
    """Expected accuracy of the best model that knows the original label and the artefact.

    prior  (classes,) shares of the original labels

    1 when all classes differ in their manipulation. Classes that share one can be told apart only as far as the
    original label goes. With one manipulation for all this is the mean of the row maxima,
    a bound at least as sharp as p*.
    """
    groups = [[j for j, other in enumerate(manipulations) if other == m] for m in set(manipulations)]
    best = torch.stack([matrix[:, group].amax(1) for group in groups]).sum(0)
    return (prior.to(matrix) @ best).item()


def luck(accuracy: float, n: int, p_star: float) -> float:
    """Probability to be right on at least floor(accuracy * n) of n samples, each with probability p_star.

    So likely a model that does not know the artefact reaches `accuracy` at most [zhou2022feature, section 4].
    """
    for name, value in (("accuracy", accuracy), ("p_star", p_star)):
        if not 0 <= value <= 1:
            raise UsageError(f"`{name}` must lie in [0, 1], got {value}")
    if n < 1:
        raise UsageError(f"`n` must be at least 1, got {n}")
    right = math.floor(accuracy * n + 1e-6)  # 0.57 * 100 is a little less than 57 in floating point
    return float(bdtrc(right - 1, n, p_star))


def carries(y: Tensor, manipulations: Sequence[Manipulation | None]) -> Tensor:
    """(n,) bool: whether pictures of the new labels y (n,) have an artefact on them, or show by its absence."""
    has = torch.tensor([m is not None for m in manipulations], device=y.device)
    return has[y]


def border_region(border: Border, *, size: tuple[int, int]) -> Tensor:
    """(h, w) bool: the pixels of the border, at least one pixel wide."""
    thick = max(1, round(border.width * min(size) / UNIT))
    if not border.width > 0 or 2 * thick >= min(size):
        raise UsageError(f"`width` must be positive and leave a picture inside, got {border.width} for {size}")
    frame = torch.ones(size, dtype=torch.bool)
    frame[thick:-thick, thick:-thick] = False
    return frame


def bordered(n: int, border: Border, *, seed: int) -> Tensor:
    """(n,) bool: which pictures of `plant` with this seed have the border."""
    if not 0 <= border.share <= 1:
        raise UsageError(f"`share` must lie in [0, 1], got {border.share}")
    return torch.rand(n, generator=generator(seed, "border")) < border.share


def non_informative(border: Border, manipulations: Sequence[Manipulation | None], *, size: tuple[int, int]) -> Tensor:
    """(h, w) bool: F_N, the border less the joint effective region, where pixels could tell the label."""
    return border_region(border, size=size) & ~joint_region(manipulations, size=size)
