"""Are we as sure as we say? Simulated boards, from `forsooth.stats` and `forsooth bias`, which uses it.

    python benchmarks/chance.py intervals   how often a 95 % interval holds the true score
    python benchmarks/chance.py boards      how often a board of 24 equal methods names any difference
    python benchmarks/chance.py twenty      the same of those boards alone that have few samples or uneven trainings
    python benchmarks/chance.py few         the same of two methods with 2 to 10 samples
    python benchmarks/chance.py user        how often `forsooth bias` says that methods of one law differ
    python benchmarks/chance.py power       how often a true difference is named

A number behind the command is how many boards are drawn for each line (1000). What was printed last is in
`benchmarks/results/chance-*.txt`.

Scores are 0.5 + sample + training + rest. Sample and rest together have standard deviation 0.15, and ρ is the share of
their variance that a sample keeps from network to network. Methods of one board share half of the variance of each
part, as maps of one network do.
"""

import sys
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forsooth.stats.boards import compared_means
from forsooth.stats.differences import differing, losses, pairs, wins
from forsooth.stats.panels import Floats, Panel, panel_of
from forsooth.stats.spread import half_widths, spread_of

Judge = Callable[[Sequence[Panel]], bool | NDArray[np.bool_]]
NOISE = 0.15  # standard deviation over samples
SPREADS = (0.0, 0.03, 0.05, 0.1, 0.15)  # of trainings
ALONE = 50  # methods that share nothing: as many boards of one
UNEVEN = (0.0, 0.01, 0.02, 0.03, 0.03, 0.05, 0.1, 0.15)


def scores(
    rng: np.random.Generator,
    *,
    panels: int,
    methods: int,
    samples: int,
    trainings: int,
    spread: float | Sequence[float],
    kept: float = 0.5,
    alike: float = 0.5,
    shapes: str = "normal",
    ahead: float = 0.0,
) -> list[Panel]:
    """Panels of equal methods, each panel with samples of its own.

    spread  standard deviation of trainings, the same in all panels or one for each
    kept    ρ, share of the variance over samples that they keep from network to network
    alike   share of each variance that methods have in common
    shapes  "normal", or "skewed" (exponential, less its median)
    ahead   by how much the first method is better
    """
    better = ahead * (np.arange(methods) == 0)[:, None, None]
    drawn = []
    for dataset, own in enumerate(np.broadcast_to(spread, panels)):
        of_samples = kept**0.5 * _part(rng, methods, samples, 1, alike=alike, shapes=shapes)
        rest = (1 - kept) ** 0.5 * _part(rng, methods, samples, trainings, alike=alike, shapes=shapes)
        of_trainings = own * _part(rng, methods, 1, trainings, alike=alike)
        values = 0.5 + better + NOISE * of_samples + NOISE * rest + of_trainings
        drawn.append(panel_of(values, dataset=dataset, network=dataset))
    return drawn


def _part(
    rng: np.random.Generator, methods: int, samples: int, trainings: int, *, alike: float, shapes: str = "normal"
) -> Floats:
    """(methods, samples, trainings) with variance 1, of which methods share the part `alike`."""
    common = rng.normal(size=(1, samples, trainings))
    own = rng.normal(size=(methods, samples, trainings))
    both = alike**0.5 * common + (1 - alike) ** 0.5 * own
    if shapes == "normal":
        return both
    return np.exp(both) - 1  # the median stays 0


def covered(panels: Sequence[Panel]) -> NDArray[np.bool_]:
    """Whether the interval of each method's score holds 0.5: (methods,)."""
    value = np.mean([panel.value for panel in panels], axis=0)
    return np.asarray(abs(value - 0.5) <= half_widths(spread_of(panels))[:-1, -1])


def any_named(panels: Sequence[Panel], *, nulls: int = 4) -> bool:
    """Whether a board names any difference: between two methods, or of a method and a null in one panel."""
    null = np.arange(len(panels[0].value)) < nulls
    kinds = {"sign": 1, "null": null, "rival": np.ones_like(null)}
    named = [differing(pairs(panels)), wins(panels, **kinds), losses(panels, **kinds)]
    return any(found.any() for found in named)


def tells_apart(panels: Sequence[Panel]) -> bool:
    """Whether any two methods differ on the board."""
    return bool(differing(pairs(panels)).any())


def share_of(judge: Judge, count: int, rng: np.random.Generator, **size: Any) -> float:
    """The share of `count` boards of which `judge` is true; size as in `scores`."""
    return float(np.mean([judge(scores(rng, **size)) for _ in range(count)]))


def line(panels: int, kept: str, trainings: int, samples: int, shares: Sequence[float]) -> None:
    words = " ".join(f"{share:.3f}" for share in shares)
    print(f"{panels:6} {kept:3} {trainings:9} {samples:7} | {'':19} {words}", flush=True)


