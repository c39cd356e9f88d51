"""The suites, one per protocol of the papers, and the published tables that can be made again."""

from forsooth.records import Artefact, Reproduction, Suite
from forsooth.suites import articles, bam, bias, planted, xaitris
from forsooth.suites.articles import reproduce as articles_tables
from forsooth.suites.articles import reproduce_post_hoc, reproduce_rationales
from forsooth.suites.bam import reproduce as bam_figures
from forsooth.suites.planted import reproduce as planted_figures

SUITES: tuple[Suite, ...] = (xaitris.SUITE, bias.SUITE, planted.SUITE, articles.SUITE, bam.SUITE)
REPRODUCTIONS: tuple[Reproduction | Artefact, ...] = (
    *(record for suite in SUITES for record in suite.reproductions),
    *getattr(planted_figures, "ARTEFACTS", ()),
    *getattr(bam_figures, "ARTEFACTS", ()),
    *getattr(articles_tables, "ARTEFACTS", ()),
    *getattr(reproduce_rationales, "ARTEFACTS", ()),
    *getattr(reproduce_post_hoc, "ARTEFACTS", ()),
)
