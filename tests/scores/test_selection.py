"""Scores of weights and selections of words, against loops and pencils; the optimal lines against a search."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forsooth.records import UsageError
from forsooth.scores.selection import (
    ATTR_WORDS,
    PRECISION_SELECTED,
    RECALL_SELECTED,
    attr_words,
    counts,
    frequency,
    optimal_dataset,
    optimal_document,
    others,
    peaks,
    precision_selected,
    recall_selected,
    share_on,
)

TOKENS = torch.tensor([[5, 2, 7, 2, 0, 0], [3, 9, 9, 3, 9, 3], [4, 4, 0, 0, 0, 0]])
TRUTH = torch.tensor([[0, 1, 0, 0, 1, 1], [1, 0, 0, 0, 0, 0], [0] * 6]).bool()  # padding marked in the first row
OTHER = torch.tensor([[0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 0, 1], [0] * 6]).bool()


def test_attr_by_hand_without_padding():
    attribution = torch.tensor([[1.0, -2, 0, 5, 100, 100], [0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]])
    found = attr_words(attribution, TRUTH, TOKENS)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, torch.tensor([0.25, torch.nan, torch.nan]).double(), equal_nan=True)


def test_undefined_and_huge_maps():
    attribution = torch.full((3, 6), 3e38)
    torch.testing.assert_close(attr_words(attribution, TRUTH, TOKENS)[:2], torch.tensor([0.25, 1 / 6]).double())
    attribution[1, 2] = torch.inf
    attribution[0, 5] = torch.nan  # padding: nobody reads it
    torch.testing.assert_close(
        attr_words(attribution, TRUTH, TOKENS), torch.tensor([0.25, torch.nan, torch.nan]).double(), equal_nan=True
    )


def test_a_constant_map_scores_the_frequency():
    constant = torch.full((3, 6), -0.7)
    torch.testing.assert_close(attr_words(constant, TRUTH, TOKENS)[:2], frequency(TRUTH, TOKENS)[:2])
    torch.testing.assert_close(frequency(TRUTH, TOKENS), torch.tensor([0.25, 1 / 6, 0.0]).double())
    assert frequency(TRUTH[2:], torch.zeros(1, 6, dtype=torch.int64)).isnan().all()


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_the_three_shares_sum_to_1_and_agree_with_a_loop(seed):
    draws = torch.Generator().manual_seed(seed)
    attribution = torch.randn(2, 6, generator=draws)
    tokens, truth, non = TOKENS[:2], TRUTH[:2], OTHER[:2]
    rest = others(truth, non, tokens)
    shares = [attr_words(attribution, region, tokens) for region in (truth, non, rest)]
    torch.testing.assert_close(sum(shares), torch.ones(2).double())
    for row in range(2):
        words = [k for k in range(6) if tokens[row, k] != 0]
        total = sum(abs(attribution[row, k].item()) for k in words)
        inside = sum(abs(attribution[row, k].item()) for k in words if truth[row, k])
        assert shares[0][row].item() == pytest.approx(inside / total)
    padded = torch.nn.functional.pad(attribution, (0, 3), value=9.0)
    wider = [torch.nn.functional.pad(t, (0, 3)) for t in (truth, tokens)]
    torch.testing.assert_close(attr_words(padded, *wider), shares[0], rtol=1e-12, atol=0)


def test_precision_and_recall_by_hand():
    z = torch.tensor([[0.5, 1, 0, 0, 1, 1], [0.0] * 6, [1, 0, 0, 0, 0, 0]])
    found = counts(z, TRUTH, TOKENS)
    assert [part.tolist() for part in found] == [[1, 0, 0], [2, 0, 1], [1, 1, 0], [4, 6, 2]]
    torch.testing.assert_close(
        precision_selected(z, TRUTH, TOKENS), torch.tensor([0.5, torch.nan, torch.nan]).double(), equal_nan=True
    )
    torch.testing.assert_close(
        recall_selected(z, TRUTH, TOKENS), torch.tensor([1.0, 0.0, torch.nan]).double(), equal_nan=True
    )
    z[0, 0] = torch.nan
    assert precision_selected(z, TRUTH, TOKENS)[0].isnan()
    assert counts(z > 0, TRUTH, TOKENS).selected[0] == 1  # bool selections go as well


def test_the_truth_itself_is_perfect():
    for metric in (ATTR_WORDS, PRECISION_SELECTED, RECALL_SELECTED):
        assert metric.reads == ("truth", "x")
        assert metric.function(TRUTH.float(), TRUTH, TOKENS)[:2].tolist() == [1.0, 1.0]


def test_the_optimal_lines_by_hand():
    relevant, words = torch.tensor([1, 5]), torch.tensor([10, 10])
    # budget 4 of 20 words: all four hit. Two a document: one hit in the first, two in the second
    assert optimal_dataset(0.2, relevant, words) == pytest.approx((1.0, 4 / 6))
    assert optimal_document(0.2, relevant, words) == pytest.approx((3 / 4, 3 / 6))
    # budget 8: all six hit. Four a document: one and four
    assert optimal_dataset(0.4, relevant, words) == pytest.approx((6 / 8, 1.0))
    assert optimal_document(0.4, relevant, words) == pytest.approx((5 / 8, 5 / 6))
    assert optimal_document(0.3, torch.tensor([2, 4]), torch.tensor([10, 20])) == pytest.approx((2 / 3, 1.0))
    none = optimal_dataset(0.5, torch.tensor([0]), words[:1])
    assert none.precision == 0 and none.recall != none.recall


def test_no_selection_beats_the_lines_and_one_meets_them():
    truth = torch.tensor([[1, 0, 0, 0], [1, 1, 1, 0]]).bool()
    tokens = torch.ones(2, 4, dtype=torch.int64)
    relevant, words = truth.sum(1), (tokens != 0).sum(1)
    best = {"dataset": (0.0, 0.0), "document": (0.0, 0.0)}
    for bits in product((0, 1), repeat=8):
        z = torch.tensor(bits).view(2, 4)
        found = counts(z, truth, tokens)
        if found.selected.sum() != 4:
            continue
        score = ((found.hits.sum() / 4).item(), (found.hits.sum() / 4).item())
        best["dataset"] = max(best["dataset"], score)
        if (found.selected == 2).all():
            best["document"] = max(best["document"], score)
    assert best["dataset"] == optimal_dataset(0.5, relevant, words) == (1.0, 1.0)
    assert best["document"] == optimal_document(0.5, relevant, words) == (0.75, 0.75)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(9, 30)), min_size=1, max_size=8),
    st.floats(0.01, 1.0),
)
def test_the_line_of_documents_is_never_above_that_of_the_dataset(documents, rate):
    relevant, words = (torch.tensor(column) for column in zip(*documents, strict=True))
    if not relevant.sum():
        return
    whole, each = optimal_dataset(rate, relevant, words), optimal_document(rate, relevant, words)
    assert each.precision <= whole.precision + 1e-12 <= 1 + 2e-12
    assert each.recall <= whole.recall + 1e-12 <= 1 + 2e-12


def test_wrong_use_is_named():
    with pytest.raises(UsageError, match=r"`truth` must have the shape \(n, length\) .*, got \(3, 6\) and maps"):
        attr_words(torch.ones(3, 5), TRUTH, TOKENS)
    with pytest.raises(UsageError, match=r"`tokens` must have the shape \(n, length\) .*, got \(2, 6\) and maps"):
        counts(torch.ones(3, 6), TRUTH, TOKENS[:2])
    with pytest.raises(UsageError, match=r"must be a mask of type torch.bool, got torch.int64"):
        attr_words(torch.ones(3, 6), TRUTH.long(), TOKENS)
    with pytest.raises(UsageError, match=r"`rate` must lie in \(0, 1\], got 0"):
        optimal_dataset(0, torch.tensor([1]), torch.tensor([2]))
    with pytest.raises(UsageError, match=r"must both have shape \(n,\), got \(1,\) and \(2,\)"):
        optimal_document(0.5, torch.tensor([1]), torch.tensor([2, 2]))
    with pytest.raises(UsageError, match="`relevant` must lie between 0 and `words`"):
        optimal_document(0.5, torch.tensor([3]), torch.tensor([2]))


def test_the_share_of_one_document_by_hand():
    weights, mask = torch.tensor([0.5, -1.5, 2.0, 0.0]), torch.tensor([False, True, False, True])
    assert share_on(weights, mask) == 1.5 / 4
    assert share_on(weights, mask) == attr_words(weights[None], mask[None], torch.ones(1, 4, dtype=torch.int64)).item()
    for nothing in (share_on(0 * weights, mask), share_on(weights, mask & False), share_on(weights / 0, mask)):
        assert nothing != nothing


def test_peaks_stand_above_both_neighbours():
    assert peaks(torch.tensor([2.0, 1.0, 3.0, 3.0, 0.0, 1.0])).tolist() == [True, False, False, False, False, True]
    assert peaks(torch.tensor([-1.0])).tolist() == [True]
