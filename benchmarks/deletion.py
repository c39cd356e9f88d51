"""Deletion curves of many images beside one image at a time, and beside PixelFlipping of Quantus where it is installed.

Processor time of one thread, in turn, least of three rounds; as many forwards each: 64 steps on images of 8x8, 32 on
those of 64x64. One image at a time: hide a share of its pixels, ask the network, and so on, as one would write it.
Quantus wants numpy's old `trapz`, which is lent to it, and must not see zennit. Run: python benchmarks/deletion.py
"""

import importlib.util
import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from surrogates import drawn
from torch import Tensor, nn

from forsooth.games import game
from forsooth.models.small import cnn, mlp
from forsooth.scores.masking import curve
from forsooth.seeds import generator

CASES = (
    ("8x8, MLP", partial(mlp, size=8), 8, 256, 64),
    ("8x8, CNN as released", partial(cnn, size=8, variant="released"), 8, 256, 64),
    ("64x64, MLP", partial(mlp, size=64), 64, 32, 32),
    ("64x64, CNN as released", partial(cnn, size=64, variant="released"), 64, 16, 32),
)


def ours(model: nn.Module, x: Tensor, target: Tensor, maps: Tensor, steps: int) -> Tensor:
    played = game(model, x, target, rewrite_model=True)
    return curve(played, maps.flatten(1), steps=steps, hide=True)


@torch.no_grad()
def one_by_one(model: nn.Module, x: Tensor, target: Tensor, maps: Tensor, steps: int) -> Tensor:
    """(n, steps + 1): a forward of one image for every step."""
    curves = []
    for image, label, map_ in zip(x, target, maps, strict=True):
        order = map_.flatten().argsort(descending=True)
        hidden = image.clone()
        outputs = [model(hidden[None])[0, label]]
        for some in order.tensor_split(steps):
            hidden.view(-1)[some] = 0
            outputs.append(model(hidden[None])[0, label])
        curves.append(torch.stack(outputs))
    return torch.stack(curves)


def quantus_curve() -> Callable[..., Any] | None:
    """Its PixelFlipping on the same maps; None where it is not installed."""
    if importlib.util.find_spec("quantus") is None:
        return None
    if not hasattr(np, "trapz"):
        setattr(np, "trapz", np.trapezoid)  # noqa: B010
    find = importlib.util.find_spec
    hidden = ("zennit", "tensorflow")
    importlib.util.find_spec = lambda name, *rest: None if name.split(".")[0] in hidden else find(name, *rest)
    quantus = importlib.import_module("quantus")
    importlib.util.find_spec = find

    def flipped(model: nn.Module, x: Tensor, target: Tensor, maps: Tensor, steps: int) -> Any:
        flip = quantus.PixelFlipping(
            features_in_step=x[0].numel() // steps,
            perturb_baseline="black",
            disable_warnings=True,
            display_progressbar=False,
        )
        return flip(model=model, x_batch=x.numpy(), y_batch=target.numpy(), a_batch=maps.numpy(), device="cpu")

    return flipped


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    works: dict[str, Callable[..., Any]] = {"ours": ours, "one by one": one_by_one}
    quantus = quantus_curve()
    if quantus is not None:
        works["Quantus"] = quantus
    print("milliseconds an image; times as fast as the others" + ("" if quantus else " (Quantus is not installed)"))
    for name, build, side, images, steps in CASES:
        model = drawn(build())
        x = torch.randn(images, 1, side, side, generator=generator(0, "x"))
        target = torch.arange(images) % 2
        maps = torch.rand(x.shape, generator=generator(0, "maps"))
        torch.testing.assert_close(
            ours(model, x, target, maps, steps), one_by_one(model, x, target, maps, steps), rtol=1e-4, atol=1e-4
        )
        best = dict.fromkeys(works, math.inf)
        for _ in range(3):
            for kind, work in works.items():
                start = time.process_time()
                work(model, x, target, maps, steps)
                best[kind] = min(best[kind], time.process_time() - start)
        figures = [f"{kind} {1e3 * seconds / images:8.3f} ms" for kind, seconds in best.items()]
        ratios = [f"{seconds / best['ours']:5.1f} x {kind}" for kind, seconds in best.items() if kind != "ours"]
        print(f"  {name:24} {steps} steps   " + "   ".join([*figures, *ratios]), flush=True)


if __name__ == "__main__":
    main()
