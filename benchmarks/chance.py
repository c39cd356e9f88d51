"""Are we as sure as we say? Simulated boards, from `forsooth.stats` and the doors that use it.

    python benchmarks/chance.py intervals   how often a 95 % interval holds the true score
    python benchmarks/chance.py boards      how often a board of 24 equal methods names any difference
    python benchmarks/chance.py few         the same of two methods with 2 to 10 samples
    python benchmarks/chance.py doors       how often the door `bias` tells methods of one law apart
    python benchmarks/chance.py power       how often a true difference is named

A number behind the command is how many boards are drawn for each line (1000).

Scores are 0.5 + sample + training + rest. Sample and rest together have standard deviation 0.15, and ρ is the share of
their variance that a sample keeps from network to network. Methods of one board share half of the variance of each
part, as maps of one network do.
"""

import sys
from collections.abc import Sequence
from itertools import product

import numpy as np

from forsooth.stats.differences import differing, losses, pairs, wins
from forsooth.stats.panels import Floats, Panel, panel_of
from forsooth.stats.spread import half_widths, spread_of

NOISE = 0.15  # standard deviation over samples
SPREADS = (0.0, 0.03, 0.05, 0.1, 0.15)  # of trainings
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
    made = []
    for dataset, own in enumerate(np.broadcast_to(spread, panels)):
        parts = [
            NOISE * kept**0.5 * _part(rng, methods, samples, 1, alike=alike, shapes=shapes),
            NOISE * (1 - kept) ** 0.5 * _part(rng, methods, samples, trainings, alike=alike, shapes=shapes),
            own * _part(rng, methods, 1, trainings, alike=alike),
        ]
        better = ahead * (np.arange(methods) == 0)[:, None, None]
        made.append(panel_of(0.5 + better + sum(parts), dataset=dataset, network=dataset))
    return made


def _part(
    rng: np.random.Generator, methods: int, samples: int, trainings: int, *, alike: float, shapes: str = "normal"
) -> Floats:
    """(methods, samples, trainings) with variance 1, of which methods share the part `alike`."""
    common = rng.normal(size=(1, samples, trainings))
    own = rng.normal(size=(methods, samples, trainings))
    both = alike**0.5 * common + (1 - alike) ** 0.5 * own
    return both if shapes == "normal" else np.exp(both) - 1  # the median stays 0


def covered(panels: Sequence[Panel]) -> bool:
    """Whether the interval of the first method's score holds 0.5."""
    value = np.mean([panel.value[0] for panel in panels])
    return bool(abs(value - 0.5) <= half_widths(spread_of(panels))[0, -1])


def any_named(panels: Sequence[Panel], *, nulls: int = 4) -> bool:
    """Whether a board names any difference: between two methods, or of a method and a null in one panel."""
    null = np.arange(len(panels[0].value)) < nulls
    kinds = {"sign": 1, "null": null, "rival": np.ones_like(null)}
    named = [differing(pairs(panels)), wins(panels, **kinds), losses(panels, **kinds)]
    return any(found.any() for found in named)


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
        size = {"panels": panels, "methods": 1, "samples": samples, "trainings": trainings, "kept": kept}
        shares = [np.mean([covered(scores(rng, spread=s, **size)) for _ in range(count)]) for s in SPREADS]
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
        spreads = (0.0, 0.05, 0.15) if trainings > 1 else (0.0,)
        shares = [np.mean([any_named(scores(rng, spread=s, **size)) for _ in range(count)]) for s in spreads]
        line(panels, "", trainings, samples, shares)
    print(f"the same, trainings spread unevenly over the panels: {', '.join(f'{spread:g}' for spread in UNEVEN)}")
    for trainings, samples in product((2, 3, 5), (50, 200)):
        size = {"panels": len(UNEVEN), "methods": 24, "samples": samples, "trainings": trainings, "spread": UNEVEN}
        line(len(UNEVEN), "", trainings, samples, [np.mean([any_named(scores(rng, **size)) for _ in range(count)])])


def few(count: int) -> None:
    """The same of two methods, with few samples."""
    print(f"two equal methods, one training: share of {count} boards that tell them apart; wanted at most 0.050")
    rng = np.random.default_rng(0)
    for alike, shapes in product((0.0, 0.5, 0.95), ("normal", "skewed")):
        shares = []
        for samples in (2, 3, 5, 6, 7, 8, 10, 20):
            size = {"panels": 1, "methods": 2, "samples": samples, "trainings": 1, "spread": 0.0}
            drawn = (scores(rng, alike=alike, shapes=shapes, **size) for _ in range(count))
            shares.append(np.mean([differing(pairs(panels)).any() for panels in drawn]))
        words = " ".join(f"{share:.3f}" for share in shares)
        print(f"methods share {alike:4g}, {shapes}: 2, 3, 5, 6, 7, 8, 10, 20 samples {words}")


def doors(count: int) -> None:
    """Methods of one law in the door `bias`: the function that judges its pairs, on made-up biases of single inputs."""
    from forsooth.user.answer import judged_pairs

    rng = np.random.default_rng(0)
    print(f"methods of one law in the door `bias`: share of {count} runs that tell any two apart; wanted at most 0.050")
    for methods, law in product((2, 4, 12), ("exponential", "lognormal")):
        shares = []
        for inputs in (1, 2, 3, 5, 10, 30):
            named = 0
            for _ in range(count):
                values = 0.05 * getattr(rng, law)(size=(methods, inputs))
                named += judged_pairs(values, None, rivals=np.ones(methods, dtype=bool), scale=4.0)[1].any()
            shares.append(named / count)
        words = " ".join(f"{share:.3f}" for share in shares)
        print(f"{methods:2} methods, {law:11}: 1, 2, 3, 5, 10, 30 inputs {words}", flush=True)


def power(count: int) -> None:
    """How often a true difference is named."""
    print(f"one method of 24 is better by so much: share of {count} boards that tell it from half of the others")
    rng = np.random.default_rng(0)
    for panels, trainings, samples in product((1, 8), (1, 2, 3, 5), (20, 50, 200)):
        size = {"panels": panels, "methods": 24, "samples": samples, "trainings": trainings}
        shares = []
        for ahead in (0.05, 0.1, 0.2, 0.3):
            drawn = (scores(rng, spread=0.03, ahead=ahead, **size) for _ in range(count))
            shares.append(np.mean([differing(pairs(own))[0].mean() >= 0.5 for own in drawn]))
        line(panels, "", trainings, samples, shares)


if __name__ == "__main__":
    command, *rest = sys.argv[1:] or ["intervals"]
    globals()[command](int(rest[0]) if rest else 1000)
