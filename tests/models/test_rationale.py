"""Rationale models against their formulas; the estimator against the exact gradient; padding is never selected."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from torch.nn import functional as F

from forsooth.models.judge_text import judge
from forsooth.models.rationale import (
    REINFORCE,
    RELAXED,
    Rationale,
    Size,
    bernoulli,
    hard_kuma,
    kuma_below,
    kuma_inverse,
    kuma_mean,
    rationale,
)
from forsooth.models.recurrent import Embedding, initialise
from forsooth.models.train_text import Aim, TextRecipe, advantage, check, distances, fit_text, loss_of, uniform
from forsooth.records import Dataset, UsageError

TINY = Size(dims=5, hidden=3, state=0, cell="lstm", dropout=0.0)
SIZES = [TINY, Size(dims=5, hidden=3, state=2, cell="rcnn", dropout=0.0)]
KINDS = ["reinforce", "relaxed"]
TOKENS = torch.tensor([[3, 4, 1, 9, 2, 0, 0], [5, 0, 0, 0, 0, 0, 0], [2, 3, 2, 3, 11, 7, 6], [0] * 7])


def model(kind, size=TINY, dtype=torch.float64, scale=1.5):
    net = initialise(Rationale(Embedding(words=12, dims=5), kind, size), torch.Generator().manual_seed(1)).eval()
    for parameter in net.parameters():
        parameter.data += scale * torch.sin(torch.arange(parameter.numel()).view_as(parameter) * 1.7)
    return net.to(dtype)


def density(x, a, b):
    return a * b * x ** (a - 1) * (1 - x**a) ** (b - 1)


@pytest.mark.parametrize(("a", "b"), [(1.5, 2.0), (2.0, 5.0), (3.0, 1.2)])
def test_kumaraswamy_against_numerical_integrals(a, b):
    shapes = torch.tensor([a, b], dtype=torch.float64)
    assert kuma_below(0.3, *shapes).item() == pytest.approx(quad(density, 0, 0.3, (a, b))[0], abs=1e-8)
    assert kuma_mean(*shapes).item() == pytest.approx(quad(lambda x: x * density(x, a, b), 0, 1)[0], abs=1e-8)
    u = torch.linspace(0.01, 0.99, 20, dtype=torch.float64)
    torch.testing.assert_close(1 - (1 - kuma_inverse(u, *shapes) ** a) ** b, u)


def raw_for(a, b):
    """What the layer must say so that softplus gives the shapes a and b."""
    return torch.log(torch.expm1(torch.tensor([a, b], dtype=torch.float64)))


def test_draws_of_the_hard_kumaraswamy_have_the_stated_probabilities():
    u = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    gate = hard_kuma(raw_for(0.7, 1.3).expand(20_000, 2), u)
    assert ((gate.z >= 0) & (gate.z <= 1)).all()
    below = quad(density, 0, 0.1 / 1.2, (0.7, 1.3))[0]
    above = quad(density, 1.1 / 1.2, 1, (0.7, 1.3))[0]
    assert (gate.z == 0).double().mean().item() == pytest.approx(below, abs=1e-3)
    assert (gate.z == 1).double().mean().item() == pytest.approx(above, abs=1e-3)
    assert gate.expected[0].item() == pytest.approx(1 - below, abs=1e-6)
    assert (gate.log_prob == 0).all()


def test_at_test_time_the_most_probable_of_zero_one_and_the_middle():
    gate = hard_kuma(torch.stack([raw_for(0.1, 3.0), raw_for(3.0, 0.1), raw_for(3.0, 3.0)]), None)
    mean = quad(lambda x: x * density(x, 3, 3), 0, 1)[0]
    torch.testing.assert_close(gate.z, torch.tensor([0.0, 1.0, -0.1 + 1.2 * mean]).double())


def test_extreme_shapes_stay_finite_with_finite_gradients():
    raw = torch.tensor([[-80.0, 80.0], [80.0, -80.0], [-80.0, -80.0], [500.0, 500.0]], requires_grad=True)
    for u in (torch.tensor([0.0, 0.5, 1.0, 0.3]), None):
        gate = hard_kuma(raw, u)
        assert all(part.isfinite().all() for part in gate)
        (gradient,) = torch.autograd.grad((gate.z + gate.expected).sum(), raw)
        assert gradient.isfinite().all()


def test_bernoulli_against_torch():
    raw = torch.tensor([[0.4], [-1.0], [0.0], [2.0]])
    p = torch.sigmoid(raw[:, 0])
    gate = bernoulli(raw, torch.tensor([0.59, 0.9, 0.49, 0.95]))
    assert gate.z.tolist() == [1, 0, 1, 0]
    torch.testing.assert_close(gate.log_prob, torch.distributions.Bernoulli(p).log_prob(gate.z))
    torch.testing.assert_close(gate.expected, p)
    assert bernoulli(raw, None).z.tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_classifier_sees_the_selected_words_and_nothing_else(kind, size):
    net = model(kind, size)
    u = torch.rand(len(TOKENS), 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for draws in (None, u):
        logits, gate = net.rationalise(TOKENS, draws)
        assert 0 < (gate.z > 0).sum() < 13
        for row in range(len(TOKENS)):
            places = [k for k in range(7) if gate.z[row, k] > 0]
            if not places:
                torch.testing.assert_close(logits[row], net.head.bias)
                continue
            seen = torch.stack([net.embedding.weight[TOKENS[row, k]] * gate.z[row, k] for k in places])
            ahead = net.encoder.ahead(seen[None])[0, -1]
            back = net.encoder.back(seen.flip(0)[None])[0, -1]
            torch.testing.assert_close(logits[row], net.head(torch.cat([ahead, back])))


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 11), max_size=8), min_size=1, max_size=4),
    st.integers(0, 5),
    st.sampled_from(KINDS),
    st.sampled_from(SIZES),
)
def test_padding_is_never_selected_and_neighbours_change_nothing(rows, extra, kind, size):
    net = model(kind, size, torch.float32)
    width = max(map(len, rows)) + extra
    tokens = torch.tensor([row + [0] * (width - len(row)) for row in rows], dtype=torch.int64).view(len(rows), width)
    logits, z = net(tokens), net.selection(tokens)
    assert z.shape == tokens.shape
    assert ((z >= 0) & (z <= 1)).all()
    for k, row in enumerate(rows):
        alone = torch.tensor([row], dtype=torch.int64).view(1, len(row))
        assert (z[k, len(row) :] == 0).all()
        torch.testing.assert_close(z[k, : len(row)], net.selection(alone)[0], atol=1e-5, rtol=0)
        torch.testing.assert_close(logits[k], net(alone)[0], atol=1e-5, rtol=0)


def test_the_state_makes_choices_depend_on_those_before():
    net = model("reinforce", SIZES[1])
    free = torch.full((1, 7), 0.5, dtype=torch.float64)
    gates = [
        net.rationalise(TOKENS[2:3], torch.cat([torch.full((1, 1), first), free[:, 1:]], dim=1))[1]
        for first in (0.0, 1.0)
    ]
    assert gates[0].expected[0, 0] == gates[1].expected[0, 0]
    assert not torch.allclose(gates[0].expected[0, 1:], gates[1].expected[0, 1:])
    plain = model("reinforce")
    gates = [plain.rationalise(TOKENS[2:3], torch.full((1, 7), first).double())[1] for first in (0.0, 1.0)]
    assert torch.equal(gates[0].expected, gates[1].expected)


def test_several_draws_for_each_row_and_from_vectors():
    net = model("reinforce")
    u = torch.rand(12, 7, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    logits, gate = net.rationalise(TOKENS, u)
    assert logits.shape == (12, 2)
    for k in range(3):
        one = net.rationalise(TOKENS, u[4 * k : 4 * k + 4])
        torch.testing.assert_close(one[0], logits[4 * k : 4 * k + 4])
        torch.testing.assert_close(one[1].log_prob, gate.log_prob[4 * k : 4 * k + 4])
    vectors = net.embedding(TOKENS[2:3])
    torch.testing.assert_close(net.from_embedded(vectors)[0], net(TOKENS[2:3]))


def test_empty_documents_and_batches():
    for kind, size in product(KINDS, SIZES):
        net = model(kind, size)
        torch.testing.assert_close(net(TOKENS[3:]), net.head.bias[None])
        assert net.selection(torch.zeros(2, 0, dtype=torch.int64)).shape == (2, 0)
        assert net(torch.zeros(0, 4, dtype=torch.int64)).shape == (0, 2)


def test_distances_by_hand():
    z = torch.tensor([[1.0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]])  # two samples of two documents
    lengths = torch.tensor([4, 2])
    paper, released = (Aim(0.25, regulariser=name, samples=2) for name in ("paper", "released"))
    # of all words: 3 of 6 in the first sample, 1 of 6 in the second
    torch.testing.assert_close(distances(z, lengths, paper, each=False), torch.tensor([0.25, 0.25, 1 / 12, 1 / 12]))
    # of each document: 1/4, 2/2 and 0/4, 1/2
    torch.testing.assert_close(distances(z, lengths, released, each=True), torch.tensor([0.0, 0.75, 0.25, 0.25]))
    # of the mean over documents: 5/8 and 1/4
    torch.testing.assert_close(distances(z, lengths, released, each=False), torch.tensor([0.375, 0.375, 0.0, 0.0]))


def test_the_baseline_is_the_mean_of_the_other_samples_of_the_document():
    cost = torch.tensor([1.0, 10.0, 2.0, 20.0, 6.0, 30.0])
    torch.testing.assert_close(advantage(cost, 3), torch.tensor([1 - 4, 10 - 25, 2 - 3.5, 0.0, 6 - 1.5, 15.0]))
    assert advantage(cost, 1) is cost


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("regulariser", ["paper", "released"])
def test_reinforce_has_the_gradient_of_the_expected_cost(regulariser, size):
    net = model("reinforce", size, scale=0.5)
    tokens, y = torch.tensor([[3, 7, 0], [5, 2, 4]]), torch.tensor([0, 1])
    aim = Aim(0.3, strength=2.0, regulariser=regulariser)
    parameters = list(net.parameters())
    estimate = [torch.zeros_like(p) for p in parameters]
    exact = torch.zeros((), dtype=torch.float64)
    for bits in product((0.0, 1.0), repeat=5):
        z = torch.tensor([[bits[0], bits[1], 0], bits[2:]], dtype=torch.float64)
        logits, gate = net.rationalise(tokens, 1 - z)  # u = 0 chooses, u = 1 does not
        assert torch.equal(gate.z, z)
        chance = gate.log_prob.sum().exp()
        rates = z.sum(1) / torch.tensor([2, 3]) if regulariser == "released" else (z.sum() / 5).expand(2)
        cost = F.cross_entropy(logits, y, reduction="none") + 2.0 * (rates - 0.3).abs()
        exact = exact + chance * cost.mean()
        steps = torch.autograd.grad(
            loss_of(net, tokens, y, aim, 1 - z), parameters, allow_unused=True, materialize_grads=True
        )
        estimate = [e + chance.detach() * g for e, g in zip(estimate, steps, strict=True)]
    wanted = torch.autograd.grad(exact, parameters)
    for found, right in zip(estimate, wanted, strict=True):
        torch.testing.assert_close(found, right)


@pytest.mark.parametrize("regulariser", ["paper", "released"])
def test_the_loss_of_the_relaxation_by_its_formula(regulariser):
    net = model("relaxed")
    tokens, y = TOKENS[:3], torch.tensor([0, 1, 1])
    u = torch.rand(3, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    logits, gate = net.rationalise(tokens, u)
    p = gate.expected
    rate = p.sum() / 13 if regulariser == "paper" else (p[0].sum() / 5 + p[1].sum() / 1 + p[2].sum() / 7) / 3
    wanted = F.cross_entropy(logits, y) + 0.7 * (rate - 0.2).abs()
    loss = loss_of(net, tokens, y, Aim(0.2, strength=0.7, regulariser=regulariser), u)
    torch.testing.assert_close(loss, wanted)
    gradients = torch.autograd.grad(loss, list(net.selector.parameters()))
    assert all(g.isfinite().all() for g in gradients)
    assert any((g != 0).any() for g in gradients)


def test_judge_counts_every_selected_word():
    net = model("relaxed")
    y = torch.tensor([0, 1, 1, 0])
    accuracy, rate = judge(net, TOKENS, y, size=3)
    assert accuracy == (net(TOKENS).argmax(1) == y).double().mean().item()
    assert rate == pytest.approx((net.selection(TOKENS) > 0).sum().item() / 13)


def told_by_a_word(train=80, width=8):
    n = train + 40
    draws = torch.Generator().manual_seed(0)
    x = torch.randint(4, 12, (n, width), generator=draws)
    y = torch.randint(2, (n,), generator=draws)
    x[torch.arange(n), torch.randint(width - 2, (n,), generator=draws)] = 2 + y
    x[::3, -2:] = 0
    return Dataset(
        "told", x, y, x < 4, dict(zip(("train", "val", "test"), torch.arange(n).split([train, 20, 20]), strict=True))
    )


@pytest.mark.parametrize(("kind", "samples"), [("reinforce", 3), ("relaxed", 1)])
def test_the_same_training_twice_gives_the_same_numbers(kind, samples):
    recipe = TextRecipe(learning_rate=0.01, batch=32, epochs=2, aim=Aim(0.15, samples=samples))
    size = Size(dims=8, hidden=4, state=3, cell="rcnn", dropout=0.2)

    def build():
        return Rationale(Embedding(words=12, dims=8), kind, size)

    first, second, other = (fit_text(build, told_by_a_word(), recipe, seed=seed) for seed in (1, 1, 2))
    assert first.history == second.history
    assert all(torch.equal(a, b) for a, b in zip(first.module.parameters(), second.module.parameters(), strict=True))
    assert first.history != other.history
    assert first.test_rate == second.test_rate


@pytest.mark.parametrize(("kind", "samples", "epochs"), [("reinforce", 4, 15), ("relaxed", 1, 20)])
def test_training_finds_the_word_that_tells_and_stops(kind, samples, epochs):
    data = told_by_a_word(train=320)
    rate = 0.01 if kind == "reinforce" else 0.005
    recipe = TextRecipe(learning_rate=rate, batch=40, epochs=epochs, aim=Aim(0.15, tolerance=0.05, samples=samples))
    trained = fit_text(lambda: rationale(kind=kind, words=12), data, recipe, seed=0)
    assert trained.reached and trained.test_accuracy >= 0.9
    assert len(trained.history) < epochs
    assert abs(trained.history[-1].rate - 0.15) <= 0.05
    selected = trained.module.selection(data.x) > 0
    assert (selected & data.truth).sum() / selected.sum() > 0.5  # 1 word in 8 by chance


def test_uniform_draws_are_as_wide_as_the_longest():
    assert uniform(TOKENS[:2], 3, torch.Generator()).shape == (6, 5)


def test_sizes_of_the_paper_and_records():
    net = REINFORCE.function(words=20, variant="paper")
    assert net.selector.memory.hidden_size == 30
    assert net.selector.encoder.ahead.recall.weight.shape == (200, 200)
    assert net.dropout.p == 0.2
    assert RELAXED.function(words=20).selector.numbers == 2
    assert np.isfinite(net.eval()(torch.tensor([[1, 2, 3]])).detach().numpy()).all()


def test_wrong_use_is_named():
    with pytest.raises(UsageError, match="`kind` must be one of reinforce, relaxed, got 'hard'"):
        rationale(kind="hard", words=5)
    with pytest.raises(UsageError, match="`variant` must be one of paper, fused, small, got 'big'"):
        rationale(kind="relaxed", words=5, variant="big")
    with pytest.raises(UsageError, match=r"`rate` must lie in \(0, 1\], got 0"):
        check(TextRecipe(learning_rate=0.1, aim=Aim(0)))
    with pytest.raises(UsageError, match="`samples` must be at least 1, got 0"):
        check(TextRecipe(learning_rate=0.1, aim=Aim(0.1, samples=0)))
    with pytest.raises(UsageError, match="`regulariser` must be 'paper' or 'released', got 'mine'"):
        check(TextRecipe(learning_rate=0.1, aim=Aim(0.1, regulariser="mine")))
    with pytest.raises(UsageError, match="`aim` needs a rationale model, got Linear"):
        loss_of(torch.nn.Linear(2, 2), TOKENS, torch.tensor([0, 1, 0, 1]), Aim(0.1), None)
