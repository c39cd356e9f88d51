"""The suites, one per protocol of the papers, and the published tables that can be made again."""

from forsooth.records import Artefact, Suite
from forsooth.suites import tables, xaitris

SUITES: tuple[Suite, ...] = (xaitris.SUITE,)
ARTEFACTS: tuple[Artefact, ...] = tables.ARTEFACTS
