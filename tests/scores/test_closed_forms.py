"""Closed forms by what they must obey, whatever the inputs: completeness, homogeneity, symmetry."""

import pytest
import torch

from forsooth.scores.closed_forms import FORMS, Case, ridge_shrinkage

COVARIANCE = torch.tensor([[2.0, 0.4], [0.4, 0.25]], dtype=torch.float64)
WEIGHT = torch.tensor([1.0, -1.6], dtype=torch.float64) / 0.36


def a_case(seed: int) -> Case:
    drawn = torch.Generator().manual_seed(seed)
    sign = torch.tensor([[1.0], [-1.0], [1.0]], dtype=torch.float64)
    references = torch.randn(50, 2, generator=drawn).double()
    x = torch.randn(3, 2, generator=drawn).double()
    return Case(x, sign * WEIGHT, COVARIANCE, background=references[:10], baseline=references)


@pytest.mark.parametrize("method", ["gradient_x_input", "deep_taylor", "pattern_attribution"])
def test_what_conserves_the_output_sums_to_it(method: str) -> None:
    case = a_case(0)
    total = FORMS[method].value(case).sum(1, keepdim=True)
    expected = case.output.clamp(min=0) if method == "deep_taylor" else case.output
    torch.testing.assert_close(total, expected)


@pytest.mark.parametrize(("method", "references"), [("deep_shap", "background"), ("shapley", "baseline")])
def test_what_is_complete_sums_to_the_difference_from_its_references(method: str, references: str) -> None:
    case = a_case(1)
    absent = getattr(case, references).mean(0)
    expected = case.output[:, 0] - case.v @ absent
    torch.testing.assert_close(FORMS[method].value(case).sum(1), expected)


def test_a_larger_epsilon_keeps_a_share_of_the_output() -> None:
    case = a_case(2)
    share = FORMS["lrp_epsilon_1"].value(case) / FORMS["lrp"].value(case)
    assert ((share > 0) & (share < 1)).all()
    torch.testing.assert_close(share[:, 0], share[:, 1])


def test_patterns_give_the_suppressor_nothing() -> None:
    case = a_case(3)
    assert FORMS["pattern_net"].value(case)[:, 1].abs().max() < 1e-12
    assert FORMS["pattern_attribution"].value(case)[:, 1].abs().max() < 1e-12
    assert FORMS["gradient"].value(case)[:, 1].abs().min() > 1


def test_a_ridge_shrinks_and_shrinks_most_along_the_difference() -> None:
    along, across = ridge_shrinkage()
    assert 0.9 < across < along < 1 or 0.9 < along < across < 1
    case = a_case(4)
    assert (FORMS["lime"].value(case).sum(1).abs() < case.output[:, 0].abs()).all()


def test_methods_without_draws_have_no_error() -> None:
    case = a_case(5)
    drawing = {name for name, form in FORMS.items() if form.error(case).any()}
    assert drawing == {
        *("gradient_shap", "gradient_shap_200", "pfi", "lime"),
        *("integrated_gradients_smooth", "integrated_gradients_smooth_squared", "pattern_net", "pattern_attribution"),
    }
    more = FORMS["gradient_shap_200"].error(case)
    torch.testing.assert_close(FORMS["gradient_shap"].error(case), 2 * more)  # a quarter of the draws
