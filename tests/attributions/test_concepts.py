import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch
from nets import Residual, cnn, drawn, inputs, mlp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge, SGDClassifier
from torch import nn

from forsooth.attributions.concepts import (
    CLOSED_FORM,
    RELEASED,
    LayerTest,
    Settings,
    activations,
    averaged,
    concept_vector,
    parted,
    ridge,
    sensitivity,
    t_test,
    tcav,
    tcav_score,
)
from forsooth.records import UsageError
from forsooth.seeds import generator


def sides(k=20, m=30, d=7, shift=1.0, seed=0):
    return inputs(k, d, seed=seed) + shift * torch.arange(d) / d, inputs(m, d, seed=seed + 100)


@pytest.mark.parametrize("d", [3, 7, 200])
def test_ridge_against_scikit_learn(d):
    one, two = sides(d=d)
    x, y = torch.cat([one, two]), torch.cat([torch.ones(20), -torch.ones(30)]).double()
    penalty = 0.3 * (x - x.mean(0)).square().sum(1).mean().item()
    fitted = Ridge(alpha=penalty).fit(x.numpy(), y.numpy())
    weight, shift = ridge(x, y, strength=0.3)
    np.testing.assert_allclose(weight.numpy(), fitted.coef_, rtol=1e-9)
    assert shift.item() == pytest.approx(fitted.intercept_)


def test_with_little_penalty_the_direction_is_that_of_discriminant_analysis():
    one, two = sides()
    x, y = torch.cat([one, two]).numpy(), np.array([1] * 20 + [-1] * 30)
    wanted = LinearDiscriminantAnalysis(solver="lsqr").fit(x, y).coef_[0]
    settings = Settings(strength=1e-7, held_out=0.0)
    got = concept_vector(one, two, generator=generator(0), settings=settings).direction
    np.testing.assert_allclose(got.numpy(), wanted / np.linalg.norm(wanted), rtol=1e-4)


def test_concept_vector_by_hand():
    # one unit tells the sides apart, the other is the same
    one, two = torch.tensor([[3.0, 1.0], [5.0, 1.0]]), torch.tensor([[1.0, 1.0], [-1.0, 1.0]])
    got = concept_vector(one, two, generator=generator(0), settings=Settings(held_out=0.0))
    assert got.direction.tolist() == [1.0, 0.0] and got.direction.dtype == torch.float32 and math.isnan(got.accuracy)
    back = concept_vector(two, one, generator=generator(0), settings=Settings(held_out=0.5))
    assert back.direction.tolist() == [-1.0, 0.0] and back.accuracy == 1.0
    nowhere = concept_vector(torch.ones(4, 2), torch.ones(4, 2), generator=generator(0))
    assert nowhere.direction.isnan().all()


@pytest.mark.parametrize("settings", [CLOSED_FORM, RELEASED], ids=["ridge", "sgd"])
def test_concept_vectors_point_to_the_concept_and_ignore_its_scale(settings):
    one, two = sides(k=60, m=60, shift=4.0)
    found = concept_vector(one, two, generator=generator(0), settings=settings)
    assert found.direction @ (one.mean(0) - two.mean(0)) > 0 and found.accuracy > 0.9
    assert found.direction.norm().item() == pytest.approx(1)
    same = concept_vector(one, two, generator=generator(0), settings=settings)
    assert torch.equal(same.direction, found.direction) and same.accuracy == found.accuracy
    if settings.rule == "ridge":
        scaled = concept_vector(1e6 * one, 1e6 * two, generator=generator(0), settings=settings)
        torch.testing.assert_close(scaled.direction, found.direction)
    noise = concept_vector(*sides(k=300, m=300, shift=0.0), generator=generator(0), settings=settings)
    assert abs(noise.accuracy - 0.5) < 0.12  # 198 held out


def test_sgd_is_scikit_learns():
    one, two = sides(k=40, m=40)
    settings = Settings(rule="sgd", strength=0.05, held_out=0.25)
    found = concept_vector(one, two, generator=generator(3), settings=settings)
    g = generator(3)
    orders = [torch.randperm(40, generator=g) for _ in range(2)]
    seed = int(torch.randint(2**31, (), generator=g))
    x = torch.cat([one[orders[0][10:]], two[orders[1][10:]]]).numpy()
    fitted = SGDClassifier(alpha=0.05, max_iter=1000, tol=1e-3, random_state=seed).fit(x, [1] * 30 + [-1] * 30)
    np.testing.assert_allclose(found.direction.numpy(), fitted.coef_[0] / np.linalg.norm(fitted.coef_[0]))
    held = torch.cat([one[orders[0][:10]], two[orders[1][:10]]]).numpy()
    assert found.accuracy == pytest.approx(fitted.score(held, [1] * 10 + [-1] * 10))


