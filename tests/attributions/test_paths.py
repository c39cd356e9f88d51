import torch
from attributions import nets
from captum.attr import IntegratedGradients
from pytest import approx, mark, raises
from torch import Tensor

from forsooth.attributions.gradients import Magnitude, gradient
from forsooth.attributions.paths import (
    GRADIENT_SHAP_200,
    INTEGRATED_GRADIENTS_SMOOTH,
    INTEGRATED_GRADIENTS_SMOOTH_SQUARED,
    gradient_shap,
    integrated_gradients,
    integrated_gradients_smooth,
)
from forsooth.records import UsageError

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


@mark.parametrize(("magnitude", "power"), [("signed", None), ("absolute", 1), ("squared", 2)])
def test_smooth_integrated_gradients_equal_a_loop(magnitude: Magnitude, power: int | None) -> None:
    model = nets.drawn(nets.cnn())
    expected = torch.zeros_like(X)
    for i, (x, source) in enumerate(zip(X, nets.own(3), strict=True)):
        for noise in torch.randn(5, 1, 8, 8, generator=source):
            point = (x + 0.15 * (x.max() - x.min()) * noise)[None]
            path = IntegratedGradients(model).attribute(point, target=int(TARGET[i]), n_steps=11)[0].detach()
            expected[i] += (path if power is None else path.abs() ** power) / 5
    ours = integrated_gradients_smooth(
        model, X, TARGET, generators=nets.own(3), samples=5, steps=11, magnitude=magnitude
    )
    torch.testing.assert_close(ours, expected)


def test_smooth_integrated_gradients_sum_to_the_mean_output_of_the_copies() -> None:
    seen: list[Tensor] = []

    def watched(x: Tensor) -> Tensor:
        seen.append(x.detach())
        return cubes(x)

    ours = integrated_gradients_smooth(watched, X, TARGET, generators=nets.own(2), samples=6, steps=1)
    copies = 2 * torch.cat(seen).view(6, 4, 1, 8, 8)  # one step looks half-way from zeros to a copy
    sign = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64).view(4, 1, 1, 1)
    torch.testing.assert_close(ours, sign * 0.75 * (copies**3).mean(dim=0))  # 3 (c / 2)² c
    exact = integrated_gradients_smooth(cubes, X, TARGET, generators=nets.own(2), samples=6, steps=2)
    total = nets.output(cubes, copies.flatten(0, 1), TARGET.repeat(6)).view(6, 4).mean(dim=0)
    torch.testing.assert_close(exact.sum(dim=(1, 2, 3)), total)


def test_the_published_settings() -> None:
    model = nets.drawn(nets.cnn())
    for record, magnitude in (
        (INTEGRATED_GRADIENTS_SMOOTH, "signed"),
        (INTEGRATED_GRADIENTS_SMOOTH_SQUARED, "squared"),
    ):
        written = integrated_gradients_smooth(
            model, X, TARGET, generators=nets.own(1), samples=25, steps=25, magnitude=magnitude
        )
        assert torch.equal(record(model, X, TARGET, generators=nets.own(1)), written)
        assert record.signed == (magnitude == "signed") and record.promise is None
    written = gradient_shap(model, X, TARGET, generators=nets.own(1), background=BACKGROUND, samples=200)
    assert torch.equal(GRADIENT_SHAP_200(model, X, TARGET, generators=nets.own(1), background=BACKGROUND), written)


def test_gradient_shap_equals_a_loop() -> None:
    model = nets.drawn(nets.cnn())
    expected = torch.zeros_like(X)
    for i, (x, source) in enumerate(zip(X, nets.own(5), strict=True)):
        rows, places = torch.rand(2, 9, generator=source, dtype=torch.float64)
        for row, place in zip(rows, places, strict=True):
            start = BACKGROUND[int(6 * row)]
            point = (place * x + (1 - place) * start)[None]
            expected[i] += (x - start) * gradient(model, point, TARGET[i : i + 1])[0] / 9
    ours = gradient_shap(model, X, TARGET, generators=nets.own(5), background=BACKGROUND, samples=9)
    torch.testing.assert_close(ours, expected)


def test_gradient_shap_is_complete_on_average() -> None:
    runs = [
        gradient_shap(cubes, X, TARGET, generators=nets.own(k), background=BACKGROUND, samples=1000) for k in range(20)
    ]
    sums = torch.stack(runs).sum(dim=(2, 3, 4))  # (runs, n)
    total = nets.output(cubes, X, TARGET)
    for row in BACKGROUND:
        total = total - nets.output(cubes, row.expand_as(X), TARGET) / len(BACKGROUND)
    error = sums.std(dim=0) / 20**0.5
    assert (error < 1.5).all() and ((sums.mean(dim=0) - total).abs() < 4 * error).all()


def test_bad_input_is_named() -> None:
    with raises(UsageError, match="`steps` must be at least 1, got 0"):
        integrated_gradients(cubes, X, TARGET, steps=0)
    with raises(UsageError, match="`steps` must be at least 1, got 0"):
        integrated_gradients_smooth(cubes, X, TARGET, generators=nets.own(0), steps=0)
    with raises(UsageError, match="`samples` must be at least 1 and `noise` at least 0, got 0"):
        integrated_gradients_smooth(cubes, X, TARGET, generators=nets.own(0), samples=0)
    with raises(UsageError, match="`samples` must be at least 1, got 0"):
        gradient_shap(cubes, X, TARGET, generators=nets.own(0), samples=0)
    with raises(UsageError, match=r"`background` must have shape \('k', 1, 8, 8\) with k > 0, got \(6, 8, 8\)"):
        gradient_shap(cubes, X, TARGET, generators=nets.own(0), background=BACKGROUND[:, 0])
    with raises(UsageError, match=r"with k > 0, got \(0, 1, 8, 8\)"):
        gradient_shap(cubes, X, TARGET, generators=nets.own(0), background=BACKGROUND[:0])
