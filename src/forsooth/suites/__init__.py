"""The suites, one per protocol of the papers, and the published tables that can be made again.

A suite is a folder here that has a `SUITE`; its name in `NAMES` is all that the rest of the house must be told.
"""

from importlib import import_module

from forsooth.records import Artefact, Reproduction, Suite
from forsooth.suites.bam import reproduce as bam_figures
from forsooth.suites.bias import accurate, audit, patches, reproduce_figures, suppressed
from forsooth.suites.bias import reproduce as bias_tables

NAMES = ("xaitris", "bias", "planted", "articles", "bam")
SUITES: tuple[Suite, ...] = tuple(import_module(f"forsooth.suites.{name}").SUITE for name in NAMES)
REPRODUCTIONS: tuple[Reproduction | Artefact, ...] = (
    *(record for suite in SUITES for record in suite.reproductions),
    *getattr(bias_tables, "ARTEFACTS", ()),
    *getattr(reproduce_figures, "ARTEFACTS", ()),
    *getattr(suppressed, "ARTEFACTS", ()),
    *getattr(accurate, "ARTEFACTS", ()),
    *getattr(patches, "ARTEFACTS", ()),
    *getattr(audit, "ARTEFACTS", ()),
    *getattr(bam_figures, "ARTEFACTS", ()),
)
