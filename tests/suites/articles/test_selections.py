"""What rationale models select, counted word by word, and the lines that no selection can beat."""

import numpy as np
import pytest
import torch
from suites.articles.small import readers

from forsooth.models import rationale
from forsooth.records import Cell, Row
from forsooth.scores.selection import optimal_dataset
from forsooth.suites.articles import selections
from forsooth.suites.articles.data import Chosen, DataSpec, Panel, Setting, dataset

pytestmark = pytest.mark.usefixtures("single")
SPEC = DataSpec(Setting("CN", sizes=(40, 6, 8), length=40), seed=1)
TEMPLATE = Row("articles", "selection", method="rationale", columns={"line": ""})
METRICS = [selections.PRECISION, selections.RECALL]


def test_selections_count_every_test_document_at_every_rate(rows):
    own = rows[rows["part"].eq("selection") & rows["metric"].eq("recall_selected")]
    assert set(own[own["kind"].eq("CN")]["rate"]) == {0.05, 0.09}
    assert set(own[own["kind"].eq("Article")]["rate"]) == {0.09}
    assert own.groupby(["kind", "model", "rate"])["sample"].nunique().eq(20).all()
    assert (own["hits"] <= own["selected"]).all() and (own["hits"] + own["misled"] <= own["selected"]).all()
    nothing = own["selected"].eq(0)
    assert set(own[nothing & own["relevant"].gt(0)]["status"]) <= {"ok"}  # a recall of 0 is a recall
    wrong = rows[rows["metric"].eq("precision_selected") & rows["selected"].eq(0)]
    assert set(wrong["status"]) <= {"undefined"} and set(wrong["message"]) <= {"nothing is selected"}
    some = own[own["relevant"] > 0]
    ratio = (some["hits"] / some["relevant"]).where(some["status"].eq("ok"), 0)
    np.testing.assert_allclose(some["value"].fillna(0), ratio)


def test_counts_of_a_selection_by_a_literal_loop():
    documents = dataset(SPEC)
    chosen = Chosen(documents, documents.dataset.splits["test"])
    z = (torch.rand(chosen.tokens.shape, generator=torch.Generator().manual_seed(0)) < 0.3) * (chosen.tokens != 0)
    rows = list(selections.selection_rows(TEMPLATE, z.float(), chosen, METRICS))
    assert len(rows) == 2 * len(chosen.rows) and {row.metric for row in rows} == set(METRICS)
    for place, row in enumerate(rows[: len(chosen.rows)]):
        hits = misled = words = relevant = 0
        for position, token in enumerate(chosen.tokens[place].tolist()):
            picked = bool(z[place, position])
            right = bool(documents.dataset.truth[chosen.rows[place], position])
            wrong = bool(documents.non_correlating[chosen.rows[place], position])
            words += token != 0
            relevant += right
            hits += picked and right
            misled += picked and wrong
        counts = {"hits": hits, "misled": misled, "words": words, "relevant": relevant}
        assert {name: row.columns[name] for name in counts} == counts
        assert row.columns["selected"] == int(z[place].sum())


def test_an_empty_selection_has_a_recall_of_zero_and_no_precision():
    documents = dataset(SPEC)
    chosen = Chosen(documents, documents.dataset.splits["test"][:1])
    none = torch.zeros(chosen.tokens.shape)
    precision, recall = selections.selection_rows(TEMPLATE, none, chosen, METRICS)
    assert (precision.status, precision.message) == ("undefined", "nothing is selected")
    assert (recall.status, recall.message, recall.value) == ("ok", "", 0.0)


def test_a_selection_in_slices_is_the_selection_at_once(monkeypatch):
    documents = dataset(SPEC)
    tokens = documents.dataset.x[:7]
    model = list(readers(len(documents.vocabulary)))[1]
    whole = rationale.selected_words(model, tokens)
    monkeypatch.setattr(rationale, "WORDS_AT_ONCE", 2 * tokens.shape[1])
    torch.testing.assert_close(rationale.selected_words(model, tokens), whole)
    assert torch.equal(whole, model.selection(tokens))


def test_a_model_below_its_gate_selects_nothing():
    trained = Cell(facts={"passed": False})
    panel = Panel("CN", "rationale_relaxed", 0, 0.05)
    cell = selections.select(trained, spec=SPEC, panel=panel, metrics=dict.fromkeys(METRICS, 1), device="cpu")
    assert [row.metric for row in cell.rows] == METRICS and not cell.tensors
    assert {(row.status, row.value, row.sample) for row in cell.rows} == {("below gate", None, -1)}


def test_no_selection_beats_the_line(rows):
    best = rows[rows["part"].eq("optimum") & rows["metric"].eq("precision_selected")]
    wide = best.pivot_table(index=["kind", "rate"], columns="line", values="value")
    assert (wide["document"] <= wide["dataset"] + 1e-12).all()


def test_the_lines_are_the_optima_of_the_test_documents():
    cell = selections.optimum(spec=SPEC, factors={"kind": "CN"})
    assert len(cell.rows) == 2 * 2 * len(selections.RATES)
    documents = dataset(SPEC)
    chosen = Chosen(documents, documents.dataset.splits["test"])
    relevant = chosen.masks()["correlating"].sum(1)
    for row in cell.rows:
        if row.columns["line"] == "dataset":
            best = optimal_dataset(row.columns["rate"], relevant, chosen.lengths)
            expected = {selections.PRECISION: best.precision, selections.RECALL: best.recall}[row.metric]
            assert row.value == expected and row.status == "ok"


def test_a_line_that_is_not_defined_says_so():
    row = selections.defined(TEMPLATE.having(value=float("nan")))
    assert (row.status, row.message) == ("no such words", "no document has such words")
    assert selections.defined(TEMPLATE.having(value=0.5)).status == "ok"
