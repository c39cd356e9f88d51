import math
from dataclasses import replace
from itertools import combinations, pairwise, permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scores.estimates import ALONE, TOGETHER, close, drawn, exactly, pair_game_gains, sampled, times
from torch import Tensor

from forsooth.records import UsageError
from forsooth.scores.bias import (
    ENDS,
    FRACTIONS,
    NORMS,
    PAIRS,
    accurate_bias,
    all_biases,
    chosen,
    deep_shap_distance,
    group_size,
    m_bias,
    replicates,
    too_few,
    unit,
)
from forsooth.scores.convergence import noise_share
from forsooth.scores.norms import scaled
from forsooth.seeds import generator

NAN, INF = float("nan"), float("inf")


def literal(a: list[float], shapley: list[float], fraction: float, end: str) -> float:
    """Equation 3, word for word, for values without ties."""
    size = round(fraction * len(a))
    s = sorted(range(len(a)), key=lambda i: a[i], reverse=end == "top")[:size]
    norm_a = sum(v**2 for v in a) ** 0.5
    norm_shapley = sum(v**2 for v in shapley) ** 0.5
    return abs(sum(a[i] for i in s) / norm_a - sum(shapley[i] for i in s) / norm_shapley) / size


@pytest.mark.parametrize("players", [10, 23])
def test_equals_equation_3(players: int) -> None:
    a, shapley = drawn(4, players), drawn(4, players, name="A")
    biases = all_biases(a, exactly(shapley))
    assert set(biases) == set(PAIRS) and len(PAIRS) == 10
    for (end, fraction), bias in biases.items():
        rows = zip(a.tolist(), shapley.tolist(), strict=True)
        close(bias.value, [literal(*row, fraction, end) for row in rows])
        alone = m_bias(a, exactly(shapley), fraction=fraction, end=end)
        assert torch.equal(alone.value, bias.value)
        assert torch.equal(bias.error, torch.zeros(4, dtype=torch.float64))


def test_by_hand() -> None:
    a = torch.tensor([[4.0, -3.0, 0.0, 0.0]])  # ‖a‖ = 5
    shapley = torch.tensor([[1.0, 2.0, -2.0, 0.0]])  # ‖A‖ = 3
    top = m_bias(a, exactly(shapley), fraction=0.25, end="top")
    close(top.first, [4 / 5])
    close(top.anchor, [1 / 3])
    close(top.value, [4 / 5 - 1 / 3])
    bottom = m_bias(a, exactly(shapley), fraction=0.5, end="bottom")  # player 1, and half of players 2 and 3
    close(bottom.first, [-3 / 5 / 2])
    close(bottom.anchor, [(2 - 2 / 2) / 3 / 2])
    close(bottom.value, [0.3 + 1 / 6])
    close(m_bias(a, exactly(shapley), fraction=0.5, end="bottom", ties="first").anchor, [(2 - 2) / 3 / 2])


@pytest.mark.parametrize("players", [10, 16, 1024])
def test_a_constant_map_gives_one_over_root_n(players: int) -> None:
    shapley = exactly(drawn(3, players, name="A"))
    for ties in ("share", "first"):
        for bias in all_biases(torch.full((3, players), 0.7), shapley, ties=ties).values():
            close(bias.first, [players**-0.5] * 3)
            close(bias.value, (players**-0.5 - bias.anchor).abs())


def test_exact_shapley_values_have_no_bias() -> None:
    shapley = drawn(5, 12, name="A")
    for bias in all_biases(3 * shapley, exactly(shapley)).values():
        close(bias.value, [0.0] * 5)


