import itertools
import math
from collections.abc import Iterator

import numpy
import torch
from attributions import nets
from captum.attr import KernelShap, ShapleyValueSampling
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import MonkeyPatch, approx, mark, raises
from sklearn.linear_model import LinearRegression
from torch import Tensor

from forsooth.attributions import shapley
from forsooth.attributions.shapley import (
    coalitions,
    kernel_shap,
    kernel_shap_unconstrained,
    least_norm_fit,
    shapley_value_sampling,
)
from forsooth.games.players import patches
from forsooth.games.values import Model
from forsooth.games.walks import orders
from forsooth.records import UsageError
from forsooth.seeds import generator

X = nets.inputs(3, 1, 4, 4)
TARGET = torch.tensor([0, 1, 1])
BASELINE = nets.inputs(1, 1, 4, 4, seed=2)[0]
MODEL = nets.drawn(nets.cnn(4))
ALL = 10**6  # more coalitions than any game here has

worths = st.integers(1, 5).flatmap(
    lambda players: st.lists(st.integers(-9, 9), min_size=2**players, max_size=2**players)
)


def table(worth: list[float] | Tensor) -> tuple[Model, Tensor]:
    """A game given by the worth of each coalition (bit i: player i), as a model of 0/1 inputs, and its full input."""
    values = torch.as_tensor(worth, dtype=torch.float64)
    bits = 2 ** torch.arange(round(math.log2(len(values))))

    def model(x: Tensor) -> Tensor:
        return values[(x.long() * bits).sum(dim=1)][:, None]

    return model, torch.ones(1, len(bits), dtype=torch.float64)


def exact(worth: list[float] | Tensor) -> list[float]:
    """Shapley values by the definition: the mean gain over all orders of joining."""
    players = round(math.log2(len(worth)))
    phi = [0.0] * players
    for order in itertools.permutations(range(players)):
        inside = 0
        for player in order:
            phi[player] += float(worth[inside | 1 << player] - worth[inside]) / math.factorial(players)
            inside |= 1 << player
    return phi


def solved(worth: list[float] | Tensor) -> list[float]:
    model, x = table(worth)
    return kernel_shap(model, x, torch.tensor([0]), generator=generator(0), samples=ALL)[0].tolist()


@settings(max_examples=40, deadline=None)
@given(worths)
def test_kernel_shap_with_all_coalitions_is_exact_and_efficient(worth: list[int]) -> None:
    phi = solved(worth)
    assert phi == approx(exact(worth), abs=1e-7)
    assert sum(phi) == approx(worth[-1] - worth[0], abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=8, max_size=8), st.integers(-9, 9))
def test_kernel_shap_gives_a_dummy_its_own(worth: list[int], alone: int) -> None:
    assert solved(worth + [value + alone for value in worth])[3] == approx(alone, abs=1e-7)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=12, max_size=12))
def test_kernel_shap_treats_the_like_alike(by_others_and_size: list[int]) -> None:
    """Players 0 and 1 matter only by how many of them are there."""
    worth = [by_others_and_size[3 * (s >> 2) + (s & 1) + (s >> 1 & 1)] for s in range(16)]
    phi = solved(worth)
    assert phi[0] == approx(phi[1], abs=1e-7)


@settings(max_examples=20, deadline=None)
@given(*[st.lists(st.integers(-9, 9), min_size=16, max_size=16)] * 2)
def test_kernel_shap_is_linear(one: list[int], other: list[int]) -> None:
    both = [a + 2 * b for a, b in zip(one, other, strict=True)]
    expected = [a + 2 * b for a, b in zip(solved(one), solved(other), strict=True)]
    assert solved(both) == approx(expected, abs=1e-7)


@settings(max_examples=15, deadline=None)
@given(worths)
def test_sampling_over_all_permutations_is_exact(worth: list[int]) -> None:
    model, x = table(worth)
    every = torch.tensor(list(itertools.permutations(range(x.shape[1]))))
    with MonkeyPatch.context() as patch:
        patch.setattr("forsooth.games.walks.orders", lambda *_: [every])
        ours = shapley_value_sampling(model, x, torch.tensor([0]), generator=generator(0), permutations=len(every))
    assert ours[0].tolist() == approx(exact(worth), abs=1e-9)


def test_sampling_equals_captum_on_the_same_permutations() -> None:
    players, ranks = patches((1, 4, 4), 3), next(orders(9, 6, generator(7), torch.device("cpu")))
    theirs = ShapleyValueSampling(MODEL)
    theirs.permutation_generator = lambda features, samples: ranks.argsort(dim=1).tolist()
    expected = theirs.attribute(X, BASELINE[None], target=TARGET, feature_mask=players[None, None], n_samples=6)
    ours = shapley_value_sampling(
        MODEL, X, TARGET, generator=generator(7), permutations=6, players=players, baseline=BASELINE
    )
    sizes = torch.bincount(players.flatten())[players]
    torch.testing.assert_close(ours * sizes, expected.detach(), check_dtype=False)


