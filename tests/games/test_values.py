import math

import torch
from pytest import mark, raises
from torch import Tensor, nn

from forsooth.games import coalition_values, patches
from forsooth.games.values import ends, evenly, game, rows_at_once
from forsooth.records import UsageError
from forsooth.seeds import generator

X = torch.randn(5, 2, 4, 4, generator=generator(0, "x"), dtype=torch.float64)
TARGET = torch.tensor([0, 2, 1, 1, 0])
BASELINE = torch.randn(2, 4, 4, generator=generator(0, "baseline"), dtype=torch.float64)
OWN = torch.randn(5, 2, 4, 4, generator=generator(0, "own"), dtype=torch.float64)
WEIGHT = torch.randn(32, 3, generator=generator(0, "weight"), dtype=torch.float64)


def model(x: Tensor) -> Tensor:
    return torch.sin(x.flatten(1) @ WEIGHT)


def drawn(masks: int, players: int) -> Tensor:
    return torch.rand(masks, players, generator=generator(0, "masks")) < 0.5


def literal(masks: Tensor, players: Tensor, baseline: Tensor) -> Tensor:
    """One forward for each input and coalition, entry by entry; baseline (*shape) or (n, *shape)."""
    values = torch.zeros(len(X), len(masks), dtype=torch.float64)
    for i, (x, target) in enumerate(zip(X, TARGET, strict=True)):
        for j, mask in enumerate(masks):
            hidden = baseline.expand_as(X)[i].clone()
            for row in range(4):
                for column in range(4):
                    if mask[players[row, column]]:
                        hidden[:, row, column] = x[:, row, column]
            values[i, j] = model(hidden[None])[0, target]
    return values


@mark.parametrize("chunk", [None, 1, 7, 64])
@mark.parametrize("baseline", [None, BASELINE, OWN])
def test_equals_one_forward_at_a_time(chunk: int | None, baseline: Tensor | None) -> None:
    masks, players = drawn(9, 4), patches((2, 4, 4), 2)
    ours = coalition_values(model, X, TARGET, masks, players=players, baseline=baseline, chunk=chunk)
    expected = literal(masks, players, torch.zeros_like(X[0]) if baseline is None else baseline)
    torch.testing.assert_close(ours, expected)


def test_pixels_by_default() -> None:
    masks = drawn(6, 16)
    expected = literal(masks, torch.arange(16).view(4, 4), torch.zeros_like(X[0]))
    torch.testing.assert_close(coalition_values(model, X, TARGET, masks), expected)
    torch.testing.assert_close(coalition_values(model, X, TARGET, masks.float()), expected)


def test_hidden_inputs_are_exact() -> None:
    """Kept entries are those of x and hidden ones those of the baseline, bit for bit."""
    seen: list[Tensor] = []

    def watched(x: Tensor) -> Tensor:
        seen.append(x.clone())
        return x.flatten(1)[:, :3]

    x, baseline, mask = X.float() * 1e5, BASELINE.float() / 3, drawn(1, 16)
    coalition_values(watched, x, TARGET, mask, baseline=baseline)
    assert torch.equal(torch.cat(seen), torch.where(mask.view(4, 4), x, baseline))


def test_works_in_inference_mode_and_leaves_everything_as_it_was() -> None:
    net, x = nn.Linear(3, 2), torch.ones(2, 3, requires_grad=True)
    with torch.inference_mode():
        inside = coalition_values(net, x, torch.tensor([0, 1]), drawn(4, 3))
    outside = coalition_values(net, x, torch.tensor([0, 1]), drawn(4, 3))
    assert torch.equal(inside, outside)
    assert not outside.requires_grad
    assert torch.equal(x, torch.ones(2, 3))
    assert x.grad is None and net.weight.grad is None


def test_no_forward_is_larger_than_the_chunk() -> None:
    sizes: list[int] = []

    def watched(x: Tensor) -> Tensor:
        sizes.append(len(x))
        return model(x)

    coalition_values(watched, X, TARGET, drawn(33, 16), chunk=20)
    assert max(sizes) <= 20
    assert sum(sizes) == 33 * len(X)


