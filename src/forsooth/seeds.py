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


def generators(seed: int, name: str, samples: Iterable[int]) -> list[torch.Generator]:
    """One generator for each sample, by its number: its draws depend neither on its neighbours nor on its place."""
    return [generator(seed, name, int(sample)) for sample in samples]
