"""Fig. B3: what the scores say of explanations one can name: all of the truth, a part of it, its outline."""

from dataclasses import asdict

import torch
from torch import Tensor
from torch.nn import functional as F

from forsooth.datasets.tetromino import tetromino
from forsooth.datasets.tetromino_settings import Setting
from forsooth.engine import task
from forsooth.names import find
from forsooth.records import Cell
from forsooth.scores import METRICS
from forsooth.suites import explain
from forsooth.suites.xaitris.data import Panel


def strategies(truth: Tensor) -> dict[str, Tensor]:
    """Maps one can name, for the pieces T (upper left) and L (lower right).

    truth    (side, side) bool
    returns  name -> (side, side)
    """
    upper = truth.clone()
    upper[len(truth) // 2 :] = False  # T lies in the upper half, L in the lower
    pieces = (upper, truth & ~upper)
    grown = F.max_pool2d(truth[None, None].float(), 3, stride=1, padding=1)[0, 0].bool()
    maps = {
        "truth": truth,
        "half of each piece": torch.stack([_first(piece, int(piece.sum()) // 2) for piece in pieces]).sum(0),
        "one pixel of each piece": torch.stack([_first(piece, 1) for piece in pieces]).sum(0),
        "outline": grown & ~truth,
        "one piece only": upper,
        "whole image": torch.ones_like(truth),
    }
    return {name: made.float() for name, made in maps.items()}


def _first(piece: Tensor, count: int) -> Tensor:
    """The first `count` pixels of a piece, row by row. (side, side)"""
    kept = torch.zeros_like(piece, dtype=torch.float32)
    kept.view(-1)[piece.view(-1).nonzero()[:count]] = 1
    return kept


def fixed_truth(size: int) -> Tensor:
    """The pixels of T and L, which lie in the same place in every image of LIN, MULT and XOR. (side, side) bool"""
    dataset = tetromino(Setting("LIN", "WHITE", size=size, n=100), seed=0)
    assert dataset.truth is not None
    return dataset.truth[0]


@task("xaitris.strategies")
def compare(*, size: int, metrics: list[str]) -> Cell:
    """Scores of the named strategies on the fixed truth of LIN, MULT and XOR."""
    truth = fixed_truth(size)
    maps = strategies(truth)
    panel = Panel(size, "LIN", "none", None)
    template = panel.row("strategies")
    reads = {"truth": truth.expand(len(maps), -1, -1)}
    records = [find(name, METRICS, argument="metrics") for name in metrics]
    scored = explain.score_rows(template, torch.stack(list(maps.values())), reads, records, range(len(maps)))
    names = list(maps)
    pictures = [{**asdict(panel), "method": name, "tensor": name, "kind": "strategy"} for name in names]
    rows = [row.having(method=names[row.sample or 0]) for row in scored]
    return Cell(rows=tuple(rows), tensors=maps, facts={"pictures": pictures})
