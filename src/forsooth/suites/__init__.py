"""The suites, one per protocol of the papers, and the published tables that can be made again.

A suite is a folder here that has a `SUITE`; its name in `NAMES` is all that the rest of the house must be told.
"""

from importlib import import_module

from forsooth.records import Reproduction, Suite

NAMES = ("xaitris", "bias", "planted", "articles", "bam")
SUITES: tuple[Suite, ...] = tuple(import_module(f"forsooth.suites.{name}").SUITE for name in NAMES)
REPRODUCTIONS: tuple[Reproduction, ...] = tuple(record for suite in SUITES for record in suite.reproductions)
