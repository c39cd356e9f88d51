"""One integer becomes many independent, named generators, so that order and parallelism change nothing."""

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor


def derive(seed: int, *names: object) -> int:
    """A 63-bit seed for the thing called `names` under the user's `seed`.

    >>> derive(0, "noise") == derive(0, "noise"), derive(0, "noise") == derive(0, "labels")
    (True, False)
    """
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *names: object) -> torch.Generator:
    """A CPU generator for the thing called `names`; draws are made there and moved, so that devices agree."""
    return torch.Generator().manual_seed(derive(seed, *names))


def in_turns(strata: Tensor, draw: torch.Generator) -> Tensor:
    """All rows in a random order in which every stratum comes once before any comes twice, and so on.

    strata   (n,) int
    returns  (n,) int64; its beginning is as even over the strata as the whole, until one runs out
    """
    order = torch.randperm(len(strata), generator=draw)
    names, stratum = strata.cpu().unique(return_inverse=True)
    stratum = stratum[order]
    turn = torch.empty(len(order), dtype=torch.int64)  # how many of its stratum come before a row
    for name in range(len(names)):
        own = stratum == name
        turn[own] = torch.arange(int(own.sum()))
    within = torch.rand(len(order), generator=draw, dtype=torch.float64)  # who comes first in a turn is drawn, too
    return order[(turn + within).argsort()]


def in_turns_of_two(one: Tensor, two: Tensor, count: int | None, draw: torch.Generator) -> Tensor:
    """At most `count` rows, in a random order whose beginning is as even over the classes of either label as the whole.

    one, two  (n,) int, the two labels of every row
    count     None: all of them
    returns   (k,) int64

    Pairs of classes may be more than rows are wanted; what must be even are the classes. So each row in turn is of the
    pair whose classes were taken the least so far. Pairs that are not there, or run out, may spoil it.
    """
    order = torch.randperm(len(one), generator=draw)
    labels = [label.cpu()[order].unique(return_inverse=True)[1] for label in (one, two)]
    taken = [torch.zeros(int(label.max()) + 1 if len(label) else 0) for label in labels]
    free = torch.zeros(len(order))  # infinite once a row is taken
    rows = []
    for _ in range(len(order) if count is None else min(count, len(order))):
        least = int((taken[0][labels[0]] + taken[1][labels[1]] + free).argmin())
        free[least] = torch.inf
        for number, label in zip(taken, labels, strict=True):
            number[label[least]] += 1
        rows.append(least)
    return order[torch.tensor(rows, dtype=torch.int64)]


def generators(seed: int, name: str, samples: Iterable[int]) -> list[torch.Generator]:
    """One generator for each sample, by its number: its draws depend neither on its neighbours nor on its place."""
    return [generator(seed, name, int(sample)) for sample in samples]
