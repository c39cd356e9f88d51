"""Generated colour scenes in classes: dead leaves of several shapes, and textures.

A class is told by the shape, size and direction of what is in the scene. Colours help little: each scene has its own
hue, and the hues of the classes overlap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from forsooth.datasets import scenes
from forsooth.datasets.scenes import Leaf
from forsooth.datasets.tetromino import split
from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator

HELD = 10  # one scene in ten goes to val and one to test
HUE_SPREAD = 0.2  # standard deviation of the hue inside a class; the whole circle is 1


@dataclass(frozen=True)
class Scene:
    """A class of scenes: a leaf that covers it, or a texture `paint(n, *, side, generator) -> (n, side, side)`."""

    name: str
    paint: Leaf | Callable[..., Tensor]


LEAVES = (
    Scene("discs", Leaf(power=2)),
    Scene("tiles", Leaf(power=math.inf)),
    Scene("strata", Leaf(power=2, stretch=5, least=0.08)),
    Scene("reeds", Leaf(power=2, stretch=5, angle=math.pi / 2, least=0.08)),
    Scene("pebbles", Leaf(power=2, least=0.04, largest=0.07)),
    Scene("diamonds", Leaf(power=1)),
)
TEXTURES = (
    Scene("stripes", scenes.stripes),
    Scene("checks", scenes.checks),
    Scene("clouds", scenes.clouds),
    Scene("blobs", scenes.blobs),
)
SCENES = LEAVES + TEXTURES


def scene_classes(*, classes: int = 10, n: int, side: int = 64, seed: int) -> Dataset:
    """The first `classes` of ten kinds of scenes: six of dead leaves [lee2001occlusion], four textures.

    x      (n, 3, side, side) float32 in [0, 1]
    y      (n,) int; the classes are equally frequent, within one
    truth  None: nobody knows which pixels tell the class
    """
    return _drawn("scenes", SCENES, classes=classes, n=n, side=side, seed=seed)


def leaves(*, classes: int = 4, n: int, side: int = 32, seed: int) -> Dataset:
    """The first `classes` of six kinds of dead leaves [lee2001occlusion]; the rest as in `scene_classes`."""
    return _drawn("leaves", LEAVES, classes=classes, n=n, side=side, seed=seed)


def _drawn(name: str, kinds: tuple[Scene, ...], *, classes: int, n: int, side: int, seed: int) -> Dataset:
    """A dataset of the first `classes` of `kinds`; sample i is of class i modulo `classes`."""
    kinds = _chosen(kinds, classes, n, side)
    y = torch.arange(n) % classes
    x = torch.empty(n, 3, side, side)
    for k, scene in enumerate(kinds):
        own = x[k::classes]
        own[:] = painted(scene, len(own), side=side, seed=seed)
    facts = {"classes": [scene.name for scene in kinds], "side": side, "n": n, "generated": True}
    return Dataset(f"{name}-{side}", x, y, None, split(y, held=HELD, seed=seed), facts)


def _chosen(kinds: tuple[Scene, ...], classes: int, n: int, side: int) -> tuple[Scene, ...]:
    """The first `classes` of the kinds; UsageError where there are not so many, or n or side are too small."""
    if not 2 <= classes <= len(kinds):
        raise UsageError(f"`classes` must lie in [2, {len(kinds)}], got {classes}")
    if n < HELD * classes:
        raise UsageError(f"`n` must be at least {HELD * classes} for {classes} classes in three splits, got {n}")
    if side < 8:
        raise UsageError(f"`side` must be at least 8 px, got {side}")
    return kinds[:classes]


def painted(scene: Scene, n: int, *, side: int, seed: int) -> Tensor:
    """(n, 3, side, side) float32 in [0, 1]: n scenes of one kind, each around a hue of its own.

    The middle hue of a kind goes once around the circle over the ten kinds.
    """
    g = generator(seed, "scene", scene.name, side)
    hue = SCENES.index(scene) / len(SCENES) + HUE_SPREAD * torch.randn(n, generator=g)
    if isinstance(scene.paint, Leaf):
        return scenes.coloured_leaves(scene.paint, hue, side=side, generator=g)
    field = scene.paint(n, side=side, generator=g)
    return scenes.two_coloured(field, hue, generator=g)
