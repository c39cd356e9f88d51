"""Relative importance: an object matters more to one model, or in one input, than in another [yang2019benchmarking]."""

from forsooth.records import Suite
from forsooth.suites import planning
from forsooth.suites.bam import plan, reproduce, settings

SUITE = Suite(
    name="bam",
    title="Relative importance",
    question="An object matters to one model and not to another: which methods see the difference?",
    presets=settings.PRESETS,
    plan=plan.plan,
    datasets=plan.datasets,
    factors=plan.FACTORS,
    metrics=planning.metrics,
    exhibits=("examples", "bam_verification", "bam_contrasts", "bam_series", "bam_patches"),
    cite="yang2019benchmarking",
    figures="forsooth.suites.bam.figures",
    reproductions=reproduce.REPRODUCTIONS,
    renamed=settings.RENAMED,
)
