"""The suppressor: no word on the label, much on the noise."""

import pytest
import torch

from forsooth.datasets.suppressor import suppressor
from forsooth.records import UsageError


def test_the_second_feature_tells_nothing_of_the_label_and_much_of_the_noise():
    data = suppressor(n=40_000, correlation=0.8, spreads=(1.0, 0.5), seed=3)
    z = 2 * data.y - 1
    noise = data.x - torch.stack([z, torch.zeros_like(z)], 1)
    means = torch.stack([data.x[data.y == label].mean(0) for label in (0, 1)])
    torch.testing.assert_close(means, torch.tensor([[-1.0, 0.0], [1.0, 0.0]]), atol=0.03, rtol=0)
    torch.testing.assert_close(noise.T.cov(), torch.tensor([[1.0, 0.4], [0.4, 0.25]]), atol=0.03, rtol=0)
    assert data.truth.unique(dim=0).tolist() == [[True, False]]


def test_no_line_separates_better_than_the_one_in_the_facts():
    data = suppressor(n=40_000, seed=0)
    z = 2 * data.y - 1
    weight = torch.tensor(data.facts["weight"])
    assert weight.tolist() == pytest.approx([1 / 0.36, -1.6 / 0.36])
    accuracy = ((data.x @ weight).sign() == z).double().mean()
    assert accuracy == pytest.approx(data.facts["best_accuracy"], abs=0.005)
    for turned in torch.tensor([[1.0, -1.2], [1.0, -2.0], [1.0, 0.0]]):
        assert ((data.x @ turned).sign() == z).double().mean() < accuracy


def test_seed_and_refusals():
    assert torch.equal(suppressor(n=100, seed=1).x, suppressor(n=100, seed=1).x)
    assert not torch.equal(suppressor(n=100, seed=1).x, suppressor(n=100, seed=2).x)
    for words, message in (
        ({"correlation": 1.0}, "`correlation` must lie"),
        ({"spreads": (1.0, 0.0)}, "`spreads` must be"),
        ({"n": 3}, "`n` must be"),
    ):
        with pytest.raises(UsageError, match=message):
            suppressor(**words, seed=0)
