"""Tetrominoes: their shapes, places and soft edges, and the truth that follows from them."""

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d
from torch import Tensor

from forsooth.datasets.tetromino_settings import Variant

T = ((1, 0), (1, 1), (1, 0))
L = ((1, 0), (1, 0), (1, 1))
CASES = ((1, 1), (-1, -1), (1, -1), (-1, 1))  # XOR: signs of T and L; the first two are class 0
BLOCK = {8: 1, 64: 8}
RIGID_BLOCK = {8: 1, 64: 4}
SIGMA = {8: 0.0, 64: 1.5}  # of the soft edge; 8 px: no smoothing
LEVEL = 0.05


def smoother(size: int, sigma: float) -> Tensor:
    """(size, size) matrix K with K @ image @ K.T equal to scipy's gaussian_filter (reflect, truncated at 4 sigma).

    Two small matrix products are faster than a filter with 81 taps, and the reflections are in K.
    """
    kernel = np.eye(size)
    if sigma:
        kernel = gaussian_filter1d(kernel, sigma, axis=0, mode="reflect", truncate=4.0)
    return torch.from_numpy(kernel).float()


def piece(shape: tuple[tuple[int, ...], ...], *, block: int) -> Tensor:
    """(3 block, 2 block) of zeros and ones."""
    return torch.tensor(shape).float().repeat_interleave(block, 0).repeat_interleave(block, 1)


def fixed(scenario: str, *, size: int) -> Tensor:
    """(kinds, size, size) patterns with hard edges: T top left and L bottom right, or their four signed sums (XOR)."""
    block = BLOCK[size]
    pair = torch.zeros(2, size, size)
    pair[0, block : 4 * block, block : 3 * block] = piece(T, block=block)
    pair[1, 4 * block : 7 * block, 5 * block : 7 * block] = piece(L, block=block)
    if scenario == "XOR":
        return torch.einsum("kp,phw->khw", torch.tensor(CASES).float(), pair)
    return pair


def stamps(*, size: int) -> Tensor:
    """(2, 4, side, side): T and L in each quarter turn, in the top left corner of a square that holds all of them."""
    block = RIGID_BLOCK[size]
    squares = torch.zeros(2, 4, 3 * block, 3 * block)
    for kind, shape in enumerate((T, L)):
        for turns in range(4):
            turned = torch.rot90(piece(shape, block=block), turns)
            squares[kind, turns, : turned.shape[0], : turned.shape[1]] = turned
    return squares


def poses(n: int, *, size: int, positions: str, generator: torch.Generator) -> Tensor:
    """(n, 3) int: quarter turns, top row and left column, uniform over what keeps the piece inside the image."""
    longer = 3 * RIGID_BLOCK[size]
    shorter = 2 * RIGID_BLOCK[size]
    turns = torch.randint(0, 4, (n,), generator=generator)
    upright = turns % 2 == 0
    height = torch.where(upright, longer, shorter)
    width = longer + shorter - height
    room = size + int(positions == "all")  # whether the last row and column count
    down, right = torch.randint(0, 2**48, (2, n), generator=generator)
    top = down % (room - height)  # modulo 60 at most: the bias is below 1e-12
    left = right % (room - width)
    return torch.stack([turns, top, left], 1)


def moved(squares: Tensor, corners: Tensor, *, size: int, margin: int) -> Tensor:
    """(n, size, size): each square laid with the piece's corner at its row and column; what sticks out is cut off.

    squares  (n, side, side), the piece beginning `margin` pixels inside
    corners  (n, 2) row and column of the piece
    """
    n, side, _ = squares.shape
    canvas = torch.zeros(n, size + side, size + side)  # the image begins `margin` pixels inside
    rows = corners[:, :1] + torch.arange(side)  # (n, side)
    columns = corners[:, 1:] + torch.arange(side)
    image = torch.arange(n)[:, None, None]
    canvas[image, rows[:, :, None], columns[:, None, :]] = squares
    return canvas[:, margin : margin + size, margin : margin + size]


def rigid(kinds: Tensor, pose: Tensor, *, size: int, order: str) -> Tensor:
    """(n, size, size) soft patterns, each kind (n,) under its own pose (n, 3); `order` as in Variant.rigid."""
    squares = stamps(size=size)
    turns = pose[:, 0]
    corners = pose[:, 1:]
    if order == "move_then_smooth":
        return softened(moved(squares[kinds, turns], corners, size=size, margin=0), SIGMA[size])
    margin = int(4 * SIGMA[size] + 0.5)  # scipy's radius: beyond it the smoothed piece is zero
    soft = softened(torch.nn.functional.pad(squares, (margin,) * 4), SIGMA[size])
    return moved(soft[kinds, turns], corners, size=size, margin=margin)


def softened(sharp: Tensor, sigma: float) -> Tensor:
    """Square patterns (..., side, side) with soft edges."""
    kernel = smoother(sharp.shape[-1], sigma)
    return kernel @ sharp @ kernel.T


def signal(soft: Tensor, variant: Variant) -> tuple[Tensor, Tensor]:
    """What enters x, and the truth: (n, size, size) float and bool, from soft patterns (n, size, size)."""
    level: Tensor | float = LEVEL
    if variant.threshold == "relative":
        level = LEVEL * soft.abs().amax((1, 2), keepdim=True)
    truth = soft.abs() >= level
    if variant.support == "cut":
        return soft * truth, truth
    return soft, truth
