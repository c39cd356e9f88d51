"""Peak memory of the host of a run at 64x64 as released, with 40,000 images: all its processes together.

One panel with its three networks, each trained five times for one epoch only, and every published method; the two
that ask most (`SLOW`) explain fewer images, in a run of their own with the same networks. A process beside the run
adds up what the system says of the driver and of all below it, twice a second: resident memory, in which pages that
processes share count once for each, and proportional memory, in which they count once. The limit is for the latter.

Run: python benchmarks/memory.py [--workers 2] [--samples 256] [--trainings 5] [--device cpu]
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

LIMIT = 8.0  # GiB
SLOW = ("shapley_sampling", "pfi")
FEW = 16  # images that these explain
EVERY = 0.5  # s
ONLY = {"size": "64", "scenario": "LIN", "background": "WHITE"}


@dataclass
class Peak:
    """The most of what a run took, in bytes, together and of one process; how many processes there were, and when."""

    proportional: int = 0
    resident: int = 0
    largest: int = 0
    processes: int = 0
    after: float = 0.0

    def see(self, driver: psutil.Process, seconds: float) -> None:
        try:
            family = [driver, *driver.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        memory = []
        for process in family:
            try:
                memory.append(process.memory_full_info())
            except psutil.NoSuchProcess:  # it ended meanwhile
                continue
        together = sum(one.pss for one in memory)
        if together > self.proportional:
            self.proportional = together
            self.after = seconds
        self.resident = max(self.resident, sum(one.rss for one in memory))
        self.largest = max(self.largest, *(one.rss for one in memory), 0)
        self.processes = max(self.processes, len(memory))


def run(out: str, methods: tuple[str, ...], samples: int, workers: int, trainings: int, device: str) -> None:
    """The run, in a process of its own, with trainings of one epoch and nobody below the gate."""
    from forsooth import api
    from forsooth.models import recipes
    from forsooth.progress import Lines

    recipes.RECIPES["released", 64] = replace(recipes.RELEASED_64, epochs=1)
    settings = {"trainings": trainings, "gate": 0.0, "restarts": 0, "samples": samples}
    api.run(
        "xaitris",
        preset="released",
        only=ONLY,
        settings=settings,
        methods=methods,
        workers=workers,
        device=device,
        out=out,
        progress=Lines(),
    )


def watched(work: Callable[..., None], *arguments: object) -> Peak:
    """What a process that does this work takes at most, with all below it."""
    peak = Peak()
    driver = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    driver.start()
    root = psutil.Process(driver.pid)
    begun = time.perf_counter()
    while driver.is_alive():
        peak.see(root, time.perf_counter() - begun)
        time.sleep(EVERY)
    assert driver.exitcode == 0, f"the run ended with {driver.exitcode}"
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--samples", type=int, default=256, help="images explained")
    parser.add_argument("--trainings", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder of the runs; default: one that is gone afterwards")
    given = parser.parse_args()
    from forsooth.suites.xaitris.settings import RELEASED

    os.environ["OMP_NUM_THREADS"] = "1"  # read by processes when they begin
    fast = tuple(name for name in RELEASED.methods if name not in SLOW)
    print(f"GiB at most, {given.workers} workers, {given.device}: proportional, resident, of one process")
    peaks = []
    with tempfile.TemporaryDirectory() as scratch:
        out = given.out or Path(scratch)
        for methods, samples in ((fast, given.samples), (SLOW, FEW)):
            begun = time.perf_counter()
            rest = (str(out), methods, samples, given.workers, given.trainings, given.device)
            peak = watched(run, *rest)
            peaks.append(peak.proportional / 2**30)
            figures = f"{peaks[-1]:6.2f} {peak.resident / 2**30:6.2f} {peak.largest / 2**30:6.2f}"
            spent = f"{peak.processes} processes, {time.perf_counter() - begun:.0f} s, most after {peak.after:.0f} s"
            print(f"{len(methods)} methods, {samples} images: {figures}   {spent}", flush=True)
    print(f"peak {max(peaks):.2f} GiB, limit {LIMIT:g}: {'kept' if max(peaks) <= LIMIT else 'missed'}")


if __name__ == "__main__":
    main()
