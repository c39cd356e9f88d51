"""Labels reassigned and artefacts planted, so that a model that does well must use a known region [zhou2022feature]."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

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
    if len(set(manipulations)) < 2:
        raise UsageError("`manipulations` must differ between at least two classes, got the same for all")
    size = (base.x.shape[-2], base.x.shape[-1])
    matrix = transitions(r, len(manipulations))
    y = reassign(base.y, matrix, seed=seed)
    joint = joint_region(manipulations, size=size)
    x = _edited(base.x, y, manipulations, seed=seed)
    if border is not None:
        _paint(x, border, seed=seed)
    facts = _facts(base, manipulations, matrix, y)
    facts |= {"seed": seed, "border": _plain(border), "er": joint.double().mean().item()}
    truth = joint.to(x.device).expand(len(x), *size)
    names = "-".join(_name(m) for m in manipulations)
    strata = y * KINDS + kinds_of(base)
    return Dataset(f"planted-{base.name}-{names}", x, y, truth, base.splits, facts, strata)


def _name(manipulation: Manipulation | None) -> str:
    """What a manipulation is called in the name of a dataset."""
    if manipulation is None:
        return "none"
    return manipulation.name


def _plain(record: Manipulation | Border | None) -> dict[str, Any] | None:
    """A record as plain values that JSON can carry."""
    if record is None:
        return None
    return asdict(record)


def transitions(r: float | Sequence[Sequence[float]] | Tensor, classes: int) -> Tensor:
    """The matrix R (classes, classes) of a chance to keep the label, or the one that came."""
    if isinstance(r, int | float):
        return keep(r, classes)
    return stochastic(r, classes)


def _edited(x: Tensor, y: Tensor, manipulations: Sequence[Manipulation | None], *, seed: int) -> Tensor:
    """A copy of x (n, 3, h, w), on each picture the manipulation of its class y (n,)."""
    edited = x.clone()
    for label, manipulation in enumerate(manipulations):
        if manipulation is None:
            continue
        for rows in (y == label).nonzero()[:, 0].split(CHUNK):
            edited[rows] = apply(manipulation, x[rows], seed=seed, which=rows.tolist())
    return edited


def _paint(x: Tensor, border: Border, *, seed: int) -> None:
    """The border on those pictures of x (n, 3, h, w) that have one, in place."""
    frame = border_region(border, size=(x.shape[-2], x.shape[-1])).to(x.device)
    chosen = bordered(len(x), border, seed=seed).to(x.device)
    x.masked_fill_(chosen[:, None, None, None] & frame, 1.0)


def kinds_of(dataset: Dataset) -> Tensor:
    """(n,) int: the old kind of every picture, before or after `plant`."""
    if dataset.strata is None:
        return dataset.y % KINDS
    return dataset.strata % KINDS


def _facts(base: Dataset, manipulations: Sequence[Manipulation | None], matrix: Tensor, y: Tensor) -> dict[str, object]:
    prior = torch.bincount(base.y.cpu(), minlength=len(matrix)).double() / max(len(y), 1)
    return {
        "base": base.name,
        "base_facts": dict(base.facts),
        "manipulations": [_plain(m) for m in manipulations],
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
    rows = torch.as_tensor(matrix, dtype=torch.float64).cpu()
    if rows.shape != (classes, classes):
        raise UsageError(f"`r` must have shape {(classes, classes)}, one row for each class, got {tuple(rows.shape)}")
    for k, row in enumerate(rows):
        _check_distribution(row, k)
    return rows


def _check_distribution(row: Tensor, k: int) -> None:
    """UsageError unless row k (classes,) of R holds probabilities that sum to 1."""
    if not (row >= 0).all():
        raise UsageError(f"`r` must hold probabilities, got {row.tolist()} in row {k}")
    total = row.sum().item()
    if abs(total - 1) > 1e-6:
        raise UsageError(f"`r` must have rows that sum to 1, got {total:.6g} in row {k}")


def reassign(y: Tensor, matrix: Tensor, *, seed: int) -> Tensor:
    """(n,) new labels, each drawn on its own: label i becomes j with probability matrix[i, j].

    y       (n,) int in 0 .. classes - 1
    matrix  (classes, classes) float64, see `keep` and `stochastic`
    """
    _check_labels(y, len(matrix))
    u = torch.rand(len(y), 1, generator=generator(seed, "labels"), dtype=torch.float64)
    below = matrix.cumsum(1)
    last = (matrix > 0).long().cumsum(1).argmax(1)  # rounding in the sums must not reach a class of probability 0
    old = y.cpu().long()
    new = (u >= below[old]).sum(1).minimum(last[old])
    return new.to(y)


def _check_labels(y: Tensor, classes: int) -> None:
    """UsageError unless y (n,) holds whole numbers below `classes`."""
    if y.is_floating_point() or (len(y) and not (y.min() >= 0 and y.max() < classes)):
        values = f"{y.dtype} with {y.unique().tolist()[:10]}"
        raise UsageError(f"`y` must be whole numbers in 0 .. {classes - 1}, got {values}")


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
    best: list[Tensor] = []
    for manipulation in dict.fromkeys(manipulations):  # each once, in an order that is the same in every process
        sharing = [j for j, other in enumerate(manipulations) if other == manipulation]
        best.append(matrix[:, sharing].amax(1))
    return (prior.to(matrix) @ torch.stack(best).sum(0)).item()


def p_value(accuracy: float, n: int, p_star: float) -> float:
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


def scored_region(planted: Dataset, border: Border | None) -> Tensor:
    """(h, w) bool: the joint effective region; of a border, what it covers beside that region, which tells nothing."""
    assert planted.truth is not None
    joint = planted.truth[0]
    if border is None:
        return joint
    return border_region(border, size=(joint.shape[0], joint.shape[1])) & ~joint


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
