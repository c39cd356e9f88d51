"""Masks as in the paper, written here a second time so that the scores are tested without the datasets."""

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

T = ((0, 0), (1, 0), (2, 0), (1, 1))
L = ((0, 0), (1, 0), (2, 0), (2, 1))


def pieces(size: int, block: int, placed: tuple) -> np.ndarray:
    """(size, size) picture of each (piece, row, column) of `placed`, smoothed when blocks are wide."""
    picture = np.zeros((size, size))
    for piece, row, column in placed:
        for r, c in piece:
            picture[row + r * block :, column + c * block :][:block, :block] = 1
    return gaussian_filter(picture, 1.5) if block > 3 else picture


def masks() -> dict[str, Tensor]:
    """name -> (size, size) bool: fixed T and L, and one RIGID piece, at both sizes."""
    pictures = {
        "both_64": pieces(64, 8, ((T, 8, 8), (L, 32, 40))),
        "rigid_64": pieces(64, 4, ((T, 20, 30),)),
        "both_8": pieces(8, 1, ((T, 1, 1), (L, 4, 5))),
        "rigid_8": pieces(8, 1, ((L, 2, 3),)),
    }
    return {name: torch.from_numpy(picture >= 0.05) for name, picture in pictures.items()}
