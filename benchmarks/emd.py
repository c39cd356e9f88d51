"""Earth mover's distance, exact and between proven bounds, beside plain `ot.emd2` on the full cost matrix.

Processor time of one thread, in turn; the bounds must hold on every map and be within 0.001 of the score. Maps of nine
kinds at 64x64, four of them of a perceptron trained for a moment.

With cores: milliseconds of wall time a map, by one process while the others wait and by all, as in a run with so many
workers. With threads: the same for threads of one process; the bounds must not differ by a bit.

Run: python benchmarks/emd.py [maps per row at 64x64, default 2], python benchmarks/emd.py --cores 16 [maps, 256] or
python benchmarks/emd.py --threads 16 [maps, 320]
"""

import argparse
import importlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from scipy.spatial.distance import cdist
from torch import Tensor

from forsooth.attributions import METHODS
from forsooth.datasets.tetromino import tetromino
from forsooth.datasets.tetromino_settings import Setting
from forsooth.models.small import MLP
from forsooth.names import find
from forsooth.records import Dataset
from forsooth.scores.bounds import transport_bounds
from forsooth.scores.transport import farthest, transport_cost
from forsooth.seeds import generator

TETROMINOES = {  # piece: blocks (row, column)
    "T": ((0, 0), (1, 0), (2, 0), (1, 1)),
    "L": ((0, 0), (1, 0), (2, 0), (2, 1)),
}
Maps = Callable[[int, torch.Generator], Tensor]
AT_ONCE = 8  # maps that one process is asked for
ALONE = 4  # so many times, while the others wait
ALLOWED = 1e-3  # of the score


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
    ot = importlib.import_module("ot")  # here, since processes that only bound need no more of it than its solver
    costs = [float(ot.emd2(share, goal, cost, numItermax=10_000_000)) for share in shares]
    return torch.tensor(costs, dtype=torch.float64)


def normal(shape: torch.Size) -> Maps:
    return lambda n, draw: torch.randn(n, *shape, generator=draw, dtype=torch.float64)


def smooth(shape: torch.Size) -> Maps:
    return lambda n, draw: torch.from_numpy(gaussian_filter(normal(shape)(n, draw).numpy(), (0, 3, 3)))


