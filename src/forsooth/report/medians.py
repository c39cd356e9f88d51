"""The median of every method in every panel, with its bootstrap over seeds and samples."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from forsooth.report.aggregate import Results, in_order, took_part
from forsooth.report.bootstrap import Counts, Floats, counts, weighted_median

DRAWS = 1000
CEILING = ("oracle", "shapley")  # told the truth, or the anchor itself: ends of the scale, no rivals


@dataclass(frozen=True)
class Medians:
    """What rankings are made of.

    sign     1 where more is better, else -1
    panels   (panels,) rows of factor columns
    methods  names, in the order of the run
    null     (methods,) bool: ignores the model
    rival    (methods,) bool: is ranked (all but the oracle)
    value    (panels, methods), nan where a method took no part
    draws    (panels, methods, draws), paired: one draw takes the same samples for all methods and all models
    rows     those of `took_part`, with the column `panel`
    """

    metric: str
    sign: int
    panels: pd.DataFrame
    methods: tuple[str, ...]
    null: NDArray[np.bool_]
    rival: NDArray[np.bool_]
    value: Floats
    draws: Floats
    rows: pd.DataFrame


def medians(results: Results, metric: str, *, draws: int = DRAWS) -> Medians:
    """Medians over samples and seeds in each panel, and `draws` bootstrap draws of them.

    Samples are drawn once per dataset, so that all methods and models meet the same ones; seeds once per panel, for
    each panel has its own models. The draws are seeded by the panel's name: the same come out at every call.
    """
    rows = took_part(results, metric)
    factors, known = results.run["factors"], results.run["methods"]
    panels = in_order(results, rows[factors].drop_duplicates()).reset_index(drop=True)
    rows = rows.merge(panels.assign(panel=panels.index), on=factors)
    present = rows["method"].unique()
    methods = (*(name for name in known if name in present), *(name for name in present if name not in known))
    value = np.full((len(panels), len(methods)), np.nan)
    drawn = np.full((*value.shape, draws), np.nan)
    for panel, name, values, weights in _weighed(rows, factors=factors, draws=draws):
        place = (panel, methods.index(name))
        value[place] = np.median(values)
        if len(values) > 1:  # of one value nothing is known but itself: draws of it would agree for no reason
            drawn[place] = weighted_median(values, weights)
    return Medians(
        metric=metric,
        sign=1 if results.run["metrics"][metric]["better"] == "higher" else -1,
        panels=panels,
        methods=methods,
        null=np.array([bool(known.get(name, {}).get("null")) for name in methods], dtype=bool),
        rival=np.array([name not in CEILING for name in methods], dtype=bool),
        value=value,
        draws=drawn,
        rows=rows,
    )


def all_medians(results: Results) -> dict[str, Medians]:
    """metric -> its medians, for every metric of the run that has any."""
    every = {metric: medians(results, metric) for metric in results.run["metrics"]}
    return {metric: table for metric, table in every.items() if len(table.panels)}


def _weighed(rows: pd.DataFrame, *, factors: list[str], draws: int) -> Iterator[tuple[int, str, Floats, Counts]]:
    """Panel, method, values (k,) and their weights (k, draws) in every draw."""
    shared = [factor for factor in factors if factor != "model"]
    for _, dataset in rows.groupby(shared) if shared else [((), rows)] if len(rows) else ():
        samples = np.unique(dataset["sample"])
        drawn = counts(len(samples), draws=draws, rng=_generator("samples", dataset.iloc[0][shared]))
        for panel, group in dataset.groupby("panel"):
            seeds = np.unique(group["model_seed"])
            trained = counts(len(seeds), draws=draws, rng=_generator("seeds", group.iloc[0][factors]))
            for name, own in group.groupby("method"):
                weights = drawn[np.searchsorted(samples, own["sample"])]
                if own["model_seed"].nunique() > 1:  # nulls and single trainings have no seeds to draw
                    weights = weights * trained[np.searchsorted(seeds, own["model_seed"])]
                yield panel, name, own["value"].to_numpy(), weights


def _generator(kind: str, names: pd.Series) -> np.random.Generator:
    return np.random.default_rng(list("\x1f".join([kind, *names]).encode()))


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
        draws=medians.draws[keep][:, part],
        rows=medians.rows[medians.rows["panel"].isin(medians.panels.index[keep])],
    )