def test_bad_input_is_named() -> None:
    with raises(UsageError, match=r"`masks` must have shape \(m, 16\), got \(3, 4\)"):
        coalition_values(model, X, TARGET, drawn(3, 4))
    with raises(
        UsageError,
        match=r"`baseline` must have the shape of one input \(2, 4, 4\) or of all \(5, 2, 4, 4\), got \(4, 4\)",
    ):
        coalition_values(model, X, TARGET, drawn(3, 16), baseline=BASELINE[0])
    with raises(UsageError, match=r"`target` must have shape \(5,\), got \(4,\)"):
        coalition_values(model, X, TARGET[1:], drawn(3, 16))
    with raises(UsageError, match="`chunk` must be at least 1, got 0"):
        coalition_values(model, X, TARGET, drawn(3, 16), chunk=0)


def test_slices_are_alike() -> None:
    assert [evenly(count, 60) for count in (1, 60, 61, 100, 121)] == [1, 60, 31, 50, 41]
    assert evenly(0, 60) == 1
    assert evenly(5, 0) == 1


def test_large_inputs_make_small_forwards() -> None:
    rows = [rows_at_once(torch.empty(1, 1, size, size)) for size in (8, 64, 1024)]
    assert rows == sorted(rows, reverse=True)
    assert rows[-1] == 8


def test_networks_with_convolutions_get_smaller_forwards() -> None:
    net = nn.Sequential(nn.Identity(), nn.Conv2d(1, 1, 3))
    x = torch.empty(1, 1, 32, 32)
    assert [rows_at_once(x, model) for model in (None, net, nn.Linear(1, 1))] == [1024, 256, 1024]
    assert rows_at_once(torch.empty(1, 3, 224, 224), net) == 32


def test_the_ends_are_the_baseline_and_the_input() -> None:
    for baseline in (BASELINE, OWN):
        first, last = ends(game(model, X, TARGET, baseline=baseline))
        rows = torch.arange(len(X))
        torch.testing.assert_close(first, model(baseline.expand_as(X))[rows, TARGET])
        torch.testing.assert_close(last, model(X)[rows, TARGET])


@mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_model_that_gives_no_numbers(bad: float) -> None:
    def broken(x: Tensor) -> Tensor:
        return torch.where(x.flatten(1)[:, :1] == 0, bad, model(x))  # where the first pixel is hidden

    masks = torch.ones(4, 16, dtype=torch.bool)
    masks[1:3, 0] = False
    with raises(UsageError, match="`model` must give finite numbers, got nan or inf in 10 of 20 outputs"):
        coalition_values(broken, X, TARGET, masks)
    with raises(UsageError, match="got nan or inf in 5 of 10 outputs of the explained class"):
        ends(game(broken, X, TARGET))


def test_other_classes_may_be_anything() -> None:
    def broken(x: Tensor) -> Tensor:
        return torch.cat([model(x), torch.full((len(x), 1), math.nan)], dim=1)

    masks = drawn(3, 16)
    assert torch.equal(coalition_values(broken, X, TARGET, masks), coalition_values(model, X, TARGET, masks))


def test_a_model_without_classes() -> None:
    for broken, came in ((lambda x: x.sum(dim=(1, 2, 3)), r"\(5,\)"), (lambda x: x.sum(), r"\(\)")):
        expected = rf"`model` must give outputs of shape \(n, classes\), got {came} for n = 5"
        with raises(UsageError, match=expected):
            coalition_values(broken, X, TARGET * 0, drawn(1, 16))
        with raises(UsageError, match=expected):
            ends(game(broken, X, TARGET * 0))
    with raises(UsageError, match=r"`model` must give a tensor of shape \(n, classes\), got tuple"):
        coalition_values(lambda x: (model(x),), X, TARGET, drawn(1, 16))


def test_a_target_that_is_no_class() -> None:
    with raises(UsageError, match="`target` must lie below the model's 3 classes, got 5"):
        coalition_values(model, X, TARGET + 3, drawn(1, 16))
    with raises(UsageError, match="`target` must be at least 0, got -1"):
        coalition_values(model, X, TARGET - 1, drawn(1, 16))
