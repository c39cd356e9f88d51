"""Milliseconds per epoch of each small network, and how far the loop is from its bare forward and backward passes:

    python benchmarks/training.py
    python benchmarks/training.py together [--device cuda] [--members 12] [--ways]
    python benchmarks/training.py panel [--model vit] [--scenario LIN] [--background WHITE]
    python benchmarks/training.py shorter [--trainings 1]

The second trains several networks in one step, and prints the time of an epoch of one by one over that of all at once,
in turn; `--ways` every way of the step by itself. On a processor 8×8 alone, on an accelerator 64×64 too. The third runs
one panel of XAI-TRIS in the preset quick, task by task on one core: seconds of processor time of each training, of each
other task above one second, and of all by their kind. The fourth trains the ViT in every panel of that preset by the
recipe of the other networks and by its own, which ends where every validation image is right, and prints epochs, test
accuracy and seconds of both.

`epoch` is one epoch of `fit` (shuffling, forward, backward, Adam, validation); `bare` the same number of forward and
backward passes of the plain torch module over batches that lie ready, and nothing else. A ratio below 1 means that
`fit` is faster than the bare passes: there the convolutions run as matrices, and transformers in a quicker way. CPU
time of one thread.
"""

import argparse
import dataclasses
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forsooth import chunks
from forsooth.engine import run_task, typed
from forsooth.models import MODELS
from forsooth.models.chain import ways_for
from forsooth.models.recipes import QUICK_8, RELEASED_8, Recipe
from forsooth.models.samples import pooled
from forsooth.models.together import Member, Options, fit_together
from forsooth.models.train import fit
from forsooth.models.vit import VIT
from forsooth.records import Choice, Dataset
from forsooth.store import Store
from forsooth.suites.xaitris.plan import plan
from forsooth.suites.xaitris.settings import QUICK

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
    chunks.keep_freed_memory()
    small = [*product(SIZES, MODELS[:3], ("paper", "released")), (8, VIT, "released")]
    for size, model, variant in small:
        if (model.name, size, variant) == ("cnn", 64, "paper"):
            continue  # a minute per epoch on one core: pools of stride 1 keep all 64×64 pixels
        build = partial(model.function, size=size, variant=variant)
        loop, bare = measure(build, noise(size), epochs=1 if (model.name, size) == ("cnn", 64) else 20)
        name = f"{model.name} {size}×{size} {variant}"
        print(f"{name:24}{1e3 * loop:12.1f}{1e3 * bare:12.1f}{loop / bare:8.2f}")


def epoch_seconds(train: Callable[[Recipe], object], device: str, epochs: int) -> float:
    """Seconds on the clock of one epoch: what `epochs` more take than one, which pays for the beginning."""
    spent = []
    for count in (1, epochs + 1):
        if device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter() if device != "cpu" else time.process_time()
        train(Recipe(learning_rate=RELEASED_8.learning_rate, epochs=count, restarts=0, double_softmax=True))
        if device != "cpu":
            torch.cuda.synchronize()
        spent.append((time.perf_counter() if device != "cpu" else time.process_time()) - start)
    return (spent[1] - spent[0]) / epochs


