"""What it costs that every image has draws of its own: seconds against one draw shared by all images.

Masks, orders and coalitions are shared by keeping every player in its own role; noise, baselines and donors by a
literal version of the method with one draw for all. One thread, processor time, best of interleaved rounds, 200 images
of 8x8; the seeding of the generators is counted. Run: python benchmarks/draws.py
"""

import time
from collections.abc import Callable

import torch
from forwards import perceptron
from torch import Tensor, nn

from forsooth.attributions import METHODS
from forsooth.attributions.gradients import gradients_at, points_at_once
from forsooth.games.values import Model, evenly, game, masked_values, target_outputs
from forsooth.models import small
from forsooth.names import find
from forsooth.seeds import generator, generators

IMAGES, SAMPLES, REPEATS = 200, 50, 10
ROLES = ("lime", "lime_25", "kernel_shap", "kernel_shap_25", "shapley_sampling")
Shared = Callable[[Model, Tensor, Tensor, Tensor], Tensor]


def shared_smooth_grad(model: Model, x: Tensor, target: Tensor, background: Tensor) -> Tensor:
    """SmoothGrad with the same 50 draws of noise for all images, up to their scale."""
    flat = x.flatten(1)
    scale = 0.15 * (flat.amax(dim=1) - flat.amin(dim=1)).view(-1, 1, 1, 1)
    noise = torch.randn(SAMPLES, 1, *x.shape[1:], generator=generator(0))
    total = torch.zeros_like(x)
    for part in noise.split(points_at_once(x)):
        total += gradients_at(model, x + scale * part, target).sum(dim=0)
    return total / SAMPLES


def shared_gradient_shap(model: Model, x: Tensor, target: Tensor, background: Tensor) -> Tensor:
    """Gradient SHAP with the same 50 baselines and places for all images."""
    starts = background[torch.randint(len(background), (SAMPLES,), generator=generator(0))]
    places = torch.rand(SAMPLES, 1, 1, 1, 1, generator=generator(1))
    total, size = torch.zeros_like(x), points_at_once(x)
    for start, place in zip(starts[:, None].split(size), places.split(size), strict=True):
        total += (gradients_at(model, start + (x - start) * place, target) * (x - start)).sum(dim=0)
    return total / SAMPLES


def shared_pfi(model: Model, x: Tensor, target: Tensor, background: Tensor) -> Tensor:
    """PFI with the same ten donors for every pixel of all images."""
    played = game(model, x, target)
    count, labels = played.count, played.labels.float()
    rows = torch.randint(len(background), (REPEATS, count), generator=generator(0))
    gone = background.flatten(1).gather(0, rows).view(REPEATS, 1, *x.shape[1:])
    before = target_outputs(model, x, target)[:, None]
    drop = torch.zeros(len(x), count)
    for part in torch.arange(count).split(evenly(count, played.masks_at_once())):
        keep = (labels - part.view(-1, *[1] * labels.ndim)).abs_().clamp_(max=1)
        for donor in gone:
            drop[:, part] += before - masked_values(played, keep, baseline=donor)
    return played.map(drop / REPEATS)


LITERAL: dict[str, Shared] = {
    "smooth_grad": shared_smooth_grad,
    "gradient_shap": shared_gradient_shap,
    "pfi": shared_pfi,
}


def seconds(own: Callable[[], Tensor], shared: Callable[[], Tensor], *, rounds: int) -> tuple[float, float]:
    """The best of interleaved rounds of each."""
    best = [float("inf")] * 2
    for turn in range(rounds + 1):
        for k, work in enumerate((own, shared)):
            start = time.thread_time()
            work()
            if turn > 0:  # the first only warms up
                best[k] = min(best[k], time.thread_time() - start)
    return best[0], best[1]


def compared(name: str, model: nn.Module, x: Tensor, target: Tensor, background: Tensor, *, rounds: int) -> None:
    method = find(name, METHODS, argument="method")

    def own() -> Tensor:
        drawn = {"generator": generator(0, name), "generators": generators(0, name, range(len(x)))}
        return method(model, x, target, background=background, **drawn)

    def shared() -> Tensor:
        if name in ROLES:
            return method(model, x, target, generator=generator(0, name), generators=None)
        return LITERAL[name](model, x, target, background)

    fresh, before = seconds(own, shared, rounds=rounds)
    print(f"  {name:18} shared {before:8.4f} s   own {fresh:8.4f} s   ratio {fresh / before:5.2f}", flush=True)


def main() -> None:
    torch.set_num_threads(1)
    x = torch.randn(IMAGES, 1, 8, 8, generator=generator(0, "x"))
    target = torch.arange(IMAGES) % 2
    background = torch.randn(100, 1, 8, 8, generator=generator(0, "background"))
    networks = {
        "MLP 8": (perceptron((64, 32, 16, 8, 2)), 10),
        "CNN 8": (small.cnn(size=8).eval().requires_grad_(False), 2),
    }
    for title, (model, rounds) in networks.items():
        print(f"{title}, {IMAGES} images of 8x8")
        for name in (*ROLES, *LITERAL):
            compared(name, model, x, target, background, rounds=rounds)


if __name__ == "__main__":
    main()
