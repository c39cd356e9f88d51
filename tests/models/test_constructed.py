"""Networks with weights set by hand: what they say they give is what all coalitions say."""

import pytest
import torch

from forsooth.games.players import parse
from forsooth.games.shapley import exact
from forsooth.games.values import game
from forsooth.models.constructed import UNITS, on_images


@pytest.mark.parametrize("build", UNITS)
def test_the_truth_is_the_exact_shapley_value(build):
    unit = build()
    words = unit.x.ndim == 3
    players = parse("words" if words else "features", tuple(unit.x.shape[1:]))
    values = exact(game(unit.model, unit.x, unit.target, players=players)).values
    truth = unit.truth.sum(2) if words else unit.truth
    torch.testing.assert_close(values, truth.double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("build", UNITS)
def test_the_slope_is_the_derivative(build):
    unit = build()
    leaf = unit.x.clone().requires_grad_()
    slope = torch.autograd.grad(unit.model(leaf)[:, 0].sum(), leaf)[0]
    if unit.slope is None:
        assert not slope.any()
    else:
        assert torch.cosine_similarity(slope.flatten(1), unit.slope.flatten(1)).min() > 0.999999


@pytest.mark.parametrize("build", UNITS[:4])
def test_images_of_quadrants_say_the_same(build):
    table = build()
    images = on_images(table)
    torch.testing.assert_close(images.model(images.x), table.model(table.x))
    quadrants = images.truth.unfold(2, 4, 4).unfold(3, 4, 4).sum((4, 5)).flatten(1)
    torch.testing.assert_close(quadrants, table.truth)
