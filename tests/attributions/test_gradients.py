import torch
from attributions import nets
from captum.attr import LRP as CaptumLRP
from captum.attr import InputXGradient, Saliency
from captum.attr._utils.lrp_rules import EpsilonRule
from pytest import mark, raises
from torch import Tensor, nn

from forsooth.attributions import LRP_EPSILON_1
from forsooth.attributions.gradients import (
    SMOOTH_GRAD,
    SMOOTH_GRAD_50,
    SMOOTH_GRAD_ABSOLUTE,
    SMOOTH_GRAD_SQUARED,
    Magnitude,
    gradient,
    gradient_x_input,
    saliency,
    smooth_grad,
    var_grad,
)
from forsooth.attributions.propagation import LRP
from forsooth.records import UsageError

X = nets.inputs(4, 1, 8, 8)
TARGET = torch.tensor([0, 1, 1, 0])


def squares(x: Tensor) -> Tensor:
    """f_0 = Σ x², f_1 = -f_0: the gradient is ±2x."""
    value = x.flatten(1).square().sum(dim=1)
    return torch.stack([value, -value], dim=1)


def test_by_hand() -> None:
    sign = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64).view(4, 1, 1, 1)
    torch.testing.assert_close(gradient(squares, X, TARGET), 2 * sign * X)
    torch.testing.assert_close(saliency(squares, X, TARGET), 2 * X.abs())
    torch.testing.assert_close(gradient_x_input(squares, X, TARGET), 2 * sign * X * X)


def test_equals_captum() -> None:
    model = nets.drawn(nets.cnn())
    for ours, theirs in ((saliency, Saliency), (gradient_x_input, InputXGradient)):
        expected = theirs(model).attribute(X.clone().requires_grad_(), target=TARGET)
        torch.testing.assert_close(ours(model, X, TARGET), expected.detach())


def test_works_without_gradients_around_it_and_leaves_none() -> None:
    model = nets.drawn(nets.cnn())
    expected = gradient(model, X, TARGET)
    with torch.inference_mode():
        assert torch.equal(gradient(model, X.clone(), TARGET.clone()), expected)
    with torch.no_grad():
        assert torch.equal(gradient(model, X, TARGET), expected)
    assert all(p.grad is None for p in model.parameters())
    assert not expected.requires_grad


@mark.parametrize(("magnitude", "power"), [("signed", None), ("absolute", 1), ("squared", 2)])
def test_smooth_grad_equals_a_loop(magnitude: Magnitude, power: int | None) -> None:
    model = nets.drawn(nets.cnn())
    expected = torch.zeros_like(X)
    for i, (x, source) in enumerate(zip(X, nets.own(3), strict=True)):
        for noise in torch.randn(7, 1, 8, 8, generator=source):
            point = x + 0.15 * (x.max() - x.min()) * noise
            slope = gradient(model, point[None], TARGET[i : i + 1])[0]
            expected[i] += (slope if power is None else slope.abs() ** power) / 7
    ours = smooth_grad(model, X, TARGET, generators=nets.own(3), samples=7, magnitude=magnitude)
    torch.testing.assert_close(ours, expected)


def test_the_published_settings_of_smooth_grad() -> None:
    """One run of each record against the function with the numbers of its paper written out."""
    model = nets.drawn(nets.cnn())
    for record, samples, magnitude in (
        (SMOOTH_GRAD, 50, "signed"),
        (SMOOTH_GRAD_50, 50, "absolute"),
        (SMOOTH_GRAD_ABSOLUTE, 25, "absolute"),
        (SMOOTH_GRAD_SQUARED, 25, "squared"),
    ):
        written = smooth_grad(
            model, X, TARGET, generators=nets.own(1), samples=samples, noise=0.15, magnitude=magnitude
        )
        assert torch.equal(record(model, X, TARGET, generators=nets.own(1)), written)
        assert record.signed == (magnitude == "signed")


