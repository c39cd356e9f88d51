"""One step of training through recurrent nets of the rationale models at the paper's size: 256 reviews of 256 words.

`loop` is the gated convolution word by word and direction by direction, left to autograd; `scan` is ours; `lstm` is
torch's. Then a whole step of both rationale models, selector, choices in turn and classifier. Best of three; on a
processor, processor time of one thread. Run: python benchmarks/recurrent.py [--device cuda]
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from forsooth.models.gated import Rcnn
from forsooth.models.rationale import Kind, rationale
from forsooth.models.recurrent import Encoder, initialise, mirrored
from forsooth.models.train_text import Aim, loss_of, uniform
from forsooth.seeds import generator

KINDS: tuple[Kind, ...] = ("relaxed", "reinforce")
REVIEWS, WORDS, DIMS = 256, 256, 200


def loop(cell: Rcnn, x: Tensor) -> Tensor:
    """The equations of the cell in turn: x (n, length, dims) to states (n, length, hidden)."""
    gates, firsts, seconds = cell.read(x).transpose(0, 1).chunk(3, dim=-1)
    one = two = h = torch.zeros_like(gates[0])
    states = []
    for gate, first, second in zip(gates, firsts, seconds, strict=True):
        keep = torch.sigmoid(gate + cell.recall(h))
        two, one = torch.lerp(one + second, two, keep), torch.lerp(first, one, keep)
        h = torch.tanh(two + cell.bias)
        states.append(h)
    return torch.stack(states, dim=1)


def looped(net: Encoder, x: Tensor, lengths: Tensor) -> Tensor:
    return torch.cat([loop(net.ahead, x), mirrored(loop(net.back, mirrored(x, lengths)), lengths)], dim=2)  # type: ignore[arg-type]


def seconds(step: Callable[[], Tensor], net: nn.Module, device: str) -> tuple[float, Tensor]:
    """The least time of a step ahead and back, and the gradient of the first parameter."""
    best, parameters = float("inf"), list(net.parameters())
    for _ in range(3):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter() if device == "cuda" else time.process_time()
        slopes = torch.autograd.grad(step(), parameters)
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, (time.perf_counter() if device == "cuda" else time.process_time()) - start)
    return best, slopes[0]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    x = torch.randn(REVIEWS, WORDS, DIMS, generator=generator(0, "x")).to(device)
    lengths = torch.randint(WORDS // 4, WORDS + 1, (REVIEWS,), generator=generator(0, "lengths")).to(device)
    gated, lstm = Encoder(DIMS, DIMS, cell="rcnn").to(device), Encoder(DIMS, DIMS, cell="lstm").to(device)
    for net in (gated, lstm):
        initialise(net, generator(0, "net"))
    slow, theirs = seconds(lambda: looped(gated, x, lengths).square().sum(), gated, device)
    fast, ours = seconds(lambda: gated(x, lengths).states.square().sum(), gated, device)
    best, _ = seconds(lambda: lstm(x, lengths).states.square().sum(), lstm, device)
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3 * theirs.abs().max().item())
    print(f"two-way reader, {device}: loop {1000 * slow:.0f} ms, scan {1000 * fast:.0f} ms, lstm {1000 * best:.0f} ms")
    print(f"the scan is {slow / fast:.1f} times as fast as the loop, and takes {fast / best:.1f} times an LSTM")
    tokens = torch.randint(1, 5000, (REVIEWS, WORDS), generator=generator(0, "tokens")).to(device)
    tokens[torch.arange(WORDS, device=device) >= lengths[:, None]] = 0
    y, aim = torch.arange(REVIEWS, device=device) % 2, Aim(0.05, regulariser="released")
    u = uniform(tokens, 1, torch.Generator(device).manual_seed(0))
    for variant in ("paper", "fused"):
        for kind in KINDS:
            model = (
                initialise(rationale(kind=kind, words=5000, variant=variant), generator(0, "net")).train().to(device)
            )
            took, _ = seconds(partial(loss_of, model, tokens, y, aim, u), model, device)
            print(f"a step of {kind:9}, {variant}: {1000 * took:.0f} ms")


if __name__ == "__main__":
    main()
