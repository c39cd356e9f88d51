"""XAI-TRIS: do methods find the pixels that are known to matter, or only edges and suppressors? [clark2024xaitris]"""

from collections.abc import Callable, Mapping
from typing import Any

from forsooth.records import Suite
from forsooth.suites.xaitris import plan, reproduce, settings


def figures() -> Mapping[str, Callable[..., Any]]:
    from forsooth.suites.xaitris.figures import FIGURES  # matplotlib takes a second to import: only who draws pays

    return FIGURES


SUITE = Suite(
    name="xaitris",
    title="XAI-TRIS",
    question="Which methods find the pixels that are known to matter, and which are beaten by an edge detector?",
    presets=settings.PRESETS,
    plan=plan.plan,
    factors=plan.FACTORS,
    metrics=plan.metrics,
    exhibits=("boxes", "examples", "globals", "accuracies", "accuracy_by_alpha", "strategies"),
    cite="clark2024xaitris",
    figures=figures,
    reproductions=reproduce.REPRODUCTIONS,
)
