"""Images before anything is done to them: dead leaves, or those of the user."""

from dataclasses import dataclass
from functools import lru_cache

from forsooth.datasets import folders, labelled
from forsooth.datasets.leaves import LEAVES, leaves
from forsooth.digests import require_same
from forsooth.records import Dataset, UsageError


@dataclass(frozen=True)
class Images:
    """The images before anything is planted.

    path       folder or zip of the user's; None: dead leaves
    digest     of the files at `path`
    classes    how many there are
    per_class  images of a class: so many are generated, or read at most; None: all
    side       px
    """

    path: str | None
    digest: str | None
    classes: int
    per_class: int | None
    side: int
    seed: int

    def __post_init__(self) -> None:
        if self.path is None and self.per_class is None:
            raise UsageError("`per_class` must be a number where images are generated, got None")


def images_at(path: str | None, *, classes: int, per_class: int | None, side: int, seed: int) -> Images:
    """The user's images at `path` as they are now, or generated ones."""
    digest = None if path is None else folders.digest(path)
    return Images(path, digest, classes, per_class, side, seed)


def class_names(path: str | None, classes: int, *, least: int = 2) -> list[str]:
    """The classes of the user's images, or of `classes` kinds of dead leaves; nothing is read but the names."""
    if path is None:
        return [scene.name for scene in LEAVES[:classes]]
    return labelled.class_names(path, least=least)


@lru_cache(maxsize=1)  # tasks that follow each other ask alike
def base(images: Images) -> Dataset:
    """The images before anything is planted."""
    count = images.per_class and images.per_class * images.classes
    if images.path is not None:
        read = labelled.images(images.path, side=images.side, seed=images.seed, limit=count, least=1)
        require_same(folders.digest(images.path), images.digest, images.path)
        return read
    assert count is not None
    return leaves(classes=images.classes, n=count, side=images.side, seed=images.seed)
