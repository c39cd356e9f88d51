"""What rationale models select: the task that counts it, and the best that there could be."""

from collections.abc import Iterator

import torch
from torch import Tensor

from forsooth import chunks
from forsooth.datasets.articles import Articles
from forsooth.engine import task
from forsooth.models.recurrent import lengths_of
from forsooth.names import find
from forsooth.records import Cell, Row
from forsooth.scores import METRICS, selection
from forsooth.suites import explain as explaining
from forsooth.suites.articles import data
from forsooth.suites.articles.data import DataSpec, Panel
from forsooth.suites.articles.tasks import loaded

PRECISION = "precision_selected"
RECALL = "recall_selected"
WORDS_AT_ONCE = 2**16  # words in one forward of a model on tokens
RATES = tuple(k / 200 for k in range(2, 41))  # 1 % to 20 %, where the lines of Fig. 8 are drawn
LINES = {"dataset": selection.optimal_dataset, "document": selection.optimal_document}


@task("articles.select", version=1, spec="plot", panel="about")
def select(trained: Cell, *, spec: DataSpec, panel: Panel, metrics: dict[str, int], device: str) -> Cell:
    """Precision and recall of a rationale model on every test document, and what the best could do at each rate.

    Words are counted in every row, so that a reader can pool them: `hits`, `selected`, `relevant`, `misled` (selected
    non-correlating articles) and `words`.
    """
    documents = data.dataset(spec)
    template = panel.row("selection", data.source(documents), "rationale").having(line="")
    if not trained.facts["passed"]:
        below = template.having(sample=-1, status="below gate", message="the network is below its gate")
        return Cell(rows=tuple(below.having(metric=metric) for metric in metrics))
    rows = documents.dataset.splits["test"]
    tokens = documents.dataset.x[rows]
    model = loaded(trained, spec, device=device)
    size = max(1, WORDS_AT_ONCE // tokens.shape[1])
    with torch.no_grad():
        z = chunks.over(lambda part: model.selection(part), tokens.to(device), size=size).cpu()  # type: ignore[operator]
    return Cell(
        rows=tuple(selection_rows(template, z, documents, rows, list(metrics))), tensors={"weights": z, "rows": rows}
    )


def selection_rows(template: Row, z: Tensor, documents: Articles, rows: Tensor, metrics: list[str]) -> Iterator[Row]:
    """One row per metric and document for the selections z (k, length) of the documents rows (k,)."""
    reads = {"truth": data.truth(documents)[rows], "x": documents.dataset.x[rows]}
    records = [find(name, METRICS, argument="metrics") for name in metrics]
    scored = explaining.score_rows(template, z, reads, records, rows.tolist())
    for row, counts in zip(scored, word_counts(z, documents, rows) * len(metrics), strict=True):
        yield selected_or_not(row).having(**counts)


def word_counts(z: Tensor, documents: Articles, rows: Tensor) -> list[dict[str, float]]:
    """For each of the documents rows (k,), how many words of which kind the selections z (k, length) hold."""
    tokens = documents.dataset.x[rows]
    right = selection.counts(z, data.truth(documents)[rows], tokens)
    wrong = selection.counts(z, documents.non_correlating[rows], tokens)
    columns = {**right._asdict(), "misled": wrong.hits}
    table = torch.stack(list(columns.values()), dim=1).tolist()
    return [dict(zip(columns, line, strict=True)) for line in table]


def selected_or_not(row: Row) -> Row:
    """The row of a selection. One that holds no word has a recall of 0, and its precision is not defined."""
    if row.status != "zero map":
        return row
    if row.value == row.value:
        return row.having(status="ok", message="")
    return row.having(status="undefined", message="nothing is selected")


@task("articles.optimum", version=1, spec="plot", factors="about")
def optimum(*, spec: DataSpec, factors: dict[str, str]) -> Cell:
    """The two lines of Fig. 8 for the test documents of a dataset, at many rates."""
    documents = data.dataset(spec)
    rows = documents.dataset.splits["test"]
    relevant = data.truth(documents)[rows].sum(1)
    words = lengths_of(documents.dataset.x[rows])
    template = Panel(factors["kind"]).row("optimum", data.source(documents)).having(sample=-1)
    table = []
    for line, best in LINES.items():
        for rate in RATES:
            at_rate = template.having(line=line, rate=rate)
            precision, recall = best(rate, relevant, words)
            table.append(defined(at_rate.having(metric=PRECISION, value=precision)))
            table.append(defined(at_rate.having(metric=RECALL, value=recall)))
    return Cell(rows=tuple(table))


def defined(row: Row) -> Row:
    """The row, which says so where its value is not defined."""
    if row.value == row.value:
        return row
    return row.having(status="no such words", message="no document has such words")
