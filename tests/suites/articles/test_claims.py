"""The words of the figures of articles, and the numbers in them, worked out by hand."""

import pandas as pd
import pytest
import torch

from forsooth.suites.articles import reproduce as articles_tables
from forsooth.suites.articles import reproduce_post_hoc as articles_post_hoc
from forsooth.suites.articles import reproduce_rationales as articles_rationales


def test_verdicts_on_post_hoc_methods_by_hand():
    rows = pd.DataFrame({"sample": [0, 0, 1, 1], "model_seed": [0, 1, 0, 1], "value": [0.9, 1.0, 0.94, 1.0]})
    rows = rows.assign(frequency=0.04, status="ok")
    line = articles_post_hoc.line_of(("CN", "attention", "lime"), rows)
    assert line["attr"] == pytest.approx(0.96) and line["documents"] == 2  # documents: 0.95 and 0.97
    assert line["sd_trainings"] == pytest.approx((1 - 0.92) / 2**0.5)
    sure = {**line, "low": 0.95, "high": 0.97}
    poor = {**line, "method": "gradient", "attr": 0.05, "low": 0.03, "high": 0.07}
    (said,) = articles_post_hoc.verdicts(pd.DataFrame([sure, poor]))
    assert "above 0.9): lime 0.96 [0.95, 0.97]; far" in said and "not surely above the frequency: gradient 0.05" in said


def test_maps_without_weight_are_counted_and_named():
    empty = pd.DataFrame(
        {"sample": [2], "model_seed": 0, "value": float("nan"), "frequency": 0.5, "status": "zero map"}
    )
    rows = pd.DataFrame({"sample": [0, 1], "model_seed": 0, "value": [0.2, 1.0], "frequency": 0.04, "status": "ok"})
    line = articles_post_hoc.line_of(("CN", "attention", "lime"), pd.concat([rows, empty]))
    assert (line["attr"], line["attr_defined"], line["failed"]) == pytest.approx((0.4, 0.6, 1 / 3))
    assert (line["documents"], line["low"], line["high"]) == (3, 0, 1)
    (said,) = articles_post_hoc.silent(pd.DataFrame([line]))
    assert "count as 0. CN, attention, lime: 33%, without them 0.60." in said
    nothing = articles_post_hoc.line_of(("CN", "attention", "lime"), empty)
    assert nothing["attr"] == 0 and nothing["failed"] == 1 and nothing["attr_defined"] != nothing["attr_defined"]
    assert not articles_post_hoc.silent(pd.DataFrame([{**line, "failed": 0.0}]))


def test_marks_of_a_selection_by_hand():
    chosen, right, wrong = (torch.tensor(mask, dtype=torch.bool) for mask in ([1, 0, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0]))
    text = articles_rationales.written(["a", "a", "the", "cat"], chosen, right, wrong)
    assert text == "[a] _a_ [the!] [cat]"


def test_the_line_of_figure_8_by_hand():
    counts = pd.DataFrame({"hits": [1, 2], "selected": [2, 2], "relevant": [1, 3], "words": [10, 10], "misled": [1, 0]})
    line = articles_rationales.line_of(("CN", "rationale_relaxed", 0, 0.2), counts, 0.99)
    assert line["selected"] == 0.2 and line["precision"] == 0.75 and line["recall"] == 0.75 and line["misled"] == 0.25
    assert line["best_precision_dataset"] == 1 and line["best_precision_document"] == 0.75
    assert line["precision_low"] == 0.5 and line["precision_high"] == 1  # both documents drawn twice
    assert line["on_target"] and line["best_precision_asked"] == 1


def test_a_model_that_selects_all_words_is_not_optimal():
    """At the rate it selects nothing could be better, but that rate was not asked for."""
    counts = pd.DataFrame({"hits": [1, 3], "selected": [10, 10], "relevant": [1, 3], "words": [10, 10], "misled": 0})
    line = articles_rationales.line_of(("CN", "rationale_reinforce", 0, 0.1), counts, 0.99)
    assert line["precision"] == line["best_precision_dataset"] == 0.2 and line["best_precision_asked"] == 1
    (said,) = articles_rationales.claims_7_1(pd.DataFrame([line | {"kind": "Article"}]))
    assert (
        "not nearly optimal over the data set with the 100% of the words that it selects, published otherwise" in said
    )
    words = articles_rationales.claims_7_2(pd.DataFrame([line]))
    assert "does not hold. Ours 0.00" in words[1] and "asked 10%, selected 100%" in words[1]
    assert "asked for: cannot be told. Ours 0.80" in words[2] and "single models, over documents: at 10%" in words[2]
    assert "it selects: cannot be told. Ours 0.00" in words[3] and "at no target" in words[3]


def test_a_model_is_judged_at_the_rate_it_selects_and_the_rate_is_told():
    counts = pd.DataFrame({"hits": [8, 8], "selected": [8, 8], "relevant": [8, 8], "words": [100, 100], "misled": 0})
    line = articles_rationales.line_of(("Article", "rationale_relaxed", 0, 0.15), counts, 0.99)
    (said,) = articles_rationales.claims_7_1(pd.DataFrame([line]))
    told = "target 15%: nearly optimal over the data set with the 8% of the words that it selects, as published"
    assert not line["on_target"] and told in said


def test_peaks_and_verdicts_by_hand():
    assert articles_tables.peaks(torch.tensor([1.0, 2.0, 2.0])).tolist() == [False, False, False]
    wide, narrow = pd.Series([0.0, 1.0] * 10), pd.Series([0.5, 0.51] * 10)
    assert "holds" in articles_tables.wider(wide, narrow) and "does not hold" in articles_tables.wider(narrow, wide)


def test_models_below_their_gate_are_named():
    trained = pd.DataFrame(
        {
            **{"kind": ["CN", "CN", "NC"], "model": ["rationale_relaxed", "rationale_relaxed", "attention"]},
            **{"rate": [0.05, 0.07, None], "value": [0.493, 1.0, 0.81], "selected": [0.0, 0.07, None]},
            "status": ["below gate", "ok", "below gate"],
        }
    )
    assert articles_tables.left_out(trained) == (
        " Left out: CN, rationale_relaxed asked for 5% of the words (accuracy 49%, selects 0.0%); "
        "NC, attention (accuracy 81%)."
    )
    assert articles_tables.left_out(trained[1:2]) == ""
