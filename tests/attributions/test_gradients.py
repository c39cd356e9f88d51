import torch
from attributions import nets
from captum.attr import InputXGradient, Saliency
from pytest import raises
from torch import Tensor

from forsooth.attributions.gradients import gradient, gradient_x_input, saliency, smooth_grad
from forsooth.records import UsageError
from forsooth.seeds import generator

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


def test_smooth_grad_equals_a_loop() -> None:
    model = nets.drawn(nets.cnn())
    source, expected = generator(3), torch.zeros_like(X)
    for _ in range(7):
        noise = torch.randn(1, 8, 8, generator=source, dtype=torch.float64)
        for i, x in enumerate(X):
            point = x + 0.15 * (x.max() - x.min()) * noise
            expected[i] += gradient(model, point[None], TARGET[i : i + 1])[0] / 7
    torch.testing.assert_close(smooth_grad(model, X, TARGET, generator=generator(3), samples=7), expected)


def test_smooth_grad_moves_by_the_stated_share() -> None:
    seen: list[Tensor] = []

    def watched(x: Tensor) -> Tensor:
        seen.append(x.detach())
        return squares(x)

    x = torch.tensor([[0.0, 10.0], [-1.0, 0.0]], dtype=torch.float64)
    smooth_grad(watched, x, TARGET[:2], generator=generator(0), samples=2000, noise=0.1)
    spread = (torch.cat(seen).view(2000, 2, 2) - x).std(dim=(0, 2))
    torch.testing.assert_close(spread, torch.tensor([1.0, 0.1], dtype=torch.float64), rtol=0.05, atol=0)


def test_bad_knobs() -> None:
    with raises(UsageError, match=r"`samples` must be at least 1 and `noise` at least 0, got 0 and 0.15"):
        smooth_grad(squares, X, TARGET, generator=generator(0), samples=0)
