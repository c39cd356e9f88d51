"""The tetromino data of the suite: what decides them, who is explained, and who helps."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from forsooth import shared
from forsooth.datasets import folders
from forsooth.datasets.tetromino import tetromino
from forsooth.datasets.tetromino_settings import Setting
from forsooth.digests import require_same
from forsooth.plain import remembered, to_plain
from forsooth.records import NO_MODEL, Cell, Columns, Dataset, Facts, Row, Tensors
from forsooth.suites import choose, networks

BACKGROUND_IMAGES = 100  # training images given to methods as references
TITLE = "{0.scenario}-{0.background} {0.size}×{0.size}"
FILE = "{0.scenario}-{0.background}-{0.size}"  # the name of a dataset elsewhere
FIT_IMAGES = 2_000  # training images given to methods that fit patterns


@dataclass(frozen=True)
class Photos:
    """The user's photographs: where they are, and a hash of their files."""

    path: str | None
    digest: str | None


@dataclass(frozen=True)
class DataSpec:
    """All that decides a dataset.

    photos  behind IMAGENET; without a path, generated dead leaves stand for them. None on other backgrounds
    """

    setting: Setting
    photos: Photos | None
    seed: int


@dataclass(frozen=True)
class Panel:
    """Dataset and network of a line on the page. `model_seed` is -1 where no network is looked at."""

    size: int
    scenario: str
    background: str
    alpha: float | None
    model: str = NO_MODEL
    model_seed: int = -1

    @property
    def factors(self) -> Columns:
        """The columns that tell datasets apart."""
        return {"size": self.size, "scenario": self.scenario, "background": self.background, "alpha": self.alpha}

    def row(self, part: str, method: str = "") -> Row:
        """The row that all rows of this panel begin as."""
        return Row(
            suite="xaitris",
            part=part,
            dataset="tetromino",
            model=self.model,
            model_seed=self.model_seed,
            method=method,
            columns=self.factors,
        )


def panel(spec: DataSpec, model: str = NO_MODEL, model_seed: int = -1) -> Panel:
    """Generated stand-ins for photographs carry that in their name, in every table."""
    setting = spec.setting
    background = setting.background
    if spec.photos == Photos(None, None):
        background = "IMAGENET (dead leaves)"
    return Panel(setting.size, setting.scenario, background, setting.alpha, model, model_seed)


def title(spec: DataSpec) -> str:
    return TITLE.format(spec.setting)


@remembered(2)
def dataset(spec: DataSpec) -> Dataset:
    """The dataset, made once in a run; the last two are kept, since tasks come in their order."""
    words = json.dumps(to_plain(spec), sort_keys=True)
    return shared.once(hashlib.sha256(words.encode()).hexdigest()[:32], lambda: made(spec))


def made(spec: DataSpec) -> Dataset:
    """The dataset, made from its recipe."""
    photos = None
    if spec.photos and spec.photos.path:
        photos = folders.photographs(spec.photos.path, side=folders.photo_side(spec.setting.size))
        require_same(folders.digest(spec.photos.path), spec.photos.digest, spec.photos.path)
    return tetromino(spec.setting, seed=spec.seed, photos=photos)


def explained(trained: Sequence[Cell], data: Dataset, samples: int | None, *, seed: int) -> Tensor:
    """Test images that every network above its gate gets right, at most `samples`, as many of each kind. (k,)"""
    return choose.rows_of(data, networks.agreed(trained, data.splits["test"]), samples, seed=seed, role="explained")


def references(data: Dataset, *, seed: int) -> Tensors:
    """Training images that methods are given, drawn for each role on its own. role -> (k,)"""
    return choose.references(data, {"background": BACKGROUND_IMAGES, "fit": FIT_IMAGES}, seed=seed)


def counts(data: Dataset, roles: Tensors, *, where: Columns) -> list[Facts]:
    """How many of the rows (k,) of each role are of each kind, by name."""
    assert data.strata is not None
    kinds = {role: data.strata[rows] for role, rows in roles.items()}
    return choose.classes_of(kinds, names=data.facts["kinds"], where=where)
