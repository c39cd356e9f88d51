"""What is planted on: dead leaves or the user's images, two classes of them, and the artefact on the second."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from forsooth.datasets import folders, labelled
from forsooth.datasets.leaves import LEAVES, leaves
from forsooth.datasets.manipulations import UNIT, Manipulation, draw
from forsooth.datasets.planted import Border, border_region, bordered, kinds_of, plant
from forsooth.plain import remembered
from forsooth.records import Dataset, UsageError, Value
from forsooth.suites import choose

ON_F_N = "attr_non_informative"
PRESENT = "with"  # images that have the artefact, or the border
MISSING = "without"
PRINTED: Mapping[str, Any] = {"anchor": "band", "characters": "digits", "colours": "fixed"}  # the released code differs
LEGIBLE = 128  # px of a side from which the paper's artefacts are visible enough; smaller images need more
BIRDS = (  # of the paper, confused most often
    ("brandts_cormorant", "pelagic_cormorant"),
    ("fish_crow", "common_raven"),
    ("forsters_tern", "common_tern"),
    ("pomarine_jaeger", "long_tailed_jaeger"),
)


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


@dataclass(frozen=True)
class DataSpec:
    """What decides the data of one training.

    pair    two classes, the labels 0 and 1 before labels are redrawn; None: all images, whatever their class
    r       chance to keep a label; images of the new label 1 get the artefact
    border  painted on random images, whatever their label; None: on none
    """

    images: Images = field(metadata={"key": "base"})
    pair: tuple[str, str] | None
    manipulation: Manipulation
    r: float
    border: Border | None
    seed: int

    @property
    def manipulations(self) -> list[Manipulation | None]:
        """What is done to the images of each new label."""
        return [None, self.manipulation]


def factors(spec: DataSpec) -> dict[str, Value]:
    """The columns that tell rows of one spec from those of another."""
    return {
        "manipulation": spec.manipulation.name,
        "visibility": float(spec.manipulation.visibility),
        "r": float(spec.r),
        "pair": "/".join(spec.pair or ("all",)),
    }


def images_at(path: str | None, *, classes: int, per_class: int | None, side: int, seed: int) -> Images:
    """The user's images at `path` as they are now, or generated ones."""
    digest = None if path is None else folders.digest(path)
    return Images(path, digest, classes, per_class, side, seed)


def class_names(path: str | None, classes: int) -> list[str]:
    """The classes of the user's images, or of `classes` kinds of dead leaves; nothing is read but the names."""
    if path is None:
        return [scene.name for scene in LEAVES[:classes]]
    with folders.opened(Path(path)) as (readers, _, failed):
        entries, _ = labelled.listing(Path(path), readers, failed)
    return sorted({entry.label for entry in entries})


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


def adjusted(drawn: Manipulation, *, strength: float, variant: str) -> Manipulation:
    """A manipulation of the paper, `strength` times as visible, as "printed" or as "released"."""
    visibility = drawn.visibility * strength
    if drawn.name == "striped_noise":
        visibility = min(visibility, 1.0)  # a share of pixels
    if variant == "printed":
        drawn = replace(drawn, **PRINTED)
    return replace(drawn, visibility=visibility)


def legible(name: str, *, level: int, side: int) -> Manipulation:
    """An artefact in the region of experiment 5.4, at a level of visibility of 5.3, fit to be seen at this side.

    The paper's watermark is off the middle by half a pixel; here all regions are symmetric.
    """
    fixed = draw(name, 4, seed=0)
    visibility = draw(name, 3, seed=0, level=level).visibility
    symmetric = replace(fixed, visibility=visibility, right=UNIT - 1 - fixed.left)
    return adjusted(symmetric, strength=max(1.0, LEGIBLE / side), variant="printed")


@remembered(1)
def base(images: Images) -> Dataset:
    """The images before anything is planted."""
    count = images.per_class and images.per_class * images.classes
    if images.path is not None:
        return labelled.images(images.path, side=images.side, seed=images.seed, limit=count)
    assert count is not None
    return leaves(classes=images.classes, n=count, side=images.side, seed=images.seed)


