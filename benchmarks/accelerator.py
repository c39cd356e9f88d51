"""Training steps on an accelerator: images per second by layout of memory and precision, and times the plain ones.

`fit` lays images out channels last there, and in bfloat16 where a recipe says `autocast`. All in one run, in turn.

Run: python benchmarks/accelerator.py [--device cuda]
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forsooth.models.residual import resnet

STEPS, BATCH, SIDE = 20, 128, 128
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "ResNet-34": partial(resnet, depth=34, classes=2),
    "ResNet-50": partial(resnet, depth=50, classes=10),
}


def rate(net: nn.Module, x: Tensor, y: Tensor, *, half: bool) -> float:
    """Images per second of forward and backward passes."""
    parameters = list(net.parameters())

    def step() -> None:
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=half):
            logits = net(x)
        torch.autograd.grad(F.cross_entropy(logits.float(), y), parameters)

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    return STEPS * len(x) / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    device = parser.parse_args().device
    print(f"{'network':12}{'layout':>16}{'products':>12}{'images/s':>12}{'ratio':>8}")
    for name, build in NETWORKS.items():
        net, plain = build().train().to(device), 0.0
        x, y = torch.randn(BATCH, 3, SIDE, SIDE, device=device), torch.zeros(BATCH, dtype=torch.long, device=device)
        for half, last in product((False, True), (False, True)):
            given = x.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)
            found = rate(net, given, y, half=half)
            plain = plain or found
            words = ("channels last" if last else "channels first", "bfloat16" if half else "float32")
            print(f"{name:12}{words[0]:>16}{words[1]:>12}{found:12.0f}{found / plain:8.2f}", flush=True)


if __name__ == "__main__":
    main()
