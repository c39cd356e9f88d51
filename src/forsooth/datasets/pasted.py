"""Objects pasted into scenes, so that what matters more to one model than to another is known [yang2019benchmarking].

A set is a small table (which scene, which cut-out, where, how large, whether it is there); images are made from it on
demand, by the same function for generated and for real scenes and cut-outs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from forsooth.datasets.compositing import paste, plain, unit
from forsooth.datasets.objects import Cutouts
from forsooth.names import unknown
from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator

SHOWN = ("os", "s", "og")


def _one_of(value: str, choices: Sequence[str], *, argument: str) -> None:
    """An error unless the value is one of the choices."""
    if value not in choices:
        raise unknown(value, choices, argument=argument)


@dataclass(frozen=True)
class Placing:
    """How large and where.

    rule           "released": the limiting side (the larger of height and width against the scene's) is uniform between
                   the roots of the shares `least` and `most`, as in the authors' code; "area": the box's share of
                   the scene is uniform between them, as printed, or as much as fits where the object is too long
    rows, columns  the part of the free room in which the top left corner falls, uniformly; (0.5, 0.5) is the middle
    """

    rule: Literal["released", "area"] = "released"
    least: float = 1 / 3
    most: float = 1 / 2
    rows: tuple[float, float] = (0.0, 1.0)
    columns: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        _one_of(self.rule, ("released", "area"), argument="rule")
        if not 0 < self.least <= self.most <= 1:  # above 1 the object is larger than the scene
            raise UsageError(f"`least` and `most` must satisfy 0 < least <= most <= 1, got {self.least}, {self.most}")
        for name, (low, high) in (("rows", self.rows), ("columns", self.columns)):
            if not 0 <= low <= high <= 1:
                raise UsageError(f"`{name}` must be two shares in order in [0, 1], got {low}, {high}")


# Robustness bars: other sizes or other places, from the same draws.
VARIANTS: Mapping[str, Placing] = {
    "as_built": Placing(),
    "smaller": Placing(least=1 / 6, most=1 / 4),
    "larger": Placing(least=1 / 2, most=2 / 3),
    "centre": Placing(rows=(0.5, 0.5), columns=(0.5, 0.5)),
    "top_left": Placing(rows=(0.0, 0.25), columns=(0.0, 0.25)),
    "bottom_right": Placing(rows=(0.75, 1.0), columns=(0.75, 1.0)),
}


@dataclass(frozen=True)
class Pastes:
    """The table of a set: one row for each image.

    scene, cutout  (n,) indices into the scenes and the cut-outs
    chance         (n, 3) in [0, 1): the draws for size, row and column; `boxes` makes boxes of them
    present        (n,) bool: whether the object is there; where not, the box says where it would be
    splits         name -> indices (k,) into the n rows
    placing        what the draws mean; `replace(pastes, placing=VARIANTS["centre"])` moves the objects
    """

    scene: Tensor
    cutout: Tensor
    chance: Tensor
    present: Tensor
    splits: Mapping[str, Tensor]
    placing: Placing = VARIANTS["as_built"]


def pairs(
    scenes: Dataset,
    cutouts: Cutouts,
    *,
    per_pair: Mapping[str, int],
    seed: int,
    pairing: Literal["spread", "released"] = "spread",
) -> Pastes:
    """The table of X_{o,s}: in each split, `per_pair[split]` images of every object class in every scene class.

    pairing  "released": the j-th cut-out of a class goes onto the j-th scene of every class, so that only `per_pair`
             cut-outs of a class are seen; "spread": each pair of classes takes the next cut-outs and the next scenes.
             Lists stand in an order drawn by seed; those that are too short are restarted.

    Departure: the authors' code has no seed.
    """
    _one_of(pairing, ("spread", "released"), argument="pairing")
    kinds = range(len(cutouts.classes))
    crossing = partial(_crossed, scenes, cutouts, kinds, step=pairing == "spread", seed=seed)
    tables = {name: crossing(split=name, each=each) for name, each in per_pair.items()}
    return _joined(tables, seed=seed)


def common(
    scenes: Dataset, cutouts: Cutouts, *, k: float, feature: int, per_class: Mapping[str, int], seed: int
) -> Pastes:
    """The table of X^k_{o,s}: objects of the class `feature` in all images of the first k of the scene classes.

    k  share of the scene classes; times their number it must be whole

    The first scene class always has the feature. Scenes, cut-outs and places are the same for every k, so that sets
    differ in nothing but the presence. The paper does not say in which order the classes follow; here by number.
    """
    classes = scenes.y.unique()
    having = classes[: _part(k, len(classes))]
    if not 0 <= feature < len(cutouts.classes):
        raise UsageError(f"`feature` must be a class number in [0, {len(cutouts.classes) - 1}], got {feature}")
    crossing = partial(_crossed, scenes, cutouts, [feature], step=True, seed=seed)
    tables = {name: crossing(split=name, each=each) for name, each in per_class.items()}
    table = _joined(tables, seed=seed)
    return replace(table, present=torch.isin(scenes.y[table.scene], having))


def _part(k: float, total: int) -> int:
    """The share k of `total` classes, as a number of them."""
    if not 0 < k <= 1 or abs(k * total - round(k * total)) > 1e-6:
        raise UsageError(f"`k` must lie in (0, 1] and be a multiple of 1/{total} with {total} scene classes, got {k}")
    return round(k * total)


def _crossed(
    scenes: Dataset, cutouts: Cutouts, kinds: Sequence[int], *, split: str, each: int, step: bool, seed: int
) -> Tensor:
    """(2, n) scenes and cut-outs: `each` images for every object class of `kinds` and every scene class.

    step  whether a pair of classes goes on in the lists where the pair before it ended
    """
    _check_each(each, split)
    classes = scenes.y.unique().tolist()
    places = _members("scenes", scenes.y, scenes.splits, classes, split=split, seed=seed)
    crops = _members("cutouts", cutouts.y, cutouts.splits, kinds, split=split, seed=seed)
    stride = step * each
    blocks = []
    for o, crop in enumerate(crops):
        for s, place in enumerate(places):
            scene = _next(place, each, start=o * stride)
            cutout = _next(crop, each, start=s * stride)
            blocks.append(torch.stack([scene, cutout]))
    return torch.cat(blocks, 1)


def _check_each(each: int, split: str) -> None:
    if each < 1:
        raise UsageError(f"there must be at least 1 image for each pair of classes in {split!r}, got {each}")


def _next(members: Tensor, count: int, *, start: int) -> Tensor:
    """(count,) of the members (k,), from `start` on, around and around."""
    return members[(torch.arange(count) + start) % len(members)]


def _members(
    name: str, y: Tensor, splits: Mapping[str, Tensor], classes: Sequence[int], *, split: str, seed: int
) -> list[Tensor]:
    """For each class its indices (k,) in the split, in an order drawn by seed; a class that is absent is an error."""
    if split not in splits:
        raise UsageError(f"`{name}` must have the split {split!r}, got {', '.join(splits)}")
    rows = splits[split]
    rows = rows[torch.randperm(len(rows), generator=generator(seed, "members", name, split))]
    members = [rows[y[rows] == k] for k in classes]
    for k, own in zip(classes, members, strict=True):
        if not len(own):
            raise UsageError(f"`{name}` must have class {k} in split {split!r}, but there is none")
    return members


def _joined(tables: Mapping[str, Tensor], *, seed: int) -> Pastes:
    """One table of those of the splits (2, k), with the draws for sizes and places."""
    chance: list[Tensor] = []
    splits: dict[str, Tensor] = {}
    end = 0
    for name, part in tables.items():
        count = part.shape[1]
        chance.append(torch.rand(count, 3, generator=generator(seed, "paste", name)))
        splits[name] = torch.arange(end, end + count)
        end += count
    scene, cutout = torch.cat(list(tables.values()), 1)
    return Pastes(scene, cutout, torch.cat(chance), torch.ones(end, dtype=torch.bool), splits)


def boxes(chance: Tensor, sizes: Tensor, *, scene: tuple[int, int], placing: Placing) -> Tensor:
    """(n, 4) int: top, left, height and width of each object in a scene of (height, width) px.

    chance  (n, 3) in [0, 1)
    sizes   (n, 2) height and width of the cut-outs; their proportion is kept, within rounding
    """
    chance = chance.double()
    sizes = sizes.double()
    whole = torch.tensor(scene, dtype=torch.float64)
    factor = _factor(chance[:, 0], sizes, whole, placing)
    extent = (sizes * factor[:, None]).round().clamp(min=1).minimum(whole)  # (n, 2)
    corner = _corner(chance[:, 1:], whole - extent, placing)
    return torch.cat([corner, extent], 1).long()


def _corner(chance: Tensor, room: Tensor, placing: Placing) -> Tensor:
    """(n, 2) top and left, from chance (n, 2) and the free room (n, 2) below and to the right."""
    spans = torch.tensor([placing.rows, placing.columns], dtype=torch.float64)  # (axis, ends)
    where = spans[:, 0] + (spans[:, 1] - spans[:, 0]) * chance
    return (where * (room + 1)).floor().minimum(room)


def _factor(chance: Tensor, sizes: Tensor, whole: Tensor, placing: Placing) -> Tensor:
    """(n,) by how much each object grows, from chance (n,), sizes (n, 2) and the size (2,) of the scene."""
    fits = (whole / sizes).amin(1)  # the factor at which the object touches two sides of the scene
    if placing.rule == "released":
        low = math.sqrt(placing.least)
        high = math.sqrt(placing.most)
        return fits * (low + (high - low) * chance)
    share = placing.least + (placing.most - placing.least) * chance
    return torch.minimum(fits, (share * whole.prod() / sizes.prod(1)).sqrt())


def rendered(
    pastes: Pastes,
    scenes: Tensor,
    cutouts: Cutouts,
    *,
    rows: Tensor | None = None,
    shown: str = "os",
    ground: float | Tensor = 0.5,
) -> tuple[Tensor, Tensor]:
    """The images of a table, all or those of `rows` (k,), and where the objects are.

    scenes   (m, 3, height, width) float in [0, 1], or uint8
    shown    "os": X_{o,s}, objects in scenes; "s": X_{∅,s}, the scenes alone; "og": X_{o,g}, objects on `ground`
    ground   one grey, or a colour (3,) such as the mean of the scenes
    returns  (k, 3, height, width) float in [0, 1]; and alpha (k, height, width), 0 where the object changes nothing.
             Where it is not present, alpha is where it would be.
    """
    _one_of(shown, SHOWN, argument="shown")
    if scenes.ndim != 4 or scenes.shape[1] != 3:
        raise UsageError(f"`scenes` must be colour images (m, 3, height, width), got {tuple(scenes.shape)}")
    if rows is None:
        rows = torch.arange(len(pastes.scene))
    x = unit(scenes[pastes.scene[rows].to(scenes.device)])
    if shown == "og":
        x = plain(ground, x)
    alpha = x.new_zeros(x.shape[0], *x.shape[2:])
    images = [cutouts.images[k] for k in pastes.cutout[rows].tolist()]
    places = _places(pastes, rows, images, scene=(scenes.shape[-2], scenes.shape[-1])).tolist()
    there = (pastes.present[rows] & (shown != "s")).tolist()
    for k, cutout in enumerate(images):
        paste(x[k], alpha[k], cutout, box=places[k], seen=there[k])
    return x, alpha


def _places(pastes: Pastes, rows: Tensor, images: Sequence[Tensor], *, scene: tuple[int, int]) -> Tensor:
    """(k, 4) top, left, height and width of the cut-out of each row (k,), which are `images`."""
    sizes = torch.tensor([image.shape[-2:] for image in images]).reshape(-1, 2)
    return boxes(pastes.chance[rows], sizes, scene=scene, placing=pastes.placing)


def pasted(
    pastes: Pastes,
    scenes: Dataset,
    cutouts: Cutouts,
    *,
    label: Literal["scene", "object"],
    shown: str = "os",
    ground: float | Tensor = 0.5,
) -> Dataset:
    """A table as a dataset, with the labels of the scenes (L_s) or of the objects (L_o).

    x      (n, 3, height, width) float in [0, 1]
    truth  (n, height, width) bool: every pixel that the object touches, or would touch where it is not there

    Departure: the released masks are rounded at half coverage; ours hold every pixel that differs.
    """
    _one_of(label, ("scene", "object"), argument="label")
    x, alpha = rendered(pastes, scenes.x, cutouts, shown=shown, ground=ground)
    if label == "scene":
        y = scenes.y[pastes.scene]
        names = scenes.facts.get("classes")
    else:
        y = cutouts.y[pastes.cutout]
        names = list(cutouts.classes)
    facts = {"classes": names, "label": label, "shown": shown, "scenes": scenes.name, "cutouts": cutouts.name}
    return Dataset(f"pasted-{shown}-{label}", x, y, alpha > 0, pastes.splits, facts)
