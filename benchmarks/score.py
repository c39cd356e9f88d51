"""How long a board of 1,000 maps at 64×64 takes: python benchmarks/score.py [WORKERS].

Ten methods with maps of 100 samples each, the truth with more and more noise upon it, smooth or not; six nulls are
scored beside them. Without the earth mover's score the goal is 5 seconds, with it, within 0.001, 60 seconds on two
cores.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

import forsooth

SIDE = 64
SAMPLES = 100
METHODS = 10
GOALS = {("ima", "precision"): 5, ("emd", "ima", "precision"): 60}


def masks(drawn: np.random.Generator) -> np.ndarray:
    """A rectangle in each image, as large as the tetrominoes of XAI-TRIS."""
    truth = np.zeros((SAMPLES, SIDE, SIDE), dtype=bool)
    for mask, (top, left) in zip(truth, drawn.integers(0, SIDE - 24, (SAMPLES, 2)), strict=True):
        mask[top : top + 24, left : left + 16] = True
    return truth


def main(workers: int) -> None:
    drawn = np.random.default_rng(0)
    truth = masks(drawn)
    images = drawn.normal(size=truth.shape).astype(np.float32)
    maps = {}
    for number in range(METHODS):
        noise = gaussian_filter(drawn.normal(size=truth.shape), (0, number % 4, number % 4))
        maps[f"method_{number}"] = (truth / (1 + number) + np.abs(noise)).astype(np.float32)
    forsooth.score({"first": truth[:2]}, truth[:2], out=Path(tempfile.mkdtemp()))  # imports are paid once
    for metrics, goal in GOALS.items():
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            run = forsooth.score(maps, truth, images=images, metrics=metrics, workers=workers, out=folder, page=False)
            board = run.leaderboard()
            seconds = time.monotonic() - begun
            run.report()
            page = time.monotonic() - begun - seconds
        what = f"{METHODS * SAMPLES} maps beside {len(board) - METHODS} nulls, {', '.join(metrics)}, {workers} workers"
        print(f"{what}: board {seconds:.1f} s (goal {goal} s), page {page:.1f} s more")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
