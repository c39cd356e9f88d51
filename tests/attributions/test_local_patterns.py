import numpy
import torch
from attributions import nets
from pytest import raises
from sklearn.linear_model import Ridge
from torch import Tensor, nn

from forsooth.attributions import local_patterns
from forsooth.attributions.local_patterns import local_covariance, pattern_local, perturbed, surrogate
from forsooth.records import UsageError
from forsooth.seeds import generator

TARGET = torch.tensor([0, 0])


def test_the_surrogate_is_sklearns_ridge() -> None:
    x, spread = nets.inputs(1, 5)[0], torch.tensor([1.0, 0.5, 2.0, 1.0, 3.0]).double()
    points = perturbed(x, spread, 200, generator(0, "points"))
    outputs = points.sin().sum(1)
    unit = ((points - x) / spread).numpy()
    near = numpy.exp(-(unit**2).sum(1) / (0.75**2 * 5))
    theirs = Ridge(alpha=1.0).fit(unit, outputs.numpy(), sample_weight=near).coef_ / spread.numpy()
    numpy.testing.assert_allclose(surrogate(points[None], outputs[None], x[None], spread)[0].numpy(), theirs, atol=1e-8)


def test_the_covariance_is_numpys() -> None:
    rows, x, weight = nets.inputs(30, 4), nets.inputs(1, 4, seed=3)[0], nets.inputs(1, 4, seed=5)[0]
    distance = ((rows - x) ** 2).sum(1).numpy()
    near = numpy.exp(-distance / (2 * numpy.sort(distance)[2]))
    theirs = numpy.cov(rows.numpy(), rowvar=False, aweights=near, ddof=0) @ weight.numpy()
    numpy.testing.assert_allclose(local_covariance(rows, x[None], 0.1, weight[None])[0].numpy(), theirs, atol=1e-10)


def test_a_suppressor_gets_nothing() -> None:
    """x1 = z + noise, x2 = noise: the model reads x1 - x2, and only x1 varies with the label."""
    noise, label = nets.inputs(400, 1, seed=1), nets.inputs(400, 1, seed=2).sign()
    data = torch.cat([label + noise, noise], dim=1)

    def model(x: Tensor) -> Tensor:
        return (x[:, :1] - x[:, 1:]).expand(-1, 2)

    maps = pattern_local(model, data[:2], TARGET, fit=data, generators=nets.own(0, 2), neighbours=1.0)
    assert (maps[:, 1].abs() < 0.2 * maps[:, 0].abs()).all()


def test_inputs_together_are_inputs_one_by_one(monkeypatch) -> None:
    data = nets.inputs(40, 2, 4)
    model = nets.drawn(nn.Sequential(nn.Flatten(), *nets.mlp(8, 2)))
    target = torch.tensor([0, 1, 1, 0, 1])

    def maps() -> Tensor:
        return pattern_local(model, data[:5], target, fit=data, generators=nets.own(0, 5), samples=60)

    together = maps()
    calls: list[int] = []
    solve = torch.linalg.cholesky
    monkeypatch.setattr(local_patterns, "AT_ONCE", 2 * 60 * 8)
    monkeypatch.setattr(torch.linalg, "cholesky", lambda gram: calls.append(len(gram)) or solve(gram))
    torch.testing.assert_close(maps(), together, rtol=1e-10, atol=1e-12)
    assert calls == [2, 2, 1]


def test_bad_arguments() -> None:
    x = nets.inputs(2, 4)
    with raises(UsageError, match=r"`fit` must be \(k, \(4,\)\) with k > 1, got \(1, 4\)"):
        pattern_local(lambda x: x, x, TARGET, fit=x[:1], generators=nets.own(0, 2))
    with raises(UsageError, match=r"`neighbours` must lie in"):
        pattern_local(lambda x: x, x, TARGET, fit=x, generators=nets.own(0, 2), neighbours=2.0)
