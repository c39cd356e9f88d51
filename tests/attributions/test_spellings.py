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


def pair(z: Tensor, other: Tensor | None = None, axis: int = 0) -> Tensor:
    """z beside another tensor, or beside zeros."""
    if other is None:
        other = torch.zeros_like(z)
    return torch.stack([z, other], axis)


def buffered(z: Tensor) -> Tensor:
    buffer = torch.zeros(2, *z.shape, dtype=z.dtype)
    buffer[1] = z
    return buffer


SWITCH = torch.tensor([1.0, 0.0], dtype=torch.float64)[:, None, None]
RIVALS = {
    "amax of a pair": (lambda z: pair(z).amax(0), "amax"),
    "max of a pair": (lambda z: pair(z).max(0).values, "max"),
    "max-pool of a pair": (lambda z: F.max_pool1d(pair(z, axis=-1), 2).squeeze(-1), "max_pool1d"),
    "adaptive pool of a pair": (lambda z: F.adaptive_max_pool1d(pair(z, axis=-1), 1).squeeze(-1), "max_pool1d"),
    "max-pool of padding": (lambda z: F.max_pool1d(F.pad(z.unsqueeze(-1), (0, 1)), 2).squeeze(-1), "max_pool1d"),
    "power": (lambda z: (z**2) ** 0.5, "__pow__"),
    "amin of negatives": (lambda z: -pair(-z).amin(0), "amin"),
    "pair moved and scaled": (lambda z: (2 * pair(z, axis=1).flatten(1)).unflatten(1, (2, 6)).amax(1), "amax"),
    "concatenated": (lambda z: torch.cat([torch.ones_like(z)[None], z[None]]).amax(0), "amax"),
    "buffer": (lambda z: buffered(z).amax(0), "amax"),
    "zero factor": (lambda z: (z[None] * SWITCH).amax(0), "amax"),
    "times zero": (lambda z: pair(z, z * 0).amax(0), "amax"),
    "zeros filled in": (lambda z: z.expand(2, -1, -1).masked_fill(SWITCH > 0, 0.0).amax(0), "amax"),
    "leaky": (lambda z: pair(z, 0.1 * z).amax(0), "amax"),
    "absolute": (lambda z: F.max_pool1d(pair(z, -z, axis=-1), 2).squeeze(-1), "max_pool1d"),
    "capped": (lambda z: pair(torch.relu(z), torch.full_like(z, 6)).amin(0), "amin"),
}


@mark.parametrize("spelling", RIVALS)
@mark.parametrize("method", GUIDED + PATTERNS, ids=lambda method: method.name)
def test_a_maximum_over_places_is_refused_where_one_holds_a_constant(method: Method, spelling: str) -> None:
    between, words = RIVALS[spelling]
    if method in PATTERNS:
        words = ""  # they know fewer operations, and may stop at one before
    with raises(UsageError, match=rf"`{method.function.__name__}` has no rule for the operation `torch\..*{words}"):
        method(written(between), X, TARGET, **GIVEN)


@mark.parametrize("spelling", RIVALS)
def test_that_the_constant_never_wins_changes_nothing(spelling: str) -> None:
    between, words = RIVALS[spelling]
    with raises(UsageError, match=rf"has no rule for the operation `torch\..*{words}"):
        guided_backprop(written(lambda z: between(z + 100)), X[:1], TARGET[:1])


WEIGHT = nets.inputs(1, 1, 3)
EYE = torch.eye(6, dtype=torch.float64)
SOME = torch.tensor([1.0, 0, 1, 1, 0, 0], dtype=torch.float64)
ONES = torch.ones(4, 6, dtype=torch.float64)


def smeared(z: Tensor) -> Tensor:
    return F.max_pool1d(z, 3, 1, 1)


HARMLESS = {  # and the same in words without a constant
    "zeros around a ReLU": (lambda z: F.max_pool1d(F.pad(z.relu(), (1, 1)), 3, 1), lambda z: smeared(z.relu())),
    "zeros for words of a ReLU": (lambda z: smeared(z.relu() * SOME), lambda z: smeared(z.relu() @ EYE.mul(SOME))),
    "a mask that never wins": (lambda z: pair(z, -1e9 * ONES).amax(0).relu(), torch.relu),
    "zeros below a layer": (
        lambda z: smeared(F.conv1d(F.pad(z[:, None], (3, 3)), WEIGHT)[:, 0])[:, 1:7].relu(),
        lambda z: smeared(F.conv1d(z[:, None], WEIGHT, padding=3)[:, 0])[:, 1:7].relu(),
    ),
    "constants apart": (
        lambda z: F.max_pool1d(torch.cat([z, ONES], 1), 2).relu(),
        lambda z: torch.cat([F.max_pool1d(z, 2), ONES[:, :3]], 1).relu(),
    ),
    "both signs apart": (
        lambda z: F.max_pool1d(torch.cat([z, -z], 1).relu(), 2),
        lambda z: torch.cat([F.max_pool1d(z.relu(), 2), F.max_pool1d((-z).relu(), 2)], 1),
    ),
    "places by name": (
        lambda z: torch.stack([z[:, :3], z[:, 3:]]).amax(0).repeat(1, 2).relu(),
        lambda z: z.unflatten(1, (2, 3)).amax(1).repeat(1, 2).relu(),
    ),
}


@mark.parametrize("spelling", HARMLESS)
def test_constants_that_compete_with_nothing_are_harmless(spelling: str) -> None:
    between, plain = HARMLESS[spelling]
    torch.testing.assert_close(between(ONES - 2 * EYE[:4]), plain(ONES - 2 * EYE[:4]))
    expected = guided_backprop(written(plain), X, TARGET)
    torch.testing.assert_close(guided_backprop(written(between), X, TARGET), expected)


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
