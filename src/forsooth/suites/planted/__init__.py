"""Planted artefacts [zhou2022feature]: labels are redrawn, and an artefact in a known region reveals the new ones.

A model that is right more often than chance would have it uses that region, and a good map of it lies there.
"""

from forsooth.records import Suite
from forsooth.suites import planning
from forsooth.suites.planted import plan, reproduce, settings

__all__ = ["SUITE"]
SUITE = Suite(
    name="planted",
    title="Planted artefacts",
    question="The model can only be right by an artefact in a known region: which methods point at that region?",
    presets=settings.PRESETS,
    plan=plan.plan,
    datasets=plan.datasets,
    factors=("manipulation", "model"),
    metrics=planning.metrics,
    exhibits=("examples", "planted_curves", "planted_gate"),
    cite="zhou2022feature",
    figures="forsooth.suites.planted.figures",
    reproductions=reproduce.REPRODUCTIONS,
    renamed=settings.RENAMED,
)
