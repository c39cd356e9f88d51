"""The attention model against a literal one; padding, neighbours in the batch and empty rows change nothing."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from forsooth.models.attention import ATTENTION, Attention, attention, masked_softmax
from forsooth.models.gated import Rcnn
from forsooth.models.recurrent import Embedding, Encoder, OnVectors, compact, initialise, lengths_of, mirrored
from forsooth.models.train_text import TextRecipe, check, fit_text
from forsooth.records import Dataset, UsageError


def seeded(build, seed=0):
    return initialise(build(), torch.Generator().manual_seed(seed)).eval()


def model(dtype=torch.float64, words=12):
    net = seeded(lambda: Attention(Embedding(words=words, dims=5), hidden=4, keys=3))
    for parameter in net.parameters():  # zeros would hide a missing bias
        parameter.data += 0.3 * torch.sin(torch.arange(parameter.numel()).view_as(parameter) * 1.7)
    return net.to(dtype)


TOKENS = torch.tensor(
    [[3, 4, 1, 9, 2, 0, 0], [5, 0, 0, 0, 0, 0, 0], [2, 3, 2, 3, 11, 7, 6], [0] * 7, [4, 0, 4, 0, 8, 0, 0]]
)


def literal(net, ids):
    """Eqs. 2 to 5 of appendix D.1 for one document, a list of ids without padding, with torch's own two-way LSTM."""
    both = nn.LSTM(5, 4, bidirectional=True).double()
    ahead, back = net.encoder.ahead.lstm, net.encoder.back.lstm
    for name, value in ahead.named_parameters():
        getattr(both, name).data = value.data
    for name, value in back.named_parameters():
        getattr(both, name + "_reverse").data = value.data
    vectors = torch.stack([net.embedding.weight[k] if k else torch.zeros(5).double() for k in ids])
    h = both(vectors)[0]
    b = torch.stack([net.query.weight[0] @ torch.tanh(net.key.weight @ hi + net.key.bias) for hi in h])
    a = torch.exp(b) / torch.exp(b).sum()
    return net.head.weight @ (a[:, None] * h).sum(0) + net.head.bias, a


def test_against_the_equations_one_document_at_a_time():
    net = model()
    found = net.attend(TOKENS)
    for row, size in ((0, 5), (1, 1), (2, 7), (4, 5)):
        logits, weights = literal(net, TOKENS[row, :size].tolist())
        torch.testing.assert_close(found.logits[row], logits)
        torch.testing.assert_close(found.weights[row, :size], weights)
        assert (found.weights[row, size:] == 0).all()
    assert torch.equal(net(TOKENS), found.logits)
    assert torch.equal(net.attention(TOKENS), found.weights)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 11), max_size=9), min_size=1, max_size=5),
    st.integers(0, 6),
    st.sampled_from([32, 64]),
)
def test_padding_and_neighbours_change_nothing_and_weights_sum_to_1(rows, extra, bits):
    net = model(torch.float32 if bits == 32 else torch.float64)
    width = max(map(len, rows)) + extra
    tokens = torch.tensor([row + [0] * (width - len(row)) for row in rows], dtype=torch.int64).view(len(rows), width)
    logits, weights = net.attend(tokens)
    for k, row in enumerate(rows):
        alone = net.attend(torch.tensor([row], dtype=torch.int64).view(1, len(row)))
        torch.testing.assert_close(logits[k], alone.logits[0], atol=1e-5, rtol=0)
        torch.testing.assert_close(weights[k, : len(row)], alone.weights[0], atol=1e-5, rtol=0)
        assert weights[k].sum().item() == pytest.approx(1.0 if row else 0.0, abs=1e-5)
        assert (weights[k, len(row) :] == 0).all()


def test_an_empty_document_gets_the_bias_of_the_head():
    net = model()
    torch.testing.assert_close(net(TOKENS)[3], net.head.bias)
    torch.testing.assert_close(net(torch.zeros(2, 0, dtype=torch.int64)), net.head.bias.expand(2, 2))
    assert net(torch.zeros(0, 7, dtype=torch.int64)).shape == (0, 2)


