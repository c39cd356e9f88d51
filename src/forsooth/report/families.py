"""What kind of method this is, told by what its record says it needs; never by its name."""

from collections.abc import Mapping
from typing import Any

from forsooth.attributions import METHODS

FAMILIES = {  # of the first that fits: what a method needs -> what to call it
    "layer": "activations of a layer",
    "fit": "patterns of the data",
    "gradient": "gradients",
    "module": "rules inside the network",
    "truth": "null",
}
HIDING = "hiding parts of the input"
UNKNOWN = "not told"  # of a method that is no longer in the catalogue, in an old run


def kind_of(name: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """family and needs of a method, from the run's record of it or else, for old runs, from the catalogue.

    >>> kind_of("grad_cam", {})
    {'family': 'activations of a layer', 'needs': ['layer', 'module']}
    >>> kind_of("mine:method", {"needs": []}), kind_of("mine:old", {})["family"]
    ({'family': 'hiding parts of the input', 'needs': []}, 'not told')
    """
    needs = record.get("needs", BY_NAME.get(name))
    if record.get("null"):
        return {"family": "null", "needs": sorted(needs or ())}
    if needs is None:
        return {"family": UNKNOWN, "needs": []}
    family = next((family for need, family in FAMILIES.items() if need in needs), HIDING)
    return {"family": family, "needs": sorted(needs)}


BY_NAME = {method.name: method.needs for method in METHODS}
