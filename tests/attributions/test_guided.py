import torch
from attributions import nets
from captum.attr import Deconvolution, GuidedBackprop
from pytest import mark, raises, warns
from torch import nn

from forsooth.attributions.guided import GUIDED, deconvolution, guided_backprop
from forsooth.records import UsageError

TARGET = torch.tensor([0, 1, 1, 0])


def by_hand() -> nn.Sequential:
    """f_0 = relu(x_0 - x_1) - 2 relu(x_1), f_1 = -f_0"""
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 2, bias=False)).double().eval()
    model[0].weight.data = torch.tensor([[1.0, -1.0], [0.0, 1.0]], dtype=torch.float64)
    model[2].weight.data = torch.tensor([[1.0, -2.0], [-1.0, 2.0]], dtype=torch.float64)
    return model


def test_by_hand() -> None:
    x = torch.tensor([[3.0, 1.0], [1.0, 3.0], [3.0, 1.0]], dtype=torch.float64)
    target = torch.tensor([0, 0, 1])
    # Sample 0: both units active, gradients 1 and -2. Sample 1: the first is not. Sample 2: gradients -1 and 2.
    assert torch.equal(guided_backprop(by_hand(), x, target), x.new_tensor([[1, -1], [0, 0], [0, 2]]))
    assert torch.equal(deconvolution(by_hand(), x, target), x.new_tensor([[1, -1], [1, -1], [0, 2]]))


@mark.parametrize(("ours", "theirs"), [(guided_backprop, GuidedBackprop), (deconvolution, Deconvolution)])
def test_equals_captum_on_module_relus(ours: object, theirs: type) -> None:
    model, x = nets.drawn(nets.cnn()), nets.inputs(4, 1, 8, 8)
    with warns(UserWarning):  # on its hooks
        expected = theirs(model).attribute(x.clone(), target=TARGET)
    torch.testing.assert_close(ours(model, x, TARGET), expected.detach())


@mark.parametrize("method", GUIDED, ids=lambda method: method.name)
def test_residual_networks_and_linear_ones_run(method: object) -> None:
    x = nets.inputs(4, 1, 8, 8)
    assert method(nets.drawn(nets.Residual()), x, TARGET).isfinite().all()
    linear = nets.drawn(nn.Sequential(nn.Flatten(), nn.Linear(64, 2)))
    weight = linear[1].weight.detach()[TARGET].view_as(x)
    assert torch.equal(method(linear, x, TARGET), weight)


@mark.parametrize("other", [nn.CELU(), nn.LeakyReLU(0.1), nn.ELU(inplace=True), nn.ReLU6()])
def test_relatives_of_relu_are_refused_by_name(other: nn.Module) -> None:
    model = nets.drawn(nn.Sequential(nn.Linear(5, 4), other, nn.Linear(4, 2)))
    name = {"CELU": "celu", "LeakyReLU": "leaky_relu", "ELU": "elu", "ReLU6": "(relu6|hardtanh)"}[type(other).__name__]
    with raises(UsageError, match=f"`guided_backprop` has no rule for the operation `torch.*{name}`"):
        guided_backprop(model, nets.inputs(4, 5), TARGET)