def together(device: str, members: int, each_way: bool) -> None:
    """Several trainings one by one over all at once."""
    print(f"{'network':24}{'way':>18}{'alone, ms':>12}{'each, ms':>12}{'ratio':>8}   ({members} at once, on {device})")
    sizes = (8,) if device == "cpu" else (8, 64)
    for size, model, variant in product(sizes, MODELS[:3], ("paper", "released")):
        build = partial(model.function, size=size, variant=variant)
        data = noise(size)
        pool = pooled([data], 1, torch.device(device))
        asked = [Member(0, seed) for seed in range(members)]
        epochs = 4 if (model.name, size) == ("cnn", 64) else 20
        one = [epoch_seconds(lambda recipe: fit(build, data, recipe, seed=0, device=device), device, epochs)]  # noqa: B023
        for way in (*ways_for(build()),) if each_way else (None,):
            options = Options(way=way)
            stacked = lambda recipe: fit_together(build, pool, asked, recipe, options=options, tell=str)  # noqa: B023, E731
            all_at_once = min(epoch_seconds(stacked, device, epochs) for _ in range(2)) / members
            one.append(epoch_seconds(lambda recipe: fit(build, data, recipe, seed=0, device=device), device, epochs))  # noqa: B023
            words = "the usual" if way is None else " ".join(dataclasses.astuple(way))
            name = f"{model.name} {size}×{size} {variant}"
            ratio = min(one) / all_at_once
            print(f"{name:24}{words:>18}{1e3 * min(one):12.2f}{1e3 * all_at_once:12.2f}{ratio:8.2f}", flush=True)


def panel(model: str, scenario: str, background: str) -> None:
    """Seconds of processor time of every training, and of all tasks by their kind, in one panel of the quick preset."""
    settings = dataclasses.replace(QUICK, models=(model,))
    made = plan(settings, Choice(only={"scenario": (scenario,), "background": (background,)}))
    spent: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for task in made.tasks:
            took = seconds(lambda: run_task(task, store.root))  # noqa: B023
            spent[task.name.split(",")[0].split(" ")[0].rstrip(":")] += took
            if task.id == "xaitris.train":
                cell = store.read(task.key)
                accuracy = cell.rows[0].value
                epochs = cell.facts["epochs"]
                print(f"{took:8.1f} s  {task.name}: {epochs} epochs, accuracy {accuracy:.3f}", flush=True)
            elif took > 1:
                print(f"{took:8.1f} s  {task.name}", flush=True)
    words = ", ".join(f"{kind} {took:.1f}" for kind, took in spent.most_common())
    print(f"{sum(spent.values()):8.1f} s  {model}, {scenario}-{background}: {words}")


def shorter(trainings: int) -> None:
    """Epochs, accuracy and seconds of the ViT by the recipe of the other networks, and by its own."""
    print(f"{'':32}{'recipe of the others':>32}{'its own':>32}")
    settings = dataclasses.replace(QUICK, models=("vit",), trainings=trainings, sweep=())
    for task in plan(settings, Choice()).tasks:
        if task.id != "xaitris.train":
            continue
        arguments = typed(task.function, task.arguments)
        own = arguments["recipe"]
        longer = dataclasses.replace(own, stop_at=QUICK_8.stop_at)
        cells, words = [], ""
        for recipe in (longer, own):
            start = time.process_time()
            cells.append(task.function(**{**arguments, "recipe": recipe}))
            took = time.process_time() - start
            words += f"{cells[-1].facts['epochs']:12} epochs {cells[-1].rows[0].value:.3f}{took:6.0f} s"
        same = all(torch.equal(value, cells[1].tensors[name]) for name, value in cells[0].tensors.items())
        print(f"{task.name:32}{words}{'   the same network' if same else ''}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["together"]:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("part", choices=("together",))
        parser.add_argument("--device", default="cpu")
        parser.add_argument("--members", type=int, default=12)
        parser.add_argument("--ways", action="store_true")
        asked = parser.parse_args()
        torch.set_num_threads(1)
        together(asked.device, asked.members, asked.ways)
    elif sys.argv[1:2] == ["panel"]:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("part", choices=("panel",))
        parser.add_argument("--model", default="vit")
        parser.add_argument("--scenario", default="LIN")
        parser.add_argument("--background", default="WHITE")
        asked = parser.parse_args()
        torch.set_num_threads(1)
        panel(asked.model, asked.scenario, asked.background)
    elif sys.argv[1:2] == ["shorter"]:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("part", choices=("shorter",))
        parser.add_argument("--trainings", type=int, default=1)
        torch.set_num_threads(1)
        chunks.keep_freed_memory()
        shorter(parser.parse_args().trainings)
    else:
        main()
