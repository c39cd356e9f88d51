"""What the bias suite plays on: generated data always, CIFAR-10, Pascal VOC and tables where `--data` has them."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from torch import nn

from forsooth.datasets import cifar, leaves, tables, tabular, tetromino_settings, voc
from forsooth.datasets.at_hand import datasets_in as datasets_in
from forsooth.datasets.standard import standardised
from forsooth.datasets.suppressor import suppressor
from forsooth.datasets.tetromino import tetromino
from forsooth.digests import digest, require_same
from forsooth.models import build, recipes
from forsooth.plain import remembered
from forsooth.records import Dataset, UsageError
from forsooth.suites.bias.settings import RESNETS, VISION

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
    known = (entry for entry in ENTRIES if entry.name == name)
    return next(known, dataclasses.replace(TABLE, name=name, gate=ANY_TABLE_GATE))


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
    files = cifar.weights_in(path) if path and name == "cifar10" else {}
    return DataSpec(
        name,
        path,
        digest=path and digest(path),
        seed=seed,
        weights={net: str(file) for net, file in files.items()},
        side=side if name in OF_ANY_SIDE else None,
    )


@remembered(2)  # tasks come in the order of their datasets
def dataset(spec: DataSpec) -> Dataset:
    """The dataset, made or read again."""
    made = READERS.get(spec.name, users_table)(spec)
    require_unchanged(spec)
    return made


def require_unchanged(spec: DataSpec) -> None:
    """UsageError where the user's files are not those that were planned with; asked after they were read."""
    if spec.path:
        require_same(digest(spec.path), spec.digest, spec.path)


def users_table(spec: DataSpec) -> Dataset:
    return tables.table(path_of(spec), seed=spec.seed)


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


def notes(data: Dataset) -> list[str]:
    """Sentences on the data that a reader of the results must know."""
    return [str(sentence) for sentence in data.facts.get("said", ())]


def untrained(net: str, data: Dataset) -> nn.Module:
    """The network called `net` for inputs and classes of these data."""
    shape = tuple(data.x.shape[1:])
    return build(net, shape=shape, classes=int(data.y.max()) + 1)
