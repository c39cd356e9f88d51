import torch
from attributions import nets
from captum.attr import IntegratedGradients
from pytest import approx, mark, raises
from torch import Tensor

from forsooth.attributions.gradients import gradient
from forsooth.attributions.paths import gradient_shap, integrated_gradients
from forsooth.records import UsageError
from forsooth.seeds import generator

X = nets.inputs(4, 1, 8, 8)
TARGET = torch.tensor([0, 1, 1, 0])
BASELINE = nets.inputs(1, 1, 8, 8, seed=2)[0]
BACKGROUND = nets.inputs(6, 1, 8, 8, seed=3)


def cubes(x: Tensor) -> Tensor:
    value = x.flatten(1).pow(3).sum(dim=1)
    return torch.stack([value, -value], dim=1)


@mark.parametrize("baseline", [None, BASELINE])
def test_integrated_gradients_equals_captum(baseline: Tensor | None) -> None:
    model = nets.drawn(nets.cnn())
    stands = torch.zeros_like(X) if baseline is None else baseline.expand_as(X).clone()
    expected = IntegratedGradients(model).attribute(X, stands, target=TARGET, n_steps=50)
    torch.testing.assert_close(integrated_gradients(model, X, TARGET, baseline=baseline), expected.detach())


def test_integrated_gradients_by_hand() -> None:
    """Along the way, 3 a² x² integrates to x²; times x this is x³. Two nodes are exact for a parabola."""
    sign = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64).view(4, 1, 1, 1)
    torch.testing.assert_close(integrated_gradients(cubes, X, TARGET, steps=2), sign * X**3)


def test_integrated_gradients_is_complete() -> None:
    model = nets.drawn(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 9), torch.nn.Tanh()))
    ours = integrated_gradients(model, X, TARGET, baseline=BASELINE)
    total = nets.output(model, X, TARGET) - nets.output(model, BASELINE.expand_as(X), TARGET)
    assert nets.gap(ours, total) == approx(0, abs=1e-9)


def test_gradient_shap_equals_a_loop() -> None:
    model = nets.drawn(nets.cnn())
    source, expected = generator(5), torch.zeros_like(X)
    rows = torch.randint(6, (9,), generator=source)
    places = torch.rand(9, generator=source, dtype=torch.float64)
    for row, place in zip(rows, places, strict=True):
        start = BACKGROUND[row]
        expected += (X - start) * gradient(model, place * X + (1 - place) * start, TARGET) / 9
    ours = gradient_shap(model, X, TARGET, generator=generator(5), background=BACKGROUND, samples=9)
    torch.testing.assert_close(ours, expected)


def test_gradient_shap_is_complete_on_average() -> None:
    ours = gradient_shap(cubes, X, TARGET, generator=generator(0), background=BACKGROUND, samples=20_000)
    total = nets.output(cubes, X, TARGET)
    for row in BACKGROUND:
        total = total - nets.output(cubes, row.expand_as(X), TARGET) / len(BACKGROUND)
    torch.testing.assert_close(ours.sum(dim=(1, 2, 3)), total, rtol=0.05, atol=1.0)


def test_bad_input_is_named() -> None:
    with raises(UsageError, match="`steps` must be at least 1, got 0"):
        integrated_gradients(cubes, X, TARGET, steps=0)
    with raises(UsageError, match="`samples` must be at least 1, got 0"):
        gradient_shap(cubes, X, TARGET, generator=generator(0), samples=0)
    with raises(UsageError, match=r"`background` must have shape \('k', 1, 8, 8\) with k > 0, got \(6, 8, 8\)"):
        gradient_shap(cubes, X, TARGET, generator=generator(0), background=BACKGROUND[:, 0])
    with raises(UsageError, match=r"with k > 0, got \(0, 1, 8, 8\)"):
        gradient_shap(cubes, X, TARGET, generator=generator(0), background=BACKGROUND[:0])
