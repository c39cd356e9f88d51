"""Verdicts on the claims of section 5.1 on series over k: who follows the accuracy drop, and how far maps change."""

from collections.abc import Iterator

import numpy as np
from pandas import DataFrame

from forsooth.stats.bootstrap import drawn, percentile_interval
from forsooth.stats.claims import directions
from forsooth.suites.bam.settings import PUBLISHED
from forsooth.suites.verdicts import above, below, corrected, holding

GC = "grad_cam"
GB = "guided_backprop"
MUCH_SMALLER = 0.5  # a range that is half or less of another


def claims_series(table: DataFrame, rhos: DataFrame, ranges: DataFrame) -> list[str]:
    """Our ρ beside the published ones, and the claims on them.

    table         a line per method: rho, rho_low, rho_high, published, range, images
    rhos, ranges  draws of ρ and of the range over k, one column per method
    """
    table = table.set_index("method")
    maps = table[table.index.isin(PUBLISHED)].sort_values("rho", ascending=False)
    return [
        "Section 5.1, fine.",
        *published_rhos(table[table["published"].notna()], rhos),
        *follows_best("GC", GC, "all maps", table, rhos),
        *follows_best("TCAV", "tcav", "all", table, rhos),
        *smaller_ranges(maps, ranges),
        *least_range(maps, ranges),
    ]


def published_rhos(table: DataFrame, rhos: DataFrame) -> Iterator[str]:
    """Each of our ρ beside the published one; what differs does so for all of them."""
    words = "rho of {name}{of}: {result}. Ours {rho:.2f} [{rho_low:.2f}, {rho_high:.2f}]; published {published:.2f}."
    estimates = [drawn(line["rho"], rhos[name], int(line["images"])) for name, line in table.iterrows()]
    differ = directions(estimates, table["published"].tolist()) != 0
    for (name, line), surely in zip(table.iterrows(), differ, strict=True):
        result = holding(line["rho_low"], line["rho_high"], line["published"], surely=surely)
        yield words.format(name=name, of=corrected(len(table)), result=result, **line)


def follows_best(short: str, name: str, whom: str, table: DataFrame, rhos: DataFrame) -> list[str]:
    """Whether ρ of one method is above that of the best other map."""
    others = table["rho"][table.index.isin(PUBLISHED)].drop(name, errors="ignore").sort_values(ascending=False)
    claim = f"{short} follows the drop best of {whom}"
    if others.empty:
        return []
    if name not in table.index:
        return [f"{claim}: inconclusive, it has no series over k."]
    rival = others.index[0]
    own = table.loc[name, "rho"]
    best = others.iloc[0]
    fewest = int(table.loc[[name, rival], "images"].min())
    gap = percentile_interval(own - best, rhos[name] - rhos[rival], fewest)
    beside = f"{short} {own:.2f}, {rival} {best:.2f}"
    return [above(f"{claim} (its rho less that of {rival})", gap, more=beside)]


def smaller_ranges(maps: DataFrame, ranges: DataFrame) -> list[str]:
    """Whether GC changes over k by far the most."""
    others = maps["range"].drop(GC, errors="ignore")
    if GC not in maps.index or others.empty:
        return []
    own = maps.loc[GC, "range"]
    with np.errstate(divide="ignore", invalid="ignore"):
        draws = ranges[others.index].max(axis=1) / ranges[GC]
        ratio = percentile_interval(np.divide(others.max(), own), draws, int(maps["images"].min()))
    claim = "All maps but GC change at a much smaller scale (the widest range of theirs by that of GC: half or less)"
    beside = f"GC {own:.2f}, the next {others.idxmax()} {others.max():.2f}"
    return [below(claim, ratio, MUCH_SMALLER, beside)]


def least_range(maps: DataFrame, ranges: DataFrame) -> list[str]:
    """Whether GB changes over k the least."""
    if GC not in maps.index or GB not in maps.index:
        return []
    others = maps["range"].drop(GB)
    draws = ranges[GB] - ranges[others.index].min(axis=1)
    gap = percentile_interval(maps.loc[GB, "range"] - others.min(), draws, int(maps["images"].min()))
    claim = "GB evolves minimally (its range less the least of the others)"
    return [below(claim, gap, 0.0, f"least of them {others.idxmin()}")]
