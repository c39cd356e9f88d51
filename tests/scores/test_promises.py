import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from forsooth.records import UsageError
from forsooth.scores.promises import completeness_gap
from forsooth.seeds import generator

NAN, INF = float("nan"), float("inf")


def test_by_hand():
    attribution = torch.tensor([[1.0, 2.0], [1.0, 2.0], [5.0, -5.0], [0.0, 0.0], [0.0, 0.0], [3.0, -2.0]])
    total = torch.tensor([3.0, 4.0, 0.0, -2.0, 0.0, 0.0])
    # last row: the total is zero, so the gap of 1 is told in thousandths of 3 + 2
    expected = torch.tensor([0.0, 0.25, 0.0, 1.0, 0.0, 1 / 0.005], dtype=torch.float64)
    torch.testing.assert_close(completeness_gap(attribution, total), expected)


def test_not_finite_is_nan():
    attribution = torch.tensor([[NAN, 1.0], [INF, 1.0], [INF, -INF], [1.0, 1.0], [1.0, 1.0]])
    total = torch.tensor([1.0, 1.0, 1.0, NAN, -INF])
    assert completeness_gap(attribution, total).isnan().all()


def test_bad_total_is_named():
    with pytest.raises(UsageError, match=r"`total` must have the shape \(4,\), got \(4, 1\)"):
        completeness_gap(torch.ones(4, 2, 2), torch.ones(4, 1))


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-3), (torch.float64, 1e-10)])
def test_rounding_stays_small_even_where_contributions_cancel(dtype, most):
    """Input times weight of a linear model is complete; its totals are near zero for half of these."""
    draw = generator(0)
    x = torch.randn(500, 64, generator=draw, dtype=dtype)
    weight = torch.randn(64, generator=draw, dtype=dtype)
    x[::2] -= (x[::2] @ weight)[:, None] * weight / weight.square().sum()
    gap = completeness_gap(x * weight, x @ weight)
    assert 0 <= gap.max() < most
    twice = completeness_gap(2 * x * weight, x @ weight)[1::2]
    assert twice.median() == pytest.approx(1.0, abs=1e-3)


plain = st.floats(-10, 10).map(lambda value: round(value, 9))  # numbers below 1e-300 have no scale left to change


@given(st.lists(plain, min_size=1, max_size=6), plain, st.sampled_from([-2.0, 1e-6, 1e6]))
def test_scale_of_the_output_does_not_matter(values, total, factor):
    attribution, promised = torch.tensor([values], dtype=torch.float64), torch.tensor([total], dtype=torch.float64)
    gap = completeness_gap(attribution, promised)
    assert gap >= 0
    torch.testing.assert_close(completeness_gap(factor * attribution, factor * promised), gap, rtol=1e-6, atol=1e-9)
