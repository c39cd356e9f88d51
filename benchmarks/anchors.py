"""Shapley anchors by paired least squares against walks: forwards for the same error, and whether intervals cover.

Five games of 16 to 20 players, whose exact values are known: the mean squared error of 1,000 permutations and of least
squares with a tenth of their forwards, over independent draws; and how often an interval of 95 % holds the exact value.
At 1,024 players, where nothing is exact: the mean squared difference of two independent halves, which is twice the
error.

Run: python benchmarks/anchors.py [small] [large] [--draws N] [--games WORD]
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
from scipy import stats
from torch import Tensor, nn

from forsooth.games import exact, game, patches, permutation
from forsooth.games.anchors import GROUPS, leverage
from forsooth.games.players import parse, pixels
from forsooth.games.shapley import Estimate
from forsooth.games.values import Game
from forsooth.models import build
from forsooth.models.small import cnn
from forsooth.seeds import derive, generator

PERMUTATIONS = 1000
SHARE = {"small": 10, "large": 5}  # by how much fewer forwards
Way = Callable[[torch.Generator], Estimate]


def built(net: nn.Module) -> nn.Module:
    """The network with weights drawn as a trained one may have them."""
    source = generator(0, "weights")
    with torch.no_grad():
        for parameter in net.eval().requires_grad_(False).parameters():
            spread = (2 / parameter[0].numel()) ** 0.5 if parameter.ndim > 1 else 0.1
            parameter.copy_(torch.randn(parameter.shape, generator=source) * spread)
    return net


def trained(net: nn.Module, count: int) -> nn.Module:
    """The network after it has learnt a sum with two products and a threshold."""
    x = torch.randn(2000, count, generator=generator(0, "training"))
    y = ((x[:, :6].sum(1) + 2 * x[:, 0] * x[:, 7] + x[:, 8] * x[:, 9] + 2 * (x[:, 10] > 0)) > 0).long()
    net.requires_grad_(True)
    steps = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(300):
        steps.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        steps.step()
    return net.requires_grad_(False)


def columns(count: int) -> nn.Module:
    """A network of tables, two layers deep."""
    return nn.Sequential(nn.Linear(count, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))


def trees(x: Tensor) -> Tensor:
    """A sum of decision trees of depth four on 18 columns, as boosting makes: steps, and interactions of four."""
    draw = generator(0, "trees")
    total = torch.zeros(len(x), dtype=x.dtype)
    for _ in range(60):
        chosen = torch.randperm(18, generator=draw)[:4]
        cuts = torch.randn(4, generator=draw) / 2
        leaves = torch.randn(16, generator=draw)
        place = ((x[:, chosen] > cuts).long() * torch.tensor([1, 2, 4, 8])).sum(1)
        total = total + leaves[place]
    return torch.stack([total, -total], 1)


def drawn(model: Callable[[Tensor], Tensor], shape: tuple[int, ...], players: Tensor, inputs: int) -> Game:
    x = torch.randn(inputs, *shape, generator=generator(0, "x"))
    return game(model, x, torch.arange(inputs) % 2, players=players)


def games(inputs: int) -> dict[str, Game]:
    """Name -> a game of 16 to 20 players."""
    image = (1, 8, 8)
    table = parse("features", (20,))
    return {
        "CNN, 16 patches": drawn(built(cnn(size=8)), image, patches(image, 4), inputs),
        "ViT, 16 patches": drawn(built(build("vit", shape=image, classes=2)), image, patches(image, 4), inputs),
        "trees, 18 columns": drawn(trees, (18,), parse("features", (18,)), inputs),
        "MLP, 20 columns": drawn(trained(built(columns(20)), 20), (20,), table, inputs),
        "MLP, not trained": drawn(built(columns(20)), (20,), table, inputs),
    }


def forwards(count: int) -> int:
    """Of an input, by walks."""
    return PERMUTATIONS * (count - 1) + 2


def ways(played: Game, share: int) -> dict[str, Way]:
    samples = forwards(played.count) // share
    return {
        "walks": lambda source: permutation(played, permutations=PERMUTATIONS, generator=source),
        "least squares": lambda source: leverage(played, samples=samples, generator=source),
    }


def covered(estimate: Estimate, truth: Tensor) -> Tensor:
    """Which 95 % intervals hold the truth: Student's, whose errors come from so many groups, or from all walks."""
    freedom = estimate.permutations - 1
    if len(estimate.sizes) == GROUPS:
        freedom = GROUPS - 1
    return (estimate.values - truth).abs() <= float(stats.t.ppf(0.975, freedom)) * estimate.error


def judged(ask: Way, truth: Tensor, name: str, draws: int) -> tuple[float, float]:
    """The mean squared error of independent draws, and the share of 95 % intervals that hold the truth."""
    errors = []
    held = []
    for draw in range(draws):
        estimate = ask(generator(derive(draw, name), "anchor"))
        errors.append((estimate.values - truth).square().mean())
        held.append(covered(estimate, truth).double().mean())
    return torch.stack(errors).mean().item(), torch.stack(held).mean().item()


def small(draws: int, named: str) -> None:
    heads = f"{'MSE, walks':>11} {'squares':>10} {'ratio':>6} {'cover, walks':>13} {'squares':>8}"
    print(f"{'game':20} {'forwards':>16} {heads}")
    for name, played in games(4).items():
        if named not in name:
            continue
        truth = exact(played).values
        asks = ways(played, SHARE["small"])
        walks, cover_walks = judged(asks["walks"], truth, name, max(4, draws // 8))  # ten times as dear
        squares, cover = judged(asks["least squares"], truth, name, draws)
        cost = f"{forwards(played.count):,} → {forwards(played.count) // SHARE['small']:,}"
        numbers = f"{walks:11.3g} {squares:10.3g} {squares / walks:6.2f} {cover_walks:13.3f} {cover:8.3f}"
        print(f"{name:20} {cost:>16} {numbers}", flush=True)


def large() -> None:
    shape = (1, 32, 32)
    played = drawn(built(nn.Sequential(nn.Flatten(), *columns(1024))), shape, pixels(shape), 1)
    for way, ask in ways(played, SHARE["large"]).items():
        begun = time.perf_counter()
        halves = [ask(generator(seed, "anchor")) for seed in range(2)]
        error = (halves[0].values - halves[1].values).square().mean().item() / 2
        said = torch.stack([half.error.square().mean() for half in halves]).mean().item()
        seconds = time.perf_counter() - begun
        words = f"MSE by halves {error:.3g}, its own errors say {said:.3g}, {seconds:.0f} s"
        print(f"1,024 players, {way:13} {words}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="small|large", help="both unless one is named")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--games", default="", metavar="WORD", help="only small games with this word in the name")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for part, work in {"small": partial(small, asked.draws, asked.games), "large": large}.items():
        if part in (asked.parts or SHARE):
            work()


if __name__ == "__main__":
    main()
