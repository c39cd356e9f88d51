"""What is planted on: dead leaves or the user's images, two classes of them, and the artefact on the second."""

import itertools
from dataclasses import dataclass, field

from torch import Tensor

from forsooth.datasets import remarks
from forsooth.datasets.class_pairs import of_pair
from forsooth.datasets.manipulations import Manipulation
from forsooth.datasets.plain_images import Images, base
from forsooth.datasets.planted import Border, bordered, kinds_of, plant, scored_region
from forsooth.plain import remembered
from forsooth.records import Columns, Dataset, Facts, Tensors
from forsooth.suites import choose

ON_F_N = "attr_non_informative"
PRESENT = "with"  # images that have the artefact, or the border
MISSING = "without"


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


def factors(spec: DataSpec) -> Columns:
    """The columns that tell rows of one spec from those of another."""
    return {
        "manipulation": spec.manipulation.name,
        "visibility": float(spec.manipulation.visibility),
        "r": float(spec.r),
        "pair": "/".join(spec.pair or ("all",)),
    }


def fresh_dataset(spec: DataSpec) -> Dataset:
    """The planted data, kept for nobody: whoever gets them may write into x and y."""
    return plant(
        of_pair(base(spec.images), spec.pair),
        [None, spec.manipulation],
        r=spec.r,
        seed=spec.seed,
        border=spec.border,
    )


@remembered(2)
def dataset(spec: DataSpec) -> Dataset:
    """The planted data, made again from their spec; the last two are kept, since tasks come in their order."""
    return fresh_dataset(spec)


def explained_rows(planted: Dataset, spec: DataSpec, *, samples: int | None) -> Tensors:
    """presence -> test images, at most `samples`: with the artefact or without; of a border, with it or without.

    They are drawn evenly over new labels and old classes.
    """
    everyone = planted.y == 1
    if spec.border is not None:
        everyone = bordered(len(planted.x), spec.border, seed=spec.seed)
    test = planted.splits["test"]
    present = everyone[test]
    groups = {PRESENT: test[present], MISSING: test[~present]}
    return {
        name: choose.rows_of(planted, rows, samples, seed=spec.seed, role=f"explained {name}")
        for name, rows in groups.items()
    }


def class_counts(planted: Dataset, roles: Tensors, *, where: Columns) -> list[Facts]:
    """How many rows of each role (k,) are of each class and have the artefact or not, for the run to keep."""
    classes = planted.facts["base_facts"]["classes"]
    names = [f"{name}, {presence}" for presence, name in itertools.product((MISSING, PRESENT), classes)]
    kinds = planted.y * len(classes) + kinds_of(planted)
    return choose.classes_of({role: kinds[rows] for role, rows in roles.items()}, names=names, where=where)


def notes(images: Images) -> list[str]:
    """Sentences on the images that a reader of the results must know."""
    return remarks.on_images(base(images).facts)


def region(metric: str, planted: Dataset, spec: DataSpec) -> Tensor:
    """(h, w) bool: the joint effective region, or the features F_N that tell nothing."""
    return scored_region(planted, spec.border if metric == ON_F_N else None)
