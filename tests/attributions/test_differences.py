import torch
import torch.nn.functional as F
from attributions import nets
from captum.attr import DeepLift
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as some
from pytest import mark, raises, warns
from torch import Tensor, nn

from forsooth.attributions.differences import DEEP_SHAP_ZERO, deep_lift, deep_shap
from forsooth.records import UsageError

TARGET = torch.tensor([0, 1, 1, 0])


def by_hand() -> nn.Sequential:
    """f_0 = relu(x_0 + 2 x_1 - 2), f_1 = -3 relu(x_0 - x_1)"""
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)).double().eval()
    for parameter, values in zip(
        model.parameters(), ([[1, 2], [1, -1]], [-2, 0], [[1, 0], [0, -3]], [0, 5]), strict=True
    ):
        parameter.data = torch.tensor(values, dtype=torch.float64)
    return model


def test_deep_lift_by_hand() -> None:
    # x = (2, 2): z_0 goes from -2 to 4, its ReLU from 0 to 4, so the multiplier is 4/6; contributions 2·4/6, 4·4/6.
    # x = (3, 1): z_1 goes from 0 to 2, its ReLU too; contributions -3·3 and 3·1.
    x, target = torch.tensor([[2.0, 2.0], [3.0, 1.0]], dtype=torch.float64), torch.tensor([0, 1])
    expected = torch.tensor([[4 / 3, 8 / 3], [-9, 3]], dtype=torch.float64)
    torch.testing.assert_close(deep_lift(by_hand(), x, target), expected)
    # Against (2, 1): z_0 goes from 2 to 4, all active, so x_1 alone gets the difference of 2.
    baseline = torch.tensor([2.0, 1.0], dtype=torch.float64)
    assert torch.equal(deep_lift(by_hand(), x[:1], target[:1], baseline=baseline), x.new_tensor([[0, 2]]))
    # Against itself there is nothing to explain.
    assert torch.equal(deep_lift(by_hand(), x, target, baseline=x), torch.zeros_like(x))