def test_from_vectors_the_same_and_with_a_gradient_in_eval_mode():
    net = model()
    vectors = net.embedding(TOKENS[2:3]).detach().requires_grad_()
    torch.testing.assert_close(net.from_embedded(vectors).logits, net(TOKENS[2:3]))
    (gradient,) = torch.autograd.grad(net.from_embedded(vectors).logits[0, 1], vectors)
    step = 1e-6 * torch.sin(torch.arange(35).double()).view(1, 7, 5)
    moved = net.from_embedded(vectors + step).logits[0, 1] - net.from_embedded(vectors - step).logits[0, 1]
    torch.testing.assert_close((gradient * step).sum() * 2, moved, rtol=1e-4, atol=1e-12)
    assert torch.equal(OnVectors(net)(vectors), net.from_embedded(vectors).logits)
    lengths = lengths_of(TOKENS)
    torch.testing.assert_close(net.from_embedded(net.embedding(TOKENS), lengths).logits, net(TOKENS))


def test_masked_softmax_by_hand():
    scores = torch.tensor([[0.0, torch.log(torch.tensor(3.0)), 900.0], [1.0, 2.0, 3.0]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    torch.testing.assert_close(masked_softmax(scores, mask), torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]]))


def test_lengths_count_gaps_but_not_padding():
    assert lengths_of(TOKENS).tolist() == [5, 1, 7, 0, 5]


def test_mirrored_is_its_own_inverse_and_leaves_padding():
    x = torch.arange(10.0).view(2, 5, 1)
    once = mirrored(x, torch.tensor([3, 0]))
    assert once[..., 0].tolist() == [[2, 1, 0, 3, 4], [5, 6, 7, 8, 9]]
    assert torch.equal(mirrored(once, torch.tensor([3, 0])), x)


def test_compact_keeps_order_and_drops_the_rest():
    x = torch.arange(1.0, 9).view(2, 4, 1)
    moved, counts = compact(x, torch.tensor([[False, True, False, True], [False] * 4]))
    assert moved[..., 0].tolist() == [[2, 4], [0, 0]]
    assert counts.tolist() == [2, 0]


def test_the_recurrent_convolution_against_its_equations():
    cell = seeded(lambda: Rcnn(3, 2)).double()
    cell.bias.data += 0.2
    cell.recall.bias.data -= 0.4
    x = torch.sin(torch.arange(12).double()).view(1, 4, 3)
    w, w1, w2 = cell.read.weight.chunk(3)
    c1 = c2 = h = torch.zeros(2).double()
    for t in range(4):
        gate = 1 / (1 + torch.exp(-(w @ x[0, t] + cell.recall.weight @ h + cell.recall.bias)))
        c1, c2 = gate * c1 + (1 - gate) * (w1 @ x[0, t]), gate * c2 + (1 - gate) * (c1 + w2 @ x[0, t])
        h = torch.tanh(c2 + cell.bias)
        torch.testing.assert_close(cell(x)[0, t], h)


@pytest.mark.parametrize("cell", ["lstm", "rcnn"])
def test_encoders_do_not_see_padding(cell):
    net = seeded(lambda: Encoder(3, 2, cell=cell)).double()
    x = torch.sin(torch.arange(30).double()).view(2, 5, 3)
    lengths = torch.tensor([3, 5])
    states, final = net(x, lengths)
    noisy = x.clone()
    noisy[0, 3:] = 99
    torch.testing.assert_close(net(noisy, lengths).states[0, :3], states[0, :3])
    alone = net(x[:1, :3], torch.tensor([3]))
    torch.testing.assert_close(alone.final[0], final[0])
    torch.testing.assert_close(torch.cat([alone.states[0, 2, :2], alone.states[0, 0, 2:]]), final[0])


def test_given_vectors_are_frozen_and_padding_is_zero():
    vectors = torch.arange(8.0).view(4, 2)
    embedding = seeded(lambda: Embedding(words=4, dims=2, vectors=vectors))
    assert not list(embedding.parameters())
    assert embedding(torch.tensor([[3, 0]])).tolist() == [[[6, 7], [0, 0]]]
    net = attention(words=4, vectors=vectors)
    assert net.embedding.dims == 2


