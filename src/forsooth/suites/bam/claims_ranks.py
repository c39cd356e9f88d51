"""The verdict on the summary of section 5: the three metrics rank one method differently, in most draws."""

from collections.abc import Mapping, Sequence

import numpy as np
from pandas import DataFrame

from forsooth.frames import only
from forsooth.stats.bootstrap import DRAWS, ENDS, draw, resampled_means, resampled_ranks, value_array
from forsooth.stats.intervals import Floats
from forsooth.suites.bam.settings import METRICS, PUBLISHED
from forsooth.suites.verdicts import outcome

VG = "gradient"
SURE = 0.95  # share of draws in which a claim on ranks must hold
FEWEST_MAPS = 3
CLAIM = "The metrics are complementary (VG: high IDR and IIR, low MCS)"


def claims_summary(table: DataFrame, rows: DataFrame) -> list[str]:
    """Whether the gradient ranks high in IDR and IIR and low in MCS.

    table  metric, method and value
    rows   of all metrics, as they take part
    """
    title = "Section 5, summary."
    wide = table.pivot_table(index="method", columns="metric", values="value")
    maps = wide[wide.index.isin(PUBLISHED)].dropna()
    if not set(METRICS) <= set(maps) or VG not in maps.index or len(maps) < FEWEST_MAPS:
        return [title]
    ranks = maps.rank(ascending=False, method="min").loc[VG].astype(int).to_dict()
    draws = DataFrame(rank_draws(rows, VG, list(maps.index))).dropna()
    return [title, complementary(ranks, draws, len(maps))]


def complementary(ranks: Mapping[str, int], draws: DataFrame, count: int) -> str:
    """The verdict, from ranks by metric and from draws of them, of `count` maps."""
    if draws.empty:
        words = ", ".join(f"{name} {ranks[name]}" for name in METRICS)
        return f"{CLAIM}: inconclusive, too few images. Ours, ranks: {words} of {count}."
    share = share_complementary(draws <= count / 2)
    ends = draws.quantile(list(ENDS), interpolation="nearest").astype(int)
    words = ", ".join(f"{name} {ranks[name]} of {count} {ends[name].tolist()}" for name in METRICS)
    result = outcome(share >= SURE, share <= 1 - SURE)
    return f"{CLAIM}: {result}. Ours, ranks: {words}; so in {share:.0%} of {DRAWS} draws."


def share_complementary(high: DataFrame) -> float:
    """Of draws in which IDR and IIR rank the method in the upper half and MCS does not."""
    return float((high["idr"] & high["iir"] & ~high["mcs"]).mean())


def rank_draws(rows: DataFrame, method: str, methods: Sequence[str]) -> dict[str, Floats]:
    """Draws of a method's rank in each metric; nan where one of the methods has a single image.

    MCS and IDR have the same images; those of IIR are others.
    """
    trainings = sorted(rows["model_seed"].unique())
    rows = only(rows, part="samples", mask="object", method=methods)
    patched = rows["metric"].eq("iir")
    ranks = {}
    for pool, own in enumerate((rows[~patched], rows[patched])):
        values, columns = value_array(own, ["metric", "method"], trainings=trainings)
        means = resampled_means(values, draw(values.shape[1], len(values), pool=pool))
        single = np.isfinite(values).any(0).sum(0) < 2
        means[:, single] = np.nan
        for metric in own["metric"].unique():
            places = [columns.index((metric, one)) for one in methods]
            ranks[metric] = resampled_ranks(means[:, places], methods.index(method))
    return ranks
