"""Lasso regressions by following the path of their solutions, many samples at once [efron2004least]."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor


def lasso(masks: Tensor, weights: Tensor, values: Tensor, *, penalty: float) -> Tensor:
    """Coefficients of weighted lasso regressions with intercept, each sample with weights of its own.

    masks    (m, players) bool
    weights  (n, m) float64
    values   (n, m) float64
    returns  (n, players) float64, minimising Σ w (v - z b - c)² / (2 Σ w) + penalty · |b|

    The path of solutions is followed from the penalty at which all are zero, all samples at once, and is exact
    [efron2004least]. It takes about as many turns as there are masks, however many players there are.
    """
    seen = masks.double()
    start = beginning(seen, weights, values)
    going = (start.level > penalty)[:, 0].nonzero()[:, 0]
    path = start[going]
    result = torch.zeros_like(start.coefficients)
    for _ in range(100 * len(masks)):
        if not len(going):
            break
        arrived = turn(seen, path, penalty)
        result[going[arrived]] = path.coefficients[arrived]
        if arrived.any():
            going = going[~arrived]
            path = path[~arrived]
    return result.index_copy_(0, going, path.coefficients)


@dataclass(frozen=True)
class Path:
    """Where the path of each lasso stands, for n samples, m masks and the players.

    root          (n, m), roots of the weights, which sum to one
    centre        (n, players), weighted means of the masks
    rest          (n, m), what is not yet explained of the weighted, centred values
    level         (n, 1), the penalty reached
    signs         (n, players), of who takes part, and 0 for the others
    coefficients  (n, players)
    """

    root: Tensor
    centre: Tensor
    rest: Tensor
    level: Tensor
    signs: Tensor
    coefficients: Tensor

    def __getitem__(self, samples: Tensor) -> "Path":
        """Copies of the chosen samples."""
        return Path(*(getattr(self, field.name)[samples] for field in fields(self)))


def beginning(seen: Tensor, weights: Tensor, values: Tensor) -> Path:
    """The paths at the penalty at which all coefficients are zero; seen (m, players), weights and values (n, m)."""
    share = weights / weights.sum(dim=1, keepdim=True)  # (n, m)
    root = share.sqrt()
    centre = share @ seen
    rest = root * (values - (share * values).sum(dim=1, keepdim=True))
    zero = torch.zeros_like(centre)
    slope = slopes(seen, Path(root, centre, rest, zero, zero, zero), rest)
    level, first = slope.abs().max(dim=1, keepdim=True)
    signs = zero.scatter(1, first, slope.gather(1, first).sign())
    return Path(root, centre, rest, level, signs, zero)


def slopes(seen: Tensor, path: Path, rest: Tensor) -> Tensor:
    """The rest (n, m) taken back through the weighted, centred masks of every sample. Returns (n, players)."""
    weighted = path.root * rest
    return weighted @ seen - path.centre * weighted.sum(dim=1, keepdim=True)


def turn(seen: Tensor, path: Path, penalty: float) -> Tensor:
    """Follow each path, in place, until a player joins, one leaves, or the penalty is reached.

    seen     (m, players), the masks
    returns  (n,) bool, which have reached the penalty
    """
    way = heading(seen, path)
    join = next_join(seen, path, way)
    leave = next_leave(path, way)
    left = path.level - penalty
    step = torch.minimum(torch.minimum(join.at, leave.at), left)

    advance(path, way, step)
    leaving = ((leave.at <= step) & (leave.at < left))[:, 0].nonzero()[:, 0]
    for fading in (path.signs, path.coefficients):
        fading[leaving, leave.player[leaving, 0]] = 0
    joining = ((join.at <= step) & (leave.at > step) & (join.at < left))[:, 0].nonzero()[:, 0]
    path.signs[joining, join.player[joining, 0]] = (join.slope - step * join.change)[joining, 0].sign()
    return ((join.at >= left) & (leave.at >= left))[:, 0]


def advance(path: Path, way: "Heading", step: Tensor) -> None:
    """Go on by a step (n, 1), in place."""
    path.coefficients.scatter_add_(1, way.slots, step * way.pace)
    path.rest.sub_(step * way.fall)
    path.level.sub_(step)


class Heading(NamedTuple):
    """The direction in which the slopes of all who take part fall by one alike.

    slots  (n, k) int64, who takes part, filled up with others
    pace   (n, k) of their coefficients, 0 for the others
    fall   (n, m) of the rest
    """

    slots: Tensor
    pace: Tensor
    fall: Tensor


class Leave(NamedTuple):
    """After which step (n, 1) which player (n, 1) leaves; inf if none does."""

    at: Tensor
    player: Tensor


class Join(NamedTuple):
    """After which step (n, 1) which player (n, 1) joins, inf if none does; its slope (n, 1) and the change of it."""

    at: Tensor
    player: Tensor
    slope: Tensor
    change: Tensor


def next_join(seen: Tensor, path: Path, way: Heading) -> Join:
    """Who joins first: the slope that meets the level before the others do."""
    slope = slopes(seen, path, path.rest)
    change = slopes(seen, path, way.fall)
    steps = torch.minimum(until_met(path.level, slope, change), until_met(path.level, -slope, -change))
    at, player = steps.masked_fill(path.signs != 0, torch.inf).min(dim=1, keepdim=True)
    # once the rest is spanned, all slopes fall together, and nobody can join
    at = at.masked_fill((way.pace != 0).sum(dim=1, keepdim=True) == len(seen) - 1, torch.inf)
    return Join(at, player, slope.gather(1, player), change.gather(1, player))


def next_leave(path: Path, way: Heading) -> Leave:
    """Who leaves first: the coefficient that reaches zero before the others do."""
    held = path.coefficients.gather(1, way.slots)
    steps = torch.where(held * way.pace < 0, -held / way.pace, torch.inf)
    at, slot = steps.min(dim=1, keepdim=True)
    return Leave(at, way.slots.gather(1, slot))


def heading(seen: Tensor, path: Path) -> Heading:
    """Where the paths go from here."""
    most = int(path.signs.count_nonzero(dim=1).max())
    slots = path.signs.abs().topk(most, dim=1).indices
    sign = path.signs.gather(1, slots)
    inside = sign != 0
    columns = seen.T[slots] - path.centre.gather(1, slots)[:, :, None]  # (n, k, m)
    columns = columns * (path.root[:, None] * inside[:, :, None])
    pace = solved(columns @ columns.mT, sign[:, :, None], inside)
    return Heading(slots, pace[:, :, 0], (columns * pace).sum(dim=1))


def solved(gram: Tensor, sign: Tensor, inside: Tensor) -> Tensor:
    """The pace (n, k, 1) with gram @ pace = sign for those inside (n, k), 0 for the others; gram (n, k, k)."""
    ridge = torch.diag_embed(torch.where(inside, 1e-12, 1.0))
    factor = torch.linalg.cholesky(gram + ridge)
    pace = torch.zeros_like(sign)
    # Refined, since the ridge is felt where columns nearly depend on each other, and then a player joins who must not.
    for _ in range(3):
        pace = pace + torch.cholesky_solve(sign - gram @ pace, factor)
    return pace


def until_met(level: Tensor, slope: Tensor, change: Tensor) -> Tensor:
    """How far until a slope (n, players) that falls by `change` meets the level (n, 1) that falls by 1; inf if never.

    A slope that keeps pace with the level, as that of a player who is a sum of those inside, never counts.
    """
    closing = 1 - change
    return torch.where(closing > 1e-4, ((level - slope) / closing).clamp(min=0), torch.inf)
