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
    return seeds.in_turns(strata, seeds.generator(seed, "choose", role))[:count]


def crossed(one: Tensor, two: Tensor, count: int | None, *, seed: int, role: str) -> Tensor:
    """Rows drawn at random, as many of every class of two labels as there are: of each label by itself, within one.

    one, two  (n,) int, the two labels of every row, such as a scene and the object in it
    returns   (k,) int64, in an order whose beginning is as even as the whole

    Pairs of classes may be more than rows are wanted; what must be even are the classes. So each row in turn is of the
    pair whose classes were taken the least so far. Pairs that are not there, or run out, may spoil it.
    """
    order = torch.randperm(len(one), generator=seeds.generator(seed, "choose", role))
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


def classes_of(
    labels: Tensor, *, role: str, names: Sequence[str] | None = None, where: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """How many rows of each class take part in a role, for the run to keep and its page to show.

    labels  (k,) int, the classes of the chosen rows
    names   of the classes, by number; None: the numbers themselves
    where   the factors of the panel that these rows belong to
    """
    values, counts = labels.cpu().unique(return_counts=True)
    lines = []
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        name = str(value) if names is None else names[value]
        lines.append({**(where or {}), "role": role, "class": name, "count": count})
    return lines
