"""Changes of data that must not change a conclusion: rows in another order, classes under other numbers."""

import dataclasses
from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import torch
from torch import Tensor

from forsooth.datasets.articles import Articles
from forsooth.datasets.objects import Cutouts
from forsooth.datasets.worlds import World
from forsooth.records import Dataset


def new_order(n: int) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(5))


def moved(splits: Mapping[str, Tensor], order: Tensor) -> dict[str, Tensor]:
    """The same rows of every split, by their places in the new order."""
    place = order.argsort()
    return {name: place[rows].sort().values for name, rows in splits.items()}


@singledispatch
def shuffled(data: Any) -> Any:
    raise TypeError(type(data).__name__)


@shuffled.register
def _(data: Dataset) -> Dataset:
    order = new_order(len(data.x))
    rows = {name: getattr(data, name) for name in ("x", "y", "truth", "strata")}
    ordered = {name: None if value is None else value[order] for name, value in rows.items()}
    return dataclasses.replace(data, **ordered, splits=moved(data.splits, order))


@shuffled.register
def _(data: Articles) -> Articles:
    order = new_order(len(data.non_correlating))
    return dataclasses.replace(data, dataset=shuffled(data.dataset), non_correlating=data.non_correlating[order])


@shuffled.register
def _(data: Cutouts) -> Cutouts:
    order = new_order(len(data.y))
    images = tuple(data.images[row] for row in order.tolist())
    return dataclasses.replace(data, images=images, y=data.y[order], splits=moved(data.splits, order))


@shuffled.register
def _(data: World) -> World:
    return dataclasses.replace(data, scenes=shuffled(data.scenes), cutouts=shuffled(data.cutouts))


@singledispatch
def exchanged(data: Any) -> Any:
    """The last class is called 0, the one before it 1, and so on."""
    raise TypeError(type(data).__name__)


@exchanged.register
def _(data: Dataset) -> Dataset:
    strata = None if data.strata is None else data.strata.max() - data.strata
    return dataclasses.replace(data, y=data.y.max() - data.y, strata=strata)


@exchanged.register
def _(data: Articles) -> Articles:
    return dataclasses.replace(data, dataset=exchanged(data.dataset))


@exchanged.register
def _(data: World) -> World:
    cutouts = dataclasses.replace(data.cutouts, y=data.cutouts.y.max() - data.cutouts.y)
    return dataclasses.replace(data, scenes=exchanged(data.scenes), cutouts=cutouts)
