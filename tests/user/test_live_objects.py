"""Whatever a method does to what it is handed, the doors ask the next one about the same model and inputs."""

import numpy as np
import pandas as pd
import pytest
import torch
from leaky_methods import inputs, weights
from torch import nn

import forsooth
from forsooth.progress import Silent


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))


DOORS = {
    "bias": (forsooth.bias, {"permutations": 20, "players": "grid:2"}),
    "independence": (forsooth.independence, {"patch": "grid:2"}),
}
X = np.random.default_rng(0).normal(size=(4, 1, 4, 4)).astype(np.float32)


def rows_of_gradient(door: str, *methods: object) -> pd.DataFrame:
    ask, words = DOORS[door]
    rows = ask(network(), X.copy(), methods=[*methods, "gradient"], progress=Silent(), **words).rows
    return rows[rows["method"].eq("gradient")].reset_index(drop=True)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("method", [weights, inputs, "leaky_methods:weights", "leaky_methods:autocast"], ids=str)
def test_who_was_asked_before_changes_no_row(door, method):
    expected = rows_of_gradient(door)
    assert len(expected) and rows_of_gradient(door, method).equals(expected)
