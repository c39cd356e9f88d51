"""Time and memory of the tetromino data at the published scale, and of its smoothing against scipy's filter."""

import argparse
import multiprocessing
import resource
import time

import torch
from scipy.ndimage import gaussian_filter

from forsooth.datasets.patterns import smoother
from forsooth.datasets.tetromino import tetromino
from forsooth.datasets.tetromino_settings import BACKGROUNDS, Setting

LIMIT = 3.0  # GiB


def make(scenario: str, background: str, n: int) -> tuple[float, float, float]:
    """Seconds, peak memory and size of x, both in GiB, of one dataset at 64 x 64; for a process of its own."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    dataset = tetromino(Setting(scenario, background, size=64, n=n), seed=0)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in KiB
    return seconds, peak, dataset.x.nbytes / 2**30


def smoothing(n: int = 1000) -> float:
    """How many times faster two matrix products are than scipy's filter, at 64 x 64 and sigma 10."""
    noise = torch.randn(n, 64, 64, generator=torch.Generator().manual_seed(0))
    kernel = smoother(64, 10.0)
    start = time.process_time()
    ours = kernel @ noise @ kernel.T
    middle = time.process_time()
    theirs = torch.from_numpy(gaussian_filter(noise.numpy(), 10.0, axes=(1, 2)))
    end = time.process_time()
    assert torch.allclose(ours, theirs, atol=1e-5)
    return (end - middle) / (middle - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=40_000, help="samples")
    n = parser.parse_args().n
    torch.set_num_threads(1)
    print(f"{n:,} images at 64 x 64, one thread")
    print("scenario background  seconds  peak GiB  peak / x  peak / limit of 3 GiB")
    for scenario in ("LIN", "RIGID"):
        for background in BACKGROUNDS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:  # peak memory is counted per process
                seconds, peak, x = pool.apply(make, (scenario, background, n))
            row = f"{scenario:8} {background:10} {seconds:8.1f} {peak:9.2f} {peak / x:9.2f} {peak / LIMIT:9.2f}"
            print(row, flush=True)
    print(f"smoothing: {smoothing():.1f} times as fast as scipy.ndimage.gaussian_filter")


if __name__ == "__main__":
    main()
