"""A dataset on the device of its training, or several of one shape."""

from collections.abc import Iterable
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


class Pool(NamedTuple):
    """Datasets of one shape, one after the other on the device.

    x, y    of all of them
    splits  name -> (datasets, k) rows of x
    each    the samples of every dataset, pieces of x
    """

    x: Tensor
    y: Tensor
    splits: dict[str, Tensor]
    each: list[Samples]


def pooled(datasets: Iterable[Dataset], count: int, device: torch.device) -> Pool:
    """The datasets on the device; they are taken one by one, so that the host need not hold them all."""
    x = y = torch.empty(0)
    rows: dict[str, list[Tensor]] = {name: [] for name in SPLITS}
    each = []
    for place, dataset in enumerate(datasets):
        check_splits(dataset)
        if not place:
            x = torch.empty(count, *dataset.x.shape, device=device, dtype=dataset.x.dtype)
            y = torch.empty(count, len(dataset.y), device=device, dtype=dataset.y.dtype)
        _check_shape(dataset, x)
        x[place].copy_(dataset.x)
        y[place].copy_(dataset.y)
        own = {name: dataset.splits[name].to(device) for name in SPLITS}
        each.append(Samples(x[place], y[place], own))
        for name in SPLITS:
            rows[name].append(own[name] + place * len(dataset.x))
    return Pool(x.flatten(0, 1), y.flatten(), {name: torch.stack(parts) for name, parts in rows.items()}, each)


def _check_shape(dataset: Dataset, x: Tensor) -> None:
    """UsageError unless the images have the shape of those of every dataset in x (datasets, n, *shape)."""
    if dataset.x.shape != x.shape[1:]:
        raise UsageError(f"`datasets` must be of one shape, got {tuple(dataset.x.shape)} and {tuple(x.shape[1:])}")
