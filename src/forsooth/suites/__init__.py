"""The suites, one per protocol of the papers, and the published tables that can be made again."""

from forsooth.records import Artefact, Suite
from forsooth.suites import (
    articles,
    articles_post_hoc,
    articles_rationales,
    articles_tables,
    audit,
    bam,
    bam_figures,
    bias,
    bias_accurate,
    bias_figures,
    bias_patches,
    bias_tables,
    planted,
    planted_figures,
    suppressed,
    tables,
    xaitris,
)

SUITES: tuple[Suite, ...] = (xaitris.SUITE, bias.SUITE, planted.SUITE, articles.SUITE, bam.SUITE)
ARTEFACTS: tuple[Artefact, ...] = (
    *tables.ARTEFACTS,
    *bias_tables.ARTEFACTS,
    *bias_figures.ARTEFACTS,
    *suppressed.ARTEFACTS,
    *bias_accurate.ARTEFACTS,
    *bias_patches.ARTEFACTS,
    *audit.ARTEFACTS,
    *planted_figures.ARTEFACTS,
    *bam_figures.ARTEFACTS,
    *articles_tables.ARTEFACTS,
    *articles_rationales.ARTEFACTS,
    *articles_post_hoc.ARTEFACTS,
)
