"""How many inputs get a patch without function, and at what cost: our search beside the printed and the released one.

A small residual network is trained on generated scenes; generated objects, pasted in, are what the patches are made of
at first. Every search has the same inputs, masks and starts. Printed are the share of inputs with a patch (outputs
within 5 %, change of at least 10 % of the range), the passes through the network for each input, and seconds as a
multiple of ours, all from one run.

Run: python benchmarks/functionless.py [--side 32] [--images 50] [--epochs 8]
"""

import argparse
import time
from dataclasses import replace

import torch
from torch import Tensor, nn

from forsooth.datasets.leaves import scene_classes
from forsooth.datasets.objects import drawn
from forsooth.datasets.pasted import pairs, rendered
from forsooth.models.recipes import Recipe
from forsooth.models.resnet import residual_small
from forsooth.models.train import fit
from forsooth.scores.functionless import DEFAULT, PRINTED, RELEASED, Search, functionless
from forsooth.seeds import generator

SEARCHES: tuple[tuple[str, Search], ...] = (
    ("ours", DEFAULT),
    ("ours, to 1 %", replace(DEFAULT, tolerance=0.01)),
    ("ours, on a leash of 5 %", replace(DEFAULT, leash=0.05)),
    ("printed", PRINTED),
    ("printed, best of the way", replace(PRINTED, keep="best", visible=0.1)),
    ("released", RELEASED),
)


def trained(side: int, epochs: int) -> tuple[nn.Module, tuple[Tensor, Tensor, Tensor]]:
    """A network, and for its test scenes x (n, 3, side, side), the objects' masks (n, side, side), and x with them."""
    scenes = scene_classes(n=2000, side=side, seed=0)
    recipe = Recipe(learning_rate=0.003, batch=32, epochs=epochs, gate=0.0, restarts=0)
    done = fit(lambda: residual_small(size=side, classes=10), scenes, recipe, seed=0)
    print(f"residual_small, {side} px, {epochs} epochs: test accuracy {done.test_accuracy:.2f}")
    cutouts = drawn(100, side=side, seed=0)
    pastes = pairs(scenes, cutouts, per_pair={"test": 1}, seed=0)
    (with_object, alpha), (x, _) = (rendered(pastes, scenes.x, cutouts, shown=shown) for shown in ("os", "s"))
    return done.module, (x, alpha > 0, with_object)


def measured(
    module: nn.Module, x: Tensor, mask: Tensor, start: Tensor | torch.Generator, search: Search
) -> list[float]:
    """Share found, median of the ratio, median change, passes for each input, seconds."""
    passes = 0

    def counted(z: Tensor) -> Tensor:
        nonlocal passes
        passes += len(z)
        return module(z)

    begin = time.perf_counter()
    got = functionless(counted, x, mask, start=start, search=search)
    seconds = time.perf_counter() - begin
    share = got.found().double().mean().item()
    return [share, got.ratio.median().item(), got.change.median().item(), passes / len(x), seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("side", 32), ("images", 50), ("epochs", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    torch.set_num_threads(1)
    module, data = trained(given.side, given.epochs)
    chosen = torch.randperm(len(data[0]), generator=generator(0))[: given.images]
    x, mask, start = (part[chosen] for part in data)
    print(f"{len(x)} inputs, masks of {mask.double().mean():.0%} of the pixels\n")
    print(f"{'search':26s} found  ratio  change  passes  times ours")
    base = 0.0
    for name, search in (*SEARCHES, ("ours, from tiles", DEFAULT)):
        begin = generator(0) if name.endswith("tiles") else start
        share, ratio, change, passes, seconds = measured(module, x, mask, begin, search)
        base = base or seconds
        print(f"{name:26s} {share:5.0%}  {ratio:5.3f}  {change:6.2f}  {passes:6.0f}  {seconds / base:10.1f}")


if __name__ == "__main__":
    main()