def test_bias_of_the_exact_values_falls_as_the_anchor_is_sampled_more() -> None:
    true, repetitions = ALONE + (TOGETHER + TOGETHER.T).sum(1) / 2, 20
    means = []
    for m in (30, 300, 3000):
        biases = all_biases(true.expand(repetitions, -1), sampled(pair_game_gains(repetitions, m), [m // 10] * 10))
        values, errors = (torch.stack([getattr(bias, name) for bias in biases.values()]) for name in ("value", "error"))
        means.append(values.mean())
        assert (values < 3 * errors).double().mean() > 0.95
    for fewer, more in pairwise(means):
        assert 0.75 < fewer / more / math.sqrt(10) < 1.33
    assert means[-1] < 0.003


maps = st.lists(st.integers(-4, 4), min_size=10, max_size=14).filter(any)


@settings(deadline=None, max_examples=40)
@given(maps, st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.sampled_from(PAIRS))
def test_positive_scales_do_not_matter(values, by, other, pair):
    a, shapley = torch.tensor([values]).double(), drawn(1, len(values), name="A")
    one = m_bias(a, exactly(shapley), end=pair[0], fraction=pair[1])
    two = m_bias(by * a, exactly(other * shapley), end=pair[0], fraction=pair[1])
    for name in ("value", "first", "anchor"):
        close(getattr(two, name), getattr(one, name))


def test_any_scale_of_the_map() -> None:
    a, shapley = drawn(3, 10), exactly(drawn(3, 10, name="A"))
    for by in (1e300, 1e-300):
        close(m_bias(by * a, shapley, fraction=0.3, end="top").value, m_bias(a, shapley, fraction=0.3, end="top").value)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("by", [2.0**1000, 1e200, 1e155, 1e-155, 1e-170, 2.0**-1000])
def test_any_scale_of_the_shapley_values(by: float, norm: str) -> None:
    """A model may count in any unit. Each row has its own, and whoever counts in an ordinary one stays as he was."""
    shapley = sampled(drawn(3, 12, 10, name="gains") + 1, [3] * 4)
    other = times(shapley, torch.tensor([by, by, 1.0], dtype=torch.float64))
    for pair, bias in all_biases(drawn(3, 10), shapley, norm=norm).items():
        moved = all_biases(drawn(3, 10), other, norm=norm)[pair]
        for name in ("value", "error", "anchor"):
            close(getattr(moved, name), getattr(bias, name))
            assert torch.equal(getattr(moved, name)[2], getattr(bias, name)[2])


@pytest.mark.parametrize("by", [1e200, 1e-200])
def test_any_scale_of_replicates(by: float) -> None:
    shapley = sampled(drawn(3, 12, 10, name="gains"), [3] * 4)
    other = times(shapley, torch.full((3,), by, dtype=torch.float64))
    for moved, ordinary in zip(replicates([drawn(3, 10)], other), replicates([drawn(3, 10)], shapley), strict=True):
        close(moved, ordinary)


def test_ordinary_shapley_values_are_not_touched() -> None:
    shapley = sampled(1e60 * drawn(3, 12, 10, name="gains"), [3] * 4)
    assert scaled(shapley) is shapley
    still = exactly(torch.zeros(2, 4))
    assert scaled(still) is still


def test_a_single_permutation_of_huge_gains_is_an_anchor() -> None:
    """Its error is not known, and it is no larger than its values."""
    alone = exactly(drawn(2, 10, name="A"))
    alone = replace(alone, error=torch.full_like(alone.error, NAN), permutations=1)
    huge = times(alone, torch.full((2,), 1e200, dtype=torch.float64))
    close(
        m_bias(drawn(2, 10), huge, fraction=0.3, end="top").value,
        m_bias(drawn(2, 10), alone, fraction=0.3, end="top").value,
    )


@settings(deadline=None, max_examples=40)
@given(maps, st.sampled_from(FRACTIONS), st.sampled_from(["share", "first"]))
def test_top_of_a_is_bottom_of_minus_a(values, fraction, ties):
    a = torch.tensor([values])
    top, bottom = (
        chosen(sign * a, fraction=fraction, end=end, ties=ties) for sign, end in zip((1, -1), ENDS, strict=True)
    )
    assert torch.equal(top, bottom)


@settings(deadline=None, max_examples=40)
@given(maps, st.sampled_from(PAIRS), st.randoms())
def test_with_shared_places_the_order_of_players_does_not_matter(values, pair, random):
    order = list(range(len(values)))
    random.shuffle(order)
    a, shapley = torch.tensor([values]), drawn(1, len(values), name="A")
    one = m_bias(a, exactly(shapley), end=pair[0], fraction=pair[1])
    two = m_bias(a[:, order], exactly(shapley[:, order]), end=pair[0], fraction=pair[1])
    close(two.value, one.value)
    s = chosen(a, end=pair[0], fraction=pair[1])
    close(s.sum(1), [group_size(len(values), pair[1])])
    for i in range(len(values)):  # equal values, equal weights
        assert len({float(w) for w, v in zip(s[0], values, strict=True) if v == values[i]}) == 1


def test_shared_places_are_the_mean_over_all_ways_to_break_the_tie() -> None:
    a = [2, 1, 1, 0, 1]
    orders = list(permutations(range(5)))
    for end, fraction, size in (("top", 0.4, 2), ("bottom", 0.6, 3), ("top", 0.8, 4)):
        hits = [0] * 5
        for order in orders:
            for i in sorted(order, key=lambda i: a[i], reverse=end == "top")[:size]:
                hits[i] += 1
        close(chosen(torch.tensor([a]), fraction=fraction, end=end), [[hit / len(orders) for hit in hits]])


@pytest.mark.parametrize("end", ENDS)
def test_first_is_a_stable_sort(end: str) -> None:
    a = torch.randint(0, 3, (6, 20), generator=generator(0, "ties"))
    for fraction in FRACTIONS:
        size = round(20 * fraction)
        first = a.argsort(dim=1, descending=end == "top", stable=True)[:, :size]
        expected = torch.zeros(6, 20, dtype=torch.float64).scatter(1, first, 1.0)
        assert torch.equal(chosen(a, fraction=fraction, end=end, ties="first"), expected)


def literal_jackknife(gains: Tensor, sizes: list[int], s: list[int], split: bool) -> float:
    """Leave each group of permutations out, compute β_S anew from what is left; [busing1999delete], their formula."""

    def beta(left: Tensor, noise: float) -> float:
        mean = left.mean(0)
        return float(mean[s].mean() / (mean.square().sum() - noise / len(left)).sqrt())

    m, g = len(gains), len(sizes)
    noise = float(gains.var(0).sum()) if split else 0.0  # of one permutation
    whole, starts = beta(gains, noise), [sum(sizes[:k]) for k in range(g)]
    left = [
        beta(torch.cat([gains[:start], gains[start + size :]]), noise)
        for start, size in zip(starts, sizes, strict=True)
    ]
    centre = g * whole - sum((1 - size / m) * one for size, one in zip(sizes, left, strict=True))
    ratios = [m / size for size in sizes]
    pseudo = [h * whole - (h - 1) * one for h, one in zip(ratios, left, strict=True)]
    return (sum((p - centre) ** 2 / (h - 1) for p, h in zip(pseudo, ratios, strict=True)) / g) ** 0.5


@pytest.mark.parametrize("norm", ["plain", "split"])
def test_error_equals_leaving_out_permutations(norm: str) -> None:
    gains, sizes = drawn(2, 30, 10, name="gains") + 2 * drawn(2, 1, 10, name="A"), [7, 7, 6, 5, 5]
    a, shapley = drawn(2, 10), sampled(gains, sizes)
    got = m_bias(a, shapley, fraction=0.3, end="top", norm=norm)
    s = a.argsort(dim=1, descending=True)[:, :3].tolist()
    close(got.error, [literal_jackknife(gains[i], sizes, s[i], norm == "split") for i in range(2)])


@pytest.mark.parametrize("norm", ["plain", "split"])
def test_error_is_the_spread_over_repetitions(norm: str) -> None:
    """Correlated players, errors that are a large part of the norm, groups of unequal size."""
    repetitions, m, players = 400, 110, 20
    mixing = torch.eye(players) + 0.3 * drawn(players, players, name="mixing")
    noise = drawn(repetitions, m, players, name="noise") @ mixing
    gains = 2 * noise + drawn(players, name="A")
    a = drawn(players).expand(repetitions, -1)
    for end, fraction in (("top", 0.1), ("bottom", 0.5), ("top", 0.9)):
        got = m_bias(a, sampled(gains, [5] * 18 + [10] * 2), fraction=fraction, end=end, norm=norm)
        spread = got.anchor.std()
        assert 0.75 < got.error.square().mean().sqrt() / spread < 1.25


def test_split_norm_is_the_mean_over_pairs_of_permutations() -> None:
    gains = drawn(1, 8, 10, name="gains") + 1
    pairs = [float(gains[0, k] @ gains[0, j]) for k, j in combinations(range(8), 2)]
    shapley = sampled(gains, [2] * 4)
    a = drawn(1, 10)
    plain, split = (m_bias(a, shapley, fraction=0.5, end="top", norm=norm) for norm in ("plain", "split"))
    mean = plain.anchor * shapley.values.norm()
    close(split.anchor, mean / (sum(pairs) / len(pairs)) ** 0.5)
    assert torch.equal(split.first, plain.first)


def test_split_norm_finds_the_anchor_that_noise_hides() -> None:
    players, m, repetitions = 400, 20, 60
    true = drawn(1, players, name="A")
    gains = true[:, None] + 4 * drawn(repetitions, m, players, name="noise")
    a, wanted = true.expand(repetitions, -1), float(m_bias(true, exactly(true), fraction=0.1, end="top").anchor)
    shapley = sampled(gains, [2] * 10)
    plain, split = (m_bias(a, shapley, fraction=0.1, end="top", norm=norm).anchor.mean() for norm in ("plain", "split"))
    assert 0.70 < plain / wanted < 0.80  # 1 / √(1 + 16 / 20) = 0.75
    assert 0.97 < split / wanted < 1.03
    close(noise_share(shapley).mean(), torch.tensor(16 / 20 / (1 + 16 / 20)), atol=0.02)


def test_nothing_left_of_the_norm_is_nan() -> None:
    gains = drawn(40, 10, 12, name="noise")  # no signal at all: the split norm is negative half of the time
    shapley = sampled(gains, [2] * 5)
    got = m_bias(drawn(40, 12), shapley, fraction=0.5, end="top", norm="split")
    negative = shapley.values.square().sum(1) < shapley.error.square().sum(1)
    assert 0 < negative.sum() < 40
    assert torch.equal(got.value.isnan(), negative)
    assert got.error[negative].isnan().all()
    assert m_bias(drawn(40, 12), shapley, fraction=0.5, end="top").value.isfinite().all()


def test_undefined_is_nan_and_touches_no_other_row() -> None:
    a = drawn(5, 10)
    a[0], a[1, 3], a[2, 3] = 0.0, NAN, INF
    shapley = drawn(5, 10, name="A")
    shapley[3] = 0.0
    for end, fraction in PAIRS:
        got = m_bias(a, exactly(shapley), fraction=fraction, end=end)
        assert got.value.isnan().tolist() == got.error.isnan().tolist() == [True] * 4 + [False]
        close(got.value[4:], [literal(a[4].tolist(), shapley[4].tolist(), fraction, end)])
    assert m_bias(a[:0], exactly(shapley[:0]), fraction=0.5, end="top").value.shape == (0,)
    alone = sampled(drawn(5, 4, 10, name="gains"), [4])  # one group tells nothing about the error
    assert m_bias(drawn(5, 10), alone, fraction=0.5, end="top").error.isnan().all()


def test_less_than_one_player_is_nan_with_a_reason() -> None:
    biases = all_biases(drawn(2, 9), exactly(drawn(2, 9, name="A")))
    for (end, fraction), bias in biases.items():
        assert bias.value.isnan().all() == (fraction == 0.1), (end, fraction)
    assert too_few(9, 0.1) == "10 % of 9 players is less than one player; it takes at least 10"
    assert too_few(3, 0.3) == "30 % of 3 players is less than one player; it takes at least 4"
    assert too_few(10, 0.1) == too_few(4, 0.3) == ""
    assert [group_size(10, fraction) for fraction in FRACTIONS] == [1, 3, 5, 7, 9]
    assert [group_size(1024, fraction) for fraction in FRACTIONS] == [102, 307, 512, 717, 922]
    assert group_size(49, 1 / 49) == 1


def test_bad_input_is_named() -> None:
    a, shapley = drawn(2, 10), exactly(drawn(2, 10, name="A"))
    with pytest.raises(
        UsageError, match=r"`attribution` must have the shape of the Shapley values \(2, 10\), got \(2, 9\)"
    ):
        m_bias(a[:, 1:], shapley, fraction=0.5, end="top")
    with pytest.raises(UsageError, match=r"`attribution` must have shape \(n, players\), got \(2, 2, 5\)"):
        chosen(a.view(2, 2, 5), fraction=0.5, end="top")
    with pytest.raises(UsageError, match=r"`attribution` must be real numbers .*, got torch.complex128 of shape"):
        m_bias(a.to(torch.complex128), shapley, fraction=0.5, end="top")
    with pytest.raises(UsageError, match="`end` must be one of top, bottom, got 'left'"):
        m_bias(a, shapley, fraction=0.5, end="left")
    with pytest.raises(UsageError, match="`norm` must be one of plain, split, got 'l1'"):
        m_bias(a, shapley, fraction=0.5, end="top", norm="l1")
    with pytest.raises(UsageError, match="`ties` must be one of share, first, got 'last'"):
        m_bias(a, shapley, fraction=0.5, end="top", ties="last")
    for fraction in (0.0, 1.0, -0.1, 10, NAN):
        with pytest.raises(UsageError, match=f"`fraction` must lie strictly between 0 and 1, got {fraction}"):
            m_bias(a, shapley, fraction=fraction, end="top")
    with pytest.raises(UsageError, match="`ranked_by` must be one of attribution, reference, got 'both'"):
        deep_shap_distance(a, a, fraction=0.5, end="top", ranked_by="both")
    with pytest.raises(UsageError, match=r"`attribution` must have the shape of the reference \(2, 9\), got \(2, 10\)"):
        deep_shap_distance(a, a[:, 1:], fraction=0.5, end="top")


def test_deep_shap_distance_by_hand() -> None:
    a, deep = torch.tensor([[4.0, -3.0, 0.0, 0.0]]), torch.tensor([[1.0, 2.0, -2.0, 0.0]])
    close(deep_shap_distance(a, deep, fraction=0.25, end="top"), [4 / 5 - 1 / 3])  # player 0 leads a
    close(deep_shap_distance(a, deep, fraction=0.25, end="top", ranked_by="reference"), [3 / 5 + 2 / 3])  # player 1
    many, other = drawn(3, 20), drawn(3, 20, name="A")
    for end, fraction in PAIRS:
        same = m_bias(many, exactly(other), fraction=fraction, end=end).value
        close(deep_shap_distance(many, other, fraction=fraction, end=end), same)
        swapped = m_bias(other, exactly(many), fraction=fraction, end=end).value
        close(deep_shap_distance(many, other, fraction=fraction, end=end, ranked_by="reference"), swapped)


def test_accurate_bias_by_hand() -> None:
    a, shapley = torch.tensor([[4.0, 3.0, 0.0, 0.0]]), torch.tensor([[1.0, 2.0, -2.0, 0.0]])
    got = accurate_bias(a, exactly(shapley), fraction=0.5, end="top")
    close(got, [((4 / 5 - 1 / 3) + (2 / 3 - 3 / 5)) / 2])
    close(m_bias(a, exactly(shapley), fraction=0.5, end="top").value, [((4 / 5 - 1 / 3) - (2 / 3 - 3 / 5)) / 2])
    many, other = drawn(30, 20), exactly(drawn(30, 20, name="A"))
    for end, fraction in PAIRS:
        group = m_bias(many, other, fraction=fraction, end=end).value
        assert (accurate_bias(many, other, fraction=fraction, end=end) >= group - 1e-12).all()


def test_unit_rows() -> None:
    close(unit(torch.tensor([[3.0, -4.0], [0.0, 0.0], [1.0, INF]])), [[0.6, -0.8], [NAN, NAN], [NAN, NAN]])
