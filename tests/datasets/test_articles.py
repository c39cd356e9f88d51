"""Articles tell the label, in the places that the masks say, and nothing else does."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forsooth.datasets.articles import KINDS, A, Setting, articles
from forsooth.datasets.texts import Documents, decode, generated, tokenise
from forsooth.records import UsageError

SMALL = Setting(sizes=(60, 20, 20), length=64)
THE = A + 1


def collection(*texts):
    return Documents("made", texts, {})


def literal(text, label, other, *, kind, length):
    """The construction of Fig. 6 on a list of words: new words, correlating and non-correlating places."""
    tokens = tokenise(text)[:length]
    middle = len(tokens) / 2
    correlating, non_correlating = [], []
    for place, token in enumerate(tokens):
        if token not in ("a", "an", "the"):
            continue
        first = place < middle
        if kind == "Article" or (kind == "CN" and first) or (kind == "NC" and not first):
            correlating.append(place)
            tokens[place] = "the" if label else "a"
        else:
            non_correlating.append(place)
            tokens[place] = "the" if other else "a"
    return tokens, correlating, non_correlating


@pytest.mark.parametrize("kind", KINDS)
def test_against_a_literal_construction(kind):
    source = generated(160, seed=5)
    made = articles(replace(SMALL, kind=kind), source, seed=2)
    originals = {tuple(t for t in tokenise(text)[:64] if t not in ("a", "an", "the")): text for text in source.texts}
    for row in made.dataset.splits["train"]:  # the others have words that train does not know
        tokens = decode(made.dataset.x[row], made.vocabulary)
        text = originals[tuple(t for t in tokens if t not in ("a", "the"))]
        places = made.non_correlating[row].nonzero()[:, 0].tolist()
        other = bool(places) and made.dataset.x[row, places[0]].item() == THE
        expected = literal(text, made.dataset.y[row].item(), other, kind=kind, length=64)
        assert tokens == expected[0]
        assert made.dataset.truth[row].nonzero()[:, 0].tolist() == expected[1]
        assert places == expected[2]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(KINDS))
def test_masks_are_disjoint_and_cover_exactly_the_articles(seed, kind):
    made = articles(replace(SMALL, kind=kind, sizes=(20, 5, 5)), seed=seed)
    x, truth = made.dataset.x, made.dataset.truth
    assert not (truth & made.non_correlating).any()
    assert torch.equal(truth | made.non_correlating, (x == A) | (x == THE))
    assert (made.vocabulary[A], made.vocabulary[THE]) == ("a", "the")
    assert torch.equal(x[truth], (A + made.dataset.y)[:, None].expand_as(x)[truth])
    for row, mask in zip(x, made.non_correlating, strict=True):
        assert len(row[mask].unique()) == (kind != "Article")  # one word for all of a document
    assert truth.any(1).all()
    assert made.non_correlating.any(1).all() == (kind != "Article")


def test_all_but_the_articles_is_the_same_whatever_the_label_and_the_kind():
    source = generated(130, seed=0)
    made = {kind: articles(replace(SMALL, kind=kind), source, seed=1) for kind in KINDS}
    blank = [m.dataset.x.masked_fill(m.dataset.truth | m.non_correlating, A) for m in made.values()]
    assert torch.equal(blank[0], blank[1])
    assert torch.equal(blank[0], blank[2])
    assert torch.equal(made["CN"].dataset.truth, made["NC"].non_correlating)
    assert torch.equal(made["CN"].dataset.y, made["NC"].dataset.y)
    shuffled = Documents("made", tuple(reversed(source.texts)), {})  # other texts in the same rows: the same labels
    assert torch.equal(articles(SMALL, shuffled, seed=1).dataset.y, made["CN"].dataset.y)
    assert not torch.equal(articles(SMALL, source, seed=2).dataset.y, made["CN"].dataset.y)


def test_labels_and_non_correlating_words_are_fair_and_independent():
    made = articles(Setting(kind="NC", sizes=(1500, 10, 10), length=64), seed=0)
    y, x = made.dataset.y.bool(), made.dataset.x
    other = (x * made.non_correlating).amax(1) == THE
    assert abs(y.double().mean() - 0.5) < 4 * 0.5 / len(y) ** 0.5
    assert abs(other[y].double().mean() - other[~y].double().mean()) < 4 / len(y) ** 0.5
    # words other than articles: those of both labels have the same frequencies, up to chance
    first = torch.bincount(x[y].flatten(), minlength=len(made.vocabulary))[THE + 1 :].double()
    second = torch.bincount(x[~y].flatten(), minlength=len(made.vocabulary))[THE + 1 :].double()
    often = first + second >= 50
    difference = (first / first.sum() - second / second.sum())[often]
    spread = ((first + second)[often] * 4).sqrt() / (first + second).sum()
    assert (difference.abs() / spread).square().mean() < 2


def test_frequencies_are_reported_beside_those_of_the_paper():
    made = articles(replace(SMALL, kind="CN", sizes=(400, 50, 50), length=120), seed=0)
    words = (made.dataset.x != 0).sum()
    one, two, rest = made.dataset.facts["frequency"]
    assert one == pytest.approx((made.dataset.truth.sum() / words).item())
    assert two == pytest.approx((made.non_correlating.sum() / words).item())
    assert one + two + rest == pytest.approx(1)
    assert 0.07 < one + two < 0.09
    assert made.dataset.facts["paper_frequency"] == [0.041, 0.038, 0.921]


def test_documents_that_nothing_can_tell_are_left_out_and_counted():
    texts = ("the x y a z", "a b c d", "b c d an", "no article here", "the the", "... a ! the", "a b c the")
    made = articles(Setting(sizes=(2, 1, 1), length=50), collection(*texts), seed=0)
    assert len(made.dataset.x) == 3
    facts = made.dataset.facts
    assert (facts["without_articles"], facts["articles_in_one_half"], facts["kept"]) == (1, 3, 3)
    assert facts["undecided"] == 0
    everything = articles(Setting(kind="CN", sizes=(5, 1, 1), length=50, filtered=False), collection(*texts), seed=0)
    assert len(everything.dataset.x) == 7
    assert everything.dataset.facts["undecided"] == 3  # nothing in the first half


def test_the_first_half_has_the_odd_token():
    made = articles(Setting(kind="CN", sizes=(1, 1, 1), length=9), collection(*["a b a c the"] * 3), seed=0)
    assert made.dataset.truth.tolist() == [[True, False, True, False, False]] * 3
    assert made.non_correlating.tolist() == [[False, False, False, False, True]] * 3


def test_long_documents_are_cut_before_they_are_halved_and_counted():
    made = articles(
        Setting(kind="CN", sizes=(1, 1, 1), length=10), collection("a b the " * 3334, "a the", "the b a"), seed=0
    )
    assert made.dataset.x.shape == (3, 10)
    facts = made.dataset.facts
    assert (facts["truncated"], facts["tokens_cut"]) == (1, 9992)
    longest = (made.dataset.x != 0).sum(1).argmax()
    assert not made.dataset.truth[longest, 5:].any()
    assert not made.non_correlating[longest, :5].any()


def test_words_that_train_does_not_have_are_unknown():
    texts = [f"a word{k} the" for k in range(30)]
    made = articles(Setting(sizes=(10, 10, 10), length=9), collection(*texts), seed=0)
    assert made.dataset.facts["unknown_tokens"] == 20
    assert (made.dataset.x[made.dataset.splits["train"]] != 1).all()
    assert articles(Setting(sizes=(10, 10, 10), cap=5), collection(*texts), seed=0).dataset.x.max() == 4


def test_too_few_documents_shrink_all_splits():
    made = articles(Setting(sizes=(800, 100, 100), length=64), collection(*["a b the"] * 50), seed=0)
    assert {name: len(rows) for name, rows in made.dataset.splits.items()} == {"train": 40, "val": 5, "test": 5}
    rows = torch.cat(list(made.dataset.splits.values()))
    assert rows.sort().values.tolist() == list(range(50))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("the one line a",), "at least 3 documents with an article in each half, got 1 of 1"),
        (("no article", "none", "nothing", "a then"), "got 0 of 4 in made: 3 have no article, 1 have them in one half"),
    ],
)
def test_collections_that_cannot_do_are_refused(texts, message):
    with pytest.raises(UsageError, match=message):
        articles(SMALL, collection(*texts), seed=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "XX"}, "`kind` must be one of Article, CN, NC, got 'XX'"),
        ({"sizes": (1, 0, 1)}, r"`sizes` must be three numbers of documents, at least 1 each, got \(1, 0, 1\)"),
        ({"length": 1}, "`length` must be at least 2"),
        ({"cap": 3}, "`cap` must be at least 4, got 3"),
    ],
)
def test_settings_that_cannot_be(change, message):
    with pytest.raises(UsageError, match=message):
        articles(replace(SMALL, **change), seed=0)


def test_same_seed_same_dataset():
    first, second = articles(SMALL, seed=4), articles(SMALL, seed=4)
    assert torch.equal(first.dataset.x, second.dataset.x)
    assert first.dataset.facts == second.dataset.facts
    assert not torch.equal(first.dataset.y, articles(SMALL, seed=5).dataset.y)
