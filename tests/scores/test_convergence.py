from itertools import pairwise

import pytest
import torch
from scores.estimates import PLAYERS, close, drawn, exactly, pair_game_gains, sampled, times

from forsooth.games.shapley import Estimate
from forsooth.records import UsageError
from forsooth.scores.convergence import UNCONVERGED, instability, noise_share, variance_ratio, warning

NAN = float("nan")


def made_up(values: list[float], errors: list[float], permutations: int = 100) -> Estimate:
    """An estimate whose noise is set by hand."""
    mean, error = torch.tensor([values]).double(), torch.tensor([errors]).double()
    return Estimate(mean, error, mean[:, None].expand(-1, 2, -1), torch.full((2,), permutations / 2), permutations)


def test_warnings_say_how_many_permutations_are_needed() -> None:
    assert warning(exactly(drawn(3, 4))) == ["", "", ""]
    assert warning(exactly(torch.zeros(1, 4))) == [""]
    assert warning(made_up([3.0, 4.0], [1.0, 0.0])) == [""]  # 1 of 25
    noisy = made_up([3.0, 4.0], [0.0, 3.0])  # 9 of 25: noise 9, the rest 16; a tenth at 9 · 9 / 16 · 100 = 507
    assert warning(noisy) == [
        "Shapley values not converged: noise is 36 % of the squared norm; about 510 permutations needed instead of 100"
    ]
    converged = 16 + 9 * 100 / 510
    assert 0.098 < 9 * 100 / 510 / converged < UNCONVERGED
    assert warning(made_up([3.0, 4.0], [5.0, 1.0])) == [
        "Shapley values not converged: noise is 104 % of the squared norm; many more than 100 permutations needed"
    ]
    assert warning(made_up([3.0, 4.0], [NAN, NAN], 1)) == [
        "Shapley values not converged: their error is not known; at least two permutations needed"
    ]


@pytest.mark.parametrize("by", [1e200, 1e-200])
def test_the_unit_of_the_shapley_values_does_not_matter(by: float) -> None:
    gains = drawn(2, 12, 10, name="gains") + 1
    ordinary = sampled(gains, [3] * 4)
    other = times(ordinary, torch.full((2,), by, dtype=torch.float64))
    close(noise_share(other), noise_share(ordinary))
    close(
        variance_ratio(gains[:, 0], other, fraction=0.5, end="top"),
        variance_ratio(gains[:, 0], ordinary, fraction=0.5, end="top"),
    )


def test_instability_equals_all_pairs() -> None:
    draws = drawn(5, 3, 7, name="draws")
    expected = []
    for i in range(3):
        apart = [(draws[u, i] - draws[v, i]).abs().mean() for u in range(5) for v in range(5) if u != v]
        size = [draws[w, i].abs().mean() for w in range(5)]
        expected.append(float(sum(apart) / len(apart) / (sum(size) / len(size))))
    close(instability(draws), expected)
    close(instability(torch.tensor([[1.0, -1.0], [3.0, 1.0]])), [2 / 2, 2 / 1])  # scalars, two draws
    close(instability(torch.ones(3, 2, 4)), [0.0, 0.0])
    assert instability(torch.zeros(3, 1)).isnan()
    with pytest.raises(UsageError, match="`draws` must"):
        instability(torch.ones(1, 3))


def test_the_factor_of_proposition_1() -> None:
    players, m = 40, 1000
    independent = sampled(drawn(200, m, players, name="noise"), [40] * 25)
    a = drawn(200, players)
    for fraction in (0.1, 0.5):  # the paper's case
        ratio = 1 / (1 / variance_ratio(a, independent, fraction=fraction, end="top")).mean()
        assert abs(ratio / (fraction * players) - 1) < 0.05
    walks = sampled(pair_game_gains(1, 2000), [80] * 25)  # one input; gains of a walk have one sum
    ratios = [float(variance_ratio(drawn(1, PLAYERS), walks, fraction=f, end="top")) for f in (0.5, 0.7, 0.9)]
    assert all(one < other for one, other in pairwise(ratios)) and ratios[-1] > 0.9 * PLAYERS
    assert variance_ratio(a, exactly(a), fraction=0.5, end="top").isnan().all()