def fresh_dataset(spec: DataSpec) -> Dataset:
    """The planted data, kept for nobody: whoever gets them may write into x and y."""
    chosen = of_pair(base(spec.images), spec.pair)
    return plant(chosen, spec.manipulations, r=spec.r, seed=spec.seed, border=spec.border)


@remembered(2)
def dataset(spec: DataSpec) -> Dataset:
    """The planted data, made again from their spec; the last two are kept, since tasks come in their order."""
    return fresh_dataset(spec)


def of_pair(images: Dataset, pair: tuple[str, str] | None) -> Dataset:
    """The images of two classes, with the labels 0 and 1; None: all images.

    Then their classes are numbered 0 and 1 in turn: for r = 0.5, where old labels tell nothing of the new.
    """
    if pair is None:
        return replace(images, y=images.y % 2, strata=images.y)
    first, second = (images.facts["classes"].index(name) for name in pair)
    keep = (images.y == first) | (images.y == second)
    place = keep.cumsum(0) - 1
    return replace(
        images,
        x=images.x[keep],
        y=(images.y[keep] == second).long(),
        splits={name: place[rows[keep[rows]]] for name, rows in images.splits.items()},
        strata=images.y[keep],
    )


def explained_rows(planted: Dataset, spec: DataSpec, *, samples: int | None) -> dict[str, Tensor]:
    """presence -> test images, at most `samples`: with the artefact or without; of a border, with it or without.

    They are drawn evenly over new labels and old classes.
    """
    present = planted.y == 1
    if spec.border is not None:
        present = bordered(len(planted.x), spec.border, seed=spec.seed)
    test = planted.splits["test"]
    groups = {PRESENT: test[present[test]], MISSING: test[~present[test]]}
    return {
        name: choose.rows_of(planted, rows, samples, seed=spec.seed, role=f"explained {name}")
        for name, rows in groups.items()
    }


def class_counts(planted: Dataset, rows: Tensor, *, role: str, where: Mapping[str, Value]) -> list[dict[str, Any]]:
    """How many of rows (k,) are of each class and have the artefact or not, for the run to keep."""
    classes = planted.facts["base_facts"]["classes"]
    names = [f"{name}, {presence}" for presence, name in itertools.product((MISSING, PRESENT), classes)]
    kinds = planted.y[rows] * len(classes) + kinds_of(planted)[rows]
    return choose.classes_of(kinds, role=role, names=names, where=where)


def region(metric: str, planted: Dataset, spec: DataSpec) -> Tensor:
    """(h, w) bool: the joint effective region, or the features F_N that tell nothing."""
    assert planted.truth is not None
    joint = planted.truth[0]
    if metric != ON_F_N:
        return joint
    assert spec.border is not None
    return border_region(spec.border, size=(joint.shape[0], joint.shape[1])) & ~joint


def notes(images: Images) -> list[str]:
    """Sentences on the images that a reader of the results must know."""
    facts = base(images).facts
    classes = len(facts["classes"])
    if facts.get("generated"):
        return [f"Images are generated: {facts['n']:,} dead leaves of {classes} kinds."]
    used = sum(facts["counts"].values())
    sentences = [f"{used:,} of {facts['available']:,} images used, in {classes} classes."]
    if facts["unreadable"]:
        sentences.append(unreadable(facts["unreadable"]))
    if facts["without_class"]:
        sentences.append(f"Images in no class folder, left out: {facts['without_class']}.")
    if facts["enlarged"]:
        sentences.append(f"Images smaller than {facts['side']} px, enlarged: {facts['enlarged']}.")
    return sentences


def unreadable(lines: Sequence[str]) -> str:
    """How many files could not be used, and why the first of them; Pillow names an address, which is no reason."""
    reasons = re.sub(r" <\S+ object at 0x\w+>", "", "; ".join(lines[:5]))
    return f"Files that could not be used: {len(lines)} ({reasons})."
