"""Explanations of the fixed tetrominoes that one can name: all of the truth, a part of it, its outline."""

import torch
from torch import Tensor
from torch.nn import functional as F

from forsooth.datasets.tetromino import tetromino
from forsooth.datasets.tetromino_settings import Setting


def hand_drawn(truth: Tensor) -> dict[str, Tensor]:
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
