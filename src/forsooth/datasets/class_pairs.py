"""Pairs of classes that labels are redrawn between [zhou2022feature]: which there are, and the images of one."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

from forsooth.records import Dataset

BIRDS = (  # of the paper, confused most often
    ("brandts_cormorant", "pelagic_cormorant"),
    ("fish_crow", "common_raven"),
    ("forsters_tern", "common_tern"),
    ("pomarine_jaeger", "long_tailed_jaeger"),
)


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
