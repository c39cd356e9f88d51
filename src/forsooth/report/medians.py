"""The median of every method in every panel, and what samples and trainings that were not drawn could make of it."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from forsooth.report.aggregate import Record, Results, in_order, methods_in, nulls_in, took_part
from forsooth.stats import differences
from forsooth.stats.boards import Standings, panels_of, shared_by, standings
from forsooth.stats.differences import Bools
from forsooth.stats.panels import Floats, Panel

# Factors that ask the same networks about the same samples in another way, and those that show the samples to others.
SAME_NETWORKS = ("player", "end", "fraction", "placing")
SAME_SAMPLES = (*SAME_NETWORKS, "model", "manipulation")
SIGNS = {"higher": 1, "lower": -1}
CEILING = ("oracle", "shapley")  # told the truth, or the anchor itself: ends of the scale, no rivals


@dataclass(frozen=True)
class Medians:
    """What rankings are made of.

    sign     1 where more is better, else -1
    bounds   least and largest score that there can be
    panels   (panels,) rows of factor columns
    methods  names, in the order of the run
    null     (methods,) bool: ignores the model
    rival    (methods,) bool: is ranked (all but the oracle)
    value    (panels, methods), nan where a method took no part
    chance   (panels,) how samples and trainings move these values; all methods and models of a dataset share samples
    rows     those of `took_part`, with the column `panel`
    """

    metric: str
    sign: int
    bounds: tuple[float, float]
    panels: DataFrame
    methods: tuple[str, ...]
    null: NDArray[np.bool_]
    rival: NDArray[np.bool_]
    value: Floats
    chance: tuple[Panel, ...]
    rows: DataFrame

    @property
    def nulls(self) -> dict[str, bool]:
        """method -> whether it ignores the model"""
        return dict(zip(self.methods, self.null.tolist(), strict=True))

    @cached_property
    def standings(self) -> Standings:
        """Scores, intervals, ranks and groups; reckoned once, for boards and figures alike."""
        return standings(self.chance, sign=self.sign, rival=self.rival)

    @cached_property
    def wins(self) -> Bools:
        """(panels, methods): clearly better than every null of the panel but the oracle; all of them are one family."""
        return differences.wins(self.chance, sign=self.sign, null=self.null, rival=self.rival)


Tables = Mapping[str, Medians]  # metric -> its medians, in order of display


def medians(results: Results, metric: str) -> Medians:
    """Medians over samples and seeds in each panel."""
    rows = took_part(results, metric)
    record = results.run["metrics"][metric]
    factors = results.run["factors"]
    panels = in_order(results, rows[factors].drop_duplicates()).reset_index(drop=True)
    rows = rows.merge(panels.assign(panel=panels.index), on=factors)
    methods = _methods(results, rows)
    datasets = shared_by(panels, whatever=SAME_SAMPLES)
    networks = shared_by(panels, whatever=SAME_NETWORKS)
    chance = tuple(panels_of(rows, methods=methods, datasets=datasets, networks=networks))
    return Medians(
        metric=metric,
        sign=SIGNS[record["better"]],
        bounds=_bounds(record),
        panels=panels,
        methods=methods,
        null=np.isin(methods, nulls_in(results)),
        rival=~np.isin(methods, CEILING),
        value=np.array([panel.value for panel in chance]).reshape(len(panels), len(methods)),
        chance=chance,
        rows=rows,
    )


def _methods(results: Results, rows: DataFrame) -> tuple[str, ...]:
    """Who took part, in the order of the run."""
    known = methods_in(results, rows)
    return (*known, *(name for name in rows["method"].unique() if name not in known))


def all_medians(results: Results) -> dict[str, Medians]:
    """metric -> its medians, for every metric of the run that has any."""
    every = {metric: medians(results, metric) for metric in results.run["metrics"]}
    return {metric: table for metric, table in every.items() if len(table.panels)}


def _bounds(record: Record) -> tuple[float, float]:
    """Least and largest value; JSON has no infinity, so that None stands for it."""
    low, high = record.get("bounds") or (None, None)
    return float(-np.inf if low is None else low), float(np.inf if high is None else high)


def where(medians: Medians, keep: NDArray[np.bool_]) -> Medians:
    """The same, of the panels `keep` (panels,) alone, without methods that took part in none of them."""
    part = np.asarray(np.isfinite(medians.value[keep]).any(axis=0))
    return replace(
        medians,
        panels=medians.panels[keep],
        methods=tuple(itertools.compress(medians.methods, part)),
        null=medians.null[part],
        rival=medians.rival[part],
        value=medians.value[keep][:, part],
        chance=tuple(panel.take(np.flatnonzero(part)) for panel in itertools.compress(medians.chance, keep)),
        rows=medians.rows[medians.rows["panel"].isin(medians.panels.index[keep])],
    )
