"""Needle: one column of a table decides the label; who finds it?"""

from forsooth.suites.needle import plan, reproduce, settings

from forsooth.records import Suite

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
    figures="forsooth.suites.needle.figures",
    reproductions=reproduce.REPRODUCTIONS,
)
