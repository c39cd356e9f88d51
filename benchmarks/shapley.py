"""Permutation Shapley values against the raw forward rate, cost by players and permutations, and exact enumeration.

On a processor: forwards per second of five networks with every pixel a player, beside the raw rate of the same network
on a ready batch of the best size and beside Captum, tuned; in processor time on one thread and in wall time on two; the
ratio to Captum alone, on one thread (`captum`); and 16 players enumerated exactly on images of 3x224x224. On a GPU:
seconds per image of 1,024 players and 1,000 permutations. All ratios come from rounds in turn in the same run. Where a
step is not a whole forward, what is counted is still a step.

Run: python benchmarks/shapley.py [captum] [rates] [cost] [exact] [--device cuda] [--plot cost.png]
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from captum.attr import ShapleyValueSampling
from torch import Tensor, nn

from forsooth.games import exact, game, patches, permutation, pixels
from forsooth.models.lenet import lenet
from forsooth.models.resnet import cifar_resnet
from forsooth.models.small import cnn, mlp
from forsooth.models.vision import alexnet
from forsooth.seeds import generator

Work = tuple[Callable[[], object], int]  # what to run, and the forwards it makes
Model = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Case:
    """A network and how much of it to run on a processor."""

    name: str
    build: Callable[[], nn.Module]
    shape: tuple[int, ...]
    images: int
    permutations: int
    batches: tuple[int, ...]  # to try raw
    at_once: tuple[int, ...]  # perturbations to try at once in Captum
    goal: float  # times as fast as Captum
    side: int | None = None  # of the squares that Captum's players are; None: pixels


CASES = (
    Case("LeNet", lenet, (3, 32, 32), 2, 2, (64, 128, 256, 512), (64, 256), 1.1),
    Case("MLP 4096-256-256-64-2", partial(mlp, size=64), (1, 64, 64), 4, 1, (256, 512, 1024, 2048), (64, 256), 10),
    Case("CNN 64x64 as printed", partial(cnn, size=64), (1, 64, 64), 1, 1, (16, 64), (16, 64), 8, side=4),
    Case(
        "CNN 64x64 as released", partial(cnn, size=64, variant="released"), (1, 64, 64), 1, 1, (64, 256), (64, 256), 2
    ),
    Case("ResNet-20", partial(cifar_resnet, depth=20), (3, 32, 32), 1, 4, (32, 64, 128), (32, 64), 1.1),
)


def built(build: Callable[[], nn.Module], device: str) -> nn.Module:
    """The network with weights drawn from a generator of its own."""
    net, source = build().eval().requires_grad_(False), generator(0, "weights")
    for parameter in net.parameters():
        spread = (2 / max(1, parameter[0].numel())) ** 0.5 if parameter.ndim > 1 else 0.1
        parameter.copy_(torch.randn(parameter.shape, generator=source) * spread)
    return net.to(device)


def inputs(n: int, shape: tuple[int, ...], device: str) -> tuple[Tensor, Tensor]:
    return torch.randn(n, *shape, generator=generator(0, "x")).to(device), torch.arange(n, device=device) % 2


def ready(model: Model, shape: tuple[int, ...], batch: int, forwards: int, device: str) -> Work:
    """The raw rate: the same batch over and over."""
    x, times = inputs(batch, shape, device)[0], -(-forwards // batch)

    def work() -> None:
        with torch.no_grad():
            for _ in range(times):
                model(x)

    return work, times * batch


def sampled(model: Model, x: Tensor, target: Tensor, permutations: int) -> Work:
    def work() -> None:
        permutation(game(model, x, target, rewrite_model=True), permutations=permutations, generator=generator(0))

    count = pixels(tuple(x.shape[1:])).numel()
    return work, len(x) * (permutations * (count - 1) + 2)


def captum(model: nn.Module, x: Tensor, target: Tensor, at_once: int, side: int | None = None) -> Work:
    """One permutation, since Captum's cost is the same in every one; of squares where pixels would take minutes."""
    mask = pixels(tuple(x.shape[1:]))[None, None].to(x.device)
    if side is not None:
        mask = patches(tuple(x.shape[1:]), x.shape[-1] // side)[None, None].to(x.device)
    explain = ShapleyValueSampling(model)
    settings = {"feature_mask": mask, "n_samples": 1, "perturbations_per_eval": at_once}
    return lambda: explain.attribute(x, target=target, **settings), len(x) * (int(mask.max()) + 1)


def rates(works: dict[str, Work], clock: Callable[[], float], *, rounds: int) -> dict[str, float]:
    """Forwards per second of each work: the best of rounds in turn; the first only warms up."""
    best = dict.fromkeys(works, 0.0)
    for turn in range(rounds + 1):
        for name, (work, forwards) in works.items():
            start = clock()
            work()
            if turn > 0:
                best[name] = max(best[name], forwards / (clock() - start))
    return best


def on_processor(rounds: int) -> None:
    for threads, clock, kind in ((1, time.thread_time, "processor"), (2, time.perf_counter, "wall")):
        torch.set_num_threads(threads)
        for case in CASES:
            net = built(case.build, "cpu")
            x, target = inputs(case.images, case.shape, "cpu")
            ours = sampled(net, x, target, case.permutations)
            works = {f"raw, batch {b}": ready(net, case.shape, b, ours[1] // 4, "cpu") for b in case.batches}
            works["ours"] = ours
            works |= {f"Captum, {k} at once": captum(net, x, target, k, case.side) for k in case.at_once}
            title = f"{case.name}, {case.images} images, threads: {threads}, {kind} time"
            table(title, rates(works, clock, rounds=rounds))


def beside_captum(rounds: int) -> None:
    """How many times as many steps per second as Captum at its best, on one thread."""
    torch.set_num_threads(1)
    for case in CASES:
        net = built(case.build, "cpu")
        x, target = inputs(case.images, case.shape, "cpu")
        works = {f"{k} at once": captum(net, x, target, k, case.side) for k in case.at_once}
        works["ours"] = sampled(net, x, target, case.permutations)
        found = rates(works, time.thread_time, rounds=rounds)
        ours = found.pop("ours")
        theirs = max(found.values())
        speed = f"ours {ours:10,.0f}/s   Captum {theirs:10,.0f}/s   {ours / theirs:5.1f} times"
        print(f"  {case.name:24} {speed}   (goal {case.goal:g})", flush=True)


def table(title: str, found: dict[str, float]) -> None:
    top = max(rate for name, rate in found.items() if name.startswith("raw"))
    print(title, flush=True)
    for name, rate in found.items():
        print(f"  {name:28} {rate:12,.0f} forwards/s   {rate / top:6.1%} of raw", flush=True)


def waited() -> float:
    torch.cuda.synchronize()
    return time.perf_counter()


def on_gpu(rounds: int, *, channels_last: bool, compiled: bool) -> None:
    """Seconds per image of 1,024 players and 1,000 permutations, one image and four at a time."""
    for build, name, goal in ((lenet, "LeNet", 0.35), (partial(cifar_resnet, depth=20), "ResNet-20", 4.0)):
        net = built(build, "cuda")
        net = net.to(memory_format=torch.channels_last) if channels_last else net
        inner = torch.compile(net) if compiled else net
        model = partial(as_channels_last, inner) if channels_last else inner
        works = {f"raw, batch {b}": ready(model, (3, 32, 32), b, 2**19, "cuda") for b in (4096, 16384, 65536)}
        for images in (1, 4):
            works[f"ours, {images} at a time"] = sampled(model, *inputs(images, (3, 32, 32), "cuda"), 1000)
        found = rates(works, waited, rounds=rounds)
        table(f"{name}, 1,024 players, 1,000 permutations, {torch.cuda.get_device_name()}", found)
        for kind, rate in found.items():
            if kind.startswith("ours"):
                print(f"  {kind}: {(1000 * 1023 + 2) / rate:.3f} s per image (goal {goal} s)", flush=True)


def as_channels_last(model: Model, x: Tensor) -> Tensor:
    return model(x.contiguous(memory_format=torch.channels_last))


def cost(device: str, plot: str | None) -> None:
    """Seconds by players and permutations: LeNet on images of 32x32, patches of a growing grid as players."""
    torch.set_num_threads(1)
    net, clock = built(lenet, device), waited if device == "cuda" else time.thread_time
    scale = 16 if device == "cuda" else 1
    points = []
    print("LeNet, one image: cost by players and permutations")
    for grid in (4, 8, 16, 32):
        x, target = inputs(1, (3, 32, 32), device)
        played = game(net, x, target, players=patches((3, 32, 32), grid))
        for times in (1, 2, 4, 8):
            work = partial(permutation, played, permutations=times * scale, generator=generator(0))
            steps = grid**2 * times * scale
            seconds = steps / rates({"": (work, steps)}, clock, rounds=2)[""]
            points.append((grid**2, times * scale, seconds))
            each = f"{1e6 * seconds / steps:8.1f} µs per step"
            print(f"  {grid**2:5} players {times * scale:5} permutations {seconds:9.4f} s {each}", flush=True)
    print(f"  slope of log seconds over log (players × permutations), from 1,000 steps on: {slope(points):.2f}")
    if plot is not None:
        draw(points, plot)


def slope(points: list[tuple[int, int, float]]) -> float:
    """By least squares; 1 means that the cost is linear."""
    rows = torch.tensor([(p * m, s) for p, m, s in points if p * m >= 1000], dtype=torch.float64).log()
    centred = rows - rows.mean(dim=0)
    return float((centred[:, 0] * centred[:, 1]).sum() / centred[:, 0].square().sum())


def draw(points: list[tuple[int, int, float]], path: str) -> None:
    from matplotlib.figure import Figure  # only a plot needs it

    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="players × permutations", ylabel="seconds")
    for players in sorted({p for p, _, _ in points}):
        mine = [(p * m, s) for p, m, s in points if p == players]
        axes.plot(*zip(*mine, strict=True), marker="o", label=f"{players:,} players")
    most, top = max((p * m, s) for p, m, s in points)
    least = min(p * m for p, m, _ in points)
    axes.plot([least, most], [top * least / most, top], color="black", linestyle=":", label="linear")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def enumerated(device: str, *, grid: int) -> None:
    """All coalitions of grid² players on one image of 3x224x224 with AlexNet, on two threads of a processor."""
    torch.set_num_threads(2)
    net, clock = built(alexnet, device), waited if device == "cuda" else time.perf_counter
    x, target = inputs(1, (3, 224, 224), device)
    seconds = {}
    for players in (grid - 1, grid) if device == "cuda" else (grid,):  # the smaller warms up
        start, busy = clock(), time.process_time()
        exact(game(net, x, target, players=patches((3, 224, 224), players)))
        seconds[players], busy = clock() - start, time.process_time() - busy
    rate = 2 ** (grid**2) / seconds[grid]
    print(f"AlexNet, 3x224x224, {grid**2} players exactly: {seconds[grid]:.1f} s, {rate:,.0f} forwards/s on {device}")
    print(f"  16 players at this rate: {2**16 / rate:.0f} s; {busy / seconds[grid]:.2f} cores were busy on average")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "parts", nargs="*", default=["captum", "rates", "cost", "exact"], help="captum, rates, cost, exact"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--grid", type=int, default=4, help="players along each axis of the exact game")
    parser.add_argument("--plot", help="where to save the plot of the cost")
    parser.add_argument("--channels-last", action="store_true", help="run networks on the GPU in this layout")
    parser.add_argument("--compile", action="store_true", help="compile networks on the GPU")
    parser.add_argument("--tf32", action="store_true", help="let matrix products on the GPU use TF32")
    given = parser.parse_args()
    if given.tf32:
        torch.set_float32_matmul_precision("high")
    if "captum" in given.parts:
        beside_captum(given.rounds)
    if "rates" in given.parts and given.device == "cpu":
        on_processor(given.rounds)
    if "rates" in given.parts and given.device == "cuda":
        on_gpu(given.rounds, channels_last=given.channels_last, compiled=given.compile)
    if "cost" in given.parts:
        cost(given.device, given.plot)
    if "exact" in given.parts:
        enumerated(given.device, grid=given.grid)


if __name__ == "__main__":
    main()
