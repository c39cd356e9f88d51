"""One network written in many ways: a method gives the map of the plain spelling, or refuses by name. Never another."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from attributions import nets
from pytest import mark, raises
from torch import Tensor, nn

from forsooth.attributions.differences import DIFFERENCES, deep_lift, deep_shap
from forsooth.attributions.guided import GUIDED, guided_backprop
from forsooth.attributions.patterns import PATTERNS
from forsooth.attributions.propagation import PROPAGATION
from forsooth.records import Method, UsageError

X = nets.inputs(4, 5)
TARGET = torch.tensor([0, 1, 2, 0])
GIVEN = {"background": nets.inputs(3, 5, seed=2), "fit": nets.inputs(40, 5, seed=3)}
RULED = GUIDED + DIFFERENCES + PROPAGATION + PATTERNS
RECURRENT = nn.RNN(6, 6, nonlinearity="relu").double().requires_grad_(False)
ZERO = torch.zeros((), dtype=torch.float64)


class Between(nn.Module):
    """Two linear layers and an operation of the caller's choice between them."""

    def __init__(self, between: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.head, self.between = nn.Linear(5, 6), nn.Linear(6, 3), between

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.between(self.first(x)))


def written(between: Callable[[Tensor], Tensor]) -> nn.Module:
    return nets.drawn(Between(between))


def masked(z: Tensor) -> Tensor:
    z[z < 0] = 0
    return z


def written_past_autograd(z: Tensor) -> Tensor:
    z.data.clamp_(min=0)
    return z


def written_without_gradient(z: Tensor) -> Tensor:
    with torch.no_grad():
        z.relu_()
    return z


SAME = {
    "clip": lambda z: torch.clip(z, 0),
    "clip_": lambda z: z.clip_(min=0),
    "clamp": lambda z: z.clamp(min=0.0),
    "clamp_min": lambda z: torch.clamp_min(z, 0),
    "max": lambda z: torch.max(z, ZERO),
    "max, zero first": lambda z: torch.max(torch.zeros_like(z), z),
    "maximum": lambda z: torch.maximum(z, ZERO),
    "fmax": lambda z: torch.fmax(z, ZERO),
    "threshold": lambda z: F.threshold(z, 0, 0),
    "threshold in place": lambda z: nn.Threshold(0, 0, inplace=True)(z),
}


@mark.parametrize("spelling", SAME)
@mark.parametrize("method", RULED, ids=lambda method: method.name)
def test_a_relu_by_another_name_is_a_relu(method: Method, spelling: str) -> None:
    expected = method(written(F.relu), X, TARGET, **GIVEN)
    torch.testing.assert_close(method(written(SAME[spelling]), X, TARGET, **GIVEN), expected)


REFUSED = {
    "where": (lambda z: torch.where(z > 0, z, 0.0), r"torch\.where.*torch\.Tensor\.gt"),
    "masked_fill": (lambda z: z.masked_fill(z < 0, 0.0), r"masked_fill.*torch\.Tensor\.lt"),
    "product": (lambda z: z * (z > 0), r"torch\.Tensor\.mul.*torch\.Tensor\.gt"),
    "product of gt": (lambda z: z.mul(z.gt(0)), r"torch\.Tensor\.mul.*torch\.Tensor\.gt"),
    "setitem": (masked, r"setitem.*torch\.Tensor\.lt"),
    "self-gated": (lambda z: z * torch.sigmoid(z), r"torch\.Tensor\.mul|torch\.sigmoid"),
    "data": (written_past_autograd, r"torch\.Tensor\.data"),
    "no_grad": (written_without_gradient, r"torch\.Tensor\.relu_"),
    "gather": (lambda z: z.gather(1, z.argsort(1)), r"gather.*argsort"),
    "index": (lambda z: z[:, z.mean(0).argsort()], r"getitem.*argsort"),
    "scale as a number": (lambda z: z * z.max().item(), r"torch\.Tensor\.(max|item)"),
    "mask as numbers": (lambda z: z * torch.tensor((z > 0).tolist()), r"torch\.Tensor\.tolist"),
    "buffer": (lambda z: z * torch.zeros_like(z).copy_(z > 0), r"torch\.Tensor\.mul.*torch\.Tensor\.gt"),
}


@mark.parametrize("spelling", REFUSED)
@mark.parametrize("method", RULED, ids=lambda method: method.name)
def test_what_depends_on_the_input_is_no_constant(method: Method, spelling: str) -> None:
    between, words = REFUSED[spelling]
    if spelling == "self-gated" and method in DIFFERENCES:  # both factors carry a gradient, and products have a rule
        assert method(written(between), X, TARGET, **GIVEN).isfinite().all()
        return
    words = words.split(".*")[0] if method in PATTERNS else words  # which know no products at all
    with raises(UsageError, match=rf"(?s)`{method.function.__name__}` has no rule for the operation.*{words}"):
        method(written(between), X, TARGET, **GIVEN)