def test_without_noise_smoothing_does_nothing() -> None:
    model = nets.drawn(nets.cnn())
    slope = gradient(model, X, TARGET)
    for magnitude, expected in (("signed", slope), ("absolute", slope.abs()), ("squared", slope**2)):
        ours = smooth_grad(model, X, TARGET, generators=nets.own(0), samples=4, noise=0.0, magnitude=magnitude)
        torch.testing.assert_close(ours, expected)


def test_smooth_grad_moves_by_the_stated_share() -> None:
    seen: list[Tensor] = []

    def watched(x: Tensor) -> Tensor:
        seen.append(x.detach())
        return squares(x)

    x = torch.tensor([[0.0, 10.0], [-1.0, 0.0]], dtype=torch.float64)
    smooth_grad(watched, x, TARGET[:2], generators=nets.own(0, 2), samples=2000, noise=0.1)
    points = torch.cat(seen).view(2, 2000, 2)  # so many draws that the inputs come one by one
    spread = (points - x[:, None]).std(dim=(1, 2))
    torch.testing.assert_close(spread, torch.tensor([1.0, 0.1], dtype=torch.float64), rtol=0.05, atol=0)


def test_bad_knobs() -> None:
    with raises(UsageError, match=r"`samples` must be at least 1 and `noise` at least 0, got 0 and 0.15"):
        smooth_grad(squares, X, TARGET, generators=nets.own(0), samples=0)
    with raises(UsageError, match="`magnitude` must be one of signed, absolute, squared, got 'cubed'"):
        smooth_grad(squares, X, TARGET, generators=nets.own(0), magnitude="cubed")


def test_lrp_epsilon_1_by_hand() -> None:
    """One layer: R_i = x_i w_i z / (z + sign z), so of the output z the share |z| / (|z| + 1) arrives."""
    model = nets.drawn(nn.Sequential(nn.Flatten(), nn.Linear(64, 2, bias=False)))
    output = nets.output(model, X, TARGET)
    share = output.abs() / (output.abs() + 1)
    expected = gradient_x_input(model, X, TARGET) * share.view(4, 1, 1, 1)
    torch.testing.assert_close(LRP_EPSILON_1(model, X, TARGET), expected)
    torch.testing.assert_close(expected.sum(dim=(1, 2, 3)), output * share)


def test_lrp_epsilon_1_equals_captum_and_promises_nothing() -> None:
    model = nets.without_shifts(nets.drawn(nets.cnn()))
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear | nn.Flatten):  # for flattening Captum has no rule of its own
            module.rule = EpsilonRule(epsilon=1e-9 if isinstance(module, nn.Flatten) else 1.0)
    expected = CaptumLRP(model).attribute(X.clone().requires_grad_(), target=TARGET).detach()
    ours, output = LRP_EPSILON_1(model, X, TARGET), nets.output(model, X, TARGET)
    torch.testing.assert_close(ours, expected, rtol=1e-6, atol=1e-9)
    # without biases `lrp` conserves; a stabiliser of 1 absorbs, so the record may not promise it
    assert nets.gap(LRP(model, X, TARGET), output) < 1e-6 < 0.1 < nets.gap(ours, output)
    assert LRP_EPSILON_1.promise is None


def test_var_grad_is_the_variance_of_the_noisy_gradients() -> None:
    model, x, target = nets.drawn(nets.mlp()), nets.inputs(3, 5), torch.tensor([0, 1, 2])
    ours = var_grad(model, x, target, generators=nets.own(0, 3), samples=10, noise=0.3)
    for row, own in enumerate(nets.own(0, 3)):
        width = 0.3 * (x[row].max() - x[row].min())
        points = x[row] + torch.randn(10, 5, generator=own).double() * width
        maps = torch.stack([gradient(model, point[None], target[row : row + 1])[0] for point in points])
        torch.testing.assert_close(ours[row], maps.var(dim=0))
    with raises(UsageError, match="`samples` must be at least 1"):
        var_grad(model, x, target, generators=nets.own(0, 3), samples=1)
