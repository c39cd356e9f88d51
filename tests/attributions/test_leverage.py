import math

import torch
from attributions import nets
from pytest import mark, raises
from torch import nn

from forsooth.attributions.leverage import layer_shares, leverage_coalitions, leverage_shap
from forsooth.games.shapley import exact
from forsooth.games.values import game
from forsooth.records import UsageError
from forsooth.seeds import generator

TARGET = torch.tensor([0, 1, 1, 0])
X = nets.inputs(4, 10)
MODEL = nets.drawn(nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 2)))


def test_with_all_coalitions_it_is_exact() -> None:
    ours = leverage_shap(MODEL, X, TARGET, generator=generator(0, "a"), samples=2**10)
    played = game(MODEL, X, TARGET)
    torch.testing.assert_close(ours, played.map(exact(played).values), rtol=0, atol=1e-7)


@mark.parametrize("count", [4, 9, 16])
def test_coalitions_come_in_pairs_and_none_twice(count: int) -> None:
    masks = leverage_coalitions(count, 60, generator(0, "b"))
    rows = {tuple(mask) for mask in masks.tolist()}
    assert len(rows) == len(masks) <= 2**count - 2
    assert all(tuple(not member for member in row) in rows for row in rows)


def test_sizes_are_drawn_alike() -> None:
    shares = layer_shares(13, 600)
    assert shares[1] == 13 and sum(shares.values()) <= 300
    assert max(shares.values()) - min(list(shares.values())[1:]) <= max(1, 78 - shares[2]) + 1
    assert all(share <= math.comb(13, size) for size, share in shares.items())


def test_the_error_falls_with_samples() -> None:
    played = game(MODEL, X, TARGET)
    truth = played.map(exact(played).values)
    errors = []
    for samples in (20, 100, 500):
        own = nets.own(1)
        ours = leverage_shap(MODEL, X, TARGET, generator=generator(0, "c"), generators=own, samples=samples)
        errors.append((ours - truth).square().mean().item())
    assert errors[0] > errors[1] > errors[2]
    with raises(UsageError, match="`samples` must be at least 2, got 1"):
        leverage_shap(MODEL, X, TARGET, generator=generator(0, "c"), samples=1)
