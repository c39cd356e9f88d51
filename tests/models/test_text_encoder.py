"""The transformer of text: padding changes nothing, places matter, and it is read from vectors as from tokens."""

import pytest
import torch

from forsooth.attributions.propagation import cp_lrp
from forsooth.models.on_vectors import on_vectors
from forsooth.models.recurrent import initialise
from forsooth.models.text_encoder import text_encoder, waves
from forsooth.records import UsageError
from forsooth.seeds import generator

TOKENS = torch.tensor([[3, 4, 5, 6, 0], [7, 8, 0, 0, 0], [0, 0, 0, 0, 0]])


def drawn():
    return initialise(text_encoder(words=10), generator(0, "weights")).eval()


def test_padding_changes_nothing():
    model = drawn()
    together = model(TOKENS)
    for row, length in enumerate((4, 2)):
        torch.testing.assert_close(model(TOKENS[row : row + 1, :length])[0], together[row])
        embedded = model.embedding(TOKENS[row : row + 1, :length])
        torch.testing.assert_close(on_vectors(model)(embedded)[0], together[row])
    torch.testing.assert_close(together[2], model.head.bias)
    assert model(TOKENS).isfinite().all() and (together[0] - together[1]).abs().max() > 1e-4


def test_the_order_of_words_matters():
    model = drawn()
    assert (model(TOKENS[:1, :4]) - model(TOKENS[:1, :4].flip(1))).abs().max() > 1e-6


def test_waves_are_those_of_the_paper():
    place, pair = 7, 3
    expected = torch.tensor(place / 10_000 ** (2 * pair / 16)).sin()
    assert waves(9, 16)[place, 2 * pair].item() == pytest.approx(expected.item(), abs=1e-6)


def test_relevance_goes_through_it():
    model = on_vectors(drawn())
    x = model.model.embedding(TOKENS[:1, :4])
    assert cp_lrp(model, x, torch.tensor([1])).abs().max() > 0


def test_an_unknown_size_is_refused():
    with pytest.raises(UsageError, match="`variant` must be one of paper, small"):
        text_encoder(words=5, variant="large")
