import numpy
import pytest
import torch
from attributions import nets
from scipy import ndimage
from torch import Tensor, nn

from forsooth.attributions.paths import integrated_gradients
from forsooth.attributions.ways import blur_ig, blurred, expected_gradients, guided_ig
from forsooth.records import UsageError

TARGET = torch.tensor([0, 1, 1, 0])
X = nets.inputs(4, 1, 8, 8)
SMOOTH = nets.drawn(nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.Softplus(), nn.Linear(6, 2)))


def slope_at(model: nn.Module, point: numpy.ndarray, target: int) -> numpy.ndarray:
    leaf = torch.from_numpy(point).view(1, 1, 8, 8).requires_grad_()
    return torch.autograd.grad(model(leaf)[0, target], leaf)[0].flatten().numpy()


def literal_guided(model: nn.Module, x: numpy.ndarray, target: int, steps: int) -> numpy.ndarray:
    """One image, one feature list at a time: the flattest quarter of those that can move go first."""
    point, total = numpy.zeros_like(x), numpy.zeros_like(x)
    slope = slope_at(model, point, target)
    for step in range(1, steps + 1):
        before = point.copy()
        low, high = max(0, step / steps - 0.02) * x, min(1, step / steps + 0.02) * x
        point = numpy.where(numpy.abs(point) < numpy.abs(low), low, point)
        while True:
            rest = numpy.abs(x - point).sum() - numpy.abs(x).sum() * (1 - step / steps)
            free = [i for i in numpy.argsort(numpy.abs(slope), kind="stable") if point[i] != high[i]]
            chosen = free[: int(numpy.ceil(len(free) * 0.25))]
            fits = sum(abs(high[i] - point[i]) for i in chosen)
            if fits == 0 or rest <= 0:
                break
            for i in chosen:
                point[i] = high[i] if rest >= fits else point[i] + (high[i] - point[i]) * rest / fits
            if rest < fits:
                break
        ahead = slope_at(model, point, target)
        total += (slope + ahead) / 2 * (point - before)
        slope = ahead
    return total


def test_guided_ig_equals_a_literal_walk() -> None:
    ours = guided_ig(SMOOTH, X, TARGET, steps=20)
    for row in range(len(X)):
        expected = literal_guided(SMOOTH, X[row].flatten().numpy(), int(TARGET[row]), 20)
        numpy.testing.assert_allclose(ours[row].flatten().numpy(), expected, atol=1e-8)


def test_guided_ig_is_complete_on_a_smooth_network() -> None:
    total = nets.output(SMOOTH, X, TARGET) - nets.output(SMOOTH, torch.zeros_like(X), TARGET)
    assert nets.gap(guided_ig(SMOOTH, X, TARGET, steps=200), total) < 1e-3


def test_guided_ig_with_the_straight_way_is_integrated_gradients() -> None:
    straight = guided_ig(SMOOTH, X, TARGET, steps=200, distance=0)
    torch.testing.assert_close(straight, integrated_gradients(SMOOTH, X, TARGET), rtol=0, atol=1e-3)


def test_blur_is_a_gaussian_and_the_sum_is_promised() -> None:
    ours = blurred(X, 1.0)[0, 0, 3:5, 3:5]  # far enough from the border for three pixels of width
    theirs = ndimage.gaussian_filter(numpy.pad(X[0, 0].numpy(), 0), 1.0, mode="constant", truncate=8)
    weight = ndimage.gaussian_filter(numpy.ones((8, 8)), 1.0, mode="constant", truncate=8)
    numpy.testing.assert_allclose(ours.numpy(), (theirs / weight)[3:5, 3:5], atol=1e-6)
    maps = blur_ig(SMOOTH, X, TARGET, steps=100)
    total = nets.output(SMOOTH, X, TARGET) - nets.output(SMOOTH, blurred(X, 4.0), TARGET)
    assert nets.gap(maps, total) < 1e-3


def test_blur_ig_on_a_linear_model_is_weight_times_what_blur_takes() -> None:
    model = nets.drawn(nn.Sequential(nn.Flatten(), nn.Linear(64, 2)))
    weight = model[1].weight.detach()[TARGET].view_as(X)
    torch.testing.assert_close(blur_ig(model, X, TARGET), weight * (X - blurred(X, 4.0)))


def test_expected_gradients_come_near_the_mean_of_all_integrals() -> None:
    background = nets.inputs(5, 1, 8, 8, seed=7)
    integrals = [integrated_gradients(SMOOTH, X, TARGET, baseline=start) for start in background]
    expected: Tensor = torch.stack(integrals).mean(0)
    ours = expected_gradients(SMOOTH, X, TARGET, generators=nets.own(0), background=background, samples=2000)
    torch.testing.assert_close(ours, expected, rtol=0, atol=0.02 * expected.abs().max().item())


def test_bad_arguments() -> None:
    with pytest.raises(UsageError, match=r"`steps` must be at least 1, .* got 0, 0.25 and 0.02"):
        guided_ig(SMOOTH, X, TARGET, steps=0)
    with pytest.raises(UsageError, match="`widest` above 0, got 50 and -1"):
        blur_ig(SMOOTH, X, TARGET, widest=-1)
    with pytest.raises(UsageError, match="`samples` must be at least 1, got 0"):
        expected_gradients(SMOOTH, X, TARGET, generators=nets.own(0), background=X, samples=0)
