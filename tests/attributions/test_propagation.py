import numpy as np
import torch
import torch.nn.functional as F
from attributions import nets
from captum.attr import LRP as CaptumLRP
from pytest import mark, raises
from torch import Tensor, nn

from forsooth.attributions.propagation import deep_taylor, lrp, lrp_retained
from forsooth.records import UsageError

TARGET = torch.tensor([0, 1, 1, 0, 1])


def shares(rule: str, x: np.ndarray, w: np.ndarray, b: np.ndarray, *, epsilon: float = 1e-9) -> np.ndarray:
    """The share of each output j that input i gets, (in, out), by the definitions, one pair at a time."""
    share = np.zeros((len(x), len(b)))
    for j in range(len(b)):
        z = [x[i] * w[j, i] for i in range(len(x))]
        if rule == "epsilon":
            total = sum(z) + b[j]
            total += epsilon if total >= 0 else -epsilon
        elif rule == "zplus":
            z = [max(value, 0.0) for value in z]
            total = sum(z) or 1.0
        elif rule == "gamma":
            sign = 1 if sum(z) + b[j] >= 0 else -1
            z = [value * (1.25 if value * sign > 0 else 1.0) for value in z]
            total = sum(z) + b[j] * (1.25 if b[j] * sign > 0 else 1.0)
            total += epsilon if total >= 0 else -epsilon
        else:  # box, from -4 to 5
            z = [x[i] * w[j, i] + 4 * max(w[j, i], 0.0) - 5 * min(w[j, i], 0.0) for i in range(len(x))]
            total = sum(z)
        share[:, j] = np.array(z) / total
    return share


def literal_mlp(model: nn.Sequential, x: np.ndarray, target: int, rules: tuple[str, str]) -> np.ndarray:
    (w1, b1), (w2, b2) = ((p.detach().numpy() for p in model[k].parameters()) for k in (0, 2))
    hidden = np.maximum(w1 @ x + b1, 0)
    relevance = np.zeros(len(b2))
    relevance[target] = (w2 @ hidden + b2)[target]
    relevance = shares(rules[1], hidden, w2, b2) @ relevance
    return shares(rules[0], x, w1, b1) @ relevance


@mark.parametrize("rule", ["epsilon", "zplus", "gamma"])
def test_lrp_on_a_perceptron_by_its_definition(rule: str) -> None:
    model, x = nets.drawn(nets.mlp()), nets.inputs(5, 5)
    expected = [literal_mlp(model, row.numpy(), int(t), (rule, rule)) for row, t in zip(x, TARGET, strict=True)]
    torch.testing.assert_close(lrp(model, x, TARGET, rule=rule), torch.tensor(np.stack(expected)))


@mark.parametrize("bounds", [None, (-4.0, 5.0)])
def test_deep_taylor_on_a_perceptron_by_its_definition(bounds: tuple[float, float] | None) -> None:
    model, x = nets.drawn(nets.mlp(), seed=4), nets.inputs(5, 5)
    rules = ("zplus" if bounds is None else "box", "zplus")
    literal = [literal_mlp(model, row.numpy(), int(t), rules) for row, t in zip(x, TARGET, strict=True)]
    positive = nets.output(model, x, TARGET) > 0
    assert 0 < positive.sum() < 5  # both cases are tried
    expected = torch.tensor(np.stack(literal)) * positive.unsqueeze(1)
    found = deep_taylor(model, x, TARGET, bounds=bounds)
    torch.testing.assert_close(found, expected)
    assert found.min() >= 0


def conv_as_matrix(conv: nn.Conv2d, side: int) -> tuple[np.ndarray, np.ndarray]:
    """The convolution of one (channels, side, side) image as w (out, in) and b (out,), by its impulse responses."""
    shape = (conv.in_channels, side, side)
    zero = conv(torch.zeros(1, *shape, dtype=torch.float64)).detach().flatten()
    impulses = torch.eye(int(np.prod(shape)), dtype=torch.float64).view(-1, *shape)
    return (conv(impulses).detach().flatten(1) - zero).T.numpy(), zero.numpy()


