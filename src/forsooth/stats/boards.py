"""What a board says: scores with intervals, ranks and tie groups of methods, from panels or from plain means.

Reports draw what is reckoned here. A method that took part in some of the panels only is compared where both took part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from forsooth.stats.differences import LEVEL, Bools, differing, letters, pairs, ranks
from forsooth.stats.panels import Floats, Panel, panel_of
from forsooth.stats.spread import half_widths, pvalues, spread_of, spread_of_means

SAMPLES = "samples"
SAMPLES_AND_TRAININGS = "samples and trainings"


@dataclass(frozen=True)
class Standings:
    """The board of the methods in these panels.

    score   (methods,) mean over the panels that it took part in
    half    (methods,) half of its 95 % interval; nan where nothing is known
    over    what the interval was drawn over, for each method
    ranks   (3, methods) rank, lowest and highest rank among the rivals that have its panels too; nan of no rival
    groups  tie group of each method; empty for no rivals and for those that missed a panel
    panels  (methods,) in how many panels it took part
    order   (methods,) places of the methods, best first; behind them the oracle, and those that missed a panel
    """

    score: Floats
    half: Floats
    over: list[str]
    ranks: Floats
    groups: list[str]
    panels: NDArray[np.int64]
    order: NDArray[np.int64]


def standings(panels: Sequence[Panel], *, sign: int, rival: Bools) -> Standings:
    """Scores, intervals, ranks and tie groups of all methods of these panels.

    sign   1 where more is better, else -1
    rival  (methods,) whether it is ranked: all but the oracle
    """
    value = values_of(panels)
    taken = np.isfinite(value).sum(axis=0)
    complete = taken == len(panels)
    score = _scores(value)
    differ = differing(board_pvalues(panels, rival=rival))
    return Standings(
        score=score,
        half=board_half_widths(panels),
        over=interval_sources(panels),
        ranks=board_ranks(value, differ, sign=sign, rival=rival),
        groups=tie_groups(sign * score, differ, ranked=complete & rival),
        panels=taken,
        order=np.lexsort([-sign * score, rival, ~complete]),
    )


def _scores(value: Floats) -> Floats:
    """Mean (methods,) over the panels that a method took part in, of value (panels, methods); nan of none."""
    part = np.isfinite(value)
    taken = part.sum(axis=0)
    return np.where(taken > 0, np.where(part, value, 0).sum(axis=0) / np.maximum(1, taken), np.nan)


def values_of(panels: Sequence[Panel]) -> Floats:
    """Medians (panels, methods); nan where a method took no part."""
    return np.stack([panel.value for panel in panels])


def board_half_widths(panels: Sequence[Panel]) -> Floats:
    """Half the 95 % interval of each score (methods,), over the panels in which a method took part."""
    part = np.isfinite(values_of(panels))
    half = np.full(part.shape[1], np.nan)
    for pattern, own in _patterns(part):
        half[own] = half_widths(spread_of([panel.take(own) for panel in _those(panels, pattern)]))[:-1, -1]
    return half


def board_pvalues(panels: Sequence[Panel], *, rival: Bools) -> Floats:
    """p-values of all pairs of rivals (methods, methods), not yet corrected; nan where two never met.

    A pair is compared in the panels in which both took part.
    """
    part = np.isfinite(values_of(panels))
    table = np.full((len(rival), len(rival)), np.nan)
    for pattern, pool, mine in _pools(part, rival):
        if len(pool) < 2:
            continue
        here = pairs([panel.take(pool) for panel in _those(panels, pattern)])
        rows, columns = np.nonzero(mine[:, None] & _others(len(pool)))
        table[pool[rows], pool[columns]] = here[rows, columns]
        table[pool[columns], pool[rows]] = here[rows, columns]
    return table


def _others(methods: int) -> Bools:
    """(methods, methods): all pairs but those of a method with itself."""
    return ~np.eye(methods, dtype=bool)


def _patterns(part: Bools) -> Iterator[tuple[Bools, NDArray[np.int64]]]:
    """Each set of panels (panels,) that some methods took part in, and the places of those methods; part as values."""
    for pattern in np.unique(part[:, part.any(axis=0)], axis=1).T:
        yield pattern, np.flatnonzero((part == pattern[:, None]).all(axis=0))


def _pools(part: Bools, rival: Bools) -> Iterator[tuple[Bools, NDArray[np.int64], Bools]]:
    """Each set of panels (panels,) of some rivals, all rivals that have them too, and which of these have no more."""
    for pattern, own in _patterns(part & rival):
        pool = np.flatnonzero(part[pattern].all(axis=0) & rival)
        yield pattern, pool, np.isin(pool, own)


def _those(panels: Sequence[Panel], pattern: Bools) -> list[Panel]:
    return [panel for panel, taken in zip(panels, pattern, strict=True) if taken]


def interval_sources(panels: Sequence[Panel]) -> list[str]:
    """What the interval of each method was drawn over: samples, and trainings where a panel has two of it."""
    trained = np.zeros(len(panels[0].value), dtype=bool)
    for panel in panels:
        if len(panel.seeds) > 1:
            trained |= panel.several
    return np.where(trained, SAMPLES_AND_TRAININGS, SAMPLES).tolist()


def board_ranks(value: Floats, differ: Bools, *, sign: int, rival: Bools) -> Floats:
    """Rank, lowest and highest rank of each rival (3, methods), among all rivals that have its panels too.

    value   (panels, methods), nan where a method took no part
    differ  (methods, methods) pairs that differ
    """
    places = np.full((3, value.shape[1]), np.nan)
    for pattern, pool, mine in _pools(np.isfinite(value), rival):
        good = sign * value[pattern][:, pool].mean(axis=0)
        places[:, pool[mine]] = ranks(good, differ[np.ix_(pool, pool)])[:, mine]
    return places


def tie_groups(good: Floats, differ: Bools, *, ranked: Bools) -> list[str]:
    """Tie group of each method, A for the best; empty for those that are not ranked.

    good    (methods,) more is better
    differ  (methods, methods) pairs that differ
    """
    names = [""] * len(good)
    order = np.argsort(-good, kind="stable")
    order = order[ranked[order]]
    for method, letter in zip(order, letters(differ[np.ix_(order, order)]), strict=True):
        names[method] = letter
    return names


def panels_of(
    rows: pd.DataFrame, *, methods: Sequence[str], datasets: NDArray[np.int64], networks: NDArray[np.int64]
) -> Iterator[Panel]:
    """The panels of rows, in their order.

    rows                columns panel (a number from 0), method, sample, model_seed and value
    methods             names, in the order of the board
    datasets, networks  (panels,) numbers: panels with the same share samples, and trainings (`shared_by`)
    """
    places = pd.Index(methods)
    for panel, own in rows.groupby("panel"):
        samples, sample = np.unique(own["sample"].to_numpy(), return_inverse=True)
        seeds, seed = np.unique(own["model_seed"].to_numpy(), return_inverse=True)
        scores = np.full((len(methods), len(samples), len(seeds)), np.nan)
        scores[places.get_indexer(own["method"]), sample, seed] = own["value"].to_numpy()
        dataset = int(datasets[panel])
        yield panel_of(scores, samples=samples, seeds=seeds, dataset=dataset, network=int(networks[panel]))


def shared_by(panels: pd.DataFrame, *, whatever: Sequence[str]) -> NDArray[np.int64]:
    """A number for each panel (panels,), the same for panels that differ in the factors `whatever` alone.

    panels  one row per panel, one column per factor
    """
    factors = [factor for factor in panels if factor not in whatever]
    if not factors:
        return np.zeros(len(panels), dtype=np.int64)
    return panels.groupby(factors).ngroup().to_numpy()


def quartiles(rows: pd.DataFrame) -> pd.DataFrame:
    """q1, median and q3 of all values of each method, of the columns method and value."""
    table = rows.groupby("method")["value"].quantile([0.25, 0.5, 0.75]).unstack()
    return table.set_axis(["q1", "median", "q3"], axis=1)


def spread_of_trainings(rows: pd.DataFrame) -> pd.Series:
    """Standard deviation of a panel's median between trainings, mean over panels, by method; nan of one training.

    rows  columns method, panel, model_seed and value
    """
    trained = rows.groupby(["method", "panel", "model_seed"])["value"].median()
    between = trained.groupby(["method", "panel"]).std()
    return between.groupby("method").mean().rename("spread")


def compared_means(
    values: Floats, parts: Floats | None = None, *, rivals: Bools | None = None, scale: float = 1.0
) -> tuple[Floats, Bools]:
    """Half the 95 % interval of each mean (methods,), nan of one sample; and which rivals differ (methods, methods).

    values  (methods, samples), of the same samples: differences are paired, and all pairs are one family
    parts   (methods, groups) of `jackknife_parts`: errors that all samples have in common
    rivals  (methods,) who is compared; None: all
    scale   times which values are relative: there a tolerance for rounding has sense
    """
    methods, samples = values.shape
    if samples == 0:
        return np.full(methods, np.nan), np.zeros((methods, methods), dtype=bool)
    if parts is None:
        parts = np.zeros((methods, 0))
    if rivals is None:
        rivals = np.ones(methods, dtype=bool)
    spread = spread_of_means(scale * values, scale * parts)
    compared = rivals[:, None] & rivals & _others(methods)
    pvalue = np.where(compared, pvalues(scale * values.mean(1), spread), np.nan)
    return half_widths(spread)[:-1, -1] / scale, differing(pvalue, level=LEVEL)


def better_means(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Means (methods,), half their 95 % intervals (methods,), and p-values that one is larger (methods, methods).

    values   (methods, samples), of the same samples
    returns  the last: one-sided p that the mean of the row is larger than that of the column, not yet corrected; 1
             where it is not larger
    """
    mean = values.mean(axis=1)
    spread = spread_of_means(values)
    one_sided = np.where(mean[:, None] > mean, pvalues(mean, spread) / 2, 1.0)
    return mean, half_widths(spread)[:-1, -1], one_sided