@mark.parametrize("method", GUIDED, ids=lambda method: method.name)
@mark.parametrize(
    ("between", "words"),
    [
        (lambda z: (z + z.abs()) / 2, "abs"),
        (lambda z: z - z.clamp(max=0), "clamp"),
        (lambda z: torch.maximum(z, -z), "maximum"),
        (lambda z: torch.sqrt(z * z), "mul"),
        (lambda z: RECURRENT(z[None])[0][0], "rnn_relu"),
    ],
)
def test_other_rectifiers_are_refused_by_guided_methods(
    method: Method, between: Callable[[Tensor], Tensor], words: str
) -> None:
    with raises(UsageError, match=rf"has no rule for the operation `torch\..*{words}`"):
        method(written(between), X, TARGET)


def test_guided_backprop_passes_what_cannot_hide_a_rectifier() -> None:
    def between(z: Tensor) -> Tensor:
        gate = torch.sigmoid(z.mean(1, keepdim=True))
        return F.layer_norm(z * gate, (6,)).tanh()

    x = X.clone().requires_grad_()
    model = written(between)
    (expected,) = torch.autograd.grad(model(x).gather(1, TARGET[:, None]).sum(), x)
    torch.testing.assert_close(guided_backprop(model, X, TARGET), expected)


def test_a_constant_mask_needs_no_refusal() -> None:
    kept = torch.tensor([True, False, True, True, False, True])
    model = written(lambda z: torch.relu(torch.where(kept, z, 0.0)))
    total = nets.output(model, X, TARGET) - nets.output(model, torch.zeros_like(X), TARGET)
    assert nets.gap(deep_lift(model, X, TARGET), total) < 1e-10


def test_a_threshold_in_place_is_the_threshold() -> None:
    maps = [deep_lift(written(nn.Threshold(0.1, 0.3, inplace=flag)), X, TARGET) for flag in (False, True)]
    torch.testing.assert_close(*maps)
    model = written(nn.Threshold(0.1, 0.3, inplace=True))
    total = nets.output(model, X, TARGET) - nets.output(model, torch.zeros_like(X), TARGET)
    assert nets.gap(maps[1], total) < 1e-10


SOFTMAXES = {
    "probabilities": lambda z: z.softmax(1),
    "log of probabilities": lambda z: F.log_softmax(z, dim=-1),
    "sharp": lambda z: torch.softmax(8 * z, 1),
    "masked": lambda z: z.masked_fill(torch.tensor([True, False, False, True, False, False]), -torch.inf).softmax(1),
}


@mark.parametrize("kind", SOFTMAXES)
def test_differences_are_complete_through_a_softmax(kind: str) -> None:
    model = written(SOFTMAXES[kind])
    score = nets.output(model, X, TARGET)
    against_zero = score - nets.output(model, torch.zeros_like(X), TARGET)
    assert nets.gap(deep_lift(model, X, TARGET), against_zero) < 1e-9
    behind = torch.stack([nets.output(model, row.expand_as(X), TARGET) for row in GIVEN["background"]]).mean(0)
    assert nets.gap(deep_shap(model, X, TARGET, background=GIVEN["background"]), score - behind) < 1e-9
    assert nets.gap(deep_lift(model, X, TARGET, softmax="gradient"), against_zero) > 0.01  # as it was before


def test_a_softmax_near_its_reference_has_the_plain_gradient() -> None:
    model, near = written(SOFTMAXES["probabilities"]), X + 1e-6
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model(x).gather(1, TARGET[:, None]).sum(), x)
    torch.testing.assert_close(deep_lift(model, X, TARGET, baseline=near), gradient * (X - near), rtol=1e-4, atol=1e-13)


class TimeFirst(nn.Module):
    """Steps on the first axis inside, samples on the second."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(2, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.first(x.transpose(0, 1))).mean(0))


@mark.parametrize("n", [1, 3, 4])
@mark.parametrize("k", [1, 3, 4])
def test_the_axis_of_the_samples_is_found_wherever_it_is(n: int, k: int) -> None:
    model, x, background = nets.drawn(TimeFirst()), nets.inputs(n, 4, 2), nets.inputs(k, 4, 2, seed=2)
    target = torch.arange(n) % 3
    behind = torch.stack([nets.output(model, row.expand_as(x), target) for row in background]).mean(0)
    found = deep_shap(model, x, target, background=background)
    assert nets.gap(found, nets.output(model, x, target) - behind) < 1e-10


def test_a_model_that_branches_on_its_numbers_is_refused() -> None:
    model = written(lambda z: torch.relu(z) if z.abs().sum() > 20 else z)
    with raises(UsageError, match="`deep_lift` needs a model that runs the same operations on x and on its baseline"):
        deep_lift(model, 100 * X, TARGET)
    with raises(UsageError, match=r"cannot see into nn.DataParallel: give it the module inside"):
        deep_lift(nn.DataParallel(model), X, TARGET)
