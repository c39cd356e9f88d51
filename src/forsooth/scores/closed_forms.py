"""A linear model with a suppressor: what every method must say is known in closed form, and held against what it says.

The data are those of `datasets.suppressor`: x = a z + noise with a = (1, 0), z = ±1 and noise of covariance Σ. The
network is the best possible one, logits (-w·x, w·x) with w = Σ⁻¹ a. Its output for the class of z is f = v·x with
v = z w; hidden features are zero. References b that are drawn from the data have the mean zero but for chance.

Gradients are v everywhere. Whatever hands out differences of an additive function along v gives v_j (x_j - b_j), where
b is the reference: Shapley values, occlusion, integrated gradients, DeepLIFT, LRP without bias (Wilming et al. 2023).
With ε = 1, LRP keeps |f| / (|f| + 1) of that; deep Taylor hands f⁺ to the positive ones of the v_j x_j. LIME's ridge
sees f = Σ v_j x_j m_j over masks m and shrinks along (1, 1) and (1, -1), see `ridge_shrinkage`. A pattern is
cov(x, f) / var(f) = C v / (vᵀ C v) with C = Σ + a aᵀ, the covariance of x (Haufe et al. 2014). For v = z Σ⁻¹ a, and
δ = aᵀ Σ⁻¹ a, this is C v = z a (1 + δ) and vᵀ C v = δ (1 + δ): the pattern is z a / δ, and the suppressor gets
nothing. PatternAttribution gives f v ⊙ z a / δ = (f, 0), since w₁ = δ. [haufe2014interpretation],
[wilming2023theoretical]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

MASKS = 1000  # of LIME with few players
FITTED = 1000  # samples that patterns are fitted on


@dataclass(frozen=True)
class Case:
    """The explained inputs and what closed forms are made of.

    x            (n, 2)
    v            (n, 2), the rows of the network for the classes of x
    covariance   (2, 2), C of all inputs
    background   (k, 2), the references that methods are given
    baseline     (m, 2), those whose mean stands for an absent player in the games
    """

    x: Tensor
    v: Tensor
    covariance: Tensor
    background: Tensor
    baseline: Tensor

    @property
    def products(self) -> Tensor:
        """v_j x_j, (n, 2)"""
        return self.v * self.x

    @property
    def output(self) -> Tensor:
        """f = v·x, (n, 1)"""
        return self.products.sum(1, keepdim=True)

    @property
    def noise(self) -> Tensor:
        """The standard deviation of the methods that disturb inputs: 15 % of the range of an input. (n, 1)"""
        return 0.15 * (self.x[:, :1] - self.x[:, 1:]).abs()


Formula = Callable[[Case], Tensor]


@dataclass(frozen=True)
class Form:
    """What a method must say, in words and numbers (n, 2), and the standard error of its draws (n, 2)."""

    words: str
    value: Formula
    error: Formula = lambda case: torch.zeros_like(case.x)


def less_mean(of: str) -> Formula:
    """v_j (x_j - b_j) where b is the mean of the references called `of`"""
    return lambda case: case.v * (case.x - getattr(case, of).mean(0))


def references_error(draws: int) -> Formula:
    """Of the mean of `draws` of the background."""
    return lambda case: case.v.abs() * case.background.std(0) / math.sqrt(draws)


def deep_taylor(case: Case) -> Tensor:
    helping = case.products.clamp(min=0)
    total = helping.sum(1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    return helping / total * case.output.clamp(min=0)


def ridge_shrinkage() -> tuple[float, float]:
    """What LIME's ridge of penalty 1 leaves of effects along (1, 1) and (1, -1).

    A quarter of the masks hides both players, one, the other, none; they weigh exp(-d² / 2) by their distances
    d = 1 - √share: 1, 1 - √½, 0. The centred Gram matrix G of the masks has equal diagonal entries, so (1, ±1) are its
    eigenvectors, with eigenvalues g = G₁₁ ± G₁₂, and the ridge leaves g / (g + 1).
    """
    quarter = MASKS / 4
    none = quarter * math.exp(-1 / 2)
    one = quarter * math.exp(-((1 - math.sqrt(0.5)) ** 2) / 2)
    both = quarter
    mean = one + both  # weight of the masks in which a player takes part
    product = mean**2 / (none + 2 * one + both)
    along = mean - product + (both - product)
    across = mean - product - (both - product)
    return along / (along + 1), across / (across + 1)


def lime(case: Case) -> Tensor:
    along, across = ridge_shrinkage()
    other = case.products.flip(1)
    return (along + across) / 2 * case.products + (along - across) / 2 * other


def lime_error(case: Case) -> Tensor:
    """At most: the number of masks of a kind varies by 1 / √(pairs of masks), and what the ridge takes away with it."""
    taken = 1 - min(ridge_shrinkage())
    return taken / math.sqrt(MASKS / 2) * case.products.abs().sum(1, keepdim=True).expand_as(case.x)


def pattern(case: Case) -> Tensor:
    along = case.v @ case.covariance
    return along / (along * case.v).sum(1, keepdim=True)


def pattern_error(case: Case) -> Tensor:
    """From the variance of a covariance of `known` samples, C₂₂ var(f) / known; what x₂ gets too much, x₁ lacks."""
    variance = ((case.v @ case.covariance) * case.v).sum(1)  # of f, (n,)
    second = (case.covariance[1, 1] / variance / FITTED).sqrt()
    return torch.stack([second * (case.v[:, 1] / case.v[:, 0]).abs(), second], 1)


def smooth_squares_error(case: Case) -> Tensor:
    variance = 2 * case.noise**4 + 4 * case.x**2 * case.noise**2
    return case.v**2 * (variance / 25).sqrt()


def differences(values: Tensor, form: Form, case: Case, *, tolerance: float, errors: float) -> dict[str, float | None]:
    """How far values (n, 2) are from a closed form, in columns.

    value, standard_error  the difference that chance excuses least, and its error
    excess                 that over what chance and rounding excuse, `tolerance` and so many standard `errors`: above 1
                           a method does not say what it must
    times_error            root mean square of all differences in standard errors; None where nothing is drawn
    signal, suppressor     of the first input, and what was said of them
    """
    expected = form.value(case)
    difference = (values - expected).abs()
    error = form.error(case).expand_as(difference)
    excess = difference / (tolerance + errors * error)
    worst = int(excess.argmax())
    times_error = None
    if error.all():
        times_error = (difference / error).square().mean().sqrt().item()
    return {
        "value": difference.flatten()[worst].item(),
        "standard_error": error.flatten()[worst].item(),
        "excess": excess.max().item(),
        "times_error": times_error,
        "signal": expected[0, 0].item(),
        "our_signal": values[0, 0].item(),
        "suppressor": expected[0, 1].item(),
        "our_suppressor": values[0, 1].item(),
        "largest_suppressor": expected[:, 1].abs().max().item(),
    }


GRADIENT = Form("v", lambda case: case.v)
MODULUS = Form("|v|", lambda case: case.v.abs())
PRODUCT = Form("v x", lambda case: case.products)


def drawn_references(draws: int) -> Form:
    return Form("v (x - b), b drawn", less_mean("background"), references_error(draws))


FORMS = {
    **dict.fromkeys(("gradient", "smooth_grad", "guided_backprop", "deconvolution"), GRADIENT),
    **dict.fromkeys(("saliency", "smooth_grad_absolute"), MODULUS),
    "smooth_grad_squared": Form("v²", lambda case: case.v**2),
    **dict.fromkeys(("gradient_x_input", "integrated_gradients", "lrp", "deep_lift", "occlusion"), PRODUCT),
    **dict.fromkeys(("gradient_shap_5", "shapley_sampling", "kernel_shap", "kernel_shap_25"), PRODUCT),
    "deep_shap": Form("v (x - b), b the mean", less_mean("background")),
    "shapley": Form("v (x - b), b the mean", less_mean("baseline")),
    "gradient_shap": drawn_references(50),
    "gradient_shap_200": drawn_references(200),
    "pfi": drawn_references(10),
    "lrp_epsilon_1": Form(
        "v x |f| / (|f| + 1)", lambda case: case.products * case.output.abs() / (case.output.abs() + 1)
    ),
    "deep_taylor": Form("f⁺ (v x)⁺ / Σ (v x)⁺", deep_taylor),
    "lime": Form("v x, shrunk by a ridge", lime, lime_error),
    "integrated_gradients_smooth": Form(
        "v x", lambda case: case.products, lambda case: case.v.abs() * case.noise / math.sqrt(25)
    ),
    "integrated_gradients_smooth_squared": Form(
        "v² (x² + noise²)", lambda case: case.v**2 * (case.x**2 + case.noise**2), smooth_squares_error
    ),
    "pattern_net": Form("C v / vᵀCv = z (1, 0) / δ", pattern, pattern_error),
    "pattern_attribution": Form(
        "f v C v / vᵀCv = (f, 0)",
        lambda case: case.output * case.v * pattern(case),
        lambda case: (case.output * case.v).abs() * pattern_error(case),
    ),
}
