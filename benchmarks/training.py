"""Milliseconds per epoch of each small network, and how far the loop is from its bare forward and backward passes.

`epoch` is one epoch of `fit` (shuffling, forward, backward, Adam, validation); `bare` the same number of forward and
backward passes of the plain torch module over batches that lie ready, and nothing else. A ratio below 1 means that
`fit` is faster than the bare passes: there the convolutions run as matrices. CPU time of one thread.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forsooth.models import MODELS
from forsooth.models.recipes import RELEASED_8, Recipe
from forsooth.models.train import fit
from forsooth.records import Dataset

SIZES = {8: (8_000, 1_000), 64: (2_048, 256)}  # train and validation images; the published 8×8 set, a part of 64×64


def noise(size: int) -> Dataset:
    train, held = SIZES[size]
    x = torch.randn(train + 2 * held, 1, size, size, generator=torch.Generator().manual_seed(0))
    rows = dict(zip(("train", "val", "test"), torch.arange(len(x)).split([train, held, held]), strict=True))
    return Dataset(f"noise-{size}", x, torch.arange(len(x)) % 2, None, rows)


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def passes(net: nn.Module, batches: list[tuple[Tensor, Tensor]], epochs: int) -> None:
    parameters = list(net.parameters())
    for x, y in batches * epochs:
        torch.autograd.grad(F.cross_entropy(net(x), y), parameters)


def measure(build: Callable[[], nn.Module], data: Dataset, epochs: int) -> tuple[float, float]:
    """Least seconds of one epoch of `fit`, and of its bare passes, over three repeats in turn."""
    rows = data.splits["train"]
    batches = list(zip(data.x[rows].split(512), data.y[rows].split(512), strict=True))
    net, loop, bare = build(), [], []
    one, more = (Recipe(learning_rate=RELEASED_8.learning_rate, epochs=k, restarts=0) for k in (1, epochs + 1))
    fit(build, data, one, seed=0)  # the first call of everything is slow
    for _ in range(3):
        bare.append(seconds(lambda: passes(net, batches, epochs)) / epochs)
        start = seconds(lambda: fit(build, data, one, seed=0))
        loop.append((seconds(lambda: fit(build, data, more, seed=0)) - start) / epochs)
    return min(loop), min(bare)


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'network':24}{'epoch, ms':>12}{'bare, ms':>12}{'ratio':>8}")
    for size, model, variant in product(SIZES, MODELS[:3], ("paper", "released")):
        if (model.name, size, variant) == ("cnn", 64, "paper"):
            continue  # a minute per epoch on one core: pools of stride 1 keep all 64×64 pixels
        build = partial(model.function, size=size, variant=variant)
        loop, bare = measure(build, noise(size), epochs=1 if (model.name, size) == ("cnn", 64) else 20)
        name = f"{model.name} {size}×{size} {variant}"
        print(f"{name:24}{1e3 * loop:12.1f}{1e3 * bare:12.1f}{loop / bare:8.2f}")


if __name__ == "__main__":
    main()
