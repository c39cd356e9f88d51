"""Lasso regressions, many samples at once, each with a proof that it is solved.

Few players take part in a solution, at most as many as there are masks. So the path of solutions [efron2004least] is
followed over a working set of players, all samples in one batch; then all players are asked whether one of them would
improve the fit, and those who would enter the set. Duality says how far a solution can be from the optimum: a sample is
done when that is a billionth of its objective at zero. Where the path went astray the rest is done by an active set.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from forsooth.attributions.lasso_path import along, followed

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
