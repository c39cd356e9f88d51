"""How visible an artefact is: as the paper drew it, or fit to be seen on smaller images [zhou2022feature]."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from forsooth.datasets.manipulations import UNIT, Manipulation, draw

PRINTED: Mapping[str, Any] = {"anchor": "band", "characters": "digits", "colours": "fixed"}  # the released code differs
LEGIBLE = 128  # px of a side from which the paper's artefacts are visible enough; smaller images need more


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
