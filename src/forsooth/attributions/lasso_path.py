"""The path of solutions of lassos, from the largest penalty down, all samples in one batch. [efron2004least]"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True)
class Path:
    """Where the path of each lasso stands, for n samples, m masks and k players.

    columns       (n, k, m)
    rest          (n, m), what is not yet explained of the goal
    level         (n, 1), the penalty reached
    signs         (n, k), of who takes part, and 0 for the others
    coefficients  (n, k)
    """

    columns: Tensor
    rest: Tensor
    level: Tensor
    signs: Tensor
    coefficients: Tensor

    def __getitem__(self, samples: Tensor) -> "Path":
        """Copies of the chosen samples."""
        return Path(*(getattr(self, field.name)[samples] for field in fields(self)))


def followed(columns: Tensor, goal: Tensor, penalty: float) -> Tensor:
    """The ends (n, k) of the paths from the penalty at which all coefficients are zero; columns (n, k, m), goal (n, m).

    It takes about as many turns as there are masks. A path that does not arrive is left where it stands.
    """
    path = beginning(columns, goal)
    going = torch.arange(len(goal), device=goal.device)
    result = torch.zeros_like(path.coefficients)
    for _ in range(20 * goal.shape[1]):
        if not len(going):
            break
        arrived = turn(path, penalty)
        if arrived.any():
            result[going[arrived]] = path.coefficients[arrived]
            going = going[~arrived]
            path = path[~arrived]
    return result.index_copy_(0, going, path.coefficients)


def beginning(columns: Tensor, goal: Tensor) -> Path:
    """The paths at the penalty at which all coefficients are zero; columns (n, k, m), goal (n, m)."""
    slope = along(columns, goal)
    zero = torch.zeros_like(slope)
    level, first = slope.abs().max(dim=1, keepdim=True)
    signs = zero.scatter(1, first, slope.gather(1, first).sign())
    return Path(columns, goal.clone(), level, signs, zero)


def along(columns: Tensor, rest: Tensor) -> Tensor:
    """The products (n, k) of columns (n, k, m) with the rest (n, m)."""
    return (columns @ rest[:, :, None])[:, :, 0]


def turn(path: Path, penalty: float) -> Tensor:
    """Follow each path, in place, until a player joins, one leaves, or the penalty is reached.

    returns  (n,) bool, which have reached the penalty
    """
    way = heading(path)
    join = next_join(path, way)
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

    slots  (n, s) int64, who takes part, filled up with others
    pace   (n, s) of their coefficients, 0 for the others
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


def next_join(path: Path, way: Heading) -> Join:
    """Who joins first: the slope that meets the level before the others do."""
    slope = along(path.columns, path.rest)
    change = along(path.columns, way.fall)
    steps = torch.minimum(until_met(path.level, slope, change), until_met(path.level, -slope, -change))
    at, player = steps.masked_fill(path.signs != 0, torch.inf).min(dim=1, keepdim=True)
    # once the rest is spanned, all slopes fall together, and nobody can join
    spanned = (way.pace != 0).sum(dim=1, keepdim=True) == path.rest.shape[1] - 1
    at = at.masked_fill(spanned, torch.inf)
    return Join(at, player, slope.gather(1, player), change.gather(1, player))


def next_leave(path: Path, way: Heading) -> Leave:
    """Who leaves first: the coefficient that reaches zero before the others do."""
    held = path.coefficients.gather(1, way.slots)
    steps = torch.where(held * way.pace < 0, -held / way.pace, torch.inf)
    at, slot = steps.min(dim=1, keepdim=True)
    return Leave(at, way.slots.gather(1, slot))


def heading(path: Path) -> Heading:
    """Where the paths go from here."""
    most = int(path.signs.count_nonzero(dim=1).max())
    slots = path.signs.abs().topk(most, dim=1).indices
    sign = path.signs.gather(1, slots)
    inside = sign != 0
    chosen = slots[:, :, None].expand(-1, -1, path.columns.shape[2])
    columns = path.columns.gather(1, chosen) * inside[:, :, None]  # (n, s, m)
    pace = solved(columns @ columns.mT, sign[:, :, None], inside)
    return Heading(slots, pace[:, :, 0], (columns * pace).sum(dim=1))


def solved(gram: Tensor, sign: Tensor, inside: Tensor) -> Tensor:
    """The pace (n, s, 1) with gram @ pace = sign for those inside (n, s), 0 for the others; gram (n, s, s)."""
    ridge = torch.diag_embed(torch.where(inside, 1e-12, 1.0))
    factor = torch.linalg.cholesky(gram + ridge)
    pace = torch.zeros_like(sign)
    # Refined, since the ridge is felt where columns nearly depend on each other, and then a player joins who must not.
    for _ in range(3):
        pace = pace + torch.cholesky_solve(sign - gram @ pace, factor)
    return pace


def until_met(level: Tensor, slope: Tensor, change: Tensor) -> Tensor:
    """How far until a slope (n, k) that falls by `change` meets the level (n, 1) that falls by 1; inf if never.

    A slope that keeps pace with the level, as that of a player who is a sum of those inside, never counts.
    """
    closing = 1 - change
    return torch.where(closing > 1e-4, ((level - slope) / closing).clamp(min=0), torch.inf)
