"""Who is explained, who is background, who patterns are fitted on: drawn by seed, evenly over classes, here alone."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from forsooth import seeds
from forsooth.records import Columns, Dataset, Facts, Tensors, UsageError

SHOWN = 4  # samples whose maps the page shows: the first of those explained, for their beginning is even


def rows_of(dataset: Dataset, rows: Tensor, count: int | None, *, seed: int, role: str) -> Tensor:
    """At most `count` of the rows (k,) of a dataset, drawn as `evenly` does over its classes or finer kinds."""
    strata = dataset.y if dataset.strata is None else dataset.strata
    return rows[evenly(strata[rows], count, seed=seed, role=role)]


def references(dataset: Dataset, wanted: Mapping[str, int], *, seed: int) -> Tensors:
    """Training rows that methods are given, drawn for each role on its own. role -> (k,)"""
    train = dataset.splits["train"]
    return {role: rows_of(dataset, train, count, seed=seed, role=role) for role, count in wanted.items()}


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
    returns   (k,) int64, in an order whose beginning is as even as the whole; see `seeds.in_turns_of_two`
    """
    return seeds.in_turns_of_two(one, two, count, seeds.generator(seed, "choose", role))


def classes_of(labels: Tensors, *, where: Columns, names: Sequence[str] | None = None) -> list[Facts]:
    """How many rows of each class take part in each role, for the run to keep and its page to show.

    labels  role -> (k,) int, the classes of the rows that take part in it
    where   the factors of the panel that these rows belong to
    names   of the classes, by number; None: the numbers themselves
    """
    lines = []
    for role, own in labels.items():
        values, counts = own.cpu().unique(return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            name = str(value) if names is None else names[value]
            lines.append({**where, "role": role, "class": name, "count": count})
    return lines
