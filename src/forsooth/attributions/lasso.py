"""Lasso regressions, many samples at once, each with a proof that it is solved.

Few players take part in a solution, at most as many as there are masks. So the path of solutions [efron2004least] is
followed over a working set of players, all samples in one batch; then all players are asked whether one of them would
improve the fit, and those who would enter the set. Duality says how far a solution can be from the optimum: a sample is
done when that is a billionth of its objective at zero. Where the path went astray the rest is done by an active set.

Samples are the last axis of all tensors but those of a single lasso and of `Chosen`, see `lasso_path`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from forsooth.attributions.lasso_path import followed

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
    share = (weights / weights.sum(dim=1, keepdim=True)).T.contiguous()  # (m, n)
    everybody = Everybody(masks.T.double(), share.sqrt())
    goal = everybody.root * (values.T - (share * values.T).sum(dim=0))
    slope = everybody.slopes(goal)
    result = torch.zeros_like(slope)
    going = (slope.abs().amax(0) > penalty).nonzero()[:, 0]
    size = MASKS * len(masks)
    for _ in range(ROUNDS):
        if not len(going):
            return result.T.contiguous()
        design = everybody[going]
        wanted = goal[:, going]
        if size < len(slope):
            found = over_some(design, wanted, working_set(slope[:, going], result[:, going], size), penalty)
        else:
            found = solved(design, wanted, penalty)
        rest = wanted - design.sums(found)
        now = design.slopes(rest)
        result[:, going] = found
        slope[:, going] = now
        left = gap(wanted, rest, found.abs().sum(0), now.abs().amax(0), penalty)
        going = going[left > PROVEN * wanted.square().sum(0) / 2]
    raise NotSolvedError(f"{len(going)} of {len(goal.T)} lassos have a wide duality gap after {ROUNDS} rounds")


@dataclass(frozen=True)
class Everybody:
    """The weighted, centred masks of all k players, which samples share but for their weights.

    seen  (k, m), the masks
    root  (m, n), roots of the weights, which sum to one
    """

    seen: Tensor
    root: Tensor

    def __getitem__(self, samples: Tensor) -> "Everybody":
        return Everybody(self.seen, self.root[:, samples])

    def slopes(self, rest: Tensor) -> Tensor:
        weighted = self.root * rest
        return self.seen @ (weighted - self.root.square() * weighted.sum(0))

    def sums(self, coefficients: Tensor) -> Tensor:
        """The sums (m, n) of all columns times coefficients (k, n)."""
        plain = self.seen.T @ coefficients
        return self.root * (plain - (self.root.square() * plain).sum(0))

    def columns(self, players: Tensor) -> Tensor:
        seen = self.seen[players].T
        return self.root * (seen - (self.root.square() * seen).sum(0))

    def chosen(self, players: Tensor) -> "Chosen":
        """The design of some players (k', n) alone."""
        seen = self.seen[players.T]  # (n, k', m)
        centre = seen @ self.root.T.square()[:, :, None]
        return Chosen((seen - centre) * self.root.T[:, None])


@dataclass(frozen=True)
class Chosen:
    """The weighted, centred masks of k players of each sample, (n, k, m)."""

    all_columns: Tensor

    def __getitem__(self, samples: Tensor) -> "Chosen":
        return Chosen(self.all_columns[samples])

    def slopes(self, rest: Tensor) -> Tensor:
        return (self.all_columns @ rest.T[:, :, None])[:, :, 0].T.contiguous()

    def sums(self, coefficients: Tensor) -> Tensor:
        """The sums (m, n) of all columns times coefficients (k, n)."""
        return (coefficients.T[:, None] @ self.all_columns)[:, 0].T

    def columns(self, players: Tensor) -> Tensor:
        return self.all_columns[torch.arange(len(players), device=players.device), players].T.contiguous()


def over_some(design: Everybody, goal: Tensor, players: Tensor, penalty: float) -> Tensor:
    """The solutions (k, n) in which only some players (k', n) take part; goal (m, n)."""
    found = solved(design.chosen(players), goal, penalty)
    return found.new_zeros(len(design.seen), goal.shape[1]).scatter_(0, players, found)


def working_set(slope: Tensor, coefficients: Tensor, size: int) -> Tensor:
    """The players (size, n) that take part already and those with the steepest slopes; both given (players, n)."""
    return slope.abs().masked_fill(coefficients != 0, torch.inf).topk(size, dim=0).indices


def solved(design: Everybody | Chosen, goal: Tensor, penalty: float) -> Tensor:
    """The solutions (k, n) for goals (m, n): the ends of paths, solved again where these went astray."""
    found = followed(design, goal, penalty)
    rest = goal - design.sums(found)
    left = gap(goal, rest, found.abs().sum(0), design.slopes(rest).abs().amax(0), penalty)
    astray = (left > PROVEN / 10 * goal.square().sum(0) / 2).nonzero()[:, 0]
    columns = columns_of(design[astray])
    for sample, own in zip(astray.tolist(), columns, strict=True):
        found[:, sample] = by_active_set(own, goal[:, sample], found[:, sample], penalty)
    return found


def columns_of(design: Everybody | Chosen) -> Tensor:
    """All columns (n, k, m)."""
    if isinstance(design, Chosen):
        return design.all_columns
    players = torch.arange(len(design.seen), device=design.seen.device)
    return design.chosen(players[:, None].expand(-1, design.root.shape[1])).all_columns


def gap(goal: Tensor, rest: Tensor, length: Tensor, steepest: Tensor, penalty: float) -> Tensor:
    """How far the objectives can be above their optima, by duality: the rest, shrunk to be feasible, bounds them. (n,)

    goal, rest  (m, n)
    length      (n,), Σ |b|
    steepest    (n,), the largest |slope|
    """
    shrink = penalty / steepest.clamp(min=penalty)
    primal = rest.square().sum(0) / 2 + penalty * length
    dual = (goal.square() - (goal - shrink * rest).square()).sum(0) / 2
    return primal - dual


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
