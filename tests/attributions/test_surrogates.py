import numpy
import torch
from attributions import nets
from captum._utils.models.linear_model import SkLearnLasso
from captum.attr import Lime
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import MonkeyPatch, mark, raises
from sklearn.linear_model import Lasso, Ridge
from torch import Tensor

from forsooth.attributions import lasso as lassos
from forsooth.attributions.lasso import by_active_set
from forsooth.attributions.lasso_path import followed
from forsooth.attributions.surrogates import bernoulli_masks, cosines, lasso, lime, lime_lasso, ridge
from forsooth.games.players import patches
from forsooth.games.values import game
from forsooth.records import UsageError
from forsooth.seeds import generator

X = nets.inputs(3, 2, 4, 4)
TARGET = torch.tensor([0, 1, 1])
BASELINE = nets.inputs(1, 2, 4, 4, seed=2)[0]
WEIGHT = nets.inputs(32, 2, seed=3)


def linear(x: Tensor) -> Tensor:
    return x.flatten(1) @ WEIGHT


def curved(x: Tensor) -> Tensor:
    return torch.sin(x.flatten(1) @ WEIGHT / 3)


def fit_problem(masks: int, players: int, *, n: int = 4, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    source = generator(seed, masks, players)
    seen = bernoulli_masks(masks, players, source)
    weights = torch.rand(n, masks, generator=source, dtype=torch.float64) + 0.5
    return seen, weights, torch.randn(n, masks, generator=source, dtype=torch.float64)


@mark.parametrize(("masks", "players"), [(40, 6), (12, 30), (10, 10)])
def test_ridge_equals_sklearn(masks: int, players: int) -> None:
    seen, weights, values = fit_problem(masks, players)
    model = Ridge(alpha=0.7).fit(seen.double().numpy(), values.T.numpy(), sample_weight=weights[0].numpy())
    numpy.testing.assert_allclose(ridge(seen, weights[0], values, penalty=0.7), model.coef_, atol=1e-10)


@mark.parametrize(("masks", "players"), [(40, 6), (25, 64), (10, 10)])
@mark.parametrize("penalty", [0.3, 0.01])
def test_lasso_equals_sklearn(masks: int, players: int, penalty: float) -> None:
    seen, weights, values = fit_problem(masks, players)
    ours = lasso(seen, weights, values, penalty=penalty)
    for i in range(len(values)):
        model = Lasso(alpha=penalty, tol=1e-12, max_iter=10**6)
        model.fit(seen.double().numpy(), values[i].numpy(), sample_weight=weights[i].numpy())
        numpy.testing.assert_allclose(ours[i], model.coef_, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(1, 40), st.sampled_from([0.3, 0.01, 1e-4]), st.integers(0, 99))
def test_lasso_meets_its_optimality_conditions(masks: int, players: int, penalty: float, seed: int) -> None:
    """With few masks many players are equal, opposite or sums of others, and solutions are not unique."""
    seen, weights, values = fit_problem(masks, players, seed=seed)
    ours = lasso(seen, weights, values, penalty=penalty)
    share = weights / weights.sum(dim=1, keepdim=True)
    rest = values - ours @ seen.double().T
    rest = rest - (share * rest).sum(dim=1, keepdim=True)
    slope = (share * rest) @ seen.double()  # centred rest: the centre of the masks drops out
    assert (slope.abs() <= penalty + 1e-6).all()
    active = ours.abs() > 1e-9
    torch.testing.assert_close(slope[active], (penalty * ours.sign())[active], rtol=0, atol=1e-6)


def test_lasso_with_a_large_penalty_is_zero() -> None:
    seen, weights, values = fit_problem(25, 64)
    assert torch.equal(lasso(seen, weights, values, penalty=10.0), torch.zeros(4, 64, dtype=torch.float64))
    assert torch.equal(lasso(seen, weights, values * 0 + 3, penalty=0.01), torch.zeros(4, 64, dtype=torch.float64))


@mark.parametrize("baseline", [None, BASELINE])
@mark.parametrize("players", [None, patches((2, 4, 4), 3)])
def test_lime_25_equals_captum_on_the_same_masks(baseline: Tensor | None, players: Tensor | None) -> None:
    count = 16 if players is None else 9
    masks = bernoulli_masks(25, count, generator(5))
    ours = lime_lasso(curved, X, TARGET, generator=generator(5), players=players, baseline=baseline)
    labels = torch.arange(16).view(4, 4) if players is None else players
    sizes = 2 * torch.bincount(labels.flatten())[labels]  # Captum gives every entry the whole coefficient
    for i in range(len(X)):
        supply = iter(masks.long().unsqueeze(1))
        theirs = Lime(
            curved,
            interpretable_model=SkLearnLasso(alpha=0.01, tol=1e-6, max_iter=10**5),
            perturb_func=lambda original, supply=supply, **kwargs: next(supply),
        )
        expected = theirs.attribute(
            X[i : i + 1],
            None if baseline is None else baseline[None],
            target=TARGET[i : i + 1],
            feature_mask=labels.expand(1, 2, 4, 4),
            n_samples=25,
        )
        torch.testing.assert_close((ours[i : i + 1] * sizes).float(), expected, rtol=1e-3, atol=1e-4)
        assert expected.abs().max() > 0.01


def test_cosines_equal_those_of_the_hidden_inputs() -> None:
    players = patches((2, 4, 4), 3)
    masks = torch.cat([bernoulli_masks(7, 9, generator(0)), torch.zeros(1, 9, dtype=torch.bool)])
    for baseline in (torch.zeros_like(BASELINE), BASELINE):
        ours = cosines(game(linear, X, TARGET, players=players, baseline=baseline), masks)
        for i, x in enumerate(X):
            for j, mask in enumerate(masks):
                hidden = torch.where(mask[players], x, baseline)
                expected = torch.nn.functional.cosine_similarity(x.flatten(), hidden.flatten(), dim=0)
                torch.testing.assert_close(ours[i, j], expected)


def test_lime_finds_a_linear_model() -> None:
    players = torch.arange(32).view(2, 4, 4)
    ours = lime(linear, X, TARGET, generator=generator(0), players=players)
    expected = WEIGHT.T[TARGET].view_as(X) * X
    for map_, right in zip(ours, expected, strict=True):
        assert torch.corrcoef(torch.stack([map_.flatten(), right.flatten()]))[0, 1] > 0.999


def test_lime_equals_one_fit_for_each_sample() -> None:
    masks = bernoulli_masks(60, 16, generator(2), paired=True)
    assert torch.equal(masks[30:], ~masks[:30])
    ours = lime(curved, X, TARGET, generator=generator(2), samples=60)
    cosine = torch.nn.functional.cosine_similarity(masks.double(), torch.ones(1, 16, dtype=torch.float64))
    weights = torch.exp(-((1 - cosine) ** 2)).sqrt()  # as the authors' package writes it, with width 1
    for i, x in enumerate(X):
        values = curved(x * masks.view(60, 1, 4, 4))[:, TARGET[i]]
        model = Ridge(alpha=1.0).fit(masks.double().numpy(), values.numpy(), sample_weight=weights.numpy())
        numpy.testing.assert_allclose(ours[i].sum(dim=0).flatten(), model.coef_, atol=1e-10)


def test_bad_knobs() -> None:
    for method in (lime, lime_lasso):
        with raises(UsageError, match="`samples` must be at least 2, got 1"):
            method(linear, X, TARGET, generator=generator(0), samples=1)


def duality_gap(masks: Tensor, weights: Tensor, values: Tensor, found: Tensor, *, penalty: float) -> Tensor:
    """How far the loss of a lasso can lie above the least, as a share of it, (n,): no answer is better by more."""
    share = weights / weights.sum(dim=1, keepdim=True)
    design = share.sqrt()[:, :, None] * (masks.double() - (share @ masks.double())[:, None])  # (n, m, players)
    goal = share.sqrt() * (values - (share * values).sum(dim=1, keepdim=True))
    rest = goal - (design @ found[:, :, None])[..., 0]
    steepest = (rest[:, None] @ design).abs().amax(dim=(1, 2))
    inside = rest * (penalty / steepest).clamp(max=1)[:, None]
    loss = rest.square().sum(dim=1) / 2 + penalty * found.abs().sum(dim=1)
    bound = (goal.square() - (goal - inside).square()).sum(dim=1) / 2
    return (loss - bound) / loss


@mark.parametrize("seed", [0, 1])
def test_the_lasso_path_ends_at_the_optimum_where_columns_nearly_depend_on_each_other(seed: int) -> None:
    """Among so many players some are nearly sums of others; two of these went astray, to gaps of a tenth."""
    source = generator(seed, 0)
    masks = torch.rand(25, 4096, generator=source) < 0.5
    weights = torch.rand(100, 25, generator=source).double() * 0.3 + 0.7
    values = torch.randn(100, 25, generator=source).double() * 3
    astray = slice(30, 31) if seed == 0 else slice(75, 76)
    found = lasso(masks, weights[astray], values[astray], penalty=0.01)
    assert duality_gap(masks, weights[astray], values[astray], found, penalty=0.01).max() < 1e-8


def test_every_lasso_is_proven_by_its_duality_gap():
    """The gap of each sample, written out in numpy: 4 to 25 masks, far more players, goals of every scale."""
    drawn = generator(7, "lassos")
    for masks_count, players in ((4, 50), (12, 300), (25, 1000)):
        masks = torch.rand(masks_count, players, generator=drawn) < 0.5
        weights = torch.rand(16, masks_count, generator=drawn).double() + 0.1
        values = torch.randn(16, masks_count, generator=drawn).double() * torch.logspace(-2, 1, 16).double()[:, None]
        found = lasso(masks, weights, values, penalty=0.01).numpy()
        for w, v, b in zip(weights.numpy(), values.numpy(), found, strict=True):
            share = w / w.sum()
            z = masks.double().numpy()
            design = numpy.sqrt(share)[:, None] * (z - share @ z)
            goal = numpy.sqrt(share) * (v - share @ v)
            rest = goal - design @ b
            feasible = rest * min(1, 0.01 / numpy.abs(design.T @ rest).max())
            primal = rest @ rest / 2 + 0.01 * numpy.abs(b).sum()
            dual = goal @ goal / 2 - (goal - feasible) @ (goal - feasible) / 2
            assert primal - dual <= 2e-9 * (goal @ goal) / 2


def test_an_active_set_finds_the_optimum_from_a_wrong_start():
    drawn = generator(8, "astray")
    columns = torch.randn(40, 10, generator=drawn).double()
    goal = torch.randn(10, generator=drawn).double()
    wrong = torch.randn(40, generator=drawn).double() * (torch.arange(40) < 6)
    right = by_active_set(columns, goal, torch.zeros(40, dtype=torch.float64), 0.1)
    torch.testing.assert_close(by_active_set(columns, goal, wrong, 0.1), right, rtol=1e-7, atol=1e-9)


@mark.parametrize("players", [64, 1000])
def test_lassos_whose_paths_went_astray_are_mended(players: int, monkeypatch: MonkeyPatch) -> None:
    """Every other path ends where it began, and one in three with coefficients that are no solution."""
    seen, weights, values = fit_problem(12, players, n=12)

    def astray(design: lassos.Everybody, goal: Tensor, penalty: float) -> Tensor:
        found = followed(design, goal, penalty)
        found[:, ::2] = 0
        found[:3, ::3] = 1
        return found

    monkeypatch.setattr(lassos, "followed", astray)
    found = lasso(seen, weights, values, penalty=0.01)
    assert duality_gap(seen, weights, values, found, penalty=0.01).max() < 1e-7


def test_a_path_that_stopped_changes_nothing_of_what_it_found():
    """Samples stay in the batch until many are done; those whose goals are small are done at once."""
    seen, weights, values = fit_problem(25, 64, n=40)
    values[::2] *= 0.02
    together = lasso(seen, weights, values, penalty=0.01)
    for sample in range(0, 40, 7):
        alone = slice(sample, sample + 1)
        expected = lasso(seen, weights[alone], values[alone], penalty=0.01)
        torch.testing.assert_close(together[alone], expected, rtol=0, atol=1e-10)


def test_among_thousands_of_players_hardly_a_path_goes_astray(monkeypatch: MonkeyPatch) -> None:
    """With an inverse that is not refined a third of these did, and each is then solved by itself, which takes long."""
    seen, weights, values = fit_problem(25, 4096, n=32)
    mended = []

    def counted(*arguments: object) -> Tensor:
        mended.append(arguments)
        return by_active_set(*arguments)

    monkeypatch.setattr(lassos, "by_active_set", counted)
    lasso(seen, weights, 3 * values, penalty=0.01)
    assert len(mended) <= 2
