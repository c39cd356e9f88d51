"""The median of every method in every panel, and what samples and trainings that were not drawn could make of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from forsooth.report.aggregate import Results, in_order, took_part
from forsooth.stats.panels import Floats, Panel, panel_of

# Factors that ask the same networks about the same samples in another way, and those that show the samples to others.
SAME_NETWORKS = ("player", "end", "fraction", "placing")
SAME_SAMPLES = (*SAME_NETWORKS, "model", "manipulation")
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
    panels: pd.DataFrame
    methods: tuple[str, ...]
    null: NDArray[np.bool_]
    rival: NDArray[np.bool_]
    value: Floats
    chance: tuple[Panel, ...]
    rows: pd.DataFrame


def medians(results: Results, metric: str) -> Medians:
    """Medians over samples and seeds in each panel."""
    rows = took_part(results, metric)
    record = results.run["metrics"][metric]
    factors = results.run["factors"]
    known = results.run["methods"]
    panels = in_order(results, rows[factors].drop_duplicates()).reset_index(drop=True)
    rows = rows.merge(panels.assign(panel=panels.index), on=factors)
    present = rows["method"].unique()
    methods = (*(name for name in known if name in present), *(name for name in present if name not in known))
    chance = tuple(_panels(rows, panels, methods=methods))
    return Medians(
        metric=metric,
        sign=1 if record["better"] == "higher" else -1,
        bounds=_bounds(record),
        panels=panels,
        methods=methods,
        null=np.array([bool(known.get(name, {}).get("null")) for name in methods], dtype=bool),
        rival=np.array([name not in CEILING for name in methods], dtype=bool),
        value=np.array([panel.value for panel in chance]).reshape(len(panels), len(methods)),
        chance=chance,
        rows=rows,
    )


def all_medians(results: Results) -> dict[str, Medians]:
    """metric -> its medians, for every metric of the run that has any."""
    every = {metric: medians(results, metric) for metric in results.run["metrics"]}
    return {metric: table for metric, table in every.items() if len(table.panels)}


def _bounds(record: Mapping[str, Any]) -> tuple[float, float]:
    low, high = record.get("bounds") or (None, None)
    return -np.inf if low is None else float(low), np.inf if high is None else float(high)


def _numbered(panels: pd.DataFrame, *, but: tuple[str, ...]) -> NDArray[np.int64]:
    """A number for each panel (panels,), the same for panels that differ in the factors `but` alone."""
    shared = [factor for factor in panels if factor not in but]
    if not shared:
        return np.zeros(len(panels), dtype=np.int64)
    return panels.groupby(shared).ngroup().to_numpy()


def _panels(rows: pd.DataFrame, panels: pd.DataFrame, *, methods: tuple[str, ...]) -> Iterator[Panel]:
    """The panels in their order."""
    places = pd.Index(methods)
    datasets = _numbered(panels, but=SAME_SAMPLES)
    networks = _numbered(panels, but=SAME_NETWORKS)
    for panel, own in rows.groupby("panel"):
        samples, sample = np.unique(own["sample"].to_numpy(), return_inverse=True)
        seeds, seed = np.unique(own["model_seed"].to_numpy(), return_inverse=True)
        scores = np.full((len(methods), len(samples), len(seeds)), np.nan)
        scores[places.get_indexer(own["method"]), sample, seed] = own["value"].to_numpy()
        groups = {"dataset": int(datasets[panel]), "network": int(networks[panel])}
        yield panel_of(scores, samples=samples, seeds=seeds, **groups)


def where(medians: Medians, keep: NDArray[np.bool_]) -> Medians:
    """The same, of the panels `keep` (panels,) alone, without methods that took part in none of them."""
    part = np.asarray(np.isfinite(medians.value[keep]).any(axis=0))
    return replace(
        medians,
        panels=medians.panels[keep],
        methods=tuple(name for name, taken in zip(medians.methods, part, strict=True) if taken),
        null=medians.null[part],
        rival=medians.rival[part],
        value=medians.value[keep][:, part],
        chance=tuple(medians.chance[k].take(np.flatnonzero(part)) for k in np.flatnonzero(keep)),
        rows=medians.rows[medians.rows["panel"].isin(medians.panels.index[keep])],
    )
