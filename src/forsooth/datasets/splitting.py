"""The splits that all read data share, and which rows are kept where there are too many."""

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from forsooth.records import UsageError
from forsooth.seeds import generator, in_turns

SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}
HELD = 0.1  # share of each class that goes to val and to test where nobody says
LEAST = 3  # images or rows that a class needs: one for each split


def share_out(y: Tensor, strata: Sequence[str], *, limit: int, seed: int) -> list[int]:
    """At most `limit` rows of y (n,), drawn by seed: each stratum by its share, but never less than one row a class."""
    chosen: list[int] = []
    for name, size in _sizes(strata, limit=limit, classes=len(y.unique())).items():
        rows = torch.tensor([row for row, stratum in enumerate(strata) if stratum == name])
        chosen += rows[balanced(y[rows], size, seed=seed)].tolist()
    return sorted(chosen)


def _sizes(strata: Sequence[str], *, limit: int, classes: int) -> dict[str, int]:
    """How many rows each stratum keeps of `limit`: the largest, which comes first, what the others leave."""
    (largest, _), *others = Counter(strata).most_common()
    shares: dict[str, int] = {}
    for name, count in others:
        share = min(limit * count / len(strata), (limit - classes) / 2)
        shares[name] = max(classes, int(share))
    return {largest: limit - sum(shares.values()), **shares}


def balanced(y: Tensor, count: int, *, seed: int) -> Tensor:
    """Rows (count,) of y (n,) drawn by seed, as many of every class as there are, within one; sorted."""
    return in_turns(y, generator(seed, "balanced"))[:count].sort().values


def class_counts(y: Tensor, names: Sequence[str]) -> dict[str, int]:
    """How many rows of y (n,) each class has."""
    return dict(zip(names, torch.bincount(y, minlength=len(names)).tolist(), strict=True))


def check_classes(y: Tensor, names: Sequence[str], what: str) -> None:
    """UsageError unless every class has rows enough for train, val and test."""
    for name, count in class_counts(y, names).items():
        if count < LEAST:
            raise UsageError(f"every class must have at least {LEAST} samples, but {name!r} has {count} {what}")


def arrange(
    named: Sequence[str | None], y: Tensor, *, seed: int, names: Sequence[str]
) -> tuple[dict[str, Tensor], str]:
    """Indices of train, val and test, and where they come from.

    named  (n,) the split that the data name for each row, or None
    y      (n,) int
    names  of the classes

    Named splits are kept. Without test, what is called val becomes test; without val, a tenth of each class of train
    becomes val. Without names a tenth of each class becomes test and a tenth val.
    """
    if any(named):
        splits, origin = _named_splits(named, y, seed=seed)
    else:
        rest, test = hold_out(torch.arange(len(y)), y, seed=seed, name="test")
        train, val = hold_out(rest, y, seed=seed, name="val")
        splits = {"train": train, "val": val, "test": test}
        origin = "drawn by seed"
    _check_splits(splits, y, names)
    return splits, origin


def _named_splits(named: Sequence[str | None], y: Tensor, *, seed: int) -> tuple[dict[str, Tensor], str]:
    """The splits of `arrange` where the data name some."""
    train, val, test = (_rows(named, split) for split in ("train", "val", "test"))
    origin = "the data's own"
    if not len(test):
        test = val
        val = val[:0]
        origin += ", val taken as test"
    if not len(val):
        train, val = hold_out(train, y, seed=seed, name="val")
        origin += ", val drawn from train by seed"
    return {"train": train, "val": val, "test": test}, origin


def _rows(named: Sequence[str | None], split: str) -> Tensor:
    """(k,) the rows that the data put into a split."""
    return torch.tensor([row for row, name in enumerate(named) if name == split], dtype=torch.int64)


def _check_splits(splits: dict[str, Tensor], y: Tensor, names: Sequence[str]) -> None:
    """UsageError unless every class is in train, and something in test."""
    y_train = y[splits["train"]]
    for k, name in enumerate(names):
        if not (y_train == k).any():
            raise UsageError(f"`data` must hold the class {name!r} in the train split")
    if not len(splits["test"]):
        raise UsageError("`data` must hold anything in the val or test split")


def hold_out(rows: Tensor, y: Tensor, *, seed: int, name: str) -> tuple[Tensor, Tensor]:
    """Rows (k,) of y (n,) in two, kept and held: a tenth of each class is held, but at least one and never the last."""
    order = rows[torch.randperm(len(rows), generator=generator(seed, "split", name))]
    held = torch.zeros(len(y), dtype=torch.bool)
    for label in y[rows].unique():
        own = order[y[order] == label]
        count = max(1, round(HELD * len(own)))
        held[own[: min(count, len(own) - 1)]] = True
    return rows[~held[rows]].sort().values, rows[held[rows]].sort().values