@mark.parametrize("players", [None, patches((1, 4, 4), 2), torch.zeros(4, 4, dtype=torch.int64)])
@mark.parametrize("baseline", [None, BASELINE])
def test_both_are_complete(players: Tensor | None, baseline: Tensor | None) -> None:
    stands = torch.zeros_like(X) if baseline is None else baseline.expand_as(X)
    total = nets.output(MODEL, X, TARGET) - nets.output(MODEL, stands, TARGET)
    for method in (shapley_value_sampling, kernel_shap):
        ours = method(MODEL, X, TARGET, generator=generator(0), players=players, baseline=baseline)
        torch.testing.assert_close(ours.sum(dim=(1, 2, 3)), total, rtol=1e-10, atol=1e-12)


def test_sampling_blocks_change_nothing(monkeypatch: MonkeyPatch) -> None:
    expected = shapley_value_sampling(MODEL, X, TARGET, generator=generator(1))
    monkeypatch.setattr("forsooth.games.values.CHUNKS", {"cpu": (16 * 9, 9)})
    torch.testing.assert_close(shapley_value_sampling(MODEL, X, TARGET, generator=generator(1)), expected)


def test_sampling_asks_no_more_than_it_says() -> None:
    asked = 0

    def counted(x: Tensor) -> Tensor:
        nonlocal asked
        asked += len(x)
        return MODEL(x)

    shapley_value_sampling(counted, X, TARGET, generator=generator(1), permutations=5)
    assert asked == len(X) * (5 * 15 + 2)


def test_permutations_are_uniform() -> None:
    ranks = torch.cat(list(orders(3, 6000, generator(0), torch.device("cpu"))))
    counts = torch.unique(ranks, dim=0, return_counts=True)[1]
    assert len(counts) == 6 and (counts - 1000).abs().max() < 120


def test_more_samples_come_nearer() -> None:
    players = patches((1, 4, 4), 3)
    best = kernel_shap(MODEL, X, TARGET, generator=generator(0), samples=ALL, players=players)
    errors = []
    for samples in (20, 60, 200):
        ours = [
            kernel_shap(MODEL, X, TARGET, generator=generator(seed), samples=samples, players=players)
            for seed in range(10)
        ]
        errors.append((torch.stack(ours) - best).square().mean().sqrt().item())
    assert errors[0] > 2 * errors[1] > 4 * errors[2] > 0


@mark.parametrize(("count", "samples"), [(2, 2), (5, 7), (5, 30), (9, 100), (12, 400), (64, 2), (64, 300)])
def test_coalitions_stand_for_the_kernel(count: int, samples: int) -> None:
    masks, weights = coalitions(count, samples, generator(0))
    assert len(masks) <= samples
    assert torch.equal(masks.unique(dim=0), (~masks).unique(dim=0))
    sizes = masks.sum(dim=1)
    assert sizes.min() >= 1 and sizes.max() < count
    for size in sizes.unique().tolist():
        assert weights[sizes == size].sum() == approx(1 / (size * (count - size)))


def test_enough_samples_take_every_coalition_once() -> None:
    for count in range(2, 9):
        masks, _ = coalitions(count, 2**count - 2, generator(0))
        assert len(masks.unique(dim=0)) == len(masks) == 2**count - 2


def test_unconstrained_equals_captum_on_the_same_coalitions(monkeypatch: MonkeyPatch) -> None:
    drawn: list[Tensor] = []

    def kept(masks: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        drawn.append(masks)
        return least_norm_fit(masks, weights, values)

    monkeypatch.setattr(shapley, "least_norm_fit", kept)
    ours = kernel_shap_unconstrained(MODEL, X, TARGET, generator=generator(0), baseline=BASELINE)
    theirs = KernelShap(MODEL)

    def same(original: Tensor, **kwargs: object) -> Iterator[Tensor]:
        yield from drawn[0].long().unsqueeze(1)

    theirs.perturb_func = same
    for i in range(len(X)):
        expected = theirs.attribute(X[i : i + 1], BASELINE[None], target=TARGET[i : i + 1], n_samples=25)
        torch.testing.assert_close(ours[i : i + 1].float(), expected, rtol=1e-3, atol=1e-4)


@mark.parametrize(("masks", "players"), [(12, 5), (6, 20)])
def test_least_norm_fit_equals_sklearn(masks: int, players: int) -> None:
    seen = torch.rand(masks, players, generator=generator(0)) < 0.5
    weights = torch.rand(masks, generator=generator(1), dtype=torch.float64)
    values = torch.randn(2, masks, generator=generator(2), dtype=torch.float64)
    expected = LinearRegression().fit(seen.double().numpy(), values.T.numpy(), sample_weight=weights.numpy()).coef_
    numpy.testing.assert_allclose(least_norm_fit(seen, weights, values), expected, atol=1e-9)


def test_bad_knobs() -> None:
    with raises(UsageError, match="`permutations` must be at least 1, got 0"):
        shapley_value_sampling(MODEL, X, TARGET, generator=generator(0), permutations=0)
    with raises(UsageError, match="`samples` must be at least 2, got 1"):
        kernel_shap(MODEL, X, TARGET, generator=generator(0), samples=1)
    with raises(UsageError, match="`samples` must be at least 3 and players at least 2, got 2 and 16"):
        kernel_shap_unconstrained(MODEL, X, TARGET, generator=generator(0), samples=2)
