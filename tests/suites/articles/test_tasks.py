"""The rows of a small run: ends of the scale, shares, odd documents and models below their gate."""

import numpy as np
import pandas as pd
import pytest
import torch
from suites.articles.small import TINY, ask, readers

from forsooth import api, report
from forsooth.records import Cell, Row
from forsooth.scores.selection import ATTR_WORDS
from forsooth.suites import networks
from forsooth.suites.articles import tasks
from forsooth.suites.articles.data import Chosen, DataSpec, Panel
from forsooth.suites.articles.questions import WordWeights, weigh_words
from forsooth.suites.choose import SHOWN

pytestmark = pytest.mark.usefixtures("single")
ATTR = ("attr_words", "attr_words_non_correlating", "attr_words_other")
TEMPLATE = Row("articles", "scores", columns={"frequency": None})


def scored(rows: pd.DataFrame, method: str, metric: str = "attr_words") -> pd.DataFrame:
    own = rows[rows["method"].eq(method) & rows["metric"].eq(metric) & rows["sample"].ge(0)]
    assert len(own)
    return own


def test_every_part_and_every_panel_is_there(rows, run):
    assert set(rows["part"]) == {"training", "scores", "shares", "selection", "optimum"}
    ranked = rows[rows["part"].eq("scores") & rows["metric"].eq("attr_words") & rows["sample"].ge(0)]
    assert set(ranked[ranked["model"].ne("none")]["model"]) == {"attention", "rationale_relaxed", "rationale_reinforce"}
    for (kind, model), own in ranked.groupby(["kind", "model"]):
        assert own.groupby("method")["sample"].nunique().eq(4).all(), (kind, model)
    assert (run.folder / "report.html").stat().st_size > 10_000
    assert "own_methods:raises" in set(run.leaderboard()["method"])


def test_the_oracle_scores_one_and_the_constant_map_the_frequency_exactly(rows):
    assert (scored(rows, "oracle")["value"] == 1).all()
    assert (scored(rows, "oracle", "attr_words_non_correlating")["value"] == 0).all()
    for metric in ATTR:
        own = scored(rows, "constant", metric)
        np.testing.assert_allclose(own["value"], own["frequency"], rtol=1e-12)


def test_the_three_shares_sum_to_one(rows):
    words = rows[rows["metric"].isin(ATTR) & rows["status"].eq("ok")]
    sums = words.groupby(["kind", "model", "method", "sample"])["value"].sum()
    np.testing.assert_allclose(sums, 1, rtol=1e-9)


def test_article_has_no_non_correlating_words_and_says_so_in_one_row(rows):
    own = rows[rows["kind"].eq("Article") & rows["metric"].eq("attr_words_non_correlating")]
    assert set(own["status"]) == {"no such words"} and set(own["sample"]) == {-1}
    assert own["message"].str.contains("no document has non_correlating words").all()
    assert own["frequency"].eq(0).all() and own["value"].isna().all()


def test_who_cannot_be_asked_is_skipped_with_a_reason(rows):
    skipped = rows[rows["status"].eq("skipped")]
    assert len(skipped) == 6 and skipped["message"].str.endswith(" has none").all()


def test_a_method_that_raises_is_rows_and_the_run_goes_on(rows):
    own = scored(rows, "own_methods:raises")
    assert set(own["status"]) == {"error"} and own["value"].isna().all()
    assert own["message"].str.contains("no map today").all()


def test_a_row_of_a_training_has_its_sizes_and_the_rate_it_selects(rows):
    trained = rows[rows["part"].eq("training")].set_index("model")
    assert set(trained["sizes"]) == {"150/20/20"} and set(trained["metric"]) == {"accuracy"}
    assert np.isnan(trained.loc["attention", "selected"]).all()
    assert trained.loc["rationale_relaxed", "selected"].between(0, 1).all()


def test_promises_are_checked_on_every_document(rows):
    gaps = rows[rows["metric"].eq("gap")]
    assert set(gaps["method"]) == {"integrated_gradients"} and set(gaps["part"]) == {"scores"}
    assert gaps["value"].ge(0).all() and gaps["frequency"].isna().all()


def test_a_model_below_its_gate_is_a_row_and_is_not_explained(tmp_path):
    settings = {**TINY, "gate": 1.0, "kinds": ("CN",), "epochs": 1}
    only = {"model": "attention"}
    rows = api.run("articles", methods=["gradient", "constant"], only=only, settings=settings, out=tmp_path / "r").rows
    assert set(rows[rows["metric"].eq("accuracy")]["status"]) == {"below gate"}
    assert set(rows[rows["method"].eq("gradient")]["status"]) == {"below gate"}
    assert set(rows[rows["method"].eq("constant")]["status"]) == {"no model"}


