"""Every reproduction at the smallest scale, and its numbers and words worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from suites.articles.small import SMALL

from forsooth import api, report
from forsooth.records import UsageError
from forsooth.suites import REPRODUCTIONS
from forsooth.suites.articles import (
    SUITE,
    claims,
    reproduce_attention,
    reproduce_post_hoc,
    tables,
)

pytestmark = pytest.mark.usefixtures("single")
NAMES = ("table-1", "figure-5", "figure-7", "figure-14", "figure-15", "figure-8", "figure-16", "figure-17", "post-hoc")
WORDS = ("holds", "does not hold", "inconclusive", "agrees", "differs")


def verdicts(words: str) -> list[str]:
    return [line for line in words.splitlines() if any(f": {word}. Ours" in line for word in WORDS)]


def test_these_can_be_made_again():
    assert [record.name for record in SUITE.reproductions] == [f"articles/{name}" for name in NAMES]
    assert {record.name for record in REPRODUCTIONS} >= {f"articles/{name}" for name in NAMES}


@pytest.mark.parametrize(
    "name, lines",
    [("table-1", 8), ("figure-5", 2), ("figure-7", 2), ("figure-14", 6), ("figure-15", 8)],
)
def test_reproductions_of_attention(out, name, lines):
    settings = {**SMALL, "samples": None, "trainings": 3 if name == "table-1" else 1}
    table, words = api.reproduce(f"articles/{name}", settings=settings, out=out)
    assert len(table) == lines and len(verdicts(words)) >= 4
    if name == "table-1":
        own = table.groupby("kind")[["attr", "published"]].sum()
        np.testing.assert_allclose(own, 100, atol=0.2)  # the three kinds of words are all words
        assert "ratio of variances" in words


def test_figures_of_several_trainings_say_which(out):
    table, words = api.reproduce("articles/figure-7", settings={**SMALL, "trainings": 2}, out=out)
    assert table[["kind", "training"]].to_numpy().tolist() == [["CN", 0], ["CN", 1], ["NC", 0], ["NC", 1]]
    assert words.count("CN, training 1: ") == words.count("NC, training 1: ") == 3
    assert words.count("(one of 4 claims, corrected by Holm)") == 8  # two claims on all, one on each kind
    assert words.count("(one of 2 claims, corrected by Holm)") == 4


@pytest.mark.parametrize("name, lines", [("figure-8", 10), ("figure-16", 4), ("figure-17", 4)])
def test_reproductions_of_rationales(out, name, lines):
    settings = {**SMALL, "rates_halves": (0.09,), "rates_article": ()}
    settings = settings if name == "figure-8" else {k: v for k, v in settings.items() if not k.startswith("rates")}
    table, words = api.reproduce(f"articles/{name}", settings=settings, out=out)
    assert len(table) == lines and words.count("\n") > 4


def test_a_reproduction_is_a_run_with_a_page(out):
    folder = api.reproduction_folder("articles/figure-16", out)
    api.reproduce("articles/figure-16", settings={k: v for k, v in SMALL.items() if k[:5] != "rates"}, out=out)
    rows = pd.read_parquet(folder / "scores.parquet")
    assert set(rows["part"]) >= {"training", "selection", "documents"}
    assert (folder / "report.html").stat().st_size > 10_000
    assert report.read(folder).run["reproduction"]["name"] == "articles/figure-16"


@pytest.mark.parametrize(
    ("name", "who"),
    [("table-1", "attention model"), ("figure-5", "attention model"), ("figure-8", "rationale model"),
     ("figure-17", "rationale model"), ("post-hoc", "model")],
)  # fmt: skip
def test_models_below_their_gate_leave_nothing_to_judge(out, name, who):
    poor = {**SMALL, "gate": 1.0, "gate_reinforce": 1.0, "epochs": 1, "methods": (), "kinds": ("CN",)}
    if who == "attention model":
        poor["methods"] = ("attention",)
    with pytest.raises(UsageError, match=f"no {who} passed its gate, so there is nothing to judge. .* Left out: "):
        api.reproduce(f"articles/{name}", settings=poor, out=out / "poor")


def test_post_hoc_methods_on_the_same_models(out):
    methods = ("attention", "gradient_x_input", "occlusion", "constant", "oracle")
    settings = {**SMALL, "kinds": ("Article",), "models": ("attention",), "methods": methods, "trainings": 2}
    table, words = api.reproduce("articles/post-hoc", settings=settings, out=out)
    lines = table.set_index("method")
    assert list(lines.index.sort_values()) == sorted(methods)
    assert lines.loc["oracle", "attr"] == 1
    assert lines.loc["constant", "attr"] == pytest.approx(lines.loc["constant", "frequency"], abs=1e-3)
    assert lines.loc["occlusion", "trainings"] == 2 and lines.loc["occlusion", "sd_trainings"] >= 0
    assert "Article, attention. near 1: " in words
    assert lines.loc["occlusion", ["near_one", "far_from_one", "above_frequency"]].isin([True, False]).all()
    assert lines.loc["constant", ["near_one", "above_frequency"]].isna().all()  # it knows no model


KEY = {"kind": "CN", "model": "attention", "method": "lime"}


def test_verdicts_on_post_hoc_methods_by_hand():
    rows = pd.DataFrame({"sample": [0, 0, 1, 1], "model_seed": [0, 1, 0, 1], "value": [0.9, 1.0, 0.94, 1.0]})
    line = KEY | reproduce_post_hoc.line_of(rows.assign(frequency=0.04, status="ok"))
    assert line["attr"] == pytest.approx(0.96) and line["documents"] == 2  # documents: 0.95 and 0.97
    assert line["sd_trainings"] == pytest.approx((1 - 0.92) / 2**0.5)
    sure = {**line, "low": 0.95, "high": 0.97, "near_one": True, "far_from_one": False, "above_frequency": True}
    poor = {**line, "method": "gradient", "attr": 0.05, "low": 0.03, "high": 0.07}
    poor |= {"near_one": False, "far_from_one": True, "above_frequency": False}
    first, sentence = reproduce_post_hoc.verdicts(pd.DataFrame([sure, poor]))
    assert "(one of 2 claims, corrected by Holm)" in first
    assert "near 1: lime 0.96 [0.95, 0.97]; far from 1: gradient 0.05 [" in sentence
    assert "not surely above the frequency: gradient 0.05" in sentence


def test_one_map_near_one_by_luck_among_many_is_not_near_one():
    """Alone, 0.95 with an interval just above 0.9 is near 1; of 40 methods one has that by chance."""
    spread = np.array([-0.06, 0.0, 0.02, 0.04])
    plain = {"kind": "CN", "model": "attention", "model_seed": 0, "frequency": 0.04, "status": "ok"}

    def rows(middle, method, times=1.0):
        values = middle + times * spread
        return pd.DataFrame({**plain, "method": method, "sample": range(4), "value": values})

    alone = rows(0.97, "lucky")
    assert tables.attr_interval(alone).low > 0.9
    assert reproduce_post_hoc.sure_of(alone)["near_one"].all()
    many = pd.concat([alone, *(rows(0.85, f"m{k}") for k in range(39))])
    assert not reproduce_post_hoc.sure_of(many)["near_one"].any()
    certain = pd.concat([many, rows(0.97, "sure", 0.01)])
    assert list(reproduce_post_hoc.sure_of(certain).query("near_one").index) == [("CN", "attention", "sure")]


def test_maps_without_weight_are_counted_and_named():
    empty = pd.DataFrame(
        {"sample": [2], "model_seed": 0, "value": float("nan"), "frequency": 0.5, "status": "zero map"}
    )
    rows = pd.DataFrame({"sample": [0, 1], "model_seed": 0, "value": [0.2, 1.0], "frequency": 0.04, "status": "ok"})
    line = KEY | reproduce_post_hoc.line_of(pd.concat([rows, empty]))
    assert (line["attr"], line["attr_defined"], line["failed"]) == pytest.approx((0.4, 0.6, 1 / 3))
    assert (line["documents"], line["low"], line["high"]) == (3, 0, 1)
    (sentence,) = reproduce_post_hoc.silent(pd.DataFrame([line]))
    assert "count as 0. CN, attention, lime: 33%, without them 0.60." in sentence
    nothing = KEY | reproduce_post_hoc.line_of(empty)
    assert nothing["attr"] == 0 and nothing["failed"] == 1 and nothing["attr_defined"] != nothing["attr_defined"]
    assert not reproduce_post_hoc.silent(pd.DataFrame([{**line, "failed": 0.0}]))


def test_methods_are_listed_from_the_highest():
    table = pd.DataFrame({"method": ["a", "b"], "attr": [0.1, 0.9], "low": 0.0, "high": 1.0})
    assert reproduce_post_hoc.listed(table) == "b 0.90 [0.00, 1.00], a 0.10 [0.00, 1.00]"
    assert reproduce_post_hoc.listed(table[:0]) == "none"


def test_documents_that_lack_the_words_take_no_part():
    rows = pd.DataFrame({"sample": [0, 1, 2], "model_seed": 0, "value": [0.2, 1.0, np.nan], "frequency": 0.04})
    line = KEY | reproduce_post_hoc.line_of(rows.assign(status=["ok", "ok", "no such words"]))
    assert line["documents"] == 2 and line["attr"] == pytest.approx(0.6) and line["failed"] == 0


def counts(**columns) -> pd.DataFrame:
    return pd.DataFrame(columns)


def line_of_model(kind: str, model: str, target: float, documents: pd.DataFrame) -> dict[str, object]:
    key = {"kind": kind, "model": model, "number": 0, "target": target}
    return key | tables.line_of(documents.assign(**key))


def test_the_line_of_figure_8_by_hand():
    documents = counts(hits=[1, 2], selected=[2, 2], relevant=[1, 3], words=[10, 10], misled=[1, 0])
    line = line_of_model("CN", "rationale_relaxed", 0.2, documents)
    assert (line["kind"], line["model"], line["number"], line["target"]) == ("CN", "rationale_relaxed", 0, 0.2)
    assert line["selected"] == 0.2 and line["precision"] == 0.75 and line["recall"] == 0.75 and line["misled"] == 0.25
    assert line["best_precision_dataset"] == 1 and line["best_precision_document"] == 0.75
    assert line["precision_low"] == 0.5 and line["precision_high"] == 1  # both documents drawn twice
    assert line["on_target"] and line["best_precision_asked"] == 1 and line["silent"] == 0


def test_a_model_that_selects_nothing_has_no_precision_and_a_recall_without_an_interval():
    documents = counts(hits=[0, 0], selected=[0, 0], relevant=[1, 3], words=[10, 10], misled=[0, 0])
    line = line_of_model("Article", "rationale_reinforce", 0.1, documents)
    assert line["recall"] == 0 and np.isnan([line["precision"], line["recall_low"], line["best_recall_dataset"]]).all()
    assert np.isnan(line["articles"]) and line["silent"] == 1 and line["best_precision_asked"] == 1
    (sentence,) = claims.claims_7_1(pd.DataFrame([line]))
    assert sentence == "Article, rationale_reinforce, target 10%: selects no word, published otherwise."


def test_a_model_that_selects_all_words_is_not_optimal():
    """At the rate it selects nothing could be better, but that rate was not asked for."""
    documents = counts(hits=[1, 3], selected=[10, 10], relevant=[1, 3], words=[10, 10], misled=[0, 0])
    line = line_of_model("CN", "rationale_reinforce", 0.1, documents)
    assert line["precision"] == line["best_precision_dataset"] == 0.2 and line["best_precision_asked"] == 1
    (sentence,) = claims.claims_7_1(pd.DataFrame([line | {"kind": "Article"}]))
    otherwise = "not nearly optimal over the data set with the 100% of the words that it selects, published otherwise"
    assert otherwise in sentence
    words = claims.claims_7_2(pd.DataFrame([line]))
    assert "does not hold. Ours 0.00" in words[1] and "asked 10%, selected 100%" in words[1]
    assert "Ours 0.80" in words[2] and "single models, each alone over its documents: at 10%" in words[2]
    assert "(one of 2 claims, corrected by Holm)" in words[2]
    assert "Ours 0.00" in words[3] and "at no target" in words[3]


def test_a_model_is_judged_at_the_rate_it_selects_and_the_rate_is_told():
    documents = counts(hits=[8, 8], selected=[8, 8], relevant=[8, 8], words=[100, 100], misled=[0, 0])
    line = line_of_model("Article", "rationale_relaxed", 0.15, documents)
    (sentence,) = claims.claims_7_1(pd.DataFrame([line]))
    finding = "target 15%: nearly optimal over the data set with the 8% of the words that it selects, as published"
    assert not line["on_target"] and finding in sentence


def test_the_relaxation_of_the_lowest_rate_is_published_to_fail():
    documents = counts(hits=[7, 7], selected=[7, 7], relevant=[7, 7], words=[100, 100], misled=[0, 0])
    line = line_of_model("Article", "rationale_relaxed", 0.07, documents)
    (sentence,) = claims.claims_7_1(pd.DataFrame([line]))
    assert "target 7%: nearly optimal over the data set, published otherwise" in sentence


def test_two_kinds_of_model_are_compared_at_the_same_target():
    gaps = pd.DataFrame(
        {
            "kind": "CN",
            "target": [0.05, 0.09] * 2,
            "number": 0,
            "model": ["rationale_relaxed"] * 2 + ["rationale_reinforce"] * 2,
            "gap": [0.1, 0.2, 0.5, 0.62],
        }
    )
    (sentence,) = claims.further_by_reinforce(gaps)
    assert "(difference): " in sentence and "Ours 0.41" in sentence
    assert claims.further_by_reinforce(gaps[:2]) == []


def test_claims_on_first_words_by_hand():
    table = counts(others=[2, 4, 0], first_others=[2, 3, 0], hits=[1, 0, 2])
    first, some = claims.claims_16([("Article, rationale_relaxed", table)])
    assert "most are among the first 3 (share)" in first and "Ours 0.88" in first and "n = 2" in first
    assert "some article is selected in every document: does not hold. Ours 0.67" in some
    nothing, every = claims.claims_16([("x", table[2:])])
    assert "does not hold" in nothing and nothing.endswith("no other word is selected in any document.")
    assert "holds. Ours 1.00" in every


def test_claims_on_halves_by_hand():
    table = counts(hits=[1, 2], misled=[1, 0], selected=[2, 2], articles=[2, 4])
    exclusively, misled = claims.claims_17([("CN, rationale_relaxed", table)])
    assert "(over 0.95): holds. Ours 1.00 [1.00, 1.00], n = 2." in exclusively
    assert "Ours 0.25 [0.00, 0.50], n = 2; 50% of correlating missed." in misled
    both = list(claims.claims_17([("CN, a", table), ("NC, a", table)]))
    assert len(both) == 4 and all("(one of 2 claims, corrected by Holm)" in line for line in both)


def trainings(kind: str, values: list[float], words: str = "correlating") -> pd.DataFrame:
    return pd.DataFrame({"kind": kind, "words": words, "value": values, "frequency": 0.04})


def test_the_ratio_of_variances_is_judged_where_trainings_are_enough():
    wide = [0.0, 1.0] * 10
    narrow = [0.5, 0.51] * 10
    (sentence,) = claims.wider(pd.concat([trainings("CN", wide), trainings("Article", narrow)]))
    assert ": holds. Ours" in sentence
    (sentence,) = claims.wider(pd.concat([trainings("CN", narrow), trainings("Article", wide)]))
    assert "does not hold" in sentence
    assert claims.wider(trainings("CN", wide)) == []
    assert claims.wider(pd.concat([trainings("CN", [0, 1]), trainings("Article", [0, 1])])) == []


def test_a_line_of_table_1_is_in_percent():
    line = reproduce_attention.line_of(trainings("CN", [0.1, 0.2, 0.3]))
    assert (line["attr"], line["sd"], line["frequency"], line["trainings"]) == pytest.approx((20, 10, 4, 3))
    assert 0 <= line["low"] < 20 < line["high"] <= 100


def test_attention_far_from_one_and_above_its_frequency():
    means = pd.concat([trainings("CN", [0.1, 0.11, 0.12]), trainings("CN", [0.01, 0.02, 0.03], "non_correlating")])
    far, more, less = claims.far_from_one(means)
    assert far.startswith("CN: attention on correlating articles is far from 1 (below 0.5): holds. Ours 0.11")
    assert "get more than their frequency (excess) (one of 2 claims, corrected by Holm): holds" in more
    assert less.startswith("CN: non_correlating articles get more") and "holds" not in less.replace("does not", "")[:90]


def test_kinds_of_data_are_one_family():
    """Three kinds, each far from 1 with p = 0.02: alone each is, of three none is."""
    spread = np.array([-0.1, 0.0, 0.1])
    lucky = 0.5 - stats.t.isf(0.02, 2) * spread.std(ddof=1) / 3**0.5 + spread
    (alone, _) = claims.far_from_one(trainings("CN", lucky))
    assert "(below 0.5): holds." in alone
    lines = list(claims.far_from_one(pd.concat([trainings(kind, lucky) for kind in ("Article", "CN", "NC")])))[:3]
    assert all("(below 0.5) (one of 3 claims, corrected by Holm): inconclusive." in line for line in lines)


def published(values: dict[str, list[float]], number: float) -> list[str]:
    """The verdicts on a published number of several kinds of data, from trainings of each."""
    own = pd.concat([trainings(kind, column) for kind, column in values.items()])
    table = pd.DataFrame({"kind": list(values), "words": "correlating", "sd": 5.0, "published": number})
    other = pd.DataFrame([{"kind": "CN", "words": "other", "sd": 1.0, "published": np.nan}])
    return list(claims.beside_published(own, pd.concat([table, other]).assign(published_sd=4.0)))


def test_published_numbers_stand_beside_ours():
    (sentence,) = published({"CN": [0.15, 0.2, 0.25]}, 16.0)
    assert sentence.startswith("CN: Attr% on correlating words, in %: agrees. Ours 20.00 [7.58, 32.42], n = 3")
    assert sentence.endswith("published 16.00, spread 5.0, published 4.0.")


def test_of_several_published_numbers_one_may_lie_outside_by_chance():
    near = [0.19, 0.2, 0.21]
    assert "differs. Ours 20.00 [17.52, 22.48]" in published({"CN": near}, 17.0)[0]
    both = published({"CN": near, "NC": [0.15, 0.2, 0.25]}, 17.0)
    assert "(one of 2 claims, corrected by Holm): inconclusive. Ours 20.00 [17.52" in both[0] and "agrees" in both[1]


def one_training(kind: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            **{"kind": kind, "attr": [0.95, 0.97, 0.96], "frequency": 0.04, "articles_above_neighbours": [1.0, 0.9, 1]},
            **{"others_above_neighbours": [0.2, 0.3, 0.25], "largest_is_article": True},
        }
    )


@pytest.mark.parametrize(
    ("kind", "claim", "count"),
    [
        ("Article", "Article: Attr% of attention on articles: differs.", 4),
        ("CN", "CN: attention lies on correlating articles exclusively (over 0.9): holds.", 3),
        ("NC", "NC: Attr% is far from 1: does not hold.", 3),
    ],
)
def test_claims_on_attention_by_kind(kind, claim, count):
    sentences = list(claims.claims_of_figure([(kind, kind, one_training(kind))]))
    assert sentences[0].startswith(claim) and len(sentences) == count
    assert "articles stand out from their neighbours" in sentences[-2] and ": holds. Ours 0.72" in sentences[-2]
    assert "articles do not stand out in the document" in sentences[-1]
