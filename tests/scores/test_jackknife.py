"""The error of means over inputs from groups of permutations, against the formula written out."""

import numpy as np
import pytest
import torch
from scores.estimates import drawn, exactly, pair_game_gains, sampled

from forsooth.scores.bias import PAIRS, all_biases, m_bias, replicates
from forsooth.scores.jackknife import jackknife, jackknife_parts

SIZES = [3, 4, 4, 5, 4]
SHAPLEY = sampled(pair_game_gains(6, 20), SIZES)
MAPS = [drawn(6, 12, name="one"), drawn(6, 12, name="two"), torch.ones(6, 12), torch.zeros(6, 12)]


def without(group: int):
    """The estimate from all permutations but those of one group."""
    kept = torch.cat([part for k, part in enumerate(pair_game_gains(6, 20).split(SIZES, dim=1)) if k != group], dim=1)
    return exactly(kept.mean(1))


def test_replicates_are_m_bias_of_every_map() -> None:
    values, left = replicates(MAPS, SHAPLEY)
    assert values.shape == (4, 6, 10) and left.shape == (4, 6, 5)
    for k, attribution in enumerate(MAPS):
        own = all_biases(attribution, SHAPLEY)
        expected = torch.stack([own[pair].value for pair in PAIRS], dim=1)
        torch.testing.assert_close(values[k], expected, rtol=0, atol=0, equal_nan=True)
    assert values[3].isnan().all() and left[3].isnan().all()
    assert values[0, 0, 0].item() == pytest.approx(0.1693869105830467, rel=1e-12)
    assert left[0, 0, 0].item() == pytest.approx(0.33319004556793075, rel=1e-12)


@pytest.mark.parametrize("group", range(5))
def test_replicates_leave_the_permutations_of_a_group_out(group: int) -> None:
    pairs = (("top", 0.5), ("bottom", 0.3))
    _, left = replicates(MAPS[:2], SHAPLEY, pairs=pairs)
    for k, attribution in enumerate(MAPS[:2]):
        again = [m_bias(attribution, without(group), fraction=fraction, end=end).value for end, fraction in pairs]
        torch.testing.assert_close(left[k, :, group], (again[0] + again[1]) / 2)


def test_parts_are_the_jackknife_of_the_mean_over_inputs() -> None:
    values, left = (part[:3].numpy() for part in replicates(MAPS, SHAPLEY))
    parts = jackknife_parts(values.mean(2), left, SHAPLEY.sizes)
    assert parts is not None and parts.shape == (3, 5)
    assert parts[0, 4] == pytest.approx(-0.004042808529603823, rel=1e-10)
    means = torch.from_numpy(values.mean(2).mean(1)), torch.from_numpy(left.mean(1))
    np.testing.assert_allclose(np.sqrt((parts**2).sum(1)), jackknife(*means, SHAPLEY.sizes).numpy(), rtol=1e-12)
    for m in range(3):
        ratios = [20 / size for size in SIZES]
        whole = values.mean(2)[m].mean()
        pseudo = [h * whole - (h - 1) * left[m, :, g].mean() for g, h in enumerate(ratios)]
        centre = sum(p / h for p, h in zip(pseudo, ratios, strict=True))
        expected = [(p - centre) / ((h - 1) * 5) ** 0.5 for p, h in zip(pseudo, ratios, strict=True)]
        np.testing.assert_allclose(parts[m], expected, rtol=1e-10, atol=1e-15)


def test_nothing_sampled_has_no_parts() -> None:
    values, left = replicates(MAPS[:1], exactly(drawn(6, 12, name="exact")))
    assert jackknife_parts(values.mean(2).numpy(), left.numpy(), torch.ones(1)) is None
    assert jackknife_parts(np.zeros((2, 0)), np.zeros((2, 0, 5)), SHAPLEY.sizes) is None
