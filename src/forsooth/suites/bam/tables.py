"""From the rows of a run to the numbers of its figures: the page and the reproductions read the same tables."""

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from pandas import DataFrame, concat

from forsooth.counted import counted
from forsooth.frames import lines_by, only
from forsooth.records import Facts
from forsooth.scores import metric as metric_of
from forsooth.scores.contrast import relative_difference
from forsooth.stats import Interval, crossed_interval
from forsooth.stats.bootstrap import everything_once, per_sample, resampled_means, spread_over_trials, value_array
from forsooth.stats.correlations import Accuracies, Series, drop_correlation, drop_rho, series_draws
from forsooth.stats.intervals import Estimate, Floats, estimate_of, no_interval, pooled_share_interval
from forsooth.suites.bam.settings import AS_BUILT

TCAV = "tcav"
PART_OF_METRIC = ("samples", "concepts")  # rows whose mean is the score of a map, and of TCAV
THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
INPUTS_OF_SERIES = ("fine", "concept_inputs")  # rows by image and k, of a map and of TCAV
LEAST_KS = 2  # k that a correlation with the drop needs


def coarse_rows(rows: DataFrame, metric: str) -> DataFrame:
    """The rows of one metric that are about no single k."""
    return only(rows[rows["k"].isna()], metric=metric)


def taking_part(rows: DataFrame, metric: str) -> DataFrame:
    """The rows of a metric as the board counts them: a map that says nothing has the worst value. TCAV has no map."""
    tcav = rows["method"].eq(TCAV)
    maps = counted(rows[~tcav], metric_of(metric))
    scores = rows[tcav & rows["status"].eq("ok")].assign(failed=False)
    return concat([maps, scores]).sort_index()


def of_object(rows: DataFrame) -> DataFrame:
    """The rows whose mean is the score: as built, with the mask of the object."""
    return only(rows, part=PART_OF_METRIC, mask="object")


def contrast_table(rows: DataFrame, metric: str) -> DataFrame:
    """Figs. 4, 8 and 10, one line per method.

    columns  metric, method; value, low and high, images: the mean and its interval; sd over trials; random_mask and
             at_PLACING: the same with a random mask, and in other places; own_sets: MCS as printed; change and t_T:
             appendix C, and IIR at other thresholds; failed: the share of maps that say nothing and count as the
             worst; value_defined: the mean without them
    """
    everyone = coarse_rows(rows, metric)
    line_of = partial(contrast_line, everyone=only(everyone, part="samples"))
    return lines_by(taking_part(everyone, metric), ["metric", "method"], line_of)


def contrast_line(rows: DataFrame, *, everyone: DataFrame) -> dict[str, float]:
    """The columns of one metric and method. everyone: the rows of all images, also of those outside X_corr"""
    metric, method = rows[["metric", "method"]].iloc[0]
    scored = of_object(rows)
    moved = only(rows, part="robustness", mask="object").groupby("placing", sort=False)
    interval = concept_interval(rows)
    if method != TCAV:
        interval = score_of(scored, metric).interval
    line = {
        **interval.columns("value", "low", "high", "images"),
        "sd": spread_over_trials(per_sample(scored)),
        "random_mask": means_of(only(rows, mask="random", placing=AS_BUILT)),
        **{f"at_{placing}": means_of(part) for placing, part in moved},
    }
    if metric == "iir":
        line |= patch_columns(only(rows, part="samples"))
    if metric == "mcs" and method != TCAV:
        line["own_sets"] = own_sets(only(everyone, method=method))
    return {**line, "failed": scored["failed"].mean(), "value_defined": means_of(only(scored, failed=False))}


def score_of(scored: DataFrame, metric: str) -> Estimate:
    """The score of a map: a mean of differences, or the share of images that count."""
    return estimate_of(scored, bounds=metric_of(metric).bounds, share=metric != "mcs")


def means_of(rows: DataFrame) -> float:
    """The mean over images, each with its mean over trainings."""
    return float(per_sample(rows).mean())


def patch_columns(rows: DataFrame) -> dict[str, float]:
    """The mean change by a patch, and IIR at every threshold."""
    rates = iir_over_thresholds(rows, THRESHOLDS)
    columns = {f"t_{threshold:g}": rate for threshold, rate in zip(THRESHOLDS, rates, strict=True)}
    return {"change": means_of(rows.assign(value=relative_changes(rows))), **columns}


def concept_interval(rows: DataFrame) -> Interval:
    """The score of TCAV with an interval over inputs and random sets; none where no layer of one network passes."""
    score = means_of(only(rows, part="concepts", mask="object"))
    inputs = per_sample(only(rows, part="concept_inputs"))
    sets = per_sample(only(rows, part="concept_sets"))
    return crossed_interval(inputs, sets, bounds=(-1, 1))._replace(mean=score)


def own_sets(rows: DataFrame) -> float:
    """MCS as printed: the mean of each network over the images that it gets right itself."""
    first = per_sample(only(rows, right_first=1), "first").mean()
    second = per_sample(only(rows, right_second=1), "second").mean()
    return float(first - second)


def relative_changes(rows: DataFrame) -> Floats:
    """By how much of its saliency a place is changed by the patch (appendix C); nan where it had none. (n,)"""
    changes = relative_difference(rows["first"].to_numpy(float), rows["second"].to_numpy(float))
    return np.where(np.isinf(changes), np.nan, changes)


