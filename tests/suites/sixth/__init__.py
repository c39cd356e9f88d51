"""Needle: one column of a table decides the label; who finds it?"""

from collections.abc import Callable, Mapping
from typing import Any

from forsooth.suites.needle import plan, reproduce, settings

from forsooth.records import Suite


def figures() -> Mapping[str, Callable[..., Any]]:
    from forsooth.suites.needle.figures import FIGURES

    return FIGURES


SUITE = Suite(
    name="needle",
    title="Needle",
    question="One column of a table decides the label: which methods find it?",
    presets=settings.PRESETS,
    plan=plan.plan,
    factors=("columns", "model"),
    metrics=plan.metrics,
    exhibits=("needle_columns",),
    cite="clark2024xaitris",
    figures=figures,
    reproductions=reproduce.REPRODUCTIONS,
)
