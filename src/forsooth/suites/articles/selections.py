"""What rationale models select: the task that counts it, and the best that there could be."""

import itertools
from collections.abc import Iterator

from torch import Tensor

from forsooth import scores
from forsooth.engine import task
from forsooth.models.rationale import selected_words
from forsooth.records import Cell, Row
from forsooth.scores import selection
from forsooth.suites import explain as explaining
from forsooth.suites.articles import data
from forsooth.suites.articles.data import Chosen, DataSpec, Panel
from forsooth.suites.articles.tasks import lacking, loaded

PRECISION = "precision_selected"
RECALL = "recall_selected"
RATES = tuple(k / 200 for k in range(2, 41))  # 1 % to 20 %, where the lines of Fig. 8 are drawn


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
    chosen = Chosen(documents, documents.dataset.splits["test"])
    z = selected_words(loaded(trained, spec, device=device), chosen.tokens.to(device)).cpu()
    rows = selection_rows(template, z, chosen, list(metrics))
    return Cell(rows=tuple(rows), tensors={"weights": z, "rows": chosen.rows})


def selection_rows(template: Row, z: Tensor, chosen: Chosen, metrics: list[str]) -> Iterator[Row]:
    """One row per metric and document for the selections z (k, length)."""
    masks = chosen.masks()
    reads = {"truth": masks["correlating"], "x": chosen.tokens}
    counts = selection.counts_by_kind(z, masks["correlating"], masks["non_correlating"], chosen.tokens)
    rows = explaining.score_rows(template, z, reads, scores.metrics(metrics), chosen.rows.tolist())
    for row, own in zip(rows, counts * len(metrics), strict=True):
        yield selected_or_not(row).having(own)


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
    chosen = Chosen(documents, documents.dataset.splits["test"])
    relevant = chosen.masks()["correlating"].sum(1)
    template = Panel(factors["kind"]).row("optimum", data.source(documents)).having(sample=-1)
    table: list[Row] = []
    for line, rate in itertools.product(selection.OPTIMA, RATES):
        best = selection.optimum(line, rate, relevant, chosen.lengths)
        for metric, value in zip((PRECISION, RECALL), best, strict=True):
            table.append(defined(template.having(line=line, rate=rate, metric=metric, value=value)))
    return Cell(rows=tuple(table))


def defined(row: Row) -> Row:
    """The row, which says so where its value is not defined."""
    if row.value == row.value:
        return row
    return lacking(row, "no document has such words")
