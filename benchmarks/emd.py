"""Exact earth mover's distance: ours beside plain `ot.emd2` on the full cost matrix, in the same run.

CPU time of one thread. Run: python benchmarks/emd.py [maps per row at 64x64, default 2]
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import ot
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from forsooth.scores.transport import transport_cost
from forsooth.seeds import generator

TETROMINOES = {  # piece: blocks (row, column)
    "T": ((0, 0), (1, 0), (2, 0), (1, 1)),
    "L": ((0, 0), (1, 0), (2, 0), (2, 1)),
}
Maps = Callable[[int, torch.Generator], Tensor]


def picture(size: int, block: int, **corners: tuple[int, int]) -> Tensor:
    """(size, size) tetrominoes with their top left blocks at `corners`, smoothed where blocks are wide."""
    drawn = np.zeros((size, size))
    for name, (row, column) in corners.items():
        for r, c in TETROMINOES[name]:
            drawn[row + r * block :, column + c * block :][:block, :block] = 1
    return torch.from_numpy(gaussian_filter(drawn, 1.5) if block > 3 else drawn)


def uniform(shape: torch.Size) -> Maps:
    return lambda n, draw: torch.rand(n, *shape, generator=draw, dtype=torch.float64)


def noisy(signal: Tensor) -> Maps:
    return lambda n, draw: signal + 0.2 * torch.randn(n, *signal.shape, generator=draw, dtype=torch.float64)


def sparse(shape: torch.Size) -> Maps:
    return lambda n, draw: uniform(shape)(n, draw) * (uniform(shape)(n, draw) < 0.01)


def plain(maps: Tensor, truth: Tensor, cost: np.ndarray) -> Tensor:
    """(n,) from `ot.emd2` as one would call it, the full cost matrix computed once."""
    goal = (truth.double() / truth.sum()).flatten().numpy()
    shares = (maps.abs() / maps.abs().sum((1, 2), keepdim=True)).flatten(1).numpy()
    costs = [float(ot.emd2(share, goal, cost, numItermax=10_000_000)) for share in shares]
    return torch.tensor(costs, dtype=torch.float64)


def row(title: str, maps: Tensor, truth: Tensor, cost: np.ndarray) -> None:
    start = time.process_time()
    ours = transport_cost(maps, truth.expand_as(maps))
    middle = time.process_time()
    theirs = plain(maps, truth, cost)
    end = time.process_time()
    mine, other = 1e3 * (middle - start) / len(maps), 1e3 * (end - middle) / len(maps)
    difference = (ours - theirs).abs().max().item()
    print(f"{title:32} {len(maps):5d} {mine:10.3f} {other:10.3f} {other / mine:8.1f} {difference:10.1e}", flush=True)


def main() -> None:
    torch.set_num_threads(1)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    transport_cost(torch.ones(1, 8, 8), torch.ones(1, 8, 8).bool())  # the import of the solver is not counted
    small = picture(8, 1, T=(1, 1), L=(4, 5))
    fixed, rigid = picture(64, 8, T=(8, 8), L=(32, 40)), picture(64, 4, T=(20, 30))
    rows: list[tuple[str, Tensor, int, Maps]] = [
        ("8x8 uniform", small, 1000, uniform(small.shape)),
        ("8x8 noisy tetrominoes", small, 1000, noisy(small)),
        ("64x64 uniform", fixed, count, uniform(fixed.shape)),
        ("64x64 noisy tetrominoes", fixed, count, noisy(fixed)),
        ("64x64 sparse (1 %)", fixed, count, sparse(fixed.shape)),
        ("64x64 uniform, RIGID", rigid, count, uniform(rigid.shape)),
    ]
    print(f"{'maps':32} {'n':>5} {'ours, ms':>10} {'emd2, ms':>10} {'ratio':>8} {'largest difference':>10}")
    cost = np.empty((0, 0))
    for title, signal, n, maps in rows:
        if len(cost) != signal.numel():
            pixels = np.argwhere(np.ones(signal.shape)).astype(np.float64)
            cost = ot.dist(pixels, pixels, metric="euclidean")
        row(title, maps(n, generator(0, title)), signal >= 0.05, cost)


if __name__ == "__main__":
    main()
