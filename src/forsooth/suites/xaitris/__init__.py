"""XAI-TRIS: do methods find the pixels that are known to matter, or only edges and suppressors? [clark2024xaitris]"""

from forsooth.records import Suite
from forsooth.suites import planning
from forsooth.suites.xaitris import plan, reproduce, settings

SUITE = Suite(
    name="xaitris",
    title="XAI-TRIS",
    question="Which methods find the pixels that are known to matter, and which are beaten by an edge detector?",
    presets=settings.PRESETS,
    plan=plan.plan,
    datasets=plan.datasets,
    factors=plan.FACTORS,
    metrics=planning.metrics,
    exhibits=("boxes", "examples", "globals", "accuracies", "accuracy_by_alpha", "strategies"),
    cite="clark2024xaitris",
    figures="forsooth.suites.xaitris.figures",
    reproductions=reproduce.REPRODUCTIONS,
)