def trained(data: Dataset) -> torch.nn.Module:
    """A perceptron after sixty steps: its maps look like those of a network, however well it does."""
    torch.manual_seed(0)
    model = MLP.function(size=64, variant="released")
    adam = torch.optim.Adam(model.parameters(), 1e-3)
    for batch in torch.arange(len(data.x)).repeat(6).split(len(data.x) // 10):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(model(data.x[batch]), data.y[batch]).backward()
        adam.step()
    return model.eval()


def explained(data: Dataset, n: int) -> dict[str, Tensor]:
    """name -> (n, 64, 64) maps of the first n images; their truth is that of the data."""
    model = trained(data)
    made = {}
    for name in ("saliency", "integrated_gradients", "smooth_grad", "lime_25"):
        draws = [generator(0, name, i) for i in range(n)]
        given = {"background": data.x[:50], "generators": draws, "generator": draws[0]}
        made[name] = find(name, METHODS, argument="methods")(model, data.x[:n], data.y[:n], **given).sum(1).double()
    return made


def row(title: str, maps: Tensor, truth: Tensor, cost: np.ndarray) -> None:
    largest = farthest(truth.shape[1:], "largest")
    start = time.process_time()
    ours = transport_cost(maps, truth)
    exact_done = time.process_time()
    bounds = transport_bounds(maps, truth, tolerance=ALLOWED * largest)
    bounds_done = time.process_time()
    theirs = torch.cat([plain(one[None], mask, cost) for one, mask in zip(maps, truth, strict=True)])
    end = time.process_time()
    assert (bounds[:, 0] <= theirs + 1e-9).all() and (theirs <= bounds[:, 1] + 1e-9).all(), title
    spent = 1e3 * np.diff([start, exact_done, bounds_done, end]) / len(maps)
    proven = ((bounds[:, 1] - bounds[:, 0]) / (2 * largest)).max().item()
    missed = ((bounds.mean(1) - theirs).abs() / largest).max().item()
    assert proven <= ALLOWED, title
    figures = f"{spent[0]:9.2f} {spent[1]:9.2f} {spent[2]:9.1f} {spent[2] / spent[0]:7.1f} {spent[2] / spent[1]:7.0f}"
    print(f"{title:32} {figures} {(ours - theirs).abs().max().item():8.0e} {proven:8.1e} {missed:8.1e}", flush=True)


def kinds_of(signal: Tensor, scenario: str, n: int) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Name, maps and truths of nine kinds at 64x64: five drawn, with the mask of the signal, and four of a network."""
    mask = signal >= 0.05
    kinds = {"uniform": uniform, "normal": normal, "smooth": smooth, "sparse (1 %)": sparse}
    drawn = {name: kind(signal.shape)(n, generator(0, name)) for name, kind in kinds.items()}
    drawn["noisy truth"] = noisy(signal)(n, generator(0, "noisy"))
    for name, maps in drawn.items():
        yield f"{int(mask.sum())} pixels, {name}", maps, mask.expand_as(maps)
    data = tetromino(Setting(scenario, "WHITE", size=64, n=1000), seed=0)
    assert data.truth is not None
    for name, maps in explained(data, n).items():
        yield f"{scenario}, {name}", maps, data.truth[:n]


def all_kinds(n: int) -> Iterator[tuple[str, Tensor, Tensor]]:
    """The nine kinds with a large and with a small mask."""
    yield from kinds_of(picture(64, 8, T=(8, 8), L=(32, 40)), "LIN", n)
    yield from kinds_of(picture(64, 4, T=(20, 30)), "RIGID", n)


def distances(size: int) -> np.ndarray:
    pixels = np.argwhere(np.ones((size, size))).astype(np.float64)
    return cdist(pixels, pixels)


def in_threads(threads: int, count: int) -> None:
    """Wall time a map of many maps with one mask, and with masks that all differ."""
    print(f"{count} maps, threads: {'one':>12} {threads:>9}")
    warm = torch.ones(1, 8, 8)
    transport_bounds(warm, warm.bool(), tolerance=1.0)  # the import of the solver is not counted
    largest = farthest((64, 64), "largest")
    signal = picture(64, 8, T=(8, 8), L=(32, 40)) >= 0.05
    rigid = tetromino(Setting("RIGID", "WHITE", size=64, n=1000), seed=0).truth
    assert rigid is not None
    for name, truth in (("862 pixels", signal.expand(count, 64, 64)), ("RIGID", rigid.repeat(2, 1, 1)[:count])):
        maps = torch.cat([kind(signal.shape)(-(-count // 3), generator(0, name)) for kind in (uniform, normal, smooth)])
        spent = []
        found = []
        for number in (1, threads):
            start = time.perf_counter()
            found.append(transport_bounds(maps[:count], truth, tolerance=ALLOWED * largest, threads=number))
            spent.append(1e3 * (time.perf_counter() - start) / count)
        assert torch.equal(*found), name
        print(
            f"{name:24} {spent[0]:9.2f} {spent[1]:9.2f} ms a map, {spent[0] / spent[1]:.1f} times as fast", flush=True
        )


def on_cores(cores: int, count: int) -> None:
    """Wall time a map of maps of every kind: by one process, and spread over processes of one thread each."""
    os.environ["OMP_NUM_THREADS"] = "1"  # read by processes when they begin
    torch.set_num_threads(cores)  # the maps are made here
    print(f"{count} maps of a kind, ms a map {'one core':>13} {f'{cores} cores':>9} {'times':>6} {'proven':>8}")
    walls = []
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn"), initializer=warm_up) as pool:
        for title, maps, truth in all_kinds(count):
            parts = list(zip(maps.split(AT_ONCE), truth.split(AT_ONCE), strict=True))
            if not walls:
                list(pool.map(bounds_of, parts[:1] * 4 * cores))  # all processes have begun
            alone = np.mean([wall(pool, parts[k : k + 1])[0] for k in range(min(ALONE, len(parts)))])
            together, bounds = wall(pool, parts)
            walls.append(together)
            proven = np.diff(bounds / farthest((64, 64), "largest")).max() / 2
            assert 0 <= proven <= ALLOWED, title
            print(f"{title:32} {alone:9.2f} {together:9.3f} {alone / together:6.1f} {proven:8.1e}", flush=True)
    print(f"all {len(walls)} kinds: {np.mean(walls):.3f} ms a map on {cores} cores, at most {max(walls):.3f}")


def wall(pool: ProcessPoolExecutor, parts: list[tuple[Tensor, Tensor]]) -> tuple[float, np.ndarray]:
    """Milliseconds of wall time a map until all parts are done, and their bounds."""
    start = time.perf_counter()
    bounds = np.concatenate(list(pool.map(bounds_of, parts)))
    return 1e3 * (time.perf_counter() - start) / len(bounds), bounds


def warm_up() -> None:
    torch.set_num_threads(1)
    transport_bounds(torch.ones(1, 8, 8), torch.ones(1, 8, 8).bool(), tolerance=1.0)  # imports the solver


def bounds_of(part: tuple[Tensor, Tensor]) -> np.ndarray:
    """The bounds (n, 2) of some maps with their truths."""
    return transport_bounds(*part, tolerance=ALLOWED * farthest((64, 64), "largest")).numpy()


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("maps", type=int, nargs="?")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--cores", type=int)
    given = parser.parse_args()
    if given.cores is not None:
        on_cores(given.cores, given.maps or 256)
    elif given.threads is not None:
        in_threads(given.threads, given.maps or 320)
    else:
        in_turn(given.maps or 2)


def in_turn(count: int) -> None:
    small = picture(8, 1, T=(1, 1), L=(4, 5))
    warm = torch.ones(1, 8, 8)  # the import of the solver is not counted
    transport_cost(warm, warm.bool())
    heads = ("exact, ms", "bounds", "emd2", "exact x", "bound x", "off", "proven", "true")
    print(f"{'maps':32} " + "{:>9} {:>9} {:>9} {:>7} {:>7} {:>8} {:>8} {:>8}".format(*heads))
    maps = uniform(small.shape)(1000, generator(0, "8x8"))
    row("8x8 uniform", maps, (small >= 0.05).expand_as(maps), distances(8))
    cost = distances(64)
    for name, maps, truth in all_kinds(count):
        row(name, maps, truth, cost)


if __name__ == "__main__":
    main()
