"""Shapley sampling and permutation importance against the raw forward rate of the model, and tuned Captum beside them.

One thread, processor time, best of interleaved rounds. The raw rate is that of the same model on a ready batch of the
best size. Run: python benchmarks/forwards.py
"""

import itertools
import time
from collections.abc import Callable

import torch
from captum.attr import FeaturePermutation, ShapleyValueSampling
from torch import Tensor, nn

from forsooth.attributions.permutation import permutation_feature_importance
from forsooth.attributions.shapley import shapley_value_sampling
from forsooth.seeds import generator, generators

Work = tuple[Callable[[], object], int]  # what to run, and the forwards it makes
# side, widths, images, rounds of all pixels, batches to try raw, perturbations at once to try in Captum
CASES = (
    (8, (64, 32, 16, 8, 2), 256, 25, (2048, 4096, 8192, 16384), (16, 32, 64)),
    (64, (4096, 256, 256, 64, 2), 4, 1, (256, 512, 1024, 2048), (32, 64, 128)),
)


def perceptron(widths: tuple[int, ...], *, seed: int = 0) -> nn.Sequential:
    source, layers = generator(seed, "perceptron"), []
    for ins, outs in itertools.pairwise(widths):
        layer = nn.Linear(ins, outs)
        layer.weight.data = torch.randn(outs, ins, generator=source) * (2 / ins) ** 0.5
        layer.bias.data = torch.randn(outs, generator=source) * 0.1
        layers += [layer, nn.ReLU()]
    return nn.Sequential(nn.Flatten(), *layers[:-1]).eval().requires_grad_(False)


def rates(works: dict[str, Work], *, rounds: int) -> dict[str, float]:
    """Forwards per second of processor time of each work: the best of interleaved rounds."""
    best = dict.fromkeys(works, 0.0)
    for turn in range(rounds + 1):
        for name, (work, forwards) in works.items():
            start = time.thread_time()
            work()
            if turn > 0:  # the first only warms up
                best[name] = max(best[name], forwards / (time.thread_time() - start))
    return best


def raw(model: nn.Module, side: int, batch: int, forwards: int) -> Work:
    ready, times = torch.randn(batch, 1, side, side, generator=generator(0, "ready")), -(-forwards // batch)

    def work() -> None:
        with torch.no_grad():
            for _ in range(times):
                model(ready)

    return work, times * batch


def ours(model: nn.Module, x: Tensor, target: Tensor, times: int) -> dict[str, Work]:
    pixels, background = x[0].numel(), torch.randn(64, *x.shape[1:], generator=generator(0, "background"))
    return {
        "Shapley sampling": (
            lambda: shapley_value_sampling(model, x, target, generator=generator(0), permutations=times),
            len(x) * (times * (pixels - 1) + 2),
        ),
        "PFI": (
            lambda: permutation_feature_importance(
                model, x, target, background=background, generators=generators(0, "pfi", range(len(x))), repeats=times
            ),
            len(x) * (times * pixels + 1),
        ),
    }


def captum(model: nn.Module, x: Tensor, target: Tensor, at_once: int) -> dict[str, Work]:
    """One round over all pixels for each, since Captum's cost is the same in every round."""
    forwards = len(x) * x[0].numel()
    sampling, permuting = ShapleyValueSampling(model), FeaturePermutation(model)
    return {
        f"Captum Shapley sampling, {at_once} at once": (
            lambda: sampling.attribute(x, target=target, n_samples=1, perturbations_per_eval=at_once),
            forwards,
        ),
        f"Captum PFI, {at_once} at once": (
            lambda: permuting.attribute(x, target=target, perturbations_per_eval=at_once),
            forwards,
        ),
    }


def main() -> None:
    torch.set_num_threads(1)
    for side, widths, images, times, batches, at_once in CASES:
        model = perceptron(widths)
        x = torch.randn(images, 1, side, side, generator=generator(0, "x"))
        target = torch.arange(images) % 2
        forwards = images * times * side**2
        works = {f"raw, batch {batch}": raw(model, side, batch, forwards) for batch in batches}
        works |= ours(model, x, target, times)
        for number in at_once:
            works |= captum(model, x, target, number)
        found = rates(works, rounds=5 if side == 8 else 2)
        top = max(rate for name, rate in found.items() if name.startswith("raw"))
        print(f"{side}x{side}, {'-'.join(map(str, widths))}, {images} images: raw {top:,.0f} forwards/s")
        for name, rate in found.items():
            print(f"  {name:40} {rate:12,.0f} /s   {rate / top:6.1%} of raw")


if __name__ == "__main__":
    main()
