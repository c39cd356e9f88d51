from statistics import mean, median

import pytest
import torch
from torch import Tensor

from forsooth.records import UsageError
from forsooth.scores.masking import order_dependence
from forsooth.seeds import generator

INF, NAN = float("inf"), float("nan")


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


def test_bad_input_is_named() -> None:
    with pytest.raises(UsageError, match=r"`gains` must have shape \(n, contexts, players\), got \(3, 4\)"):
        order_dependence(torch.ones(3, 4))
    with pytest.raises(UsageError, match="`centre` must be one of mean, median, got 'mode'"):
        order_dependence(torch.ones(3, 4, 5), centre="mode")
