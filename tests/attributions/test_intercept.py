"""What every method that replaces operations must hold."""

import torch
import torch.nn.functional as F
from attributions import nets
from pytest import MonkeyPatch, mark, raises
from torch import Tensor, nn

from forsooth.attributions import intercept
from forsooth.attributions.cam import CAM
from forsooth.attributions.differences import DIFFERENCES
from forsooth.attributions.guided import GUIDED
from forsooth.attributions.patterns import PATTERNS
from forsooth.attributions.propagation import PROPAGATION
from forsooth.records import Method, UsageError

ALL = PROPAGATION + DIFFERENCES + GUIDED + PATTERNS + CAM
STRICT = PROPAGATION + DIFFERENCES + PATTERNS

X, TARGET = nets.inputs(4, 1, 8, 8), torch.tensor([0, 1, 1, 0])
GIVEN = {"background": nets.inputs(3, 1, 8, 8, seed=2), "fit": nets.inputs(40, 1, 8, 8, seed=3), "layer": "3"}


def names(methods: tuple[Method, ...]) -> list[str]:
    return [method.name for method in methods]


@mark.parametrize("method", ALL, ids=names(ALL))
def test_model_and_input_are_left_as_they_were(method: Method) -> None:
    model, x = nets.drawn(nets.cnn()), X.clone().requires_grad_()
    before = {name: (id(p), p.clone(), p.requires_grad) for name, p in model.named_parameters()}
    maps = method(model, x, TARGET, **GIVEN)
    assert maps.shape == x.shape and maps.dtype == x.dtype and not maps.requires_grad and maps.isfinite().all()
    assert torch.equal(x, X) and x.grad is None
    for name, parameter in model.named_parameters():
        same, value, gradient = before[name]
        assert id(parameter) == same and torch.equal(parameter, value) and parameter.requires_grad == gradient
        assert parameter.grad is None
    for module in model.modules():
        assert not (module._forward_hooks or module._backward_hooks or module._forward_pre_hooks)


@mark.parametrize("method", ALL, ids=names(ALL))
def test_a_batch_of_one_is_its_row_in_a_batch(method: Method) -> None:
    model = nets.drawn(nets.cnn())
    together = method(model, X, TARGET, **GIVEN)
    alone = torch.cat([method(model, X[i : i + 1], TARGET[i : i + 1], **GIVEN) for i in range(len(X))])
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(together, method(model, X, TARGET, **GIVEN))


class Functional(nn.Module):
    """The network of `nets.cnn`, said in other words: functional, in-place, one ReLU module and one pool for all."""

    def __init__(self, plain: nn.Sequential) -> None:
        super().__init__()
        self.add_module("3", plain[3])
        self.first, self.head = plain[0], plain[7]
        self.relu, self.pool = nn.ReLU(inplace=True), nn.MaxPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu_(self.first(x))
        x = F.max_pool2d(x.relu(), 2)
        y = self.get_submodule("3")(nn.Identity()(x))
        self.relu(y)  # in place, and nobody takes the result
        y = self.relu(self.pool(y))
        return self.head(y.reshape(len(y), -1))


@mark.parametrize("method", ALL, ids=names(ALL))
def test_the_way_a_network_is_written_changes_nothing(method: Method) -> None:
    plain = nets.drawn(nets.cnn())
    assert isinstance(plain, nn.Sequential)
    torch.testing.assert_close(Functional(plain).eval()(X), plain(X))
    expected = method(plain, X, TARGET, **GIVEN)
    torch.testing.assert_close(method(Functional(plain).eval(), X, TARGET, **GIVEN), expected)


@mark.parametrize("method", ALL, ids=names(ALL))
def test_slices_of_a_long_batch_change_nothing(method: Method, monkeypatch: MonkeyPatch) -> None:
    model = nets.drawn(nets.cnn())
    expected = method(model, X, TARGET, **GIVEN)
    monkeypatch.setattr(intercept, "ELEMENTS_AT_ONCE", 3 * 64)
    torch.testing.assert_close(method(model, X, TARGET, **GIVEN), expected)


BEHIND = tuple(method for method in ALL if method not in PROPAGATION)


@mark.parametrize("method", BEHIND, ids=names(BEHIND))
def test_softmax_behind_the_network(method: Method) -> None:
    net = nets.drawn(nets.cnn())
    model = nn.Sequential(net, nn.Softmax(1))
    maps = method(model, X, TARGET, **{**GIVEN, "layer": "0.3"})
    assert maps.isfinite().all() and maps.abs().max() > 0


