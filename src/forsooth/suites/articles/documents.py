"""Tasks of reproductions that look at words: one row for each document, from the weights that a cell kept."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from forsooth.datasets import texts
from forsooth.datasets.articles import Articles
from forsooth.engine import make_task, task
from forsooth.records import Cell, Plan, Row
from forsooth.scores.selection import kinds_selected, standing_out
from forsooth.suites.articles import data
from forsooth.suites.articles.data import Chosen, DataSpec, Panel

PART = "documents"


@dataclass(frozen=True)
class Document:
    """One document without padding: `words`, their `weights` and the mask of each of their kinds (length,)."""

    row: int
    label: int
    words: list[str]
    weights: Tensor
    kinds: Mapping[str, Tensor]


def weighed_documents(cell: Cell, documents: Articles) -> Iterator[Document]:
    """The documents whose weights a cell kept; none of a network below its gate."""
    if "weights" not in cell.tensors:
        return
    chosen = Chosen(documents, cell.tensors["rows"])
    masks = chosen.masks()
    for place, length in enumerate(chosen.lengths.tolist()):
        yield Document(
            row=int(chosen.rows[place]),
            label=int(chosen.labels[place]),
            words=texts.decode(chosen.tokens[place], documents.vocabulary),
            weights=cell.tensors["weights"][place, :length],
            kinds={kind: mask[place, :length] for kind, mask in masks.items()},
        )


def document_rows(
    cell: Cell, spec: DataSpec, panel: Panel, row_of: Callable[[Row, Document], Row], *, method: str, metric: str
) -> Cell:
    """A row for each document whose weights a cell kept."""
    documents = data.dataset(spec)
    template = panel.row(PART, data.source(documents), method).having(metric=metric)
    return Cell(rows=tuple(row_of(template, own) for own in weighed_documents(cell, documents)))


@task("articles.attention_by_document", version=1)
def attention_by_document(explained: Cell, *, spec: DataSpec, panel: Panel) -> Cell:
    """Attr% and frequency, how often an article stands out, and the word of largest weight, of each document."""
    return document_rows(explained, spec, panel, attention_row, method="attention", metric="share_on_articles")


def attention_row(template: Row, document: Document) -> Row:
    weights = document.weights.double()
    standing = standing_out(weights, **document.kinds)
    value = standing.pop("attr")
    return template.having(
        standing,
        sample=document.row,
        value=value,
        label=document.label,
        words=float(len(document.words)),
        largest=document.words[int(weights.argmax())],
    )


@task("articles.selection_by_document", version=1)
def selection_by_document(selected: Cell, *, spec: DataSpec, panel: Panel) -> Cell:
    """What is selected of what, and the text with marks, of each document."""
    return document_rows(selected, spec, panel, selection_row, method="rationale", metric="words_selected")


def selection_row(template: Row, document: Document) -> Row:
    chosen = document.weights != 0
    counts = kinds_selected(chosen, **document.kinds)
    text = texts.marked(document.words, chosen, document.kinds["correlating"], document.kinds["non_correlating"])
    value = counts.pop("selected")
    return template.having(counts, sample=document.row, value=value, text=text)


def with_documents(plan: Plan, function: Callable[..., Cell], *, of: str) -> Plan:
    """The plan, and a task for each one of the id `of` that keeps the weights of words."""
    more = []
    for own in plan.tasks:
        keeps = own.arguments.get("ask", {}).get("keep", True)  # a selection is always kept
        if own.id == of and keeps:
            arguments = {name: own.arguments[name] for name in ("spec", "panel")}
            more.append(make_task(function, arguments, [own], name=f"by document: {own.name}"))
    return replace(plan, tasks=(*plan.tasks, *more))
