"""Fig. B3: what the scores say of explanations one can name: all of the truth, a part of it, its outline."""

from dataclasses import asdict

import torch

from forsooth.datasets.hand_drawn import fixed_truth, hand_drawn
from forsooth.engine import task
from forsooth.records import Cell
from forsooth.suites import explain
from forsooth.suites.xaitris.data import Panel


@task("xaitris.strategies")
def compare(*, size: int, metrics: list[str]) -> Cell:
    """Scores of the named strategies on the fixed truth of LIN, MULT and XOR."""
    truth = fixed_truth(size)
    maps = hand_drawn(truth)
    panel = Panel(size, "LIN", "none", None)
    reads = {"truth": truth.expand(len(maps), -1, -1)}
    scored = explain.metric_rows(
        panel.row("strategies"), torch.stack(list(maps.values())), reads, metrics, range(len(maps))
    )
    names = list(maps)
    pictures = [{**asdict(panel), "method": name, "tensor": name, "kind": "strategy"} for name in names]
    rows = tuple(row.having(method=names[row.sample or 0]) for row in scored)
    return Cell(rows=rows, tensors=maps, facts={"pictures": pictures})
