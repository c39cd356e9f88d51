"""A dataset on the device of its training."""

from typing import NamedTuple

import torch
from torch import Tensor

from forsooth.records import Dataset, UsageError

SPLITS = ("train", "val", "test")


class Samples(NamedTuple):
    """Inputs x (n, *shape), labels y (n,) and the rows (k,) of each split, all on the device of the training."""

    x: Tensor
    y: Tensor
    splits: dict[str, Tensor]

    def rows(self, split: str) -> tuple[Tensor, Tensor]:
        """x (k, *shape) and y (k,) of a split."""
        rows = self.splits[split]
        return self.x[rows], self.y[rows]


def check_splits(dataset: Dataset) -> None:
    """UsageError unless there is something to train on, to choose by and to judge by."""
    for name in SPLITS:
        if name not in dataset.splits or not len(dataset.splits[name]):
            names = ", ".join(sorted(dataset.splits)) or "none"
            raise UsageError(f"`dataset` must have a split '{name}' with samples, got the splits {names}")


def moved(dataset: Dataset, device: torch.device) -> Samples:
    """Inputs, labels and the three splits on the device."""
    splits = {name: dataset.splits[name].to(device) for name in SPLITS}
    return Samples(dataset.x.to(device), dataset.y.to(device), splits)
