"""Scenes, cut-outs and the one class of them that is the common feature: generated, or the user's."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import torch

from forsooth.datasets import folders, labelled, leaves, objects
from forsooth.datasets.objects import Cutouts
from forsooth.digests import require_same
from forsooth.names import unknown
from forsooth.records import Dataset, UsageError
from forsooth.seeds import derive

OBJECTS = 10  # classes of objects, as in the paper
SCENES_AT = ("scenes", "scenes.zip", "miniplaces_bam10_128px.zip")
OBJECTS_AT = ("objects", "objects.zip", "voc2012_cutouts_128px.zip")
FEATURES = ("dog", "disc")  # the common feature, where there is one of these


@dataclass(frozen=True)
class WorldSpec:
    """Where scenes and objects come from.

    path             folder of the user's; None: they are generated
    side             of the scenes, px
    scenes, cutouts  how many of a class are generated; of the user's scenes so many at most are read (None: all)
    feature          class of objects that is the common feature; empty: a dog or a disc, else the first class
    same_objects     cut-outs of training are those of the test too
    first_scene      class of scenes that always has the common feature; empty: the first by name
    digest           hash of the user's files, see `with_digest`
    """

    path: str | None
    side: int
    scenes: int | None
    cutouts: int
    feature: str
    seed: int
    same_objects: bool = False
    first_scene: str = field(default="", metadata={"key": "first"})
    digest: str | None = None


@dataclass(frozen=True)
class World:
    """Scenes, objects, and the class of objects that is the common feature."""

    scenes: Dataset
    cutouts: Cutouts
    feature: int


def with_digest(spec: WorldSpec) -> WorldSpec:
    """The spec with the hash of the user's files; names of generated classes are checked."""
    if spec.path is not None:
        digests = [folders.digest(scenes_at(spec.path)), folders.digest(objects_at(spec.path))]
        return replace(spec, digest=" ".join(digests))
    feature_number(spec.feature, objects.NAMES)
    if spec.first_scene:
        check_scene(spec.first_scene, [scene.name for scene in leaves.SCENES])
    return spec


def scenes_at(path: str) -> Path:
    return place_in(path, SCENES_AT, "scenes")


def objects_at(path: str) -> Path:
    return place_in(path, OBJECTS_AT, "objects with transparency")


def place_in(path: str, names: Sequence[str], what: str) -> Path:
    """The first of the names that is in the folder."""
    for name in names:
        if (Path(path) / name).exists():
            return Path(path) / name
    raise UsageError(f"`data` must be a folder with {what} in {' or '.join(names)}, got {path}, where there is none")


def feature_number(feature: str, classes: Sequence[str]) -> int:
    """The number of the common feature among the classes of objects."""
    if feature and feature not in classes:
        raise unknown(feature, classes, argument="feature")
    for name in (feature, *FEATURES):
        if name in classes:
            return list(classes).index(name)
    return 0


def check_scene(name: str, classes: Sequence[str]) -> None:
    if name not in classes:
        raise unknown(name, classes, argument="first_scene")


@lru_cache(maxsize=1)  # tasks that follow each other ask alike
def world(spec: WorldSpec) -> World:
    """The scenes and the objects, made again from their recipe; the last one is kept."""
    if spec.path is None:
        scenes, cutouts = _generated(spec)
    else:
        scenes, cutouts = _read(spec, spec.path)
        require_same(str(with_digest(spec).digest), spec.digest, spec.path)
    if spec.same_objects:
        everyone = torch.arange(len(cutouts.y))
        cutouts = replace(cutouts, splits=dict.fromkeys(cutouts.splits, everyone))
    return World(led_by(scenes, spec.first_scene), cutouts, feature_number(spec.feature, cutouts.classes))


def _generated(spec: WorldSpec) -> tuple[Dataset, Cutouts]:
    if spec.scenes is None:
        raise UsageError("`scenes` must be a number where scenes are generated, got None")
    classes = len(leaves.SCENES)
    n = classes * spec.scenes
    scenes = leaves.scene_classes(classes=classes, n=n, side=spec.side, seed=derive(spec.seed, "scenes"))
    cutouts = objects.drawn(OBJECTS * spec.cutouts, side=spec.side, seed=derive(spec.seed, "objects"))
    return scenes, cutouts


def _read(spec: WorldSpec, path: str) -> tuple[Dataset, Cutouts]:
    """The user's scenes and objects."""
    place = scenes_at(path)
    with folders.opened(place) as (readers, _, failed):
        classes = {entry.label for entry in labelled.listing(place, readers, failed)[0]}
    limit = None
    if spec.scenes is not None:
        limit = spec.scenes * len(classes)
    scenes = labelled.images(place, side=spec.side, seed=spec.seed, limit=limit)
    cutouts = objects.cutouts(objects_at(path), side=max(spec.side, 8))
    return scenes, few_classes(cutouts, spec.feature)


def led_by(scenes: Dataset, first: str) -> Dataset:
    """The scenes with their classes in another order: `first` is 0, the others follow as they were."""
    classes = list(scenes.facts["classes"])
    if not first:
        return scenes
    check_scene(first, classes)
    order = [first, *(name for name in classes if name != first)]
    number = torch.tensor([order.index(name) for name in classes])
    return replace(scenes, y=number[scenes.y], facts={**scenes.facts, "classes": order})


def few_classes(cutouts: Cutouts, feature: str, *, most: int = OBJECTS) -> Cutouts:
    """The classes with the most cut-outs, at most ten, and the common feature; by name where they have as many."""
    if len(cutouts.classes) <= most:
        return cutouts
    feature_number(feature, cutouts.classes)
    classes = _largest(cutouts, (feature, *FEATURES), most)
    rows = torch.isin(cutouts.y, torch.tensor(classes)).nonzero()[:, 0]
    y = torch.searchsorted(torch.tensor(classes), cutouts.y[rows])
    images = tuple(cutouts.images[row] for row in rows.tolist())
    names = tuple(cutouts.classes[k] for k in classes)
    return Cutouts(cutouts.name, images, y, names, objects.by_place(y), cutouts.unreadable)


def _largest(cutouts: Cutouts, always: Sequence[str], most: int) -> list[int]:
    """Numbers of the classes with the most cut-outs, after those that are always kept."""
    counts = torch.bincount(cutouts.y).tolist()

    def order(k: int) -> tuple[bool, int, str]:
        name = cutouts.classes[k]
        return name not in always, -counts[k], name

    return sorted(sorted(range(len(counts)), key=order)[:most])


def notes(spec: WorldSpec) -> list[str]:
    """Sentences on the data that a reader of the results must know."""
    here = world(spec)
    scenes = here.scenes.facts["classes"]
    kinds = here.cutouts.classes
    again = "Test images show the cut-outs of training, in other scenes and places. " * spec.same_objects
    source = "generated" if spec.path is None else "yours"
    return [
        f"{again}Scenes and objects are {source}: {len(here.scenes.y):,} scenes of {len(scenes)} classes, "
        f"{len(here.cutouts.y):,} cut-outs of {len(kinds)} classes ({', '.join(kinds)}). The common feature is the "
        f"{kinds[here.feature]}; the class that always has it is {scenes[0]}.",
        *unreadable(here),
    ]


def unreadable(here: World) -> list[str]:
    broken = [*here.scenes.facts.get("unreadable", ()), *here.cutouts.unreadable]
    if not broken:
        return []
    return [f"{len(broken)} files could not be used: {'; '.join(broken[:5])}."]
