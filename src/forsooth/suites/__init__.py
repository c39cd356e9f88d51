"""The suites, one per protocol of the papers, and the published tables that can be made again."""

from forsooth.records import Artefact, Suite
from forsooth.suites import audit, bias, bias_figures, bias_tables, planted, planted_figures, tables, xaitris

SUITES: tuple[Suite, ...] = (xaitris.SUITE, bias.SUITE, planted.SUITE)
ARTEFACTS: tuple[Artefact, ...] = (
    *tables.ARTEFACTS,
    *bias_tables.ARTEFACTS,
    *bias_figures.ARTEFACTS,
    *audit.ARTEFACTS,
    *planted_figures.ARTEFACTS,
)
