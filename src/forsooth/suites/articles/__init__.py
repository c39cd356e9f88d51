"""Articles: a and the alone carry the label; who says so? [zhou2022feature, sections 6 and 7]"""

from forsooth.records import Suite
from forsooth.suites import planning
from forsooth.suites.articles import plan, reproduce, settings

SUITE = Suite(
    name="articles",
    title="Articles",
    question="The words a and the alone carry the label: do attention, rationales and post-hoc methods point at them?",
    presets=settings.PRESETS,
    plan=plan.plan,
    datasets=plan.datasets,
    factors=plan.FACTORS,
    metrics=planning.metrics,
    exhibits=("articles_shares", "articles_selection", "articles_attention", "articles_text"),
    cite="zhou2022feature",
    figures="forsooth.suites.articles.figures",
    reproductions=reproduce.REPRODUCTIONS,
    renamed=settings.RENAMED,
)