@pytest.mark.parametrize(
    ("passed", "index", "status"),
    [
        ((True, False), 0, None),
        ((True, False), 1, "below gate"),
        ((True, False), -1, None),
        ((False, False), -1, "no model"),
    ],
)
def test_who_is_not_explained_and_why(passed, index, status):
    assert networks.refusal(passed, index).get("status") == status


def test_a_network_below_its_gate_leaves_a_row_for_each_metric():
    spec = DataSpec(tasks.data.Setting("CN", sizes=(20, 4, 4), length=40))
    trained = Cell(facts={"passed": False})
    cell = tasks.explain(trained, spec=spec, index=0, ask=ask("gradient"), panel=Panel("CN", "attention", 0))
    (row,) = cell.rows
    assert (row.status, row.metric, row.sample) == ("below gate", "attr_words", -1)
    assert row.columns["frequency"] is None and np.isnan(row.value) and not cell.tensors


def test_odd_documents_are_rows_with_a_status(odd):
    chosen = Chosen(odd, torch.arange(len(odd.dataset.x)))
    model = next(readers(len(odd.vocabulary)))
    weighed = weigh_words(model, chosen, ask("gradient"))
    table = tasks.score(weighed, chosen, ["attr_words", "attr_words_non_correlating"], TEMPLATE)
    own = {row.sample: row for row in table if row.metric == "attr_words"}
    assert len(own) == len(odd.dataset.x)
    without = ~odd.dataset.truth.any(1)
    assert without.sum() >= 2
    for sample, row in own.items():
        if without[sample]:
            assert row.status == "no such words" and "no correlating words" in row.message and np.isnan(row.value)
        else:
            assert row.status == "ok" and 0 <= row.value <= 1


def by_hand(odd, failures) -> list[Row]:
    """Rows of a map of ones on two documents, with failures."""
    chosen = Chosen(odd, torch.tensor([5, 6]))
    weights = (chosen.tokens != 0).double()
    weighed = WordWeights(weights, torch.full((2,), torch.nan), failures)
    return tasks.attr_rows(ATTR_WORDS, weighed, chosen, TEMPLATE)


def test_a_failure_of_a_document_is_its_own(odd):
    failure = {"status": "error", "message": "ValueError: no"}
    rows = by_hand(odd, {1: failure})
    words = Chosen(odd, torch.tensor([5, 6]))
    shares = words.masks()["correlating"].sum(1) / words.lengths
    if float(shares[0]) > 0:
        assert rows[0].status == "ok" and rows[0].value == pytest.approx(float(shares[0]))
    if float(shares[1]) > 0:
        assert (rows[1].status, rows[1].message) == ("error", "ValueError: no") and np.isnan(rows[1].value)
    assert [row.sample for row in rows] == [5, 6]


def test_the_frequency_stands_beside_every_value(odd):
    chosen = Chosen(odd, torch.tensor([5, 6]))
    shares = chosen.masks()["correlating"].sum(1) / chosen.lengths
    for row, share in zip(by_hand(odd, {}), shares.tolist(), strict=True):
        assert row.columns["frequency"] == pytest.approx(share)


@pytest.mark.parametrize("metric, kind", list(zip(ATTR, ("correlating", "non_correlating", "other"), strict=True)))
def test_a_metric_is_about_the_words_of_its_name(metric, kind):
    assert tasks.data.WORDS[metric] == kind


def test_json_has_no_nan():
    assert tasks.plain_number(float("nan")) is None and tasks.plain_number(0.5) == 0.5


def test_the_shown_documents_have_their_words_and_articles(run):
    pictures = [line for line in report.read(run.folder).run["pictures"] if line["shows"] == "document"]
    places = sorted((line["kind"], line["place"]) for line in pictures)
    assert places == [(kind, place) for kind in ("Article", "CN") for place in range(SHOWN)]
    tensors = report.read(run.folder).pictures
    for line in pictures:
        articles = tensors[line["tensor"]]
        assert articles.shape == (2, len(line["words"])) and line["label"] in (0, 1)
        told = {word for word, there in zip(line["words"], articles[0], strict=True) if there}
        assert told == {("a", "the")[line["label"]]}


def test_every_shown_document_is_as_long_as_its_weights(run):
    shown = report.read(run.folder)
    words = {
        (line["kind"], line["place"]): len(line["words"])
        for line in shown.run["pictures"]
        if line["shows"] == "document"
    }
    weights = [line for line in shown.run["pictures"] if line["shows"] == "weights"]
    assert {line["place"] for line in weights} == set(range(SHOWN))
    for line in weights:
        assert shown.pictures[line["tensor"]].shape == (words[line["kind"], line["place"]],)
