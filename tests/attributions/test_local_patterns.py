import sys

import numpy
import torch
from attributions import nets
from pytest import approx, importorskip, mark, raises
from sklearn.linear_model import Ridge
from torch import Tensor, nn

from forsooth.attributions import local_patterns
from forsooth.attributions.local_patterns import local_covariance, on_plane, pattern_local, perturbed, surrogate
from forsooth.records import UsageError
from forsooth.seeds import generator

TARGET = torch.tensor([0, 0])


def test_the_surrogate_is_sklearns_ridge() -> None:
    x, spread = nets.inputs(1, 5)[0], torch.tensor([1.0, 0.5, 2.0, 1.0, 3.0]).double()
    points = perturbed(x, spread, 200, generator(0, "points"))
    outputs = points.sin().sum(1)
    unit = ((points - x) / spread).numpy()
    near = numpy.sqrt(numpy.exp(-(unit**2).sum(1) / (0.75**2 * 5)))
    theirs = Ridge(alpha=1.0).fit(unit, outputs.numpy(), sample_weight=near)
    weight, height = surrogate(points[None], outputs[None], x[None], spread)
    numpy.testing.assert_allclose(weight[0].numpy(), theirs.coef_ / spread.numpy(), atol=1e-8)
    assert height.item() == approx(theirs.intercept_, abs=1e-8)


def by_hand(rows: Tensor, x: Tensor, weight: Tensor, count: int) -> numpy.ndarray:
    """The covariance of the nearest rows by numpy, times the weights."""
    distance = ((rows - x) ** 2).sum(1).sqrt().numpy()
    nearest = numpy.argsort(distance)[:count]
    near = numpy.exp(-0.5 * (distance[nearest] / numpy.median(distance[nearest])) ** 2)
    return numpy.cov(rows.numpy()[nearest], rowvar=False, aweights=near, ddof=0) @ weight.numpy()


def test_the_covariance_is_numpys() -> None:
    rows, x, weight = nets.inputs(30, 4), nets.inputs(1, 4, seed=3)[0], nets.inputs(1, 4, seed=5)[0]
    ours = local_covariance(rows, x[None], 0.2, weight[None])[0]
    numpy.testing.assert_allclose(ours.numpy(), by_hand(rows, x, weight, 6), atol=1e-10)


def test_the_whole_map_of_a_linear_model_is_the_covariance_at_its_boundary() -> None:
    """The surrogate of w x + b is w but for its penalty; the nearest point where it is 0 is x - (w x + b) w / |w|²."""
    rows, x, weight = nets.inputs(300, 4), nets.inputs(2, 4, seed=3), nets.inputs(1, 4, seed=5)[0]

    def model(points: Tensor) -> Tensor:
        return (points @ weight + 0.3)[:, None].expand(-1, 2)

    maps = pattern_local(model, x, TARGET, fit=rows, generators=nets.own(0, 2), samples=20_000)
    for one, found in zip(x, maps, strict=True):
        boundary = one - (one @ weight + 0.3) / (weight @ weight) * weight
        numpy.testing.assert_allclose(found.numpy(), by_hand(rows, boundary, weight, 30), rtol=0.01, atol=0.01)
    beside = pattern_local(model, x, TARGET, fit=rows, generators=nets.own(0, 2), samples=20_000, projected=False)
    numpy.testing.assert_allclose(beside[0].numpy(), by_hand(rows, x[0], weight, 30), rtol=0.01, atol=0.01)
    assert not torch.allclose(maps, beside, rtol=0.05)


@mark.skipif(sys.version_info < (3, 12), reason="their package is written for Python 3.12")
def test_the_covariance_and_the_boundary_are_those_of_the_authors_package() -> None:
    solvers = importorskip("patternlocal.solvers", exc_type=ImportError)
    rows, x, weight = nets.inputs(50, 4), nets.inputs(1, 4, seed=3), nets.inputs(1, 4, seed=5)
    height = x @ weight[0] + 0.3
    ours = local_covariance(rows, on_plane(x, weight, height), 0.1, weight)[0]
    theirs = solvers.LocalCovarianceSolver().solve(weight[0].numpy(), 0.3, x[0].numpy(), rows.numpy())
    numpy.testing.assert_allclose(ours.numpy(), theirs, atol=1e-10)


def test_a_suppressor_gets_little() -> None:
    """x1 = z + noise, x2 = noise: the model reads x1 - x2, and only x1 varies with the label."""
    noise, label = nets.inputs(400, 1, seed=1), nets.inputs(400, 1, seed=2).sign()
    data = torch.cat([label + noise, noise], dim=1)

    def model(x: Tensor) -> Tensor:
        return (x[:, :1] - x[:, 1:]).expand(-1, 2)

    maps = pattern_local(model, data[:2], TARGET, fit=data, generators=nets.own(0, 2), neighbours=1.0)
    assert (maps[:, 1].abs() < 0.35 * maps[:, 0].abs()).all()  # the weights are 1 and -1


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
