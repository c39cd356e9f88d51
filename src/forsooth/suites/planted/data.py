"""What is planted on: dead leaves or the user's images, two classes of them, and the artefact on the second."""

import dataclasses
import functools
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from forsooth.datasets import folders, labelled
from forsooth.datasets.leaves import LEAVES, leaves
from forsooth.datasets.manipulations import UNIT, Manipulation, draw
from forsooth.datasets.planted import Border, bordered, carries, kinds_of, non_informative, plant
from forsooth.records import Dataset, UsageError
from forsooth.suites import choose

ON_F_N = "attr_non_informative"
PRESENCES = {True: "with", False: "without"}
PRINTED = {"anchor": "band", "characters": "digits", "colours": "fixed"}  # where the released code does otherwise
LEGIBLE = 128  # px of a side from which the paper's artefacts are visible enough; smaller images need more
BIRDS = (  # of the paper, confused most often
    ("brandts_cormorant", "pelagic_cormorant"),
    ("fish_crow", "common_raven"),
    ("forsters_tern", "common_tern"),
    ("pomarine_jaeger", "long_tailed_jaeger"),
)


def class_names(path: str | None, classes: int) -> list[str]:
    """The classes of the user's images, or of `classes` kinds of dead leaves; nothing is read but the names."""
    if path is None:
        return [scene.name for scene in LEAVES[:classes]]
    with folders.opened(Path(path)) as (readers, _, failed):
        listed, _ = labelled.listing(Path(path), readers, failed)
    return sorted({entry.label for entry in listed})