class Average(nn.Module):
    """No max-pooling, distinct module ReLUs: a network for which Captum's DeepLIFT is complete."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.relu1, self.pool = nn.Conv2d(1, 3, 3), nn.ReLU(), nn.AvgPool2d(2, stride=1)
        self.conv2, self.act2, self.head = nn.Conv2d(3, 2, 2), nn.Sigmoid(), nn.Linear(32, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.act2(self.conv2(self.pool(self.relu1(self.conv1(x))))).flatten(1))


def captum(model: nn.Module, x: Tensor, baseline: Tensor) -> Tensor:
    with warns(UserWarning):  # on its hooks
        return DeepLift(model).attribute(x.clone(), baseline, target=TARGET).detach()


def test_deep_lift_equals_captum_where_captum_is_right() -> None:
    model, x = nets.drawn(Average()), nets.inputs(4, 1, 8, 8)
    for baseline in (torch.zeros_like(x), nets.inputs(4, 1, 8, 8, seed=5)):
        torch.testing.assert_close(deep_lift(model, x, TARGET, baseline=baseline), captum(model, x, baseline))
    # Max-pooling against zeros, without biases: both give all to the winner.
    pooled = nets.without_shifts(nets.drawn(nets.cnn()))
    torch.testing.assert_close(deep_lift(pooled, x, TARGET), captum(pooled, x, torch.zeros_like(x)))


NETS = {
    "8x8": (nets.cnn(), 8),
    "8x8, overlapping": (nets.cnn(stride=1), 8),
    "64x64, overlapping": (nets.cnn(64, stride=1), 64),
    "residual": (nets.Residual(), 8),
}


@mark.parametrize("name", NETS)
def test_deep_lift_and_deep_shap_are_complete(name: str) -> None:
    net, size = NETS[name]
    model, x, other = nets.drawn(net), nets.inputs(4, 1, size, size), nets.inputs(4, 1, size, size, seed=6)
    score, zeros = nets.output(model, x, TARGET), torch.zeros_like(x)
    assert nets.gap(deep_lift(model, x, TARGET), score - nets.output(model, zeros, TARGET)) < 1e-10
    assert nets.gap(DEEP_SHAP_ZERO(model, x, TARGET), score - nets.output(model, zeros, TARGET)) < 1e-10
    assert nets.gap(deep_lift(model, x, TARGET, baseline=other), score - nets.output(model, other, TARGET)) < 1e-10
    mean = torch.stack([nets.output(model, row.expand_as(x), TARGET) for row in other]).mean(0)
    assert nets.gap(deep_shap(model, x, TARGET, background=other), score - mean) < 1e-10


def test_single_precision_is_sane() -> None:
    model = nets.drawn(nets.Residual()).float()
    x, other = nets.inputs(4, 1, 8, 8).float(), nets.inputs(4, 1, 8, 8, seed=6).float()
    for baseline in (torch.zeros_like(x), other, x + 1e-4 * other):
        found = deep_lift(model, x, TARGET, baseline=baseline)
        total = nets.output(model, x, TARGET) - nets.output(model, baseline, TARGET)
        torch.testing.assert_close(found.flatten(1).sum(1), total, rtol=1e-4, atol=1e-5)


def test_deep_shap_is_the_mean_over_the_background() -> None:
    model, x, background = nets.drawn(nets.cnn()), nets.inputs(4, 1, 8, 8), nets.inputs(3, 1, 8, 8, seed=2)
    maps = [deep_lift(model, x, TARGET, baseline=row) for row in background]
    torch.testing.assert_close(deep_shap(model, x, TARGET, background=background), torch.stack(maps).mean(0))


@some.composite
def pools(draw: some.DrawFn) -> nn.Module:
    kind = draw(some.sampled_from([nn.MaxPool2d, nn.AdaptiveMaxPool2d, nn.AvgPool2d, nn.Identity]))
    if kind is nn.AdaptiveMaxPool2d:
        return nn.AdaptiveMaxPool2d((draw(some.integers(1, 5)), draw(some.integers(1, 5))))
    if kind is nn.MaxPool2d:
        kernel = (draw(some.integers(1, 3)), draw(some.integers(1, 3)))
        padding = (draw(some.integers(0, kernel[0] // 2)), draw(some.integers(0, kernel[1] // 2)))
        dilation, ceil = draw(some.integers(1, 2)), draw(some.booleans())
        return nn.MaxPool2d(kernel, draw(some.integers(1, 3)), padding, dilation, ceil_mode=ceil)
    return nn.AvgPool2d(2, stride=1) if kind is nn.AvgPool2d else nn.Identity()


ACTIVATIONS = some.sampled_from([nn.ReLU(), nn.ReLU(inplace=True), nn.LeakyReLU(0.1, True), nn.Tanh(), nn.GELU()])


class Drawn(nn.Module):
    """Two convolutions, two activations, two pools and perhaps a residual sum."""

    def __init__(self, activations: list[nn.Module], pooling: list[nn.Module], *, residual: bool) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 3, 2, padding=1), nn.Conv2d(3, 3, 3, padding=1)
        self.activations, self.pooling = nn.ModuleList(activations), nn.ModuleList(pooling)
        self.residual = residual

    def forward(self, x: Tensor) -> Tensor:
        y = self.pooling[0](self.activations[0](self.conv1(x)))
        z = self.activations[1](self.conv2(y))
        return self.pooling[1](z + y if self.residual else z).flatten(2).mean(2)


@settings(max_examples=60, deadline=None)
@given(
    some.lists(ACTIVATIONS, min_size=2, max_size=2),
    some.lists(pools(), min_size=2, max_size=2),
    some.booleans(),
    some.integers(0, 999),
    some.sampled_from([0.0, 1e-12, 1e-6, 1.0, 10.0]),
)
def test_deep_lift_is_complete_on_random_networks(
    activations: list[nn.Module], pooling: list[nn.Module], residual: bool, seed: int, distance: float
) -> None:
    model, x = nets.drawn(Drawn(activations, pooling, residual=residual), seed), nets.inputs(4, 1, 7, 6, seed=seed)
    start = torch.zeros_like(x) if distance == 0 else x
    baseline = start + distance * nets.inputs(4, 1, 7, 6, seed=seed + 1)
    try:
        total = nets.output(model, x, TARGET) - nets.output(model, baseline, TARGET)
    except RuntimeError:  # this pool does not fit on this map
        reject()
    assume(total.isfinite().all())  # nor does one with a window that holds padding only
    found = deep_lift(model, x, TARGET, baseline=baseline).flatten(1)
    scale = found.abs().sum(1).max().item()
    torch.testing.assert_close(found.sum(1), total, rtol=1e-8, atol=1e-9 * scale + 1e-13)


@mark.parametrize(
    ("pool", "dimensions"),
    [(F.max_pool1d, 1), (F.max_pool3d, 3), (F.adaptive_max_pool1d, 1), (F.adaptive_max_pool3d, 3)],
)
def test_max_pools_of_other_dimensions(pool: object, dimensions: int) -> None:
    class Pooled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return pool(x, 2).flatten(1)

    shape = (4,) * dimensions
    x, baseline = nets.inputs(4, 2, *shape), nets.inputs(4, 2, *shape, seed=8)
    total = nets.output(Pooled(), x, TARGET) - nets.output(Pooled(), baseline, TARGET)
    assert nets.gap(deep_lift(Pooled(), x, TARGET, baseline=baseline), total) < 1e-12


def test_a_window_of_padding_only_is_refused() -> None:
    model = nn.Sequential(nn.MaxPool1d(2, 1, padding=1, dilation=2), nn.Flatten())
    with raises(UsageError, match=r"a window of `.*max_pool1d` lies wholly in its padding"):
        deep_lift(model, nets.inputs(4, 2, 1), TARGET)


def test_samples_must_keep_an_axis_of_their_own() -> None:
    class Merged(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.relu(x.reshape(-1, 2)).reshape(len(x), -1)

    with raises(UsageError, match=r"axis of their own; .* shape \(8, 2\) for 4 samples and \(2, 2\) for 1"):
        deep_lift(Merged(), nets.inputs(4, 4), TARGET)


def test_bad_baselines() -> None:
    model, x = nets.drawn(nets.mlp()), nets.inputs(4, 5)
    with raises(UsageError, match=r"`baseline` must be a number, \(5,\) or \(4, 5\), got \(3, 5\)"):
        deep_lift(model, x, TARGET, baseline=torch.zeros(3, 5))
    with raises(UsageError, match=r"`background` must be \(k, 5\) with k > 0, got \(0, 5\)"):
        deep_shap(model, x, TARGET, background=torch.zeros(0, 5))
    with raises(UsageError, match=r"`background` must be \(k, 5\) with k > 0, got \(2, 6\)"):
        deep_shap(model, x, TARGET, background=torch.zeros(2, 6))


def test_a_power_by_its_sign_is_a_power() -> None:
    class Squares(nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            return z**2

    model, x = nets.drawn(nn.Sequential(nn.Linear(5, 3), Squares())), nets.inputs(4, 5)
    total = nets.output(model, x, TARGET) - nets.output(model, torch.zeros_like(x), TARGET)
    torch.testing.assert_close(deep_lift(model, x, TARGET).sum(1), total)
