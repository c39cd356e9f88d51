"""Rows for each document: where attention peaks, and what a rationale takes, worked out by hand."""

import numpy as np
import pytest
import torch
from suites.articles.small import SMALL

from forsooth.datasets import texts
from forsooth.engine import make_task
from forsooth.records import Cell, Choice, Plan, Row
from forsooth.scores.selection import share_of
from forsooth.settings import changed
from forsooth.suites.articles import documents, selections
from forsooth.suites.articles.data import Chosen, DataSpec, Panel, Setting, dataset
from forsooth.suites.articles.documents import Document
from forsooth.suites.articles.reproduce_attention import plan_figure
from forsooth.suites.articles.reproduce_selections import plan_selections
from forsooth.suites.articles.settings import PAPER

pytestmark = pytest.mark.usefixtures("single")
TEMPLATE = Row("articles", documents.PART)
SPEC = DataSpec(Setting("CN", sizes=(40, 6, 8), length=40), seed=1)
PANEL = Panel("CN", "attention", 0)


def document(weights: list[float]) -> Document:
    """ "a cat a dog the", of which the first two articles tell the label and the last does not."""
    correlating = torch.tensor([1, 0, 1, 0, 0], dtype=torch.bool)
    non_correlating = torch.tensor([0, 0, 0, 0, 1], dtype=torch.bool)
    kinds = {"correlating": correlating, "non_correlating": non_correlating, "other": ~correlating & ~non_correlating}
    return Document(7, 1, ["a", "cat", "a", "dog", "the"], torch.tensor(weights), kinds)


def test_attention_on_a_document_by_hand():
    row = documents.attention_row(TEMPLATE, document([0.4, 0.1, 0.05, 0.15, 0.3]))
    assert (row.sample, row.columns["label"], row.columns["words"], row.columns["articles"]) == (7, 1, 5, 2)
    assert row.value == pytest.approx(0.45) and row.columns["attr_non_correlating"] == pytest.approx(0.3)
    assert row.columns["frequency"] == 0.4
    assert row.columns["articles_above_neighbours"] == 0.5  # the first, and not the one between cat and dog
    assert row.columns["others_above_neighbours"] == 0
    assert (row.columns["largest"], row.columns["largest_is_article"]) == ("a", 1)


def test_the_largest_weight_on_another_word_is_not_on_an_article():
    row = documents.attention_row(TEMPLATE, document([0.1, 0.6, 0.1, 0.1, 0.1]))
    assert (row.columns["largest"], row.columns["largest_is_article"]) == ("cat", 0)


def test_a_share_of_no_words_is_not_defined():
    assert np.isnan(share_of(torch.tensor([True, False]), torch.tensor([False, False])))
    assert share_of(torch.tensor([True, False]), torch.tensor([True, True])) == 0.5


def test_marks_of_a_selection_by_hand():
    own = document([1.0, 0.0, 0.0, 0.5, 1.0])
    marked = texts.marked(own.words, own.weights != 0, own.kinds["correlating"], own.kinds["non_correlating"])
    assert marked == "[a] cat _a_ [dog] [the!]"


def test_a_selection_on_a_document_by_hand():
    row = documents.selection_row(TEMPLATE, document([1.0, 0.2, 0.0, 0.5, 1.0]))
    assert row.value == 4 and row.columns["text"] == "[a] [cat] _a_ [dog] [the!]"
    counts = {name: row.columns[name] for name in ("articles", "hits", "misled", "others", "first_others")}
    assert counts == {"articles": 2, "hits": 1, "misled": 1, "others": 2, "first_others": 1}


def test_counts_are_of_one_type_with_those_of_other_rows():
    row = documents.selection_row(TEMPLATE, document([1.0, 0.0, 0.0, 0.0, 0.0]))
    assert all(isinstance(row.columns[name], float) for name in ("hits", "misled"))  # a table has one type a column
    attention = documents.attention_row(TEMPLATE, document([1.0, 0.0, 0.0, 0.0, 0.0]))
    assert isinstance(attention.columns["words"], float)


def kept(weights: torch.Tensor, rows: torch.Tensor) -> Cell:
    return Cell(tensors={"weights": weights, "rows": rows})


def test_documents_come_without_their_padding():
    own = dataset(SPEC)
    chosen = Chosen(own, own.dataset.splits["test"])
    cell = kept(torch.rand(chosen.tokens.shape), chosen.rows)
    found = list(documents.weighed_documents(cell, own))
    assert [one.row for one in found] == chosen.rows.tolist()
    for one, length in zip(found, chosen.lengths.tolist(), strict=True):
        correlating = one.kinds["correlating"].tolist()
        assert len(one.words) == len(one.weights) == len(correlating) == length
        told = {word for word, there in zip(one.words, correlating, strict=True) if there}
        assert told <= {("a", "the")[one.label]}


def test_a_cell_without_weights_leaves_no_rows():
    assert documents.attention_by_document(Cell(), spec=SPEC, panel=PANEL).rows == ()
    assert documents.selection_by_document(Cell(), spec=SPEC, panel=PANEL).rows == ()


def test_rows_carry_their_panel():
    own = dataset(SPEC)
    rows = own.dataset.splits["test"][:2]
    cell = kept(torch.rand(2, own.dataset.x.shape[1]), rows)
    for function, method in (
        (documents.attention_by_document, "attention"),
        (documents.selection_by_document, "rationale"),
    ):
        table = function(cell, spec=SPEC, panel=PANEL).rows
        assert [row.sample for row in table] == rows.tolist()
        assert {(row.part, row.model, row.method, row.columns["kind"]) for row in table} == {
            ("documents", "attention", method, "CN")
        }


def test_every_task_that_keeps_weights_is_followed_by_one_that_reads_them():
    settings = changed(PAPER, {**SMALL, "methods": ("attention", "gradient", "random"), "kinds": ("CN",)})
    plan = plan_figure(settings, Choice())
    readers = [task for task in plan.tasks if task.id == "articles.attention_by_document"]
    by_key = {task.key: task for task in plan.tasks}
    needed = [by_key[task.needs[0]] for task in readers]
    assert [task.name for task in needed] == ["explain: attention, attention 0, CN"]
    assert readers[0].arguments == {name: needed[0].arguments[name] for name in ("spec", "panel")}
    assert plan.tasks[-1] is readers[-1]


def test_every_selection_is_followed_by_a_task_that_reads_it():
    settings = changed(PAPER, {**SMALL, "methods": (), "kinds": ("CN",)})
    plan = plan_selections(settings, Choice())
    ids = [task.id for task in plan.tasks]
    assert ids.count("articles.selection_by_document") == ids.count("articles.select") == 4


def test_a_plan_without_such_tasks_stays_as_it_is():
    plan = Plan(tasks=(make_task(selections.optimum, {"spec": SPEC, "factors": {"kind": "CN"}}, name="lines"),))
    assert documents.with_documents(plan, documents.selection_by_document, of="articles.select") == plan