def intervals(count: int) -> None:
    """How often a 95 % interval holds the true score."""
    error = 2 * (0.05 * 0.95 / count) ** 0.5
    print(f"95 % intervals: share that holds the true score, {count} boards each (± {error:.3f})")
    print("panels   ρ trainings samples | spread of trainings " + " ".join(f"{spread:5g}" for spread in SPREADS))
    rng = np.random.default_rng(0)
    seen = []
    for panels, kept, trainings, samples in product((1, 4), (0.0, 0.5, 1.0), (2, 3, 5, 10), (5, 10, 20, 100, 200)):
        size = {"panels": panels, "methods": ALONE, "samples": samples, "trainings": trainings, "kept": kept}
        shares = [share_of(covered, -(-count // ALONE), rng, spread=spread, alike=0.0, **size) for spread in SPREADS]
        seen += shares
        line(panels, f"{kept:g}", trainings, samples, shares)
    inside = np.mean([0.93 <= share <= 0.97 for share in seen])
    print(f"least {min(seen):.3f}, most {max(seen):.3f}, mean {np.mean(seen):.3f}; {inside:.0%} lie in 0.93 to 0.97")


def boards(count: int) -> None:
    """How often a board of equal methods names any difference."""
    print(f"24 equal methods, 4 of them nulls: share of {count} boards that name any difference; wanted at most 0.050")
    print("panels     trainings samples | spread of trainings     0  0.05  0.15")
    rng = np.random.default_rng(0)
    for panels, trainings, samples in product((1, 2, 8), (1, 2, 3, 5), (20, 50, 200)):
        size = {"panels": panels, "methods": 24, "samples": samples, "trainings": trainings}
        spreads = {1: (0.0,)}.get(trainings, (0.0, 0.05, 0.15))  # one training says nothing of others
        shares = [share_of(any_named, count, rng, spread=spread, **size) for spread in spreads]
        line(panels, "", trainings, samples, shares)
    print(f"the same, trainings spread unevenly over the panels: {', '.join(f'{spread:g}' for spread in UNEVEN)}")
    for trainings, samples in product((2, 3, 5), (50, 200)):
        size = {"panels": len(UNEVEN), "methods": 24, "samples": samples, "trainings": trainings, "spread": UNEVEN}
        line(len(UNEVEN), "", trainings, samples, [share_of(any_named, count, rng, **size)])


def twenty(count: int) -> None:
    """Boards of equal methods with ten and twenty samples, and those whose trainings spread unevenly."""
    print(f"24 equal methods, 4 of them nulls: share of {count} boards that name any difference; wanted at most 0.050")
    print("panels     trainings samples | spread of trainings     0  0.05  0.15")
    rng = np.random.default_rng(0)
    for panels, trainings, samples in product((1, 2), (1, 3, 5), (10, 20)):
        size = {"panels": panels, "methods": 24, "samples": samples, "trainings": trainings}
        spreads = {1: (0.0,)}.get(trainings, (0.0, 0.05, 0.15))
        shares = [share_of(any_named, count, rng, spread=spread, **size) for spread in spreads]
        line(panels, "", trainings, samples, shares)
    print(f"the same, trainings spread unevenly over the panels: {', '.join(f'{spread:g}' for spread in UNEVEN)}")
    for trainings in (2, 3):
        size = {"panels": len(UNEVEN), "methods": 24, "samples": 20, "trainings": trainings, "spread": UNEVEN}
        line(len(UNEVEN), "", trainings, 20, [share_of(any_named, count, rng, **size)])


def few(count: int) -> None:
    """The same of two methods, with few samples."""
    print(f"two equal methods, one training: share of {count} boards that tell them apart; wanted at most 0.050")
    rng = np.random.default_rng(0)
    for alike, shapes in product((0.0, 0.5, 0.95), ("normal", "skewed")):
        shares = []
        for samples in (2, 3, 5, 6, 7, 8, 10, 20):
            size = {"panels": 1, "methods": 2, "samples": samples, "trainings": 1, "spread": 0.0}
            shares.append(share_of(tells_apart, count, rng, alike=alike, shapes=shapes, **size))
        words = " ".join(f"{share:.3f}" for share in shares)
        print(f"methods share {alike:4g}, {shapes}: 2, 3, 5, 6, 7, 8, 10, 20 samples {words}")


def user(count: int) -> None:
    """Methods of one law in `forsooth bias`: the function that judges its pairs, on made-up biases of single inputs."""
    rng = np.random.default_rng(0)
    print(f"methods of one law in `forsooth bias`: share of {count} runs in which any two differ; wanted at most 0.050")
    for methods, law in product((2, 4, 12), ("exponential", "lognormal")):
        shares = []
        for inputs in (1, 2, 3, 5, 10, 30):
            named = 0
            for _ in range(count):
                values = 0.05 * getattr(rng, law)(size=(methods, inputs))
                named += compared_means(values, scale=4.0)[1].any()
            shares.append(named / count)
        words = " ".join(f"{share:.3f}" for share in shares)
        print(f"{methods:2} methods, {law:11}: 1, 2, 3, 5, 10, 30 inputs {words}", flush=True)


def leads(panels: Sequence[Panel]) -> bool:
    """Whether the first method differs from half of the others."""
    return bool(differing(pairs(panels))[0].mean() >= 0.5)


def power(count: int) -> None:
    """How often a true difference is named."""
    print(f"one method of 24 is better by so much: share of {count} boards that tell it from half of the others")
    rng = np.random.default_rng(0)
    for panels, trainings, samples in product((1, 8), (1, 2, 3, 5), (20, 50, 200)):
        size = {"panels": panels, "methods": 24, "samples": samples, "trainings": trainings}
        shares = [share_of(leads, count, rng, spread=0.03, ahead=ahead, **size) for ahead in (0.05, 0.1, 0.2, 0.3)]
        line(panels, "", trainings, samples, shares)


if __name__ == "__main__":
    usual = ["intervals", "1000"]
    command, boards_drawn = sys.argv[1:] + usual[len(sys.argv) - 1 :]
    globals()[command](int(boards_drawn))
