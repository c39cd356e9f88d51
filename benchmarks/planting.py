"""Pictures per second for each manipulation, on one thread, against the 200 that are asked at 224 x 224."""

import argparse
import time

import torch

from forsooth.datasets.manipulations import FIXED, Manipulation, apply

ASKED = 200
LARGEST = (  # the largest regions of the paper
    Manipulation("peripheral_blur", 10, radius=80),
    Manipulation("center_brightness", 0.3, radius=112),
    Manipulation("striped_hue", 0.25),
    Manipulation("striped_noise", 0.1),
    Manipulation("watermark", 15, top=12, bottom=211, left=12, right=211),
)


def rate(manipulation: Manipulation, x: torch.Tensor, *, repeats: int) -> float:
    """Pictures per second of processor time, the best of some repeats."""
    best = float("inf")
    for seed in range(repeats):
        start = time.process_time()
        apply(manipulation, x, seed=seed)
        best = min(best, time.process_time() - start)
    return len(x) / best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--n", type=int, default=64, help="pictures")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    bytes_ = torch.randint(0, 256, (given.n, 3, given.size, given.size), generator=torch.Generator().manual_seed(0))
    x = bytes_.float() / 255
    print(f"{given.n} pictures of {given.size} x {given.size}, one thread, best of {given.repeats}")
    print(f"{'manipulation':20} {'section 5.4':>12} {'largest':>9}   pictures/s     largest / asked")
    for fixed, largest in zip(FIXED, LARGEST, strict=True):
        rates = [rate(m, x, repeats=given.repeats) for m in (fixed, largest)]
        print(f"{fixed.name:20} {rates[0]:12.0f} {rates[1]:9.0f} {rates[1] / ASKED:30.1f}", flush=True)


if __name__ == "__main__":
    main()
