"""Lasso regressions, many samples at once, each with a proof that it is solved.

Few players take part in a solution, at most as many as there are masks. So the path of solutions [efron2004least] is
followed over a working set of players, all samples in one batch; then all players are asked whether one of them would
improve the fit, and those who would enter the set. Duality says how far a solution can be from the optimum: a sample is
done when that is a billionth of its objective at zero. Where the path went astray the rest is done by an active set.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor

PROVEN = 1e-9  # largest duality gap, as a share of the objective at zero
ROUNDS = 50  # two are the rule
MASKS = 8  # players in a working set for each mask


class NotSolvedError(Exception):
    """A lasso whose duality gap stayed too wide."""


def lasso(masks: Tensor, weights: Tensor, values: Tensor, *, penalty: float) -> Tensor:
    """Coefficients of weighted lasso regressions with intercept, each sample with weights of its own.

    masks    (m, players) bool
    weights  (n, m) float64
    values   (n, m) float64
    returns  (n, players) float64, minimising Σ w (v - z b - c)² / (2 Σ w) + penalty · |b|, to a duality gap of
             `PROVEN` of what it is for b = 0
    """
    problem = Problem(masks.double(), *centred(masks.double(), weights, values))
    result = torch.zeros_like(problem.centre)
    slope = slopes(problem, problem.goal)
    going = (slope.abs().amax(1) > penalty).nonzero()[:, 0]
    size = min(result.shape[1], MASKS * len(masks))
    for _ in range(ROUNDS):
        if not len(going):
            return result
        some = problem[going]
        chosen = working_set(slope[going], result[going], size)
        columns = columns_of(some, chosen)
        found = followed(columns, some.goal, penalty)
        found = mended(columns, some.goal, found, penalty)
        result[going] = torch.zeros_like(result[going]).scatter(1, chosen, found)
        rest = rest_of(columns, some.goal, found)
        slope[going] = slopes(some, rest)
        left = gap(some.goal, rest, found.abs().sum(1), slope[going].abs().amax(1), penalty)
        going = going[left > PROVEN * some.goal.square().sum(1) / 2]
    if len(going):
        raise NotSolvedError(f"{len(going)} of {len(result)} lassos have a wide duality gap after {ROUNDS} rounds")
    return result


@dataclass(frozen=True)
class Problem:
    """What the lassos of n samples are about, for m masks.

    seen    (m, players), the masks
    root    (n, m), roots of the weights, which sum to one
    centre  (n, players), weighted means of the masks
    goal    (n, m), weighted, centred values
    """

    seen: Tensor
    root: Tensor
    centre: Tensor
    goal: Tensor

    def __getitem__(self, samples: Tensor) -> "Problem":
        """The chosen samples."""
        return Problem(self.seen, self.root[samples], self.centre[samples], self.goal[samples])


def centred(seen: Tensor, weights: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Root, centre and goal of a `Problem`; seen (m, players), weights and values (n, m)."""
    share = weights / weights.sum(dim=1, keepdim=True)  # (n, m)
    root = share.sqrt()
    goal = root * (values - (share * values).sum(dim=1, keepdim=True))
    return root, share @ seen, goal


def slopes(problem: Problem, rest: Tensor) -> Tensor:
    """The rest (n, m) taken back through the weighted, centred masks of every sample. Returns (n, players)."""
    weighted = problem.root * rest
    return weighted @ problem.seen - problem.centre * weighted.sum(dim=1, keepdim=True)


def working_set(slope: Tensor, coefficients: Tensor, size: int) -> Tensor:
    """The players (n, size) that take part already and those with the steepest slopes; both given (n, players)."""
    return slope.abs().masked_fill(coefficients != 0, torch.inf).topk(size, dim=1).indices


def columns_of(problem: Problem, chosen: Tensor) -> Tensor:
    """The weighted, centred masks of chosen players (n, k). Returns (n, k, m)."""
    return (problem.seen.T[chosen] - problem.centre.gather(1, chosen)[:, :, None]) * problem.root[:, None]


def rest_of(columns: Tensor, goal: Tensor, coefficients: Tensor) -> Tensor:
    """What coefficients (n, k) leave unexplained of the goal (n, m), by columns (n, k, m)."""
    return goal - (coefficients[:, None] @ columns)[:, 0]


def gap(goal: Tensor, rest: Tensor, length: Tensor, steepest: Tensor, penalty: float) -> Tensor:
    """How far the objectives can be above their optima, by duality: the rest, shrunk to be feasible, bounds them. (n,)

    goal, rest  (n, m)
    length      (n,), Σ |b|
    steepest    (n,), the largest |slope|
    """
    shrink = (penalty / steepest.clamp(min=penalty))[:, None]
    primal = rest.square().sum(1) / 2 + penalty * length
    dual = (goal.square() - (goal - shrink * rest).square()).sum(1) / 2
    return primal - dual


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


def mended(columns: Tensor, goal: Tensor, coefficients: Tensor, penalty: float) -> Tensor:
    """The coefficients (n, k), solved again where the path ended away from the optimum of its working set."""
    rest = rest_of(columns, goal, coefficients)
    steepest = along(columns, rest).abs().amax(1)
    left = gap(goal, rest, coefficients.abs().sum(1), steepest, penalty)
    astray = (left > PROVEN / 10 * goal.square().sum(1) / 2).nonzero()[:, 0].tolist()
    result = coefficients.clone()
    for sample in astray:
        result[sample] = by_active_set(columns[sample], goal[sample], coefficients[sample], penalty)
    return result


def by_active_set(columns: Tensor, goal: Tensor, start: Tensor, penalty: float) -> Tensor:
    """The solution (k,) of one lasso, from a start (k,): who takes part goes to the best that keeps the signs.

    columns  (k, m)
    goal     (m,)

    Whoever reaches zero on the way leaves; when all are there, the steepest of the others joins. The objective falls in
    every step, so that no set of players comes twice.
    """
    found = start.clone()
    signs = start.sign()
    for _ in range(100 * len(goal)):
        inside = signs.nonzero()[:, 0]
        best = best_of_signs(columns[inside], goal, signs[inside], penalty)
        crossing = best * signs[inside] < 0
        if crossing.any():
            here = found[inside]
            share = torch.where(crossing, here / (here - best), torch.inf)
            at, who = share.min(dim=0)
            found[inside] = here + at * (best - here)
            found[inside[who]] = 0
            signs[inside[who]] = 0
            continue
        found[inside] = best
        slope = columns @ (goal - found @ columns)
        steepest, who = slope.abs().masked_fill(signs != 0, 0).max(dim=0)
        if steepest <= penalty * (1 + 1e-12):
            break
        signs[who] = slope[who].sign()
    return found


def best_of_signs(columns: Tensor, goal: Tensor, signs: Tensor, penalty: float) -> Tensor:
    """The best coefficients (s,) when the signs (s,) are given; columns (s, m), goal (m,)."""
    gram = columns @ columns.T
    wanted = columns @ goal - penalty * signs
    ridge = 1e-13 * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    factor = torch.linalg.cholesky(gram + ridge)
    best = torch.zeros_like(wanted)
    for _ in range(3):
        best = best + torch.cholesky_solve((wanted - gram @ best)[:, None], factor)[:, 0]
    return best
