"""Bias without ground truth: how far are the top and the bottom of a map from their Shapley values? M_bias.

[anonymous2023evaluation]
"""

from forsooth.records import Suite
from forsooth.suites.bias import plan, reproduce, settings

SUITE = Suite(
    name="bias",
    title="Bias without ground truth",
    question="Where no truth is known: which methods give their top and bottom players what the Shapley values give?",
    presets=settings.PRESETS,
    plan=plan.plan,
    factors=plan.FACTORS,
    metrics=plan.metrics,
    exhibits=("bias_curves", "examples", "accuracies"),
    cite="anonymous2023evaluation",
    figures="forsooth.suites.bias.figures",
    reproductions=reproduce.REPRODUCTIONS,
    renamed=settings.RENAMED,
)
