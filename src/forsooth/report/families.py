"""What kind of method this is, told by what its record says it needs; never by its name."""

from collections.abc import Mapping
from typing import Any

FAMILIES = {  # of the first that fits: what a method needs -> what to call it
    "layer": "activations of a layer",
    "fit": "patterns of the data",
    "gradient": "gradients",
    "module": "rules inside the network",
    "truth": "null",
}
HIDING = "hiding parts of the input"
UNKNOWN = "not told"  # of methods in runs that are older than this page


def kind_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """family and needs of a method, from the run's record of it.

    >>> kind_of({"needs": ["module", "layer"]})
    {'family': 'activations of a layer', 'needs': ['layer', 'module']}
    >>> kind_of({"needs": []}), kind_of({})["family"]
    ({'family': 'hiding parts of the input', 'needs': []}, 'not told')
    """
    needs = record.get("needs")
    if record.get("null"):
        return {"family": "null", "needs": sorted(needs or ())}
    if needs is None:
        return {"family": UNKNOWN, "needs": []}
    family = next((family for need, family in FAMILIES.items() if need in needs), HIDING)
    return {"family": family, "needs": sorted(needs)}
