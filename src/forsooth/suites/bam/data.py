"""The sets of the BAM suite: objects pasted into scenes, and which of their images are shown and explained."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from torch import Tensor

from forsooth.datasets.pasted import VARIANTS, Pastes, common, pairs, pasted, rendered
from forsooth.datasets.worlds import WorldSpec, with_digest, world
from forsooth.records import Dataset, Facts
from forsooth.seeds import derive
from forsooth.suites import choose
from forsooth.suites.bam.settings import AS_BUILT, Settings
from forsooth.suites.bam.specs import NetSpec, Shown

SPLITS = ("train", "val", "test")
FIRST = 0  # the class of scenes that always has the common feature


@dataclass(frozen=True)
class Sizes:
    """How many images the sets have: split -> images of a pair of classes, and of a scene class in X^k."""

    per_pair: Mapping[str, int]
    per_class: Mapping[str, int]
    pairing: Literal["spread", "released"]


@dataclass(frozen=True)
class DataSpec:
    """All that decides the data."""

    world: WorldSpec
    sizes: Sizes


def data_spec(settings: Settings, path: str | None, seed: int) -> DataSpec:
    """What the settings say of the data; an error where they name a class or a folder that is not there."""
    scenes = settings.scenes
    if path is None:
        scenes = settings.scenes or settings.cutouts
    spec = WorldSpec(
        path=path,
        side=settings.side,
        scenes=scenes,
        cutouts=settings.cutouts,
        feature=settings.feature,
        seed=seed,
        same_objects=settings.same_objects,
        first_scene=settings.first_scene,
    )
    sizes = Sizes(
        per_pair={split: getattr(settings, split) for split in SPLITS},
        per_class={split: getattr(settings, f"fine_{split}") for split in SPLITS},
        pairing=settings.pairing,
    )
    return DataSpec(with_digest(spec), sizes)


def table(spec: DataSpec, k: float | None) -> Pastes:
    """X_{o,s} where k is None, else X^k_{o,s}."""
    here = world(spec.world)
    seed = derive(spec.world.seed, "pastes")
    sizes = spec.sizes
    if k is None:
        return pairs(here.scenes, here.cutouts, per_pair=sizes.per_pair, seed=seed, pairing=sizes.pairing)
    return common(here.scenes, here.cutouts, k=k, feature=here.feature, per_class=sizes.per_class, seed=seed)


def dataset(spec: DataSpec, net: NetSpec) -> Dataset:
    """What a network is trained on. Made anew at each call, since it is large and its user may change it in place."""
    here = world(spec.world)
    return pasted(table(spec, net.k), here.scenes, here.cutouts, label=net.label, shown=net.shown)


class Selection(NamedTuple):
    """Some images of a set, not yet rendered.

    rows         (n,) their numbers in the table
    scene, kind  (n,) the two labels
    """

    rows: Tensor
    scene: Tensor
    kind: Tensor


class Images(NamedTuple):
    """Test images of a set in several states.

    rows         (n,) their numbers in the table
    scene, kind  (n,) the two labels
    os, s, og    (n, 3, h, w): with object and scene, without the object, without the scene
    mask         (n, h, w) bool: where the object is, or would be
    """

    rows: Tensor
    scene: Tensor
    kind: Tensor
    os: Tensor
    s: Tensor
    og: Tensor
    mask: Tensor


def images(
    spec: DataSpec, k: float | None, *, count: int | None, first_only: bool = False, placing: str = AS_BUILT
) -> Images:
    """The images that `explained` chooses, in all their states."""
    pastes, chosen = explained(spec, k, count=count, first_only=first_only, placing=placing)
    both, alpha = render(spec, pastes, chosen.rows, "os")
    scenes, _ = render(spec, pastes, chosen.rows, "s")
    objects, _ = render(spec, pastes, chosen.rows, "og")
    return Images(*chosen, both, scenes, objects, alpha > 0)


def explained(
    spec: DataSpec, k: float | None, *, count: int | None, first_only: bool = False, placing: str = AS_BUILT
) -> tuple[Pastes, Selection]:
    """`count` test images of X_{o,s} or X^k_{o,s} (None: all), and the table they are in; `first_only`: of class 0.

    They are drawn evenly over the classes of scenes and over those of objects.
    """
    pastes = replace(table(spec, k), placing=VARIANTS[placing])
    rows = pastes.splits["test"]
    if first_only:
        rows = rows[world(spec.world).scenes.y[pastes.scene[rows]] == FIRST]
    return pastes, select(spec, pastes, rows, count, role=f"explained {k}")


def labels_of(net: NetSpec, seen: Images) -> Tensor:
    """(n,) what the network should say."""
    return {"object": seen.kind, "scene": seen.scene}[net.label]


def background(spec: DataSpec, net: NetSpec, *, count: int) -> tuple[Selection, Tensor]:
    """`count` of the images that a network was trained on, see `learned_from`, and their x (n, 3, h, w)."""
    pastes, chosen = learned_from(spec, net, count=count)
    return chosen, render(spec, pastes, chosen.rows, net.shown)[0]


def learned_from(spec: DataSpec, net: NetSpec, *, count: int) -> tuple[Pastes, Selection]:
    """`count` training images of a network, drawn evenly as `explained` are, and the table they are in."""
    pastes = table(spec, net.k)
    return pastes, select(spec, pastes, pastes.splits["train"], count, role=f"background {net.name}")


def render(spec: DataSpec, pastes: Pastes, rows: Tensor, shown: Shown) -> tuple[Tensor, Tensor]:
    """The images (n, 3, h, w) of rows (n,) of a table, and the alpha of their objects (n, h, w)."""
    here = world(spec.world)
    return rendered(pastes, here.scenes.x, here.cutouts, rows=rows, shown=shown)


def select(spec: DataSpec, pastes: Pastes, rows: Tensor, count: int | None, *, role: str) -> Selection:
    """`count` of the rows (n,) of a table, drawn evenly over both labels."""
    here = world(spec.world)
    scene = here.scenes.y[pastes.scene]
    kind = here.cutouts.y[pastes.cutout]
    rows = rows[choose.crossed(scene[rows], kind[rows], count, seed=spec.world.seed, role=role)]
    return Selection(rows, scene[rows], kind[rows])


def class_counts(spec: WorldSpec, chosen: Selection | Images, *, role: str, where: Mapping[str, Any]) -> list[Facts]:
    """How many images of each class of scenes, and of each of objects, for the run to keep (`choose.classes_of`)."""
    here = world(spec)
    scenes = here.scenes.facts["classes"]
    kinds = here.cutouts.classes
    of_scenes = choose.classes_of({role: chosen.scene}, names=scenes, where={**where, "label": "scene"})
    return of_scenes + choose.classes_of({role: chosen.kind}, names=kinds, where={**where, "label": "object"})
