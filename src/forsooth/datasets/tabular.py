"""A generated table whose label depends on single features, pairs and a triple, and on nothing else."""

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from forsooth.datasets.splitting import arrange
from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator

DECAY = 0.4  # correlation of neighbours; of features i and j it is DECAY ** |i - j|
SHARPNESS = 8.0  # standard deviation of the logit: the best possible accuracy is about 92 %


def interactions(*, n: int = 4000, features: int = 10, seed: int) -> Dataset:
    """Correlated features and a logistic label with main effects, pair and triple products, and idle features.

    x      (n, features) float32, each feature with mean 0 and variance 1
    y      (n,) int in {0, 1}, as many of the one as of the other in expectation
    truth  (n, features) bool, the features that enter the logit; the same for every row

    Neighbours in an order drawn by seed correlate, so an idle feature says something of the label without entering it.
    Half of the features that matter act alone, the others only in products. `facts` hold every coefficient:
    P(y = 1) = sigmoid(intercept + the sum over groups of coefficient * product of the group's features). Stands in
    for the tables of [anonymous2023evaluation] where none is at hand.
    """
    if features < 5:
        raise UsageError(f"`features` must be at least 5 (single, pair, triple and idle ones), got {features}")
    if n < 100:
        raise UsageError(f"`n` must be at least 100, got {n}")
    x = correlated(n, features, seed=seed)
    rule, chance = draw_rule(x, seed=seed)
    y = (torch.rand(n, generator=generator(seed, "labels"), dtype=torch.float64) < chance).long()
    truth = torch.zeros(features, dtype=torch.bool)
    truth[list(chain.from_iterable(rule.groups))] = True
    splits, _ = arrange([None] * n, y, seed=seed, names=("0", "1"))
    facts = {
        "features": named(range(features)),
        "classes": ["0", "1"],
        "groups": [named(group) for group in rule.groups],
        "coefficients": rule.weights.tolist(),
        "intercept": rule.intercept,
        "irrelevant": named((~truth).nonzero()[:, 0].tolist()),
        "correlation": DECAY,
        "best_accuracy": float(torch.maximum(chance, 1 - chance).mean()),
    }
    return Dataset(f"interactions-{features}", x.float(), y, truth.expand(n, -1), splits, facts)


def named(columns: Iterable[int]) -> list[str]:
    """What the features of these numbers are called."""
    return [f"x{k}" for k in columns]


class Rule(NamedTuple):
    """The logit: intercept + the sum over groups of weight (groups,) * product of the group's features."""

    groups: list[list[int]]
    weights: Tensor
    intercept: float


def draw_rule(x: Tensor, *, seed: int) -> tuple[Rule, Tensor]:
    """A rule for x (n, features), and the chance (n,) of y = 1 by it, as often above one half as below."""
    groups = draw_groups(x.shape[1], seed=seed)
    weights = draw_weights(len(groups), seed=seed)
    logit = torch.stack([x[:, group].prod(1) for group in groups], 1) @ weights
    scale = SHARPNESS / logit.std()
    logit = logit * scale
    intercept = -logit.median()
    return Rule(groups, weights * scale, float(intercept)), (logit + intercept).sigmoid()


def correlated(n: int, features: int, *, seed: int) -> Tensor:
    """(n, features) float64 of Gaussians, standardised, correlated as DECAY ** distance in a random order."""
    g = generator(seed, "features")
    place = torch.randperm(features, generator=g)
    covariance = DECAY ** (place[:, None] - place).abs().double()
    x = torch.randn(n, features, generator=g, dtype=torch.float64) @ torch.linalg.cholesky(covariance).T
    return ((x - x.mean(0)) / x.std(0)).float().double()  # the label is made from what the user sees, in float32


def draw_groups(features: int, *, seed: int) -> list[list[int]]:
    """Which features enter the logit together: singles, pairs and one triple over seven tenths of the features."""
    order = torch.randperm(features, generator=generator(seed, "groups")).tolist()
    count = max(4, round(0.7 * features))
    half = (count + 1) // 2
    alone = order[:half]
    joint = order[half:count]
    singles = [[k] for k in alone]
    pairs = [sorted(pair) for pair in zip(alone, joint[:-1], strict=False)]
    triple = sorted((alone[len(joint) - 1], *joint[-2:]))
    return [*singles, *pairs, triple]


def draw_weights(count: int, *, seed: int) -> Tensor:
    """(count,) float64 of either sign, 0.7 to 1.3 in size."""
    g = generator(seed, "weights")
    size = 0.7 + 0.6 * torch.rand(count, generator=g, dtype=torch.float64)
    return size * (2 * torch.randint(0, 2, (count,), generator=g) - 1)
