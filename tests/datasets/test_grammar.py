"""The embedded reviews: by seed, of the promised length, with articles as often as in real ones."""

from collections import Counter

import pytest

from forsooth.datasets.grammar import DRAWS, GRAMMARS, LEAST, LONGEST, MOST, reviews
from forsooth.records import UsageError

ARTICLES = {"a", "an", "the"}


@pytest.fixture(scope="module")
def made():
    return reviews(600, seed=3)


def largest(grammar, symbol, *, draw, word):
    """The most that a symbol can cost when each draw costs `draw` and each word `word`."""
    if symbol not in grammar:
        return word
    return draw + max(sum(largest(grammar, s, draw=draw, word=word) for s in way) for way in grammar[symbol])


def test_same_seed_same_reviews_and_review_k_does_not_depend_on_how_many(made):
    assert reviews(5, seed=3) == made[:5]
    assert set(reviews(20, seed=4)).isdisjoint(made)
    assert len(set(made)) == len(made)


def test_length_is_within_bounds(made):
    lengths = [len(text.split()) for text in made]
    assert LEAST <= min(lengths) <= LEAST + 5
    assert MOST - 30 <= max(lengths) <= MOST


def test_no_sentence_can_be_longer_than_stated_and_draws_suffice():
    for grammar in GRAMMARS:
        assert largest(grammar, "S", draw=0, word=1) <= LONGEST
        assert largest(grammar, "S", draw=1, word=-3) < 0  # fewer than three draws a token in every sentence
    assert 2 + 3 * MOST <= DRAWS


def test_articles_are_near_8_percent_and_words_a_few_hundred(made):
    counts = Counter(token for text in made for token in text.split())
    share = sum(counts[word] for word in ARTICLES) / counts.total()
    assert 0.065 < share < 0.09
    assert 300 < len(counts) < 600


def test_an_stands_before_vowels_alone(made):
    pairs = [pair for text in made for pair in zip(text.split(), text.split()[1:], strict=False)]
    assert all((first == "an") == (second[0] in "aeiou") for first, second in pairs if first in ("a", "an"))
    assert any(first == "an" for first, _ in pairs)


def test_every_symbol_is_used_and_no_capitals_are_left(made):
    assert all(text == text.lower() for text in made)
    for grammar in GRAMMARS:
        named = {symbol for ways in grammar.values() for way in ways for symbol in way if symbol.isupper()}
        assert named | {"S"} == set(grammar)


def test_a_negative_number_is_refused():
    with pytest.raises(UsageError, match="`n` must be at least 0, got -1"):
        reviews(-1, seed=0)
