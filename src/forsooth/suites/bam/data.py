"""The scenes and cut-outs of the BAM suite, generated or the user's, and the sets that are made of them."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from forsooth.datasets import folders, labelled, leaves, objects
from forsooth.datasets.objects import Cutouts
from forsooth.datasets.pasted import VARIANTS, Pastes, Placing, common, pairs, pasted, rendered
from forsooth.names import unknown
from forsooth.records import Dataset, UsageError
from forsooth.seeds import derive
from forsooth.suites import choose

OBJECTS = 10  # classes of objects, as in the paper
SCENES_AT = ("scenes", "scenes.zip", "miniplaces_bam10_128px.zip")
OBJECTS_AT = ("objects", "objects.zip", "voc2012_cutouts_128px.zip")
FEATURES = ("dog", "disc")  # the common feature, where there is one of these


@dataclass(frozen=True)
class World:
    """Scenes, objects, and the class of objects that is the common feature."""

    scenes: Dataset
    cutouts: Cutouts
    feature: int


def spec(
    path: str | None,
    *,
    side: int,
    scenes: int | None,
    cutouts: int,
    feature: str,
    seed: int,
    same_objects: bool = False,
    first: str = "",
) -> dict[str, Any]:
    """Where scenes and objects come from, as plain values a task can carry.

    scenes, cutouts  how many of a class are generated; of the user's scenes so many at most are read (None: all)
    feature          class of objects that is the common feature; empty: a dog or a disc, else the first class
    same_objects     cut-outs of training are those of the test too
    first            class of scenes that always has the common feature; empty: the first by name
    """
    about = {"path": path, "side": side, "scenes": scenes, "cutouts": cutouts, "feature": feature, "seed": seed}
    about |= {"same_objects": same_objects, "first": first}
    if path is None:
        if scenes is None:
            raise UsageError("`scenes` must be a number where scenes are generated, got None")
        named(feature, objects.NAMES)
        if first and first not in (known := [scene.name for scene in leaves.SCENES]):
            raise unknown(first, known, argument="first")
        return {**about, "digest": None}
    digests = [folders.digest(found(Path(path), names, what)) for names, what in PLACES]
    return {**about, "digest": " ".join(digests)}


PLACES = ((SCENES_AT, "scenes"), (OBJECTS_AT, "objects with transparency"))


def found(path: Path, names: Sequence[str], what: str) -> Path:
    """The first of the names that is in the folder."""
    for name in names:
        if (path / name).exists():
            return path / name
    raise UsageError(f"`data` must be a folder with {what} in {' or '.join(names)}, got {path}, where there is none")


def named(feature: str, classes: Sequence[str]) -> int:
    """The number of the common feature among the classes of objects."""
    if feature:
        if feature not in classes:
            raise unknown(feature, classes, argument="feature")
        return list(classes).index(feature)
    return next((list(classes).index(name) for name in FEATURES if name in classes), 0)


def world(about: Mapping[str, Any]) -> World:
    """The scenes and the objects, made again from their recipe; the last one is kept."""
    return _world(json.dumps(about, sort_keys=True))


@functools.lru_cache(maxsize=1)
def _world(text: str) -> World:
    about = json.loads(text)
    side, seed, path = about["side"], about["seed"], about["path"]
    if path is None:
        count = len(leaves.SCENES)
        scenes = leaves.scene_classes(classes=count, n=count * about["scenes"], side=side, seed=derive(seed, "scenes"))
        cutouts = objects.drawn(OBJECTS * about["cutouts"], side=side, seed=derive(seed, "objects"))
        return _joined(scenes, cutouts, about)
    at = found(Path(path), *PLACES[0])
    with folders.opened(at) as (readers, _, failed):
        kinds = len({entry.label for entry in labelled.listing(at, readers, failed)[0]})
    limit = None if about["scenes"] is None else about["scenes"] * kinds
    scenes = labelled.images(at, side=side, seed=seed, limit=limit)
    cutouts = few_classes(objects.cutouts(found(Path(path), *PLACES[1]), side=max(side, 8)), about["feature"])
    return _joined(scenes, cutouts, about)


def _joined(scenes: Dataset, cutouts: Cutouts, about: Mapping[str, Any]) -> World:
    if about["same_objects"]:
        cutouts = replace(cutouts, splits=dict.fromkeys(cutouts.splits, torch.arange(len(cutouts.y))))
    return World(led_by(scenes, about["first"]), cutouts, named(about["feature"], cutouts.classes))


def led_by(scenes: Dataset, first: str) -> Dataset:
    """The scenes with their classes numbered anew: `first` is 0, the others follow as they were."""
    classes = list(scenes.facts["classes"])
    if not first:
        return scenes
    if first not in classes:
        raise unknown(first, classes, argument="first")
    order = [first, *(name for name in classes if name != first)]
    number = torch.tensor([order.index(name) for name in classes])
    return replace(scenes, y=number[scenes.y], facts={**scenes.facts, "classes": order})


def few_classes(cutouts: Cutouts, feature: str, *, most: int = OBJECTS) -> Cutouts:
    """The classes with the most cut-outs, at most ten, and the common feature; by name where they have as many."""
    if len(cutouts.classes) <= most:
        return cutouts
    named(feature, cutouts.classes)
    counts = torch.bincount(cutouts.y).tolist()
    first = (feature, *FEATURES)
    order = sorted(range(len(counts)), key=lambda k: (cutouts.classes[k] not in first, -counts[k], cutouts.classes[k]))
    chosen = sorted(order[:most])
    rows = torch.isin(cutouts.y, torch.tensor(chosen)).nonzero()[:, 0]
    y = torch.tensor([chosen.index(k) for k in cutouts.y[rows].tolist()])
    images = tuple(cutouts.images[row] for row in rows.tolist())
    names = tuple(cutouts.classes[k] for k in chosen)
    return Cutouts(cutouts.name, images, y, names, objects.by_place(y), cutouts.unreadable)


def table(about: Mapping[str, Any], sizes: Mapping[str, Any], k: float | None) -> Pastes:
    """X_{o,s} where k is None, else X^k_{o,s}.

    sizes  per_pair and per_class: split -> images of a pair of classes, and of a scene class; pairing
    """
    here, seed = world(about), derive(about["seed"], "pastes")
    if k is None:
        return pairs(here.scenes, here.cutouts, per_pair=sizes["per_pair"], seed=seed, pairing=sizes["pairing"])
    return common(here.scenes, here.cutouts, k=k, feature=here.feature, per_class=sizes["per_class"], seed=seed)


def dataset(about: Mapping[str, Any], sizes: Mapping[str, Any], net: Mapping[str, Any]) -> Dataset:
    """What a network is trained on. net: k, label ("scene" or "object"), shown ("os", "s")"""
    here = world(about)
    return pasted(table(about, sizes, net["k"]), here.scenes, here.cutouts, label=net["label"], shown=net["shown"])


@dataclass(frozen=True)
class Images:
    """Test images of a set in several states.

    rows    (n,) their numbers in the table
    os, s, og  (n, 3, h, w): with object and scene, without the object, without the scene
    mask    (n, h, w) bool: where the object is, or would be
    scene, kind  (n,) the two labels
    """

    rows: Tensor
    os: Tensor
    s: Tensor
    og: Tensor
    mask: Tensor
    scene: Tensor
    kind: Tensor


def images(
    about: Mapping[str, Any],
    sizes: Mapping[str, Any],
    k: float | None,
    *,
    count: int | None,
    first_only: bool = False,
    placing: str = "as_built",
) -> Images:
    """`count` test images of X_{o,s} or X^k_{o,s} (None: all); `first_only`: of the first class.

    They are drawn evenly over the classes of scenes and over those of objects.
    """
    here, pastes = world(about), table(about, sizes, k)
    pastes = replace(pastes, placing=variant(placing))
    rows = pastes.splits["test"]
    scene = here.scenes.y[pastes.scene]
    if first_only:
        rows = rows[scene[rows] == scene.min()]
    kind = here.cutouts.y[pastes.cutout]
    rows = rows[choose.crossed(scene[rows], kind[rows], count, seed=about["seed"], role=f"explained {k}")]
    made = [rendered(pastes, here.scenes.x, here.cutouts, rows=rows, shown=shown) for shown in ("os", "s", "og")]
    return Images(rows, made[0][0], made[1][0], made[2][0], made[0][1] > 0, scene[rows], kind[rows])


@dataclass(frozen=True)
class Background:
    """Training images of a network: x (n, 3, h, w), and their two labels (n,)."""

    x: Tensor
    scene: Tensor
    kind: Tensor


def background(about: Mapping[str, Any], sizes: Mapping[str, Any], net: Mapping[str, Any], *, count: int) -> Background:
    """`count` of the images that a network (`dataset`) was trained on, drawn evenly as `images` are."""
    here, pastes = world(about), table(about, sizes, net["k"])
    rows = pastes.splits["train"]
    scene = here.scenes.y[pastes.scene]
    kind = here.cutouts.y[pastes.cutout]
    rows = rows[choose.crossed(scene[rows], kind[rows], count, seed=about["seed"], role=f"background {net['name']}")]
    x, _ = rendered(pastes, here.scenes.x, here.cutouts, rows=rows, shown=net["shown"])
    return Background(x, scene[rows], kind[rows])


def drawn(about: Mapping[str, Any], chosen: Images | Background, *, role: str, where: Mapping[str, Any]) -> list[Any]:
    """How many images of each class of scenes, and of each of objects, for the run to keep (`choose.classes_of`)."""
    here = world(about)
    labels = {"scene": (chosen.scene, here.scenes.facts["classes"]), "object": (chosen.kind, here.cutouts.classes)}
    return [
        line
        for label, (classes, names) in labels.items()
        for line in choose.classes_of(classes, role=role, names=names, where={**where, "label": label})
    ]


def variant(name: str) -> Placing:
    if name not in VARIANTS:
        raise unknown(name, VARIANTS, argument="placings")
    return VARIANTS[name]


def said(about: Mapping[str, Any]) -> list[str]:
    """Sentences on the data that a reader of the results must know."""
    here = world(about)
    scenes, kinds = here.scenes.facts["classes"], here.cutouts.classes
    told = "generated" if about["path"] is None else "yours"
    again = "Test images show the cut-outs of training, in other scenes and places. " if about["same_objects"] else ""
    lines = [
        f"{again}Scenes and objects are {told}: {len(here.scenes.y):,} scenes of {len(scenes)} classes, "
        f"{len(here.cutouts.y):,} cut-outs of {len(kinds)} classes ({', '.join(kinds)}). The common feature is the "
        f"{kinds[here.feature]}; the class that always has it is {scenes[0]}."
    ]
    broken = [*here.scenes.facts.get("unreadable", ()), *here.cutouts.unreadable]
    return lines + ([f"{len(broken)} files could not be used: {'; '.join(broken[:5])}."] if broken else [])
