import torch
from attributions import nets
from captum.attr import GuidedGradCam, LayerAttribution, LayerGradCam
from pytest import raises, warns
from torch import Tensor, nn

from forsooth.attributions.cam import grad_cam, grad_cam_units, guided_grad_cam
from forsooth.records import UsageError

TARGET = torch.tensor([0, 1, 1, 0])


def test_grad_cam_by_hand() -> None:
    conv, head = nn.Conv2d(1, 2, 1, bias=False), nn.Linear(8, 2, bias=False)
    model = nn.Sequential(conv, nn.Flatten(), head).double().eval()
    conv.weight.data = torch.tensor([1.0, -1.0], dtype=torch.float64).view(2, 1, 1, 1)
    head.weight.data = torch.tensor([[4.0] * 4 + [8.0] * 4, [0.0] * 8], dtype=torch.float64)
    x = torch.tensor([[1.0, -1.0], [0.5, -3.0]], dtype=torch.float64).view(1, 1, 2, 2)
    # Mean gradients are 4 and 8, activations x and -x: the map is relu(4 x - 8 x).
    expected = torch.tensor([[0.0, 4.0], [0.0, 12.0]], dtype=torch.float64).view(1, 1, 2, 2)
    torch.testing.assert_close(grad_cam(model, x, torch.tensor([0]), layer="0"), expected)
    assert grad_cam(model, x, torch.tensor([1]), layer="0").abs().sum() == 0
    torch.testing.assert_close(grad_cam_units(model, x, torch.tensor([0]), layer="0"), expected[:, 0])


def test_equals_captum() -> None:
    model, x = nets.drawn(nets.cnn()), nets.inputs(4, 1, 8, 8)
    assert isinstance(model, nn.Sequential)
    small = LayerGradCam(model, model[3]).attribute(x.clone(), target=TARGET, relu_attributions=True)
    units = grad_cam_units(model, x, TARGET, layer="3")
    torch.testing.assert_close(units, small[:, 0].detach())
    assert units.shape == (4, 5, 5) and not units.requires_grad
    for ours, theirs in (("linear", "bilinear"), ("nearest", "nearest")):
        expected = LayerAttribution.interpolate(small, (8, 8), interpolate_mode=theirs)
        found = grad_cam(model, x, TARGET, layer="3", interpolation=ours)
        torch.testing.assert_close(found, expected.detach())
        assert found.min() >= 0
    with warns(UserWarning):  # on its hooks
        expected = GuidedGradCam(model, model[3]).attribute(x.clone(), target=TARGET)
    torch.testing.assert_close(guided_grad_cam(model, x, TARGET, layer="3"), expected.detach())


def test_one_map_for_all_channels_and_any_number_of_axes() -> None:
    for axes, conv in ((1, nn.Conv1d), (2, nn.Conv2d), (3, nn.Conv3d)):
        net = nn.Sequential(conv(2, 3, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(3 * 4**axes, 2))
        x = nets.inputs(4, 2, *(6,) * axes)
        for explain in (grad_cam, guided_grad_cam):
            assert explain(nets.drawn(net), x, TARGET, layer="0").shape == x.shape
        maps = grad_cam(nets.drawn(net), x, TARGET, layer="0")
        assert torch.equal(maps[:, 0], maps[:, 1])
        assert grad_cam_units(nets.drawn(net), x, TARGET, layer="0").shape == (4, *(4,) * axes)


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(1, 1, 3, padding=1), nn.Linear(64, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.conv(self.conv(x)).flatten(1))


def test_bad_layers() -> None:
    model, x = nets.drawn(nets.cnn()), nets.inputs(4, 1, 8, 8)
    with raises(UsageError, match="`layer` must name a module of the model, got 'conv4'; known are 0, 1, 2, 3"):
        grad_cam(model, x, TARGET, layer="conv4")
    with raises(UsageError, match=r"one tensor \(n, channels, \*space\) .* but '7' gave the shape \(4, 2\)"):
        grad_cam(model, x, TARGET, layer="7")
    with raises(UsageError, match="but 'conv' ran 2 times"):
        grad_cam(nets.drawn(Twice()), x, TARGET, layer="conv")
    with raises(UsageError, match="`interpolation` must be linear or nearest, got 'cubic'"):
        grad_cam(model, x, TARGET, layer="3", interpolation="cubic")
    with raises(UsageError, match=r"`x` must be \(n, channels, \*space\) .* got \(4, 5\)"):
        grad_cam(nets.drawn(nets.mlp()), nets.inputs(4, 5), TARGET, layer="0")
    with raises(UsageError, match=r"`x` must be \(n, channels, \*space\) .* got \(4, 5\)"):
        grad_cam_units(nets.drawn(nets.mlp()), nets.inputs(4, 5), TARGET, layer="0")
    with raises(UsageError, match="`layer` must name a module of the model, got 'conv4'"):
        grad_cam_units(model, x, TARGET, layer="conv4")
    assert not any(module._forward_hooks for module in model.modules())
