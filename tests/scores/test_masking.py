from itertools import permutations
from statistics import mean, median

import pytest
import torch
from torch import Tensor

from forsooth.games.values import coalition_values, game
from forsooth.records import UsageError
from forsooth.scores.masking import area, counts, curve, deletion, hidden_gains, insertion, order_dependence
from forsooth.seeds import generator

INF, NAN = float("inf"), float("nan")
X = torch.randn(3, 6, generator=generator(0, "x"), dtype=torch.float64)
TARGET = torch.tensor([0, 1, 1])
WEIGHT = torch.randn(6, 2, generator=generator(0, "weight"), dtype=torch.float64)


def bent(x: Tensor) -> Tensor:
    return torch.sin(x @ WEIGHT)


def linear(x: Tensor) -> Tensor:
    return x @ WEIGHT


def close(got: Tensor, expected: Tensor | list[float]) -> None:
    torch.testing.assert_close(got, torch.as_tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12, equal_nan=True)


def test_order_dependence_equals_the_definition() -> None:
    gains = torch.randn(2, 7, 3, generator=generator(0, "gains"), dtype=torch.float64)
    for n in range(2):
        for i in range(3):
            row = gains[n, :, i].tolist()
            ratios = [max(abs(gain / mean(row)), abs(mean(row) / gain)) for gain in row]
            close(order_dependence(gains)[n, i], mean(ratios))
            close(order_dependence(gains, centre="median")[n, i], median(ratios))


def test_order_dependence_by_hand() -> None:
    # the mean gain is 2, 2, 1, 0, 0
    gains = torch.tensor([[1.0, 2.0, 0.0, 0.0, 1.0], [3.0, 2.0, 1.0, 0.0, -1.0], [2.0, 2.0, 2.0, 0.0, 0.0]])[None]
    close(order_dependence(gains), [[(2 + 1.5 + 1) / 3, 1.0, INF, 1.0, INF]])
    close(order_dependence(gains, centre="median"), [[1.5, 1.0, 2.0, 1.0, INF]])
    even = torch.tensor([[1.0], [3.0]])[None]  # ratios 2 and 1.5
    close(order_dependence(even, centre="median"), [[1.75]])
    close(order_dependence(torch.tensor([[[NAN, 1.0], [1.0, 1.0]]])), [[NAN, 1.0]])
    close(order_dependence(torch.tensor([[[NAN, 1.0], [1.0, 1.0]]]), centre="median"), [[NAN, 1.0]])


def test_an_additive_model_does_not_depend_on_the_order() -> None:
    who = torch.tensor([4, 0])
    gains = hidden_gains(game(linear, X, TARGET), who, contexts=20, generator=generator(0, "orders"))
    expected = (X * WEIGHT[:, TARGET].T)[:, None, who].expand(3, 20, 2)
    close(gains, expected)
    close(order_dependence(gains), torch.ones(3, 2))
    bends = hidden_gains(game(bent, X, TARGET), who, contexts=20, generator=generator(0, "orders"))
    assert (order_dependence(bends) > 1.01).all()


def test_gains_are_those_of_random_orders_of_hiding() -> None:
    """The mean over contexts is the Shapley value: every position of the player is as likely as any other."""
    value = {
        order: coalition_values(bent, X, TARGET, ~(torch.tensor(order)[None] < torch.arange(7)[:, None]))
        for order in permutations(range(6))
    }  # rank of each player in the order of hiding -> output after each step (3, 7)
    gains = torch.stack(
        [torch.stack([v[:, o[2]] - v[:, o[2] + 1], v[:, o[5]] - v[:, o[5] + 1]], 1) for o, v in value.items()]
    )  # (720, 3, 2)
    ours = hidden_gains(game(bent, X, TARGET), torch.tensor([2, 5]), contexts=4000, generator=generator(0, "contexts"))
    assert ((ours.mean(1) - gains.mean(0)).abs() < 4 * ours.std(1) / 4000**0.5).all()
    assert ((ours.std(1) / gains.std(0) - 1).abs() < 0.1).all()
    for i in range(2):  # each gain is one that some order gives
        apart = (ours[0, :50, i, None] - gains[None, :, 0, i]).abs().amin(1)
        assert apart.max() < 1e-12


@pytest.mark.parametrize("steps", [6, 3, 4])
@pytest.mark.parametrize("model", [bent, linear])
def test_curves_equal_one_forward_at_a_time(model, steps: int) -> None:
    a = torch.randn(3, 6, generator=generator(0, "map"), dtype=torch.float64)
    for hide in (True, False):
        got = curve(game(model, X, TARGET), a, steps=steps, hide=hide)
        assert got.shape == (3, steps + 1)
        for n in range(3):
            order = sorted(range(6), key=lambda i: -float(a[n, i]))
            for step, reached in enumerate(counts(6, steps).tolist()):
                x = X[n].clone() if hide else torch.zeros_like(X[n])
                for i in order[:reached]:
                    x[i] = 0.0 if hide else X[n, i]
                close(got[n, step], model(x[None])[0, TARGET[n]])


def test_areas_by_hand() -> None:
    close(area(torch.tensor([[4.0, 1.0, 0.0], [1.0, 1.0, 1.0]]), torch.tensor([0, 1, 4])), [(2.5 + 1.5) / 4, 1.0])
    assert counts(6, 4).tolist() == [0, 1, 3, 4, 6]
    x, one = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([0])
    played = game(lambda x: x.sum(1, keepdim=True), x, one)
    # outputs 6, 3, 1, 0 while the largest goes first, and 0, 3, 5, 6 while it comes first
    close(deletion(played, x, steps=3), [(4.5 + 2 + 0.5) / 3])
    close(insertion(played, x, steps=3), [(1.5 + 4 + 5.5) / 3])
    close(deletion(played, -x, steps=3), [(5.5 + 4 + 1.5) / 3])
    close(deletion(played, torch.ones(1, 3), steps=3), [(5.5 + 4 + 1.5) / 3])  # tied: by number


def test_the_best_order_of_an_additive_model_wins() -> None:
    played, right = game(linear, X, TARGET), X * WEIGHT[:, TARGET].T
    for name in range(20):
        other = torch.randn(3, 6, generator=generator(name, "other"), dtype=torch.float64)
        assert (deletion(played, right, steps=6) <= deletion(played, other, steps=6) + 1e-12).all()
        assert (insertion(played, right, steps=6) >= insertion(played, other, steps=6) - 1e-12).all()


def test_undefined_is_nan_and_bad_input_is_named() -> None:
    played, a = game(bent, X, TARGET), X.clone()
    a[1, 2] = NAN
    assert deletion(played, a, steps=6).isnan().tolist() == [False, True, False]
    empty = game(bent, X[:0], TARGET[:0])
    assert insertion(empty, a[:0], steps=2).shape == (0,)
    with pytest.raises(UsageError, match=r"`attribution` must have shape \(n, players\) \(3, 6\), got \(3, 5\)"):
        deletion(played, a[:, 1:], steps=2)
    with pytest.raises(UsageError, match=r"`steps` must lie in \[1, 6\] for 6 players, got 7"):
        insertion(played, a, steps=7)
    with pytest.raises(UsageError, match=r"`gains` must have shape \(n, contexts, players\), got \(3, 4\)"):
        order_dependence(torch.ones(3, 4))
    with pytest.raises(UsageError, match="`centre` must be one of mean, median, got 'mode'"):
        order_dependence(torch.ones(3, 4, 5), centre="mode")
    with pytest.raises(UsageError, match="`contexts` must be at least 1, got 0"):
        hidden_gains(played, torch.tensor([0]), contexts=0, generator=generator(0))