@mark.parametrize("rule", ["epsilon", "zplus", "gamma"])
def test_lrp_on_a_convolution_by_its_definition(rule: str) -> None:
    conv, head = nn.Conv2d(1, 2, 2, padding=1), nn.Linear(8, 2)
    model, x = nets.drawn(nn.Sequential(conv, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), head)), nets.inputs(5, 1, 3, 3)
    (w, b), (v, c) = conv_as_matrix(conv, 3), (p.detach().numpy() for p in head.parameters())
    for row, t, found in zip(x, TARGET, lrp(model, x, TARGET, rule=rule), strict=True):
        hidden = np.maximum(w @ row.flatten().numpy() + b, 0).reshape(2, 4, 4)
        pooled = np.array([hidden[k, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max() for k, i, j in np.ndindex(2, 2, 2)])
        relevance = shares(rule, pooled, v, c)[:, t] * (v @ pooled + c)[t.item()]
        unpooled = np.zeros((2, 4, 4))
        for number, (k, i, j) in enumerate(np.ndindex(2, 2, 2)):
            window = hidden[k, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            p, q = np.unravel_index(window.argmax(), (2, 2))
            unpooled[k, 2 * i + p, 2 * j + q] = relevance[number]
        expected = shares(rule, row.flatten().numpy(), w, b) @ unpooled.flatten()
        torch.testing.assert_close(found.flatten(), torch.tensor(expected))


class Softmaxed(nn.Module):
    """The released XAI-TRIS networks end in a functional softmax, which Captum's LRP passes by the gradient."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(self.net(x), dim=1)


def test_lrp_equals_captum_where_captum_is_right() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            plain = nets.cnn()
            self.body, self.head = plain[:6], plain[7]

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.body(x).flatten(1))  # Captum refuses nn.Flatten

    net, x = nets.drawn(Net()), nets.inputs(5, 1, 8, 8)
    for model in (net, Softmaxed(net)):
        expected = CaptumLRP(model).attribute(x.clone().requires_grad_(), target=TARGET)
        found = lrp(model, x, TARGET, softmax="gradient")
        torch.testing.assert_close(found, expected.detach(), rtol=1e-6, atol=1e-12)


@mark.parametrize("settings", [{}, {"epsilon": 1.0}, {"rule": "zplus"}, {"rule": "gamma"}], ids=str)
@mark.parametrize("net", [nets.cnn(), nets.Residual()], ids=["cnn", "residual"])
def test_relevance_and_what_biases_keep_sum_to_the_output(net: nn.Module, settings: dict[str, object]) -> None:
    model, x = nets.drawn(net), nets.inputs(5, 1, 8, 8)
    score = nets.output(model, x, TARGET)
    kept = lrp_retained(model, x, TARGET, **settings)
    torch.testing.assert_close(lrp(model, x, TARGET, **settings).flatten(1).sum(1) + kept, score, rtol=1e-7, atol=1e-7)
    assert settings.get("rule") == "zplus" or kept.abs().max() > 0.01


def test_what_biases_keep_is_known_wherever_the_samples_lie() -> None:
    class Laid(nn.Module):
        def __init__(self, lay: object) -> None:
            super().__init__()
            self.first, self.head, self.lay = nn.Linear(2, 4), nn.Linear(4, 3), lay

        def forward(self, x: Tensor) -> Tensor:
            return self.lay(torch.relu(self.first(self.lay(x, 1))), 2)

    def time_first(x: Tensor, step: int) -> Tensor:
        return x.transpose(0, 1) if step == 1 else model.head(x.mean(0))

    def merged(x: Tensor, step: int) -> Tensor:
        return x.reshape(-1, 2) if step == 1 else model.head(x.reshape(-1, 5, 4).mean(1))

    x = nets.inputs(5, 5, 2)
    for lay in (time_first, merged):
        model = nets.drawn(Laid(lay))
        total = lrp(model, x, TARGET).flatten(1).sum(1) + lrp_retained(model, x, TARGET)
        torch.testing.assert_close(total, nets.output(model, x, TARGET), rtol=1e-6, atol=1e-7)


def test_what_a_bias_keeps_by_hand() -> None:
    # z = 2 x_0 + 3 = 7 for x_0 = 2: the bias made 3 of 7 parts, so it keeps 3 of an output of 7.
    model = nn.Linear(1, 2).double()
    model.weight.data[:] = 2.0
    model.bias.data[:] = 3.0
    x, target = torch.tensor([[2.0]], dtype=torch.float64), torch.tensor([1])
    torch.testing.assert_close(lrp(model, x, target), torch.tensor([[4.0]], dtype=torch.float64))
    torch.testing.assert_close(lrp_retained(model, x, target), torch.tensor([3.0], dtype=torch.float64))


@mark.parametrize("method", [lrp, deep_taylor])
def test_a_softmax_is_refused_with_what_to_do(method: object) -> None:
    with raises(UsageError, match=r"no rule for the operation `torch.nn.functional.softmax`.* starts at the logits"):
        method(Softmaxed(nets.drawn(nets.cnn())), nets.inputs(5, 1, 8, 8), TARGET)


@mark.parametrize("rule", ["epsilon", "zplus", "gamma"])
@mark.parametrize("net", [nets.cnn(), nets.cnn(stride=1), nets.Residual()], ids=["cnn", "overlap", "residual"])
def test_relevance_is_conserved_without_biases(net: nn.Module, rule: str) -> None:
    model, x = nets.without_shifts(nets.drawn(net)), nets.inputs(5, 1, 8, 8)
    assert nets.gap(lrp(model, x, TARGET, rule=rule), nets.output(model, x, TARGET)) < 1e-6


@mark.parametrize("net", [nets.cnn(), nets.cnn(stride=1), nets.Residual()], ids=["cnn", "overlap", "residual"])
def test_deep_taylor_conserves_positive_outputs(net: nn.Module) -> None:
    model, x = nets.drawn(net, seed=3), nets.inputs(20, 1, 8, 8)
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if name.endswith(("bias", "running_mean")):  # the theory asks for biases that are not positive
            value.data = value.abs() / 10 if name.endswith("mean") else -value.abs() / 10
    score, target = model(x).max(1)
    kept = score > 0
    assert kept.any()
    found = deep_taylor(model, x, target)
    assert nets.gap(found[kept], score[kept].detach()) < 1e-9
    assert found.min() >= 0 and found[~kept].abs().sum() == 0


def test_lrp_is_gradient_times_input_when_epsilon_vanishes() -> None:
    model, x = nets.drawn(nets.Residual()), nets.inputs(5, 1, 8, 8).requires_grad_()
    (gradient,) = torch.autograd.grad(model(x).gather(1, TARGET.unsqueeze(1)).sum(), x)
    torch.testing.assert_close(lrp(model, x, TARGET, epsilon=1e-12), (x * gradient).detach(), rtol=1e-5, atol=1e-8)


class Sums(nn.Module):
    """Two logits that are sums of the two inputs and constants in one of several ways."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form

    def forward(self, x: Tensor) -> Tensor:
        a, b = x[:, :1], x[:, 1:]
        forms = {
            "add": lambda: 3 * a + b * 2,
            "sub": lambda: torch.sub(a, b, alpha=2),
            "rsub": lambda: 1.0 - (-a) / 2 + b,
            "alpha": lambda: torch.add(a, b, alpha=4),
            "matmul": lambda: x @ torch.tensor([[2.0], [5.0]], dtype=x.dtype),
            "mean": lambda: x.mean(1, keepdim=True),
            "constant first": lambda: torch.ones(1, dtype=x.dtype) * a + torch.full((1,), 2.0, dtype=x.dtype) - b,
        }
        z = forms[self.form]()
        return torch.cat([z, -z], dim=1)


@mark.parametrize(
    ("form", "terms"),
    [
        ("add", (3, 2)),
        ("sub", (1, -2)),
        ("rsub", (0.5, 1)),
        ("alpha", (1, 4)),
        ("matmul", (2, 5)),
        ("mean", (0.5, 0.5)),
        ("constant first", (1, -1)),
    ],
)
def test_sums_are_split_by_their_terms(form: str, terms: tuple[float, float]) -> None:
    x = torch.tensor([[1.0, 4.0], [-3.0, 5.5]], dtype=torch.float64)
    expected = x * torch.tensor(terms, dtype=torch.float64)  # what each term adds to the output
    torch.testing.assert_close(lrp(Sums(form), x, torch.tensor([0, 0])), expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(lrp(Sums(form), x, torch.tensor([1, 1])), -expected, rtol=1e-6, atol=1e-6)


def test_nothing_contributed_is_zero_relevance_not_nan() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)).double().eval()
    for parameter in model.parameters():
        parameter.data = torch.full_like(parameter, 1.0 if parameter.ndim == 1 else -1.0)
    x = torch.tensor([[0.5, 0.0], [0.0, 0.0]], dtype=torch.float64)  # only biases make the output
    for maps in (deep_taylor(model, x, TARGET[:2]), lrp(model, x, TARGET[:2], rule="zplus")):
        assert torch.equal(maps, torch.zeros_like(x))
    assert lrp(model, torch.zeros_like(x), TARGET[:2]).abs().sum() == 0


def test_batch_normalisation_alone_and_folded() -> None:
    conv, norm = nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3)
    tail = (nn.ReLU(), nn.Flatten(), nn.Linear(3 * 16, 2))
    model, x = nets.drawn(nn.Sequential(conv, norm, *tail), seed=2), nets.inputs(5, 1, 4, 4)
    merged = torch.nn.utils.fusion.fuse_conv_bn_eval(conv, norm)
    for explain in (lrp, deep_taylor):
        torch.testing.assert_close(explain(model, x, TARGET), explain(nn.Sequential(merged, *tail), x, TARGET))
    alone = nets.drawn(nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(16, 2)))
    total = nets.output(nets.without_shifts(alone), x, TARGET)
    assert nets.gap(lrp(nets.without_shifts(alone), x, TARGET), total) < 1e-6


def test_bad_knobs() -> None:
    model, x = nets.drawn(nets.mlp()), nets.inputs(5, 5)
    with raises(UsageError, match="`rule` must be one of epsilon, zplus, gamma, got 'alpha'"):
        lrp(model, x, TARGET, rule="alpha")
    with raises(UsageError, match=r"`epsilon` must be above 0 and `gamma` at least 0, got -1\.0 and 0\.25"):
        lrp(model, x, TARGET, epsilon=-1.0)
    with raises(UsageError, match=r"`bounds` must contain 0 and all of x, which goes from .* got \(0.0, 1.0\)"):
        deep_taylor(model, x, TARGET, bounds=(0.0, 1.0))
    scaled = nets.drawn(nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 2)))
    with raises(UsageError, match=r"`bounds` are those of the first layer's input, but `.*batch_norm` changes"):
        deep_taylor(scaled, x, TARGET, bounds=(-9.0, 9.0))
