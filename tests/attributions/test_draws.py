"""Every input has draws of its own: maps hang on no neighbour, and the errors of two inputs are independent."""

from collections.abc import Callable

import pytest
import torch
from attributions import nets
from torch import Tensor, nn

from forsooth.attributions import METHODS
from forsooth.attributions.shapley import kernel_shap, kernel_shap_unconstrained, shapley_value_sampling
from forsooth.attributions.surrogates import lime, lime_lasso
from forsooth.games.draws import each, shuffled
from forsooth.games.shapley import exact
from forsooth.games.values import game, values_of
from forsooth.records import Method, UsageError
from forsooth.seeds import generator, generators
from forsooth.suites import explain

RANDOM = [method for method in METHODS if method.random]
CNN = nets.drawn(nets.cnn())
IMAGES, TARGET = nets.inputs(4, 1, 8, 8), torch.tensor([0, 1, 1, 0])
every = pytest.mark.parametrize("method", RANDOM, ids=lambda method: method.name)


def asked(method: Method, rows: list[int], *, x: Tensor = IMAGES, samples: list[int] | None = None) -> Tensor:
    """The maps of some rows, as the suites ask for them."""
    question = explain.Question(
        model=CNN,
        x=x[rows],
        target=TARGET[rows],
        background=nets.inputs(5, 1, 8, 8, seed=7),
        fit=nets.inputs(6, 1, 8, 8, seed=8),
        truth=x[rows] > 0,
        layer="3",
        seed=0,
        samples=torch.tensor(rows if samples is None else samples),
    )
    cell = explain.attribute(method.name, question)
    assert cell.facts["status"] == "ok", cell.facts["message"]
    return cell.tensors["maps"]


@every
def test_order_slices_and_company_change_no_map(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    together = asked(method, [0, 1, 2, 3])
    torch.testing.assert_close(asked(method, [2, 0, 3]), together[[2, 0, 3]], rtol=1e-6, atol=1e-6)
    monkeypatch.setattr(explain, "VALUES_AT_ONCE", 128)  # two images at a time
    torch.testing.assert_close(asked(method, [3, 2, 1, 0]), together[[3, 2, 1, 0]], rtol=1e-6, atol=1e-6)


@every
def test_equal_images_with_other_numbers_get_other_maps(method: Method) -> None:
    same = IMAGES[:1].expand(4, -1, -1, -1)
    first, second = asked(method, [0, 0], x=same, samples=[0, 1])
    assert not torch.allclose(first, second)
    again = asked(method, [0, 0], x=same, samples=[1, 1])
    torch.testing.assert_close(again[0], again[1])
    torch.testing.assert_close(again[0], second)


PLAYERS = torch.arange(64).reshape(8, 8) // 8  # eight rows
NET = nets.drawn(nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 2)), seed=3)


def by_player(maps: Tensor) -> Tensor:
    """(n, 8), the sums of the rows"""
    return maps[:, 0].sum(dim=2)


def copies(explain: Callable[..., Tensor], count: int, *, seed: int = 0, **settings: int | Tensor) -> Tensor:
    """The maps (count, 1, 8, 8) that a method gives to copies of one image, each with draws of its own."""
    x, target = IMAGES[:1].expand(count, -1, -1, -1), torch.zeros(count, dtype=torch.int64)
    own = generators(seed, "copies", range(count))
    return explain(NET, x, target, generator=generator(seed), generators=own, **settings)


@pytest.mark.parametrize(
    ("explain", "settings"),
    [(shapley_value_sampling, {"permutations": 3}), (kernel_shap, {"samples": 40})],
    ids=["shapley_sampling", "kernel_shap"],
)
def test_over_copies_the_mean_is_the_shapley_value(explain: Callable[..., Tensor], settings: dict[str, int]) -> None:
    truth = exact(game(NET, IMAGES[:1], torch.zeros(1, dtype=torch.int64), players=PLAYERS)).values[0]
    found = by_player(copies(explain, 400, players=PLAYERS, **settings))
    error = found.std(dim=0) / 400**0.5  # of a mean of independent draws
    assert (error > 0).all()
    assert ((found.mean(dim=0) - truth).abs() < 4 * error).all()


def test_over_copies_the_mean_of_lime_is_a_fit_to_many_masks() -> None:
    x, target = IMAGES[:1], torch.zeros(1, dtype=torch.int64)
    many = by_player(lime(NET, x, target, generator=generator(9), players=PLAYERS, samples=40_000))[0]
    found = by_player(copies(lime, 100, samples=2000, players=PLAYERS))
    error = found.std(dim=0) * (1 / 100 + 2000 / 40_000) ** 0.5
    shrunk = 0.004 * many.abs()  # by the penalty of 1, beside about 2000 / 4 from the masks
    assert (error > 0).all()
    assert ((found.mean(dim=0) - many).abs() < 4 * error + shrunk).all()


@pytest.mark.parametrize(
    ("explain", "settings"),
    [
        (shapley_value_sampling, {"permutations": 2}),
        (kernel_shap, {"samples": 200}),
        (kernel_shap_unconstrained, {}),
        (lime, {"samples": 200}),
        (lime_lasso, {}),
    ],
    ids=["shapley_sampling", "kernel_shap", "kernel_shap_25", "lime", "lime_25"],
)
def test_the_errors_of_two_inputs_are_uncorrelated(explain: Callable[..., Tensor], settings: dict[str, int]) -> None:
    """Over eight designs: what the copies of one design have in common is hardly more than chance makes it.

    A design of few masks has something of its own that no role can hide, as how many take part in all.
    """
    found = torch.stack([copies(explain, 100, seed=seed, **settings).flatten(1) for seed in range(8)])
    within = found.var(dim=1).mean()
    common = found.mean(dim=1).var(dim=0).mean() - within / 100
    assert common < 0.005 * within  # one draw for all: infinitely larger


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_game_of_roles_plays_the_masks_of_each_input(channels: int, n: int) -> None:
    model = nets.drawn(nn.Sequential(nn.Flatten(), nn.Linear(channels * 16, 6), nn.Tanh(), nn.Linear(6, 2)))
    x, target = nets.inputs(n, channels, 4, 4), torch.arange(n) % 2
    players = torch.arange(16).reshape(4, 4) // 4
    played = shuffled(game(model, x, target, players=players, chunk=16), generators(0, "roles", range(n)))
    masks = torch.rand(11, 4, generator=generator(1)) < 0.5
    values = values_of(played, masks)
    assert values.shape == (n, 11)
    for i in range(n):
        assert played.roles is not None
        own = masks[:, played.roles[i]]
        alone = values_of(game(model, x[i : i + 1], target[i : i + 1], players=players), own)[0]
        torch.testing.assert_close(values[i], alone)


def test_the_roles_are_undone_in_the_map() -> None:
    """A linear model has the same Shapley values whatever the roles."""
    model = nets.drawn(nn.Sequential(nn.Flatten(), nn.Linear(64, 2)))
    expected = model[1].weight.detach()[TARGET].view_as(IMAGES) * IMAGES
    own = generators(0, "roles", range(4))
    maps = shapley_value_sampling(model, IMAGES, TARGET, generator=generator(0), generators=own, permutations=1)
    torch.testing.assert_close(maps, expected)


def test_as_many_generators_as_inputs() -> None:
    with pytest.raises(UsageError, match="`generators` must be one for each of 4 inputs, got 3"):
        each(lambda drawn: torch.rand(2, generator=drawn), generators(0, "few", range(3)), IMAGES)
    assert each(lambda drawn: torch.rand(2, generator=drawn), [], IMAGES[:0]).shape == (0, 2)
