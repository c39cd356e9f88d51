"""Who is explained, who is background, who patterns are fitted on: drawn by seed, evenly over classes, here alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from forsooth import seeds
from forsooth.records import Dataset, UsageError


def rows_of(dataset: Dataset, rows: Tensor, count: int | None, *, seed: int, role: str) -> Tensor:
    """At most `count` of the rows (k,) of a dataset, drawn as `evenly` does over its classes or finer kinds."""
    strata = dataset.y if dataset.strata is None else dataset.strata
    return rows[evenly(strata[rows], count, seed=seed, role=role)]


def evenly(strata: Tensor, count: int | None, *, seed: int, role: str) -> Tensor:
    """Rows drawn at random, as many of every stratum as there are, within one.

    strata   (n,) int, the class of every row, or whatever else must be drawn evenly
    count    rows wanted; None or more than there are: all of them
    role     what they are drawn for ("explained", "background" …): every role has draws of its own
    returns  (k,) int64, in an order that mixes the strata: its beginning is as even as the whole

    A stratum that runs out leaves its places to the others.
    """
    if strata.ndim != 1:
        raise UsageError(f"`strata` must be one number for each row, got shape {tuple(strata.shape)}")
    if count is not None and count < 0:
        raise UsageError(f"`count` must be at least 0 or None, got {count}")
    draw = seeds.generator(seed, "choose", role)
    order = torch.randperm(len(strata), generator=draw)
    names, stratum = strata.cpu().unique(return_inverse=True)
    stratum = stratum[order]
    turn = torch.empty(len(order), dtype=torch.int64)  # how many of its stratum come before a row
    for name in range(len(names)):
        own = stratum == name
        turn[own] = torch.arange(int(own.sum()))
    within = torch.rand(len(order), generator=draw, dtype=torch.float64)  # who comes first in a turn is drawn, too
    return order[(turn + within).argsort()][:count]


def classes_of(
    labels: Tensor, *, role: str, names: Sequence[str] | None = None, where: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """How many rows of each class take part in a role, for the run to keep and its page to show.

    labels  (k,) int, the classes of the chosen rows
    names   of the classes, by number; None: the numbers themselves
    where   the factors of the panel that these rows belong to
    """
    values, counts = labels.cpu().unique(return_counts=True)
    told = [str(value) if names is None else names[value] for value in values.tolist()]
    return [
        {**(where or {}), "role": role, "class": name, "count": count}
        for name, count in zip(told, counts.tolist(), strict=True)
    ]
