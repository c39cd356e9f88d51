"""Microseconds of a training step of each small network with our Adam and with torch's, and whether weights agree.

A step is the forward and backward pass of 512 images of 8×8 (convolutions as matrices) and the move of the weights.
`flat` is torch's Adam on the same one vector, `list` on the parameters one by one; fused is its kernel for CPUs. The
last column is the largest difference of a weight from ours after the steps: 0 would be the same bits. CPU time of one
thread, the least of several repeats in turn.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forsooth.dense import as_matrices
from forsooth.models import build
from forsooth.models.adam import Adam, flatten

RATE = 1e-3
BATCH = 512
REPEATS = 5
STEPS = {"llr": 600, "mlp": 600, "cnn": 100}

Step = Callable[[Sequence[Tensor]], None]


def ours(parameters: list[nn.Parameter]) -> Step:
    return Adam(parameters, rate=RATE, decay=0.0).step


def on_flat(parameters: list[nn.Parameter], *, fused: bool) -> Step:
    flat = flatten(parameters)
    adam = torch.optim.Adam([flat], lr=RATE, fused=fused)

    def step(gradients: Sequence[Tensor]) -> None:
        flat.grad = torch.cat([g.flatten() for g in gradients])
        adam.step()

    return step


def on_list(parameters: list[nn.Parameter], *, fused: bool) -> Step:
    adam = torch.optim.Adam(parameters, lr=RATE, fused=fused)

    def step(gradients: Sequence[Tensor]) -> None:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        adam.step()

    return step


OPTIMISERS: dict[str, Callable[[list[nn.Parameter]], Step]] = {
    "ours": ours,
    "flat, fused": partial(on_flat, fused=True),
    "flat": partial(on_flat, fused=False),
    "list, fused": partial(on_list, fused=True),
    "list": partial(on_list, fused=False),
}


def train(name: str, optimiser: str) -> tuple[float, Tensor]:
    """Seconds of one step, and all weights (parameters,) after them."""
    torch.manual_seed(0)
    net = build(name, shape=(1, 8, 8), classes=2)
    forward = as_matrices(net, (1, 8, 8)) or net
    parameters = list(net.parameters())
    x = torch.randn(BATCH, 1, 8, 8)
    y = torch.arange(BATCH) % 2
    step = OPTIMISERS[optimiser](parameters)
    start = time.process_time()
    for _ in range(STEPS[name]):
        step(torch.autograd.grad(F.cross_entropy(forward(x), y), parameters))
    seconds = (time.process_time() - start) / STEPS[name]
    return seconds, torch.cat([p.detach().flatten() for p in parameters])


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'network':10}{'optimiser':14}{'step, us':>10}{'ratio':>8}{'difference':>12}")
    for name in STEPS:
        seconds: dict[str, list[float]] = {optimiser: [] for optimiser in OPTIMISERS}
        weights: dict[str, Tensor] = {}
        for _ in range(REPEATS):
            for optimiser in OPTIMISERS:
                spent, weights[optimiser] = train(name, optimiser)
                seconds[optimiser].append(spent)
        for optimiser, times in seconds.items():
            ratio = min(times) / min(seconds["ours"])
            difference = (weights[optimiser] - weights["ours"]).abs().max().item()
            print(f"{name:10}{optimiser:14}{1e6 * min(times):10.0f}{ratio:8.2f}{difference:12.1e}")


if __name__ == "__main__":
    main()