def class_pairs(names: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Similar pairs of classes, and distinct ones, which take one class of each of two similar pairs.

    The paper's birds have pairs of their own. Nobody knows what is similar elsewhere: there neighbours in the order of
    names are taken for it.
    """
    birds = [pair for pair in BIRDS if set(pair) <= set(names)]
    similar = birds or list(itertools.pairwise(names))[::2]
    distinct = [(a[0], b[1]) for a, b in zip(similar[::2], similar[1::2], strict=False)]
    if not distinct and len(names) > 2:
        distinct = [(names[0], names[2])]
    return {"similar": similar, "distinct": distinct}


def spec(path: str | None, *, classes: int, per_class: int | None) -> dict[str, Any]:
    """Where the images come from, as plain values a task can carry; side and seed are to be added."""
    if path is None and per_class is None:
        raise UsageError("`per_class` must be a number where images are generated, got None")
    return {"path": path, "digest": folders.digest(path) if path else None, "classes": classes, "per_class": per_class}


def artefact(drawn: Manipulation, *, strength: float, variant: str) -> dict[str, Any]:
    """A manipulation of the paper as plain values, `strength` times as visible, as "printed" or as "released"."""
    most = 1.0 if drawn.name == "striped_noise" else math.inf
    changes: dict[str, Any] = PRINTED if variant == "printed" else {}
    shown = min(drawn.visibility * strength, most)
    return dataclasses.asdict(dataclasses.replace(drawn, visibility=shown, **changes))


def feared(name: str, *, level: int, side: int) -> dict[str, Any]:
    """An artefact in the region of experiment 5.4, at a level of visibility of 5.3, fit to be seen at this side.

    The paper's watermark is off the middle by half a pixel; here all regions are symmetric.
    """
    fixed, shown = draw(name, 4, seed=0), draw(name, 3, seed=0, level=level).visibility
    drawn = dataclasses.replace(fixed, visibility=shown, right=UNIT - 1 - fixed.left)
    return artefact(drawn, strength=max(1.0, LEGIBLE / side), variant="printed")


def base(about: Mapping[str, Any]) -> Dataset:
    """The images before anything is planted: path (None: dead leaves), digest, classes, per_class, side, seed."""
    return _base(json.dumps(about, sort_keys=True))


@functools.lru_cache(maxsize=1)
def _base(text: str) -> Dataset:
    about = json.loads(text)
    n = about["per_class"] and about["per_class"] * about["classes"]
    if about["path"] is None:
        return leaves(classes=about["classes"], n=n, side=about["side"], seed=about["seed"])
    return labelled.images(about["path"], side=about["side"], seed=about["seed"], limit=n)


def data(plot: Mapping[str, Any]) -> Dataset:
    """What was planted, made again from its recipe; the last two are kept, since tasks come in their order.

    plot  base (see there), pair (two classes; the second gets the artefact; None: all images, whatever their class),
          manipulation, r, border, seed
    """
    return _data(json.dumps(plot, sort_keys=True))


def anew(plot: Mapping[str, Any]) -> Dataset:
    """The same, but kept for nobody: whoever gets it may write into x and y."""
    return _data.__wrapped__(json.dumps(plot, sort_keys=True))


@functools.lru_cache(maxsize=2)
def _data(text: str) -> Dataset:
    plot = json.loads(text)
    border = Border(**plot["border"]) if plot["border"] else None
    chosen = pair_of(base(plot["base"]), plot["pair"]) if plot["pair"] else everyone(base(plot["base"]))
    return plant(chosen, [None, Manipulation(**plot["manipulation"])], r=plot["r"], seed=plot["seed"], border=border)


def pair_of(dataset: Dataset, pair: Sequence[str]) -> Dataset:
    """The images of two classes, with the labels 0 and 1."""
    numbers = [dataset.facts["classes"].index(name) for name in pair]
    keep = (dataset.y == numbers[0]) | (dataset.y == numbers[1])
    place = keep.cumsum(0) - 1
    splits = {name: place[rows[keep[rows]]] for name, rows in dataset.splits.items()}
    y = (dataset.y[keep] == numbers[1]).long()
    facts = {**dataset.facts, "pair": pair}
    return dataclasses.replace(dataset, x=dataset.x[keep], y=y, splits=splits, facts=facts, strata=dataset.y[keep])


def everyone(dataset: Dataset) -> Dataset:
    """All images, their classes numbered 0 and 1 in turn: for r = 0.5, where old labels tell nothing of the new."""
    return dataclasses.replace(dataset, y=dataset.y % 2, strata=dataset.y)


def chosen(dataset: Dataset, plot: Mapping[str, Any], *, samples: int | None) -> dict[str, Tensor]:
    """presence -> test images, at most `samples`: with the artefact or without; of a border, with it or without.

    They are drawn evenly over new labels and old classes.
    """
    test = dataset.splits["test"]
    if plot["border"]:
        has = bordered(len(dataset.x), Border(**plot["border"]), seed=plot["seed"])[test]
    else:
        has = carries(dataset.y[test], [None, Manipulation(**plot["manipulation"])])
    groups = {name: test[has == present] for present, name in PRESENCES.items()}
    return {
        name: choose.rows_of(dataset, rows, samples, seed=plot["seed"], role=f"explained {name}")
        for name, rows in groups.items()
    }


def drawn(dataset: Dataset, rows: Tensor, *, role: str, where: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How many of rows (k,) are of each class and have the artefact or not, for the run to keep."""
    has = carries(dataset.y[rows], [None, Manipulation(**dataset.facts["manipulations"][1])])
    known = dataset.facts["base_facts"]["classes"]
    names = [f"{name}, {presence}" for presence in (PRESENCES[False], PRESENCES[True]) for name in known]
    kinds = has.long() * len(known) + kinds_of(dataset)[rows]
    return choose.classes_of(kinds, role=role, names=names, where=where)


def region_of(metric: str, dataset: Dataset, plot: Mapping[str, Any]) -> Tensor:
    """(h, w) bool: the joint effective region, or the features F_N that tell nothing."""
    assert dataset.truth is not None
    if metric != ON_F_N:
        return dataset.truth[0]
    size = (dataset.x.shape[-2], dataset.x.shape[-1])
    return non_informative(Border(**plot["border"]), [None, Manipulation(**plot["manipulation"])], size=size)


def said(plot: Mapping[str, Any]) -> list[str]:
    """Sentences on the images that a reader of the results must know."""
    facts = base(plot["base"]).facts
    if facts.get("generated"):
        return [f"Images are generated: {facts['n']:,} dead leaves of {len(facts['classes'])} kinds."]
    broken = [re.sub(r" <\S+ object at 0x\w+>", "", line) for line in facts["unreadable"]]  # Pillow names an address
    used, there = sum(facts["counts"].values()), facts["available"]
    told = f"{used:,} of {there:,} images used, in {len(facts['classes'])} classes."
    outside, small = facts["without_class"], facts["enlarged"]
    return [
        told,
        *([f"Files that could not be used: {len(broken)} ({'; '.join(broken[:5])})."] if broken else []),
        *([f"Images in no class folder, left out: {outside}."] if outside else []),
        *([f"Images smaller than {facts['side']} px, enlarged: {small}."] if small else []),
    ]