class Uncuttable(nn.Module):
    """Reads the input again behind the layer, so the network cannot be cut there."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 6), nn.Linear(11, 3)

    def forward(self, x):
        return self.last(torch.cat([self.first(x).tanh(), x], 1))


CASES = [
    (mlp, (5,), "0"),
    (mlp, (5,), "1"),
    (mlp, (5,), "2"),
    (cnn, (1, 8, 8), "3"),
    (Residual, (1, 12, 12), "blocks.0"),
    (Residual, (1, 12, 12), "head"),
    (Uncuttable, (5,), "first"),
]


@pytest.mark.parametrize("build, shape, layer", CASES)
@pytest.mark.parametrize("of", ["logit", "log_probability"])
def test_sensitivity_is_the_slope_along_the_vector(build, shape, layer, of):
    """By finite differences: the layer's output is moved along the vector by a hook."""
    model, x = drawn(build()), inputs(4, *shape)
    target = torch.tensor([0, 1, 1, 0])
    d = activations(model, x, layer=layer).shape[1]
    vectors = inputs(3, d, seed=5)
    got = sensitivity(model, x, target, layer=layer, vectors=vectors, of=of)
    assert got.shape == (4, 3)
    with torch.inference_mode():
        torch.testing.assert_close(sensitivity(model, x.clone(), target, layer=layer, vectors=vectors, of=of), got)

    def moved(vector, step):
        hook = lambda _, __, output: output + step * vector.view(1, *output.shape[1:])  # noqa: E731
        handle = model.get_submodule(layer).register_forward_hook(hook)
        with torch.no_grad():
            outputs = model(x)
        handle.remove()
        outputs = outputs if of == "logit" else outputs.log_softmax(1)
        return outputs.gather(1, target[:, None])[:, 0]

    for k, vector in enumerate(vectors):
        slope = (moved(vector, 1e-6) - moved(vector, -1e-6)) / 2e-6
        torch.testing.assert_close(got[:, k], slope, rtol=1e-4, atol=1e-6)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_scores_by_hand():
    nan = float("nan")
    got = tcav_score(torch.tensor([[1.0, -1.0, 0.0, nan], [2.0, 3.0, 0.0, 1.0]]))
    torch.testing.assert_close(got, torch.tensor([1.0, 0.5, 0.0, nan]).double(), equal_nan=True)


def test_t_test_against_scipy():
    for seed in range(4):
        one, two = (
            torch.rand(8, generator=generator(seed)).double(),
            torch.rand(5, generator=generator(seed, 1)).double(),
        )
        assert t_test(one, two) == pytest.approx(scipy.stats.ttest_ind(one.numpy(), two.numpy()).pvalue, rel=1e-9)
        assert t_test(one, 0.5) == pytest.approx(scipy.stats.ttest_1samp(one.numpy(), 0.5).pvalue, rel=1e-9)
    sure, other = torch.full((10,), 0.3), torch.full((7,), 0.3)
    assert t_test(sure, other) == 1 and t_test(sure, other + 0.1) == 0 and t_test(sure, 0.5) == 0
    assert math.isnan(t_test(sure[:1], other[:1])) and math.isnan(t_test(sure[:1], 0.5))
    assert math.isnan(t_test(sure * float("nan"), other))


def test_averaging_over_the_layers_that_pass():
    def at(p, *scores):
        inputs = torch.tensor([scores[0], scores[1], sum(scores) / 2])
        return LayerTest("layer", torch.tensor(scores), torch.tensor(scores), p, torch.ones(2), inputs)

    tests = [at(0.005, 0.8, 1.0), at(0.02, 0.0, 0.0), at(0.01, 0.4, 0.6), at(math.nan, 0.1, 0.1)]
    assert averaged(tests) == pytest.approx(0.7)
    assert averaged(tests, level=0.05) == pytest.approx((0.9 + 0.0 + 0.5) / 3)
    assert math.isnan(averaged(tests, level=0.001))
    inputs, sets = parted(tests)
    assert inputs.tolist() == pytest.approx([0.6, 0.8, 0.7]) and sets.tolist() == pytest.approx([0.6, 0.8])
    assert [len(part) for part in parted(tests, level=0.001)] == [0, 0]


def planted(weight):
    """A linear layer that passes the input on, and a class whose output grows with the first feature by `weight`."""
    model = nn.Sequential(nn.Linear(6, 6, bias=False), nn.Tanh(), nn.Linear(6, 2)).double().eval()
    model[0].weight.data = torch.eye(6).double()
    model[2].weight.data = torch.zeros(2, 6).double()
    model[2].weight.data[0, 0], model[2].weight.data[0, 1] = weight, 0.3
    return model