class Ends(nn.Module):
    """A network that ends in one operation of the caller's choice."""

    def __init__(self, end: object) -> None:
        super().__init__()
        self.net, self.end = nets.drawn(nets.mlp(64, 2)), end

    def forward(self, x: Tensor) -> Tensor:
        return self.end(self.net(x.flatten(1)))


OF_TRANSFORMERS = ("attn_lrp", "cp_lrp", "deep_lift", "deep_shap", "deep_shap_zero")  # have rules for these
KNOWN_THERE = ("torch.nn.functional.layer_norm", "torch.Tensor.mul")


@mark.parametrize("method", STRICT, ids=names(STRICT))
@mark.parametrize(
    ("name", "end"),
    [
        ("torch.nn.functional.layer_norm", lambda z: F.layer_norm(z, (2,))),
        ("torch.Tensor.mul", lambda z: z * z),
        ("torch.Tensor.cumsum", lambda z: z.cumsum(1)),
        ("torch.Tensor.detach", lambda z: z.detach()),
        ("torch.Tensor.data", lambda z: z.data),
        ("torch.functional.einsum", lambda z: torch.einsum("nc,nc->nc", z, z)),
    ],
)
def test_an_operation_without_a_rule_is_refused_by_name(method: Method, name: str, end: object) -> None:
    if method.name in OF_TRANSFORMERS and name in KNOWN_THERE:
        assert method(Ends(end), X, TARGET, **GIVEN).isfinite().all()
        return
    with raises(UsageError) as refused:
        method(Ends(end), X, TARGET, **GIVEN)
    assert f"`{name}" in str(refused.value) and "integrated_gradients" in str(refused.value)
    assert f"`{method.function.__name__}`" in str(refused.value)


@mark.parametrize("method", STRICT, ids=names(STRICT))
def test_shapes_and_comparisons_need_no_rule(method: Method) -> None:
    def end(z: Tensor) -> Tensor:
        assert z.shape[0] == z.size(0) == len(z) and z.dim() == 2 and not (z > 1e9).any() and z.argmax(1).max() < 2
        return z

    plain = method(Ends(lambda z: z), X, TARGET, **GIVEN)
    torch.testing.assert_close(method(Ends(end), X, TARGET, **GIVEN), plain)


@mark.parametrize("method", PROPAGATION + DIFFERENCES, ids=names(PROPAGATION + DIFFERENCES))
def test_training_mode_is_refused(method: Method) -> None:
    model = nets.drawn(nets.Residual())
    model.dropout.train()
    with raises(UsageError, match=r"dropout is active: call model.eval\(\)"):
        method(model, X, TARGET, **GIVEN)
    with raises(UsageError, match="batch normalisation uses the statistics of the batch"):
        method(model.train(), X, TARGET, **GIVEN)


@mark.parametrize("method", ALL[:-2], ids=names(ALL[:-2]))
def test_outputs_must_be_rows_of_classes(method: Method) -> None:
    with raises(UsageError, match=r"`model` must give \(n, classes\) for n = (1|4|5) inputs, got \((1|4|5), 2, 1\)"):
        method(Ends(lambda z: z.unsqueeze(2)), X, TARGET, **{**GIVEN, "fit": X, "background": X})


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, z: Tensor) -> Tensor:
        return z.relu()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return gradient


@mark.parametrize("method", ALL[:-2], ids=names(ALL[:-2]))
def test_an_autograd_function_of_the_model_is_refused(method: Method) -> None:
    with raises(UsageError, match="cannot see into the model's own autograd function `Own`"):
        method(Ends(Own.apply), X, TARGET, **GIVEN)


@mark.parametrize("method", ALL[:-2], ids=names(ALL[:-2]))
def test_low_doors_to_an_operation_are_seen(method: Method) -> None:
    expected = method(Ends(torch.relu), X, TARGET, **GIVEN)
    for relu in (torch.ops.aten.relu, torch.ops.aten.relu.default, F.relu):
        torch.testing.assert_close(method(Ends(relu), X, TARGET, **GIVEN), expected)


def test_a_scripted_or_compiled_model_is_refused() -> None:
    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.jit.ScriptModule()

    for model in (Holder(), torch.compile(nets.drawn(nets.cnn()), backend="eager")):
        with raises(UsageError, match="`lrp` cannot see into a scripted or compiled model"):
            PROPAGATION[0](model, X, TARGET)


@mark.parametrize("method", ALL[:-2], ids=names(ALL[:-2]))
def test_a_comparison_that_is_not_used_may_be_read_by_keyword(method: Method) -> None:
    def looks(z: Tensor) -> Tensor:
        torch.logical_not(input=z > 0)
        return torch.relu(z)

    expected = method(Ends(torch.relu), X, TARGET, **GIVEN)
    assert torch.equal(method(Ends(looks), X, TARGET, **GIVEN), expected)
