import numpy as np
import torch
from attributions import nets
from pytest import raises
from torch import Tensor, nn

from forsooth.attributions.patterns import fit_patterns, pattern_attribution, pattern_net
from forsooth.records import UsageError

TARGET = torch.tensor([0, 1, 1, 0])
FIT = nets.inputs(200, 5, seed=9) @ nets.inputs(5, 5, seed=10) + 1  # correlated, not centred


def literal(x: np.ndarray, w: np.ndarray, b: float, *, rectified: bool) -> np.ndarray:
    """The pattern (in,) of one neuron from its inputs (m, in), by the formulas of the paper."""
    y = x @ w
    keep = y + b > 0 if rectified else np.ones(len(y), dtype=bool)
    if not keep.any():
        return np.zeros_like(w)
    numerator = (x[keep] * y[keep, None]).mean(0) - x[keep].mean(0) * y.mean()
    return numerator / (w @ numerator)


def test_linear_model_gives_the_pattern_of_haufe() -> None:
    model = nets.drawn(nn.Sequential(nn.Flatten(), nn.Linear(5, 2, bias=False)))
    weight = model[1].weight.detach().numpy()
    x = nets.inputs(4, 5)
    expected = []
    for t in TARGET:
        y = FIT.numpy() @ weight[t]
        covariance = [np.cov(FIT[:, i].numpy(), y, bias=True)[0, 1] for i in range(5)]
        expected.append(np.array(covariance) / np.var(y))
    pattern = torch.tensor(np.stack(expected))
    torch.testing.assert_close(pattern_net(model, x, TARGET, fit=FIT), pattern)
    output = nets.output(model, x, TARGET).unsqueeze(1)
    attribution = pattern_attribution(model, x, TARGET, fit=FIT)
    torch.testing.assert_close(attribution, torch.tensor(weight)[TARGET] * pattern * output)
    torch.testing.assert_close(attribution.sum(1), output.squeeze(1))  # wᵀa = 1


def test_a_distractor_gets_no_signal() -> None:
    # x_0 = signal + noise, x_1 = noise: the weights (1, -1) read the signal, and the pattern is (1, 0).
    signal, noise = nets.inputs(4000, 1, seed=1), nets.inputs(4000, 1, seed=2)
    model = nn.Linear(2, 2, bias=False).double()
    model.weight.data = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    found = pattern_net(model, nets.inputs(4, 2), TARGET, fit=torch.cat([signal + noise, noise], dim=1))
    sign = (1 - 2 * TARGET).double().unsqueeze(1)
    torch.testing.assert_close(found, sign * torch.tensor([[1.0, 0.0]], dtype=torch.float64), atol=0.05, rtol=0)


def test_perceptron_by_the_formulas() -> None:
    model, x = nets.drawn(nets.mlp(), seed=3), nets.inputs(4, 5)
    (w1, b1), (w2, b2) = ((p.detach().numpy() for p in model[k].parameters()) for k in (0, 2))
    a1 = np.stack([literal(FIT.numpy(), w, b, rectified=True) for w, b in zip(w1, b1, strict=True)])
    hidden = np.maximum(FIT.numpy() @ w1.T + b1, 0)
    a2 = np.stack([literal(hidden, w, b, rectified=False) for w, b in zip(w2, b2, strict=True)])
    for (weight, found), expected, w in zip(fit_patterns(model, FIT), (a1, a2), (w1, w2), strict=True):
        torch.testing.assert_close(found, torch.tensor(expected))
        assert torch.equal(weight, torch.tensor(w))
    active = (x.numpy() @ w1.T + b1 > 0).astype(float)
    signal = torch.tensor(np.stack([(a2[t] * active[i]) @ a1 for i, t in enumerate(TARGET)]))
    torch.testing.assert_close(pattern_net(model, x, TARGET, fit=FIT), signal)
    out = nets.output(model, x, TARGET).numpy()
    attribution = np.stack([(w2[t] * a2[t] * out[i] * active[i]) @ (w1 * a1) for i, t in enumerate(TARGET)])
    torch.testing.assert_close(pattern_attribution(model, x, TARGET, fit=FIT), torch.tensor(attribution))


