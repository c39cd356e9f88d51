"""Shapley estimates made by hand, and a comparison to many digits."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from forsooth.games.shapley import Estimate
from forsooth.seeds import generator


def drawn(*shape: int, name: str = "a") -> Tensor:
    return torch.randn(*shape, generator=generator(0, name), dtype=torch.float64)


def exactly(values: Tensor) -> Estimate:
    """The record of values that are known without error."""
    values = values.double()
    return Estimate(values, torch.zeros_like(values), values[:, None], torch.ones(1, dtype=torch.float64), 0)


def sampled(gains: Tensor, sizes: list[int]) -> Estimate:
    """The record of the gains (n, m, players) of m permutations, in groups of the given sizes."""
    m = gains.shape[1]
    assert sum(sizes) == m
    groups = torch.stack([part.mean(1) for part in gains.split(sizes, dim=1)], dim=1)
    error = gains.std(1) / math.sqrt(m)
    return Estimate(gains.mean(1), error, groups, torch.tensor(sizes, dtype=torch.float64), m)


def times(estimate: Estimate, by: Tensor) -> Estimate:
    """The record of each game in a unit of its own, by (n,) times as small."""
    many = by.double()[:, None]
    return replace(
        estimate, values=many * estimate.values, error=many * estimate.error, groups=many[:, None] * estimate.groups
    )


def close(got: Tensor, expected: Tensor | list[float], atol: float = 1e-13) -> None:
    torch.testing.assert_close(
        got, torch.as_tensor(expected, dtype=torch.float64), rtol=1e-11, atol=atol, equal_nan=True
    )


PLAYERS = 12
ALONE = drawn(PLAYERS, name="alone")
TOGETHER = torch.triu(drawn(PLAYERS, PLAYERS, name="together"), diagonal=1)


def pair_game_gains(n: int, m: int) -> Tensor:
    """Gains (n, m, players) over random orders of v(T) = Σ alone_i + Σ_{i<j} together_ij: a pair pays who is last."""
    ranks = torch.rand(n, m, PLAYERS, generator=generator(0, "walks")).argsort(2)
    earlier = (ranks[:, :, None, :] < ranks[..., None]).double()  # (n, m, i, j): j is there before i
    return ALONE + (earlier * (TOGETHER + TOGETHER.T)).sum(3)