def test_sizes_of_the_paper():
    net = attention(words=50, variant="paper")
    shapes = {name: tuple(p.shape) for name, p in net.named_parameters()}
    assert shapes["embedding.weight"] == (50, 200)
    assert shapes["encoder.ahead.lstm.weight_hh_l0"] == (800, 200)
    assert (shapes["key.weight"], shapes["query.weight"], shapes["head.weight"]) == ((200, 400), (1, 200), (2, 400))
    assert ATTENTION.function(words=5)(torch.tensor([[1, 2]])).shape == (1, 2)


def test_wrong_use_is_named():
    net = model()
    with pytest.raises(UsageError, match=r"`tokens` must lie in 0 \.\. 11, got 1 \.\. 12"):
        net(torch.tensor([[1, 12]]))
    with pytest.raises(UsageError, match="`tokens` must be whole numbers"):
        net(torch.ones(2, 3))
    with pytest.raises(UsageError, match="`variant` must be one of paper, small, got 'huge'"):
        attention(words=5, variant="huge")
    with pytest.raises(UsageError, match=r"`vectors` must have shape \(3, 2\), got \(4, 2\)"):
        Embedding(words=3, dims=2, vectors=torch.zeros(4, 2))
    with pytest.raises(UsageError, match="`cell` must be one of lstm, rcnn, got 'gru'"):
        Encoder(3, 2, cell="gru")


def told_by_a_word(n=240, width=8):
    """Documents of noise with one word, 2 or 3, that tells the label."""
    draws = torch.Generator().manual_seed(0)
    x = torch.randint(4, 12, (n, width), generator=draws)
    y = torch.randint(2, (n,), generator=draws)
    x[torch.arange(n), torch.randint(width - 2, (n,), generator=draws)] = 2 + y
    x[::3, -2:] = 0
    return Dataset(
        "told", x, y, x < 4, dict(zip(("train", "val", "test"), torch.arange(n).split([160, 40, 40]), strict=True))
    )


def test_training_learns_stops_and_repeats_to_the_bit():
    state = torch.random.get_rng_state()
    recipe = TextRecipe(learning_rate=0.01, batch=32, epochs=30, stop_at=1.0)
    first, second = (fit_text(lambda: attention(words=12), told_by_a_word(), recipe, seed=1) for _ in range(2))
    assert first.reached and first.passed and first.test_accuracy >= 0.95
    assert len(first.history) < 30
    assert first.history[-1].accuracy == 1.0
    assert [e.loss for e in first.history] == [e.loss for e in second.history]
    assert all(torch.equal(a, b) for a, b in zip(first.module.parameters(), second.module.parameters(), strict=True))
    other = fit_text(lambda: attention(words=12), told_by_a_word(), recipe, seed=2)
    assert other.history[0].loss != first.history[0].loss
    assert torch.equal(state, torch.random.get_rng_state())
    assert not first.module.training


def test_a_training_that_does_not_reach_its_aim_is_begun_anew_and_told():
    recipe = TextRecipe(learning_rate=1e-6, batch=160, epochs=1, stop_at=1.0, restarts=2)
    trained = fit_text(lambda: attention(words=12), told_by_a_word(), recipe, seed=0)
    assert (trained.reached, trained.passed, trained.restarts, len(trained.attempts)) == (False, False, 2, 3)


def test_recipes_and_data_that_cannot_be():
    with pytest.raises(UsageError, match="`epochs` must be at least 1, got 0"):
        check(TextRecipe(learning_rate=0.1, epochs=0))
    with pytest.raises(UsageError, match="`learning_rate` and `clip` must be above 0, got 0"):
        check(TextRecipe(learning_rate=0))
    data, recipe = told_by_a_word(), TextRecipe(learning_rate=0.1)
    with pytest.raises(UsageError, match=r"`dataset.x` must be token ids \(n, length\), got torch.float32"):
        fit_text(lambda: attention(words=12), Dataset("f", data.x.float(), data.y, None, data.splits), recipe, seed=0)
    with pytest.raises(UsageError, match="must have a split 'val' with samples, got the splits train"):
        fit_text(
            lambda: attention(words=12),
            Dataset("s", data.x, data.y, None, {"train": data.splits["train"]}),
            recipe,
            seed=0,
        )