def iir_over_thresholds(rows: DataFrame, thresholds: Sequence[float]) -> list[float]:
    """IIR at each threshold: the share of images that a patch changes by less, an image of many trainings once."""
    below = DataFrame(relative_changes(rows)[:, None] < np.asarray(thresholds))
    rates: list[float] = below.groupby(rows["sample"].to_numpy(), sort=False).mean().mean().tolist()
    return rates


def verification_table(rows: DataFrame) -> DataFrame:
    """Fig. 2, each network, set and k once: shares of the images of all trainings, counted, so that equals are equal.

    columns  net, shown, k, metric, value; low and high, the interval of a share over images and trainings, nan for a
             drop, which is none; n
    """
    key = ["net", "shown", "k", "metric"]
    lines = []
    for names, own in only(rows, part="verification").groupby(key, sort=False, dropna=False):
        interval = no_interval()
        if names[-1] != "drop":
            interval = pooled_share_interval(own["value"], own["n"])
        hits = (own["value"] * own["n"]).round().sum()
        n = own["n"].sum()
        lines.append([*names, hits / n, interval.low, interval.high, n])
    return DataFrame(lines, columns=[*key, "value", "low", "high", "n"])


def drop_table(rows: DataFrame) -> DataFrame:
    """The accuracy drop by k, of the class that always has the common feature."""
    return only(verification_table(rows), metric="drop").sort_values("k")


def accuracies(rows: DataFrame) -> Accuracies:
    """Of the class that always has the common feature."""
    own = only(rows, part="verification", metric="accuracy").dropna(subset="k")
    wide = own.pivot_table(index=["model_seed", "shown"], columns="k", values="value")
    both = [wide.xs(shown, level="shown").to_numpy(float) for shown in ("os", "s")]
    return Accuracies(list(wide.columns), np.stack(both, axis=1), int(own["n"].min()))


def rows_over_k(rows: DataFrame, method: str, ks: Sequence[float]) -> DataFrame:
    """The rows of one method at these k, as the board counts them."""
    return taking_part(only(rows, k=ks, method=method, mask="object"), "mcs")


def series(own: DataFrame, *, trainings: Sequence[int], samples: Sequence[int] | None = None) -> Series:
    """MCS of every image and k that has any, from `rows_over_k`; TCAV's by input, and by random set."""
    inputs = only(own, part=INPUTS_OF_SERIES)
    if inputs["value"].isna().all():
        return Series([], np.empty((len(trainings), 0, 0)))
    values, names = value_array(inputs, ["k"], trainings=trainings, samples=samples)
    sets = only(own, part="concept_sets")
    by_set = None  # of a map
    if len(sets):
        by_set = value_array(sets, ["k"], trainings=trainings)[0]
    return Series([k for (k,) in names], values, by_set)


def series_table(rows: DataFrame) -> DataFrame:
    """Figs. 6 and 13: MCS of each method over k, and its correlation with the accuracy drop.

    columns  method; k_0.1 and so on, the mean at each k; rho with rho_low and rho_high; images, ks (how many of them);
             range, the largest less the least mean; failed: the share of maps that say nothing and count as the worst;
             rho_defined and range_defined: without them
    """
    right = accuracies(rows)
    trainings = sorted(rows["model_seed"].unique())
    methods = dict.fromkeys(only(rows, part=("fine", "concepts"))["method"])
    lines = []
    for method in methods:
        scored = rows_over_k(rows, method, right.ks)
        own = series(scored, trainings=trainings)
        if len(own.ks) >= LEAST_KS:
            failures = failures_over_k(scored, right, trainings=trainings)
            lines.append({"method": method, **series_line(own, right), **failures})
    return DataFrame(lines, columns=None if lines else ["method"])


def series_line(own: Series, right: Accuracies) -> Facts:
    means = means_over_k(own)
    by_k = dict(zip(own.ks, means, strict=True))
    rho = drop_correlation(own, right)
    return {
        **{f"k_{k:g}": by_k.get(k) for k in right.ks},
        **rho.columns("rho", "rho_low", "rho_high", "images"),
        "ks": len(own.ks),
        "range": max(means) - min(means),
    }


def failures_over_k(scored: DataFrame, right: Accuracies, *, trainings: Sequence[int]) -> Facts:
    """The share of maps that say nothing; ρ and the range without them, nan where too few k are left."""
    defined = series(scored.assign(value=scored["value"].mask(scored["failed"])), trainings=trainings)
    line: Facts = {
        "failed": only(scored, part=INPUTS_OF_SERIES)["failed"].mean(),
        "rho_defined": np.nan,
        "range_defined": np.nan,
    }
    if len(defined.ks) >= LEAST_KS:
        line["rho_defined"] = drop_rho(defined, right)
        line["range_defined"] = float(np.ptp(means_over_k(defined)))
    return line


def means_over_k(own: Series) -> list[float]:
    """The mean at each k of a series."""
    means: list[float] = resampled_means(own.values, everything_once(own.values))[0].tolist()
    return means


def draws_of_series(rows: DataFrame, methods: Iterable[str]) -> tuple[DataFrame, DataFrame]:
    """Draws of ρ and of the range over k, one column per method, of the same images and trainings for all."""
    samples = only(rows.dropna(subset="k"), part=INPUTS_OF_SERIES)["sample"]
    right = accuracies(rows)
    trainings = sorted(rows["model_seed"].unique())
    known = {
        method: series(rows_over_k(rows, method, right.ks), trainings=trainings, samples=sorted(samples.unique()))
        for method in methods
    }
    return series_draws(known, right)
