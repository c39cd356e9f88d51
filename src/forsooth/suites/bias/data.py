"""What the bias suite plays on: generated data always, CIFAR-10, Pascal VOC and tables where `--data` has them."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import nn

from forsooth.datasets import cifar, leaves, tables, tabular, tetromino_settings, voc
from forsooth.datasets.suppressor import suppressor
from forsooth.datasets.tetromino import tetromino
from forsooth.digests import digest, require_same
from forsooth.models import build, recipes
from forsooth.plain import remembered
from forsooth.records import Dataset, UsageError

RESNETS = ("resnet20", "resnet32", "resnet44", "resnet56")
VISION = ("resnet50", "resnet101", "alexnet", "vgg16", "vgg19")
OF_ANY_SIDE = ("leaves", "voc")
LEAVES_CLASSES = 4
LEAVES_IMAGES = 3_000
VOC_CROPS = 4_000


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset as this suite plays it.

    models  networks it is asked with
    recipe  how they are trained where no weights are at hand
    gate    accuracy below which a network is not explained: clearly above chance is enough for a game
    kind    what a method is given to read
    """

    name: str
    models: tuple[str, ...]
    recipe: recipes.Recipe
    gate: float
    kind: Literal["image", "table"] = "image"


TABLE = DatasetEntry("interactions", ("mlp5",), recipes.TABLE, 0.75, kind="table")
ENTRIES = (
    TABLE,
    dataclasses.replace(
        TABLE,
        name="suppressor",
        models=("linear",),
        recipe=dataclasses.replace(recipes.TABLE, learning_rate=0.01),
    ),
    DatasetEntry("tetromino", ("mlp", "vit"), recipes.QUICK_8, 0.8),
    DatasetEntry("leaves", ("lenet", "vit"), recipes.LENET, 0.7),
    DatasetEntry("cifar10", ("lenet", "vit", *RESNETS), recipes.LENET_PHOTOS, 0.45),
    DatasetEntry("voc", VISION, recipes.VISION, 0.2),  # trained from nothing on 1,500 photographs; chance is 0.05
)
ANY_TABLE_GATE = 0.55


def entry_for(name: str) -> DatasetEntry:
    """The entry of a dataset; a table of the user's has the entry of all tables."""
    by_name = {entry.name: entry for entry in ENTRIES}
    return by_name.get(name) or dataclasses.replace(TABLE, name=name, gate=ANY_TABLE_GATE)


def datasets_in(path: str | None) -> dict[str, str]:
    """name -> file or folder of every dataset in the folder that `--data` names."""
    if path is None:
        return {}
    place = Path(path)
    if not place.exists():
        raise UsageError(f"`data` must be a folder or file of data, but there is nothing at {path}")
    here = tables_at(path)
    if holds_voc(place):
        here = {"voc": path, **here}
    if place.is_dir() and any(cifar.find(place, mark) for mark, _ in cifar.LAYOUTS.values()):
        here = {"cifar10": path, **here}
    if not here:
        raise UsageError(f"`data` must hold CIFAR-10, Pascal VOC or tables, but none of them is known in {path}")
    return here


def holds_voc(place: Path) -> bool:
    if place.name == voc.ZIP or (place / voc.ZIP).is_file():
        return True
    return any(map(voc.is_tree, (place, *place.glob("*/"))))


def tables_at(path: str) -> dict[str, str]:
    """name -> file of every table in a folder, or of the one that is named."""
    place = Path(path)
    if place.is_dir():
        return {tables.stem(place / name): str(place / name) for name in tables.tables_in(place)}
    if tables.suffix(place) in tables.READERS:
        return {tables.stem(place): path}
    return {}


@dataclass(frozen=True)
class DataSpec:
    """All that decides a dataset, and the weights that come with it.

    path     file or folder of the user's; None: generated
    digest   of these files
    weights  network -> file
    side     of images that can have any; None: of all others
    """

    name: str
    path: str | None
    digest: str | None
    seed: int
    weights: Mapping[str, str]
    side: int | None


def data_spec(name: str, path: str | None, *, seed: int, side: int) -> DataSpec:
    """What decides the dataset called `name`, read from `path` or generated."""
    spec = DataSpec(name, path, digest=None, seed=seed, weights={}, side=None)
    if name in OF_ANY_SIDE:
        spec = dataclasses.replace(spec, side=side)
    if path and name == "cifar10":
        weights = {net: str(file) for net, file in cifar.weights_in(path).items()}
        spec = dataclasses.replace(spec, weights=weights)
    if path:
        spec = dataclasses.replace(spec, digest=digest(path))
    return spec


@remembered(2)  # tasks come in the order of their datasets
def dataset(spec: DataSpec) -> Dataset:
    """The dataset, made or read again."""
    if spec.name in READERS:
        made = READERS[spec.name](spec)
    else:
        made = tables.table(path_of(spec), seed=spec.seed)
    if spec.path:
        require_same(digest(spec.path), spec.digest, spec.path)
    return made


def tetrominoes(spec: DataSpec) -> Dataset:
    everywhere = dataclasses.replace(tetromino_settings.RELEASED, positions="all")
    setting = tetromino_settings.Setting("XOR", "WHITE", 8, None, None, everywhere)
    return tetromino(setting, seed=spec.seed)


def dead_leaves(spec: DataSpec) -> Dataset:
    images = leaves.leaves(classes=LEAVES_CLASSES, n=LEAVES_IMAGES, side=side_of(spec), seed=spec.seed)
    return standardised(images)


def path_of(spec: DataSpec) -> str:
    if spec.path is None:
        raise UsageError(f"`data` must name a folder with {spec.name}, got None")
    return spec.path


def side_of(spec: DataSpec) -> int:
    assert spec.side is not None
    return spec.side


READERS: Mapping[str, Callable[[DataSpec], Dataset]] = {
    "interactions": lambda spec: tabular.interactions(seed=spec.seed),
    "suppressor": lambda spec: suppressor(seed=spec.seed),
    "tetromino": tetrominoes,
    "leaves": dead_leaves,
    "cifar10": lambda spec: cifar.cifar10(path_of(spec), seed=spec.seed),
    "voc": lambda spec: voc.crops(path_of(spec), side=side_of(spec), seed=spec.seed, limit=VOC_CROPS),
}


def standardised(images: Dataset) -> Dataset:
    """Every channel with mean 0 and spread 1 over the training split, so that zero is the mean colour."""
    axes = (0, *range(2, images.x.ndim))
    train = images.x[images.splits["train"]]
    mean = train.mean(axes, keepdim=True)
    spread = train.std(axes, keepdim=True)
    return dataclasses.replace(images, x=(images.x - mean) / spread)


def notes(data: Dataset) -> list[str]:
    """Sentences on the data that a reader of the results must know."""
    return [str(sentence) for sentence in data.facts.get("said", ())]


def untrained(net: str, data: Dataset) -> nn.Module:
    """The network called `net` for inputs and classes of these data."""
    shape = tuple(data.x.shape[1:])
    return build(net, shape=shape, classes=int(data.y.max()) + 1)
