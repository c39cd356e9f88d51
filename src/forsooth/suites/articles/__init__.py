"""Articles: a and the alone carry the label; who says so? [zhou2022feature, sections 6 and 7]"""

from collections.abc import Callable, Mapping
from typing import Any

from forsooth.records import Suite
from forsooth.suites.articles.plan import FACTORS, metrics, plan
from forsooth.suites.articles.reproduce import REPRODUCTIONS
from forsooth.suites.articles.settings import PRESETS, RENAMED


def figures() -> Mapping[str, Callable[..., Any]]:
    from forsooth.suites.articles.figures import FIGURES  # matplotlib takes a second to import: only who draws pays

    return FIGURES


SUITE = Suite(
    name="articles",
    title="Articles",
    question="The words a and the alone carry the label: do attention, rationales and post-hoc methods point at them?",
    presets=PRESETS,
    plan=plan,
    factors=FACTORS,
    metrics=metrics,
    exhibits=("articles_shares", "articles_selection", "articles_attention", "articles_text"),
    cite="zhou2022feature",
    figures=figures,
    reproductions=REPRODUCTIONS,
    renamed=RENAMED,
)
