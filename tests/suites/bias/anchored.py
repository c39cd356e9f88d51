"""Anchors and maps of a few players, as cells."""

import torch

from forsooth.games.shapley import Estimate
from forsooth.records import Cell
from forsooth.suites.bias import anchor as anchors


def an_anchor(seed: int, n: int = 3, players: int = 20) -> Estimate:
    drawn = torch.Generator().manual_seed(seed)
    groups = torch.randn(n, 4, players, generator=drawn).double() + torch.arange(players)
    values = groups.mean(1)
    return Estimate(values, groups.std(1) / 2, groups, torch.ones(4).double(), 4)


def cell_of(estimate: Estimate) -> Cell:
    samples = torch.arange(len(estimate.values)) + 5
    return Cell(tensors=anchors.packed(estimate, samples), facts={"permutations": 4})


def maps_of(seed: int) -> Cell:
    return Cell(tensors={"players": torch.randn(3, 20, generator=torch.Generator().manual_seed(seed)).double()})