def test_convolution_by_its_patches() -> None:
    fit = nets.inputs(30, 2, 5, 5, seed=4) + 0.3
    conv = nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2)
    model = nets.drawn(nn.Sequential(conv, nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(4, 2)))
    patches = nn.functional.unfold(fit, 3, padding=1, stride=2).view(30, 2, 9, 9).permute(0, 3, 1, 2).numpy()
    _, found = fit_patterns(model, fit)[0]
    for k in range(4):  # the ReLU behind the pool counts: channels 0, 1 read input 0 and channels 2, 3 read input 1
        x, weight = patches[:, :, k // 2].reshape(-1, 9), conv.weight[k].detach().flatten().numpy()
        expected = literal(x, weight, conv.bias[k].item(), rectified=True)
        torch.testing.assert_close(found[k].flatten(), torch.tensor(expected))


def test_batch_normalisation_is_folded() -> None:
    conv, norm = nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3)
    tail = (nn.ReLU(), nn.Flatten(), nn.Linear(3 * 16, 2))
    model, fit, x = nets.drawn(nn.Sequential(conv, norm, *tail)), nets.inputs(50, 1, 4, 4), nets.inputs(4, 1, 4, 4)
    merged = nn.Sequential(torch.nn.utils.fusion.fuse_conv_bn_eval(conv, norm), *tail)
    for explain in (pattern_net, pattern_attribution):
        torch.testing.assert_close(explain(model, x, TARGET, fit=fit), explain(merged, x, TARGET, fit=fit))


def test_neurons_without_a_direction_of_signal() -> None:
    model, x = nets.drawn(nets.mlp()), nets.inputs(4, 5)
    model[0].bias.data[0] = -1e6  # never fires
    model[0].weight.data[1] = 0  # always says the same
    (_, first), _ = fit_patterns(model, FIT)
    assert torch.equal(first[:2], torch.zeros(2, 5, dtype=torch.float64)) and (first[2:] != 0).all()
    assert pattern_net(model, x, TARGET, fit=FIT).isfinite().all()


def test_batches_of_the_fit_change_nothing(monkeypatch: object) -> None:
    model, fit = nets.drawn(nets.cnn()), nets.inputs(50, 1, 8, 8)
    whole = fit_patterns(model, fit)
    monkeypatch.setattr("forsooth.attributions.intercept.ELEMENTS_AT_ONCE", 7 * 64)
    for (_, a), (_, b) in zip(whole, fit_patterns(model, fit), strict=True):
        torch.testing.assert_close(a, b)


def test_what_it_cannot_do_is_said() -> None:
    class Skips(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(5, 5)

        def forward(self, x: Tensor) -> Tensor:
            return (self.linear(x) + x)[:, :2]

    x = nets.inputs(4, 5)
    with raises(UsageError, match=r"`pattern_net` has no rule for the operation `torch.Tensor.*add"):
        pattern_net(nets.drawn(Skips()), x, TARGET, fit=FIT)
    first = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 2))
    behind = nn.Sequential(nn.Linear(5, 2), nn.Unflatten(1, (1, 2)), nn.BatchNorm1d(1), nn.Flatten())
    for net in (first, behind):
        with raises(UsageError, match="`pattern_attribution` knows batch normalisation only right behind a linear"):
            pattern_attribution(nets.drawn(net), x, TARGET, fit=FIT)
    with raises(UsageError, match=r"has no rule for the operation `torch\..*gelu`"):
        pattern_net(nets.drawn(nn.Sequential(nn.Linear(5, 2), nn.GELU())), x, TARGET, fit=FIT)
    with raises(UsageError, match="`fit` must hold training inputs"):
        pattern_net(nets.drawn(nets.mlp()), x, TARGET, fit=FIT[:0])
