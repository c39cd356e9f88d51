"""What the bias suite plays on: generated data always, CIFAR-10, Pascal VOC and tables where `--data` has them."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from forsooth.datasets import cifar, leaves, tables, tabular, voc
from forsooth.datasets import settings as tetromino_settings
from forsooth.datasets.suppressor import suppressor
from forsooth.datasets.tetromino import tetromino
from forsooth.digests import digest
from forsooth.models import MODELS, recipes
from forsooth.names import find, unknown
from forsooth.records import Dataset, UsageError


@dataclass(frozen=True)
class Played:
    """A dataset as this suite plays it.

    models  networks it is asked with
    recipe  how they are trained where no weights are at hand
    gate    accuracy below which a network is not explained: clearly above chance is enough for a game
    """

    name: str
    models: tuple[str, ...]
    recipe: recipes.Recipe
    gate: float


RESNETS = ("resnet20", "resnet32", "resnet44", "resnet56")
TABLES = ("mlp5", "linear")
VISION = ("resnet50", "resnet101", "alexnet", "vgg16", "vgg19")
PLAYED = (
    Played("interactions", ("mlp5",), recipes.TABLE, 0.75),
    Played("suppressor", ("linear",), dataclasses.replace(recipes.TABLE, learning_rate=0.01), 0.75),
    Played("tetromino", ("mlp",), recipes.QUICK_8, 0.8),
    Played("leaves", ("lenet",), recipes.LENET, 0.7),
    Played("cifar10", ("lenet", *RESNETS), recipes.LENET_PHOTOS, 0.45),
    Played("voc", VISION, recipes.VISION, 0.2),  # trained from nothing on 1,500 photographs; chance is 0.05
)
GENERATED = ("interactions", "tetromino", "leaves")


def played(name: str) -> Played:
    """The entry of a dataset; a table of the user's has the entry of all tables."""
    known = {entry.name: entry for entry in PLAYED}
    return known.get(name) or dataclasses.replace(known["interactions"], name=name, gate=0.55)


def found(path: str | None) -> dict[str, str]:
    """name -> file or folder of every dataset in the folder that `--data` names."""
    if path is None:
        return {}
    if not Path(path).exists():
        raise UsageError(f"`data` must be a folder or file of data, but there is nothing at {path}")
    place = Path(path)
    here: dict[str, str] = {}
    if place.is_dir() and any(cifar.find(place, mark) for mark, _ in cifar.LAYOUTS.values()):
        here["cifar10"] = path
    if place.name == voc.ZIP or (place / voc.ZIP).is_file() or any(map(voc.is_tree, (place, *place.glob("*/")))):
        here["voc"] = path
    here |= {tables.stem(place / name): str(place / name) for name in tables.tables_in(place)} if place.is_dir() else {}
    if tables.suffix(place) in tables.READERS:
        here[tables.stem(place)] = path
    if not here:
        raise UsageError(f"`data` must hold CIFAR-10, Pascal VOC or tables, but none of them is known in {path}")
    return here


def spec(name: str, path: str | None, *, seed: int, side: int) -> dict[str, Any]:
    """All that decides a dataset, as plain values a task can carry."""
    found = cifar.weights_in(path) if name == "cifar10" and path else {}
    weights = {net: str(file) for net, file in found.items()}
    about = {"name": name, "path": path, "digest": digest(path) if path else None, "seed": seed, "weights": weights}
    return {**about, "side": side if name in ("leaves", "voc") else None}


def read(about: Mapping[str, Any]) -> Dataset:
    """The dataset of a `spec`."""
    name, path, seed = about["name"], about["path"], about["seed"]
    if name == "interactions":
        return tabular.interactions(seed=seed)
    if name == "suppressor":
        return suppressor(seed=seed)
    if name == "tetromino":
        variant = dataclasses.replace(tetromino_settings.RELEASED, positions="all")
        asked = tetromino_settings.Setting("XOR", "WHITE", 8, None, None, variant)
        return tetromino(asked, seed=seed)
    if name == "leaves":
        return standardised(leaves.leaves(classes=4, n=3000, side=about["side"], seed=seed))
    if name == "cifar10":
        return cifar.cifar10(path, seed=seed)
    if name == "voc":
        return voc.crops(path, side=about["side"], seed=seed, limit=4000)
    return tables.table(path, seed=seed)


def standardised(dataset: Dataset) -> Dataset:
    """Every channel with mean 0 and spread 1 over the training split, so that zero is the mean colour."""
    axes = (0, *range(2, dataset.x.ndim))
    known = dataset.x[dataset.splits["train"]]
    mean, spread = known.mean(axes, keepdim=True), known.std(axes, keepdim=True)
    return dataclasses.replace(dataset, x=(dataset.x - mean) / spread)


def said(dataset: Dataset) -> list[str]:
    """Sentences on the data that a reader of the results must know."""
    return [str(sentence) for sentence in dataset.facts.get("said", ())]


def build(net: str, shape: tuple[int, ...], classes: int) -> nn.Module:
    """The network called `net` for inputs of this shape, untrained."""
    function = find(net, MODELS, argument="models").function
    if net in ("llr", "mlp", "cnn"):
        return function(size=shape[-1], variant="released")
    if net in TABLES:
        return function(features=shape[0], classes=classes)
    if net == "lenet":
        return function(size=shape[-1], channels_in=shape[0], classes=classes)
    if net in RESNETS:
        return function(size=shape[-1])
    if net in VISION:
        return function(size=shape[-1], classes=classes)
    raise unknown(net, [name for entry in PLAYED for name in entry.models], argument="models")


def is_table(name: str) -> bool:
    """Whether the dataset has features instead of pixels."""
    return set(played(name).models) <= set(TABLES)