@pytest.mark.parametrize("settings", [CLOSED_FORM, RELEASED, replace(CLOSED_FORM, against="half")])
def test_a_concept_that_matters_scores_one_and_one_that_hurts_scores_zero(settings):
    concept = inputs(60, 6, seed=1) * 0.5
    concept[:, 0] += 2
    randoms = [inputs(60, 6, seed=10 + k) * 0.5 for k in range(20)]
    x, target = inputs(50, 6, seed=2) * 0.5, torch.zeros(50, dtype=torch.int64)
    results = {}
    for weight in (2.0, -2.0):
        g = generator(0)
        tests = tcav(
            planted(weight), (x, target), (concept, randoms), layers=["0", "2"], generator=g, settings=settings
        )
        assert [test.layer for test in tests] == ["0", "2"]
        assert tests[0].scores.shape == tests[0].random_scores.shape == tests[0].accuracy.shape == (20,)
        assert (tests[0].accuracy > 0.8).all() and tests[0].p < 0.01
        results[weight] = averaged(tests[:1])
    assert results[2.0] > 0.95 and results[-2.0] < 0.05


def test_random_concepts_do_not_pass():
    randoms = [inputs(40, 6, seed=10 + k) for k in range(10)]
    model, x, target = planted(2.0), inputs(50, 6, seed=2), torch.zeros(50, dtype=torch.int64)
    ps = []
    for seed in range(10):
        concept = inputs(40, 6, seed=50 + seed)
        (test,) = tcav(model, (x, target), (concept, randoms), layers=["0"], generator=generator(seed))
        ps.append(test.p)
    assert sorted(ps)[5] > 0.01  # one concept in all its vectors: its scores are alike, so some pass


def test_tcav_literally():
    """The same steps one after the other, with a gradient by hand."""
    model, x, target = drawn(mlp()), inputs(9, 5, seed=3), torch.zeros(9, dtype=torch.int64)
    concept, randoms = inputs(12, 5, seed=4) + 1, [inputs(12, 5, seed=20 + k) for k in range(3)]
    settings = Settings(held_out=0.0)
    (test,) = tcav(model, (x, target), (concept, randoms), layers=["0"], generator=generator(0), settings=settings)
    first, last = model[0], model[2]
    slopes = (first(x) > 0).double() * last.weight[0]  # of the first class by the units of the first layer
    pairs = [(concept, one) for one in randoms] + [(randoms[i], randoms[(i + 1) % 3]) for i in range(3)]
    scores, positive = [], []
    for one, two in pairs:
        h = first(torch.cat([one, two])).detach().numpy()
        penalty = 0.1 * ((h - h.mean(0)) ** 2).sum(1).mean()
        vector = torch.from_numpy(Ridge(alpha=penalty).fit(h, [1] * 12 + [-1] * 12).coef_)
        positive.append(((slopes @ vector) > 0).double())
        scores.append(positive[-1].mean().item())
    assert test.scores.tolist() == pytest.approx(scores[:3]) and test.random_scores.tolist() == pytest.approx(
        scores[3:]
    )
    assert test.p == pytest.approx(scipy.stats.ttest_ind(scores[:3], scores[3:]).pvalue)
    assert test.inputs.tolist() == pytest.approx(torch.stack(positive[:3]).mean(0).tolist())
    assert test.inputs.mean().item() == pytest.approx(test.scores.mean().item())


def test_bad_input():
    model, x, target = drawn(mlp()), inputs(4, 5), torch.zeros(4, dtype=torch.int64)
    sets = (inputs(6, 5), [inputs(6, 5), inputs(6, 5, seed=2)])
    with pytest.raises(UsageError, match="two or more random sets, got 1"):
        tcav(model, (x, target), (sets[0], sets[1][:1]), layers=["0"], generator=generator(0))
    with pytest.raises(UsageError, match="`layer` must be a known name, got 'seven'"):
        tcav(model, (x, target), sets, layers=["seven"], generator=generator(0))
    with pytest.raises(UsageError, match=r"`target` must have shape \(4,\), got \(3,\)"):
        tcav(model, (x, target[:3]), sets, layers=["0"], generator=generator(0))
    with pytest.raises(UsageError, match="`target` must lie below the model's 3 classes, got 3"):
        tcav(model, (x, target + 3), sets, layers=["0"], generator=generator(0))
    with pytest.raises(UsageError, match="`vectors` must have the 6 units of the layer '0', got 4"):
        sensitivity(model, x, target, layer="0", vectors=torch.ones(1, 4))
    with pytest.raises(UsageError, match=r"`other` must be .* got \(6, 5\) and \(6, 4\)"):
        concept_vector(sets[0], sets[0][:, :4], generator=generator(0))
    with pytest.raises(UsageError, match=r"`concept` must be .* some not held out, got \(0, 5\) and \(6, 5\)"):
        concept_vector(sets[0][:0], sets[0], generator=generator(0))
    with pytest.raises(UsageError, match="`rule` must be a known name, got 'lda'"):
        Settings(rule="lda")
    with pytest.raises(UsageError, match=r"`strength` must be above 0 and `held_out` in \[0, 1\), got 0 and 0.33"):
        Settings(strength=0)
