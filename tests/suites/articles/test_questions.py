"""Odd documents: batches of one, empty and endless ones, unknown words; all models and methods of text."""

import numpy as np
import pytest
import torch
from suites.articles.small import ODD, ask, readers

from forsooth import chunks
from forsooth.attributions.intrinsic import Attends, Selects
from forsooth.datasets.articles import Setting, articles
from forsooth.datasets.texts import Documents
from forsooth.models.on_vectors import NoModel, on_vectors
from forsooth.models.recurrent import lengths_of
from forsooth.plain import from_plain, to_plain
from forsooth.suites.articles import questions
from forsooth.suites.articles.data import Chosen
from forsooth.suites.articles.questions import Ask, WordWeights, summed, weigh_words
from forsooth.suites.articles.settings import INTRINSIC, NULLS, POST_HOC

pytestmark = pytest.mark.usefixtures("single")


def weights(model, documents, rows, method) -> WordWeights:
    own = NoModel() if ask(method).null else model
    return weigh_words(own, Chosen(documents, rows), ask(method))


def can(model, method) -> bool:
    needed = {"attention": Attends, "rationale": Selects}.get(method, object)
    return isinstance(on_vectors(model), needed)


@pytest.mark.parametrize(("variant", "step"), [("small", 1), ("paper", 3)])
@pytest.mark.parametrize("method", [*INTRINSIC, *POST_HOC, *NULLS])
def test_a_batch_of_one_is_its_row_in_any_batch(odd, method, variant, step):
    """Whatever the lengths of the neighbours; random methods draw by sample or for all alike."""
    rows = torch.arange(len(odd.dataset.x))
    rows = rows[lengths_of(odd.dataset.x[rows]) < 30][::step]
    for model in readers(len(odd.vocabulary), variant):
        if not can(model, method):
            continue
        together = weights(model, odd, rows, method).weights
        for k in range(0, len(rows), 3 // step):
            alone = weights(model, odd, rows[k : k + 1], method).weights
            scale = together[k].abs().amax().clamp(min=1)
            torch.testing.assert_close(alone[0] / scale, together[k] / scale, rtol=0, atol=1e-5)


def test_what_models_say_of_themselves(odd):
    rows = torch.arange(len(odd.dataset.x))
    tokens = odd.dataset.x[rows]
    one, two, three = readers(len(odd.vocabulary))
    found = weights(one, odd, rows, "attention").weights
    np.testing.assert_allclose(found.sum(1)[1:], 1, rtol=1e-5)
    assert (found[0] == 0).all() and (found[tokens == 0] == 0).all()
    torch.testing.assert_close(found.float(), one.attention(tokens), rtol=1e-4, atol=1e-6)
    for model in (two, three):
        z = weights(model, odd, rows, "rationale").weights
        torch.testing.assert_close(z.float(), model.selection(tokens), rtol=1e-4, atol=1e-6)


def test_shapley_values_of_words_are_complete(odd):
    rows = torch.arange(1, 5)
    model = next(readers(len(odd.vocabulary)))
    for method in ("shapley_sampling", "kernel_shap"):
        found = weights(model, odd, rows, method)
        for k, row in enumerate(rows.tolist()):
            tokens = odd.dataset.x[row : row + 1]
            length = int(lengths_of(tokens))
            logits = model(tokens)[0]
            empty = model.from_embedded(torch.zeros(1, length, model.embedding.dims)).logits[0]
            target = int(logits.argmax())
            assert found.weights[k].sum().item() == pytest.approx((logits - empty)[target].item(), abs=1e-4)
        assert (found.gap < 1e-3).all()


def test_a_document_of_ten_thousand_words():
    long = Documents("long", ("the cat saw a dog . " * 1700, *("the cat saw a dog " * 3,) * 4), ODD.facts)
    made = articles(Setting("NC", sizes=(2, 1, 2), length=10_000), long, seed=0)
    row = lengths_of(made.dataset.x).argmax()[None]
    assert lengths_of(made.dataset.x[row]).item() == 10_000
    one, two, _ = readers(len(made.vocabulary))
    for model, method in ((one, "attention"), (one, "gradient"), (two, "rationale")):
        found = weigh_words(model, Chosen(made, row), ask(method))
        assert found.weights.isfinite().all() and found.failures == {}


def test_an_ask_is_the_same_json_as_ever():
    assert list(to_plain(ask("lime"))) == [
        *("method", "version", "code", "samples", "null", "metrics", "show", "keep", "seed", "device")
    ]
    assert from_plain(to_plain(ask("random")), Ask) == ask("random")


def test_documents_of_one_length_are_asked_together_and_empty_ones_never():
    lengths = torch.tensor([3, 0, 5, 3])
    assert [places.tolist() for places in chunks.of_one_length(lengths, alone=False)] == [[0, 3], [2]]
    assert [places.tolist() for places in chunks.of_one_length(lengths, alone=True)] == [[0], [2], [3]]
    assert chunks.of_one_length(torch.tensor([0, 0]), alone=False) == []


@pytest.mark.parametrize("name", ["saliency", "gradient", "smooth_grad", "smooth_grad_50", "smooth_grad_squared"])
def test_derivatives_along_a_word_do_not_cancel(name):
    maps = torch.tensor([[[1.0, -1.0], [2.0, 0.5]]])
    assert summed(maps, name).tolist() == [[2.0, 2.5]]


@pytest.mark.parametrize("name", ["gradient_x_input", "integrated_gradients", "lime", "attention", "random"])
def test_contributions_of_a_word_are_added(name):
    maps = torch.tensor([[[1.0, -1.0], [2.0, 0.5]]])
    assert summed(maps, name).tolist() == [[0.0, 2.5]]


def test_a_model_says_of_itself_what_it_has(odd):
    one, two, three = (on_vectors(model) for model in readers(len(odd.vocabulary)))
    assert isinstance(one, Attends) and not isinstance(one, Selects)
    assert all(isinstance(model, Selects) and not isinstance(model, Attends) for model in (two, three))


def test_no_model_has_one_class_and_words_of_one_dimension():
    nobody = NoModel()
    x = nobody.embedding(torch.ones(2, 5, dtype=torch.int64))
    assert x.shape == (2, 5, 1) and nobody(x).argmax(1).tolist() == [0, 0] and on_vectors(nobody) is nobody


def test_a_rationale_that_selects_nothing_has_a_gradient_of_zero(odd):
    model = list(readers(len(odd.vocabulary)))[1]
    x = torch.zeros(1, 4, model.embedding.dims, requires_grad=True)
    model.from_embedded = lambda vectors, lengths=None: (torch.ones(len(vectors), 2), None)
    on_vectors(model)(x).sum().backward()
    assert (x.grad == 0).all()


def test_a_method_that_raises_is_a_failure_of_each_document(odd):
    model = next(readers(len(odd.vocabulary)))
    raising = Ask("own_methods:raises", 1, "", None, False, {}, False, False, 0, "cpu")
    found = weigh_words(model, Chosen(odd, torch.tensor([0, 5, 6])), raising)
    assert list(found.failures) == [1, 2]  # an empty document is nobody's fault
    assert [failure["status"] for failure in found.failures.values()] == ["error", "error"]
    assert found.weights[1:].isnan().all() and found.gap.isnan().all()


def test_a_null_draws_by_the_document_and_another_seed_draws_otherwise(odd):
    rows = torch.tensor([5, 6])
    one = weights(None, odd, rows, "random").weights
    two = weights(None, odd, rows.flip(0), "random").weights
    torch.testing.assert_close(one, two.flip(0))
    assert not torch.equal(one[0][one[0] != 0][:3], one[1][one[1] != 0][:3])


def test_the_question_is_about_the_predicted_class_and_whole_words(odd):
    model = next(readers(len(odd.vocabulary)))
    chosen = Chosen(odd, torch.tensor([6]))
    question = questions.question(model, chosen, ask("lime"))
    length = int(chosen.lengths[0])
    assert question.x.shape == (1, length, model.embedding.dims)
    assert question.target.tolist() == model(chosen.tokens).argmax(1).tolist()
    players = question.game["players"]
    assert players.shape == question.x.shape[1:] and (players == torch.arange(length)[:, None]).all()
    assert question.truth[0, :, 0].tolist() == odd.dataset.truth[6, :length].tolist()
