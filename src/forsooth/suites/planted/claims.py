"""The claims of section 5 of the paper, judged over models. [zhou2022feature]"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from pandas import DataFrame, Series

from forsooth import papers
from forsooth.frames import gap_between, only
from forsooth.records import Sentences
from forsooth.stats import mean_interval, share_interval
from forsooth.stats.claims import holm, holm_by_name, t_test, t_test_above
from forsooth.stats.intervals import mean_estimate
from forsooth.suites.planted.tables import MODEL, in_range, slopes
from forsooth.suites.verdicts import Claim, above, around, below, corrected, family, verdict

STATED = "planted_claims"  # the paper's own numbers
NEAR_ONE = 0.95
ACCURATE = 0.95
FEW = 3  # lines that a trend needs
LEVEL = 0.05  # of a family of tests
PUBLISHED_AS = {  # method -> its name in the paper, whatever its settings
    "saliency": "Gradient",
    "smooth_grad": "SmoothGrad",
    "smooth_grad_50": "SmoothGrad",
    "grad_cam": "Grad-CAM",
    "lime_superpixels": "LIME",
    "lime_quickshift_200": "LIME",
    "gradient_shap": "SHAP",
    "gradient_shap_5": "SHAP",
    "gradient_shap_200": "SHAP",
}
Claims = Callable[[DataFrame, Series], Sentences]  # mean Attr% of models, accuracies of all trainings -> verdicts


def of_published(models: DataFrame, name: str) -> DataFrame:
    """The rows of a method by the name that the paper gives it."""
    return models[models["method"].map(PUBLISHED_AS).eq(name)]


def of_watermark(models: DataFrame) -> DataFrame:
    return only(models, manipulation="watermark")


def claims_5_1(models: DataFrame, accuracy: Series) -> Sentences:
    by_method = models.pivot_table(index=MODEL, columns="method", values="value")
    best = by_method.mean().idxmax()
    return [
        below(f"No method is near 1 (the best: {best})", mean_interval(by_method[best]), NEAR_ONE),
        accurate("70 % of models pass 95 % accuracy", accuracy, section="5.1"),
        *claims_of_shap(models, by_method),
        *claims_of_presence(models),
    ]


def accurate(claim: str, accuracy: Series, *, section: str) -> str:
    """The verdict on the share of trainings that pass 95 %, beside the one that a section prints."""
    return around(claim, share_interval(accuracy > ACCURATE), papers.claim(STATED, section, "over_95"))


def claims_of_shap(models: DataFrame, by_method: DataFrame) -> Sentences:
    """SHAP is ahead of all others, and as far beyond a constant map as published.

    A constant map has the region's share of the image, so that Attr% alone says how large the region is, too.

    by_method  (models, methods) mean Attr%
    """
    shap = of_published(models, "SHAP")
    if shap.empty or len(by_method.columns) < 2:
        return []
    name = shap["method"].min()  # where several settings of it were asked for, one of them
    own = by_method[name]
    second = by_method.drop(columns=name).mean().idxmax()
    region = only(shap, method=name).groupby(MODEL)["er"].mean()
    attr = papers.claim(STATED, "5.1", "attr_shap")
    er = papers.claim(STATED, "5.1", "er")
    more = f"that is {attr:.0%} at {er:.0%} of the image; ours {own.mean():.0%} at {region.mean():.0%}"
    claim = "Attr% of SHAP on average beyond a constant map, which has the region's share"
    return [
        above(f"SHAP is the best on average (ours: its lead over {second})", mean_interval(own - by_method[second])),
        around(claim, mean_interval(own - region), attr - er, more),
    ]


def claims_of_presence(models: DataFrame) -> Sentences:
    """Every method sees a watermark better than that it is missing."""
    ahead = gap_between(of_watermark(models), [*MODEL, "method"], presence=("with", "without"))
    if ahead is None:
        return []
    claim = "The presence of a watermark is seen better than its absence"
    by_method = ahead.groupby("method", sort=False)
    return family([Claim(f"{claim}, {name}", mean_estimate(own)) for name, own in by_method])


def claims_of_trend(models: DataFrame, accuracy: Series, *, x: str, words: str) -> Sentences:
    """SHAP rises with x on the watermark, and nobody else does."""
    by_pair = {key: slopes(own, x) for key, own in models.groupby(["method", "manipulation"], sort=False)}
    trends = {key: mean_interval(own) for key, own in by_pair.items()}
    claimed = [key for key in trends if PUBLISHED_AS.get(key[0]) == "SHAP" and key[1] == "watermark"]
    others = {key: own for key, own in by_pair.items() if key not in claimed and trends[key].n >= FEW}
    steepest = max(trends, key=lambda key: np.nan_to_num(trends[key].mean, nan=-np.inf))
    return [
        *(above(f"Attr% of SHAP on the watermark rises with {words} (slope)", trends[key]) for key in claimed),
        nobody_rises(others, words=words),
        *no_trends(models, x=x, words=words),
        f"The steepest is {steepest[0]} on {steepest[1]}: {trends[steepest]}.",
    ]


def nobody_rises(by_pair: Mapping[tuple[str, str], Sequence[float]], *, words: str) -> str:
    """Whether none of these pairs of method and artefact rises, from the slopes of their trainings.

    A pair has a test of its own over its trainings. Pairs share trainings, so their tests hang together; Holm's
    correction holds all the same. That so many tests cannot tell a rise is no sign that there is none.
    """
    pvalues = [t_test_above(own) for own in by_pair.values()]
    rising = holm(pvalues) <= LEVEL
    up = [key for key, rises in zip(by_pair, rising, strict=True) if rises]
    which = ", ".join(f"{method} on {kind} {np.mean(by_pair[method, kind]):+.2f}" for method, kind in up)
    alone = sum(p <= LEVEL for p in pvalues)
    return verdict(
        f"No other method rises with {words} on any artefact (ours: the share of pairs that do)",
        share_interval(rising),
        holds=bool(by_pair) and not alone,
        fails=bool(up),
        more=f"{which or 'none'}; each pair by a t test over its trainings, {len(by_pair)} tests corrected by Holm; "
        f"asked alone {alone} would rise",
    )


def no_trends(models: DataFrame, *, x: str, words: str) -> Sentences:
    """Whether Attr% of each method stays as x grows, all artefacts together; two-sided, corrected for the methods."""
    by_method = {method: slopes(own, x) for method, own in models.groupby("method", sort=False)}
    adjusted = holm_by_name({method: t_test(own) for method, own in by_method.items()})
    for method, own in by_method.items():
        trend = mean_interval(own)
        enough = trend.n >= FEW
        differs = adjusted[method] <= LEVEL
        still = trend.low <= 0 <= trend.high and not differs
        yield verdict(
            f"{method} has no trend with {words}, all artefacts together (slope){corrected(len(by_method))}",
            trend,
            holds=enough and still,
            fails=enough and differs,
        )


def claims_5_4(models: DataFrame, accuracy: Series) -> Sentences:
    shap = of_published(of_watermark(models), "SHAP")
    falls = mean_interval([-slope for slope in slopes(shap, "r")])
    return [
        accurate("All models pass 95 % accuracy", accuracy, section="5.4"),
        above("Attr% of SHAP on the watermark falls as r grows (minus the slope)", falls),
        *claims_of_gradient(models),
        *shares_in_range(models),
        *claim_of_kinds(models),
    ]


def claims_of_gradient(models: DataFrame) -> Sentences:
    """Gradient is in the Shapley range where the watermark is, and out of it where it is missing."""
    gradient = of_published(of_watermark(models), "Gradient")
    present = in_range(only(gradient, presence="with"))
    missing = in_range(only(gradient, presence="without"))
    return [
        above("Gradient tracks the Shapley range with the watermark (share inside)", present, 0.5),
        below("Gradient leaves the Shapley range without the watermark (share inside)", missing, 0.5),
    ]


def shares_in_range(models: DataFrame) -> Sentences:
    """How often each method is in the Shapley range, and on which artefact the most."""
    for (method, presence), own in models.groupby(["method", "presence"], sort=False):
        by_kind = {kind: in_range(group) for kind, group in own.groupby("manipulation")}
        most = max(by_kind, key=lambda kind: by_kind[kind].mean)
        shares = f"{in_range(own)}; most: {most} {by_kind[most]}"
        yield f"{method}, {presence} the artefact, in the range: {shares}."


def claim_of_kinds(models: DataFrame) -> Sentences:
    """Whether classes that look alike or not make a difference."""
    each = gap_between(models, [*MODEL, "method", "r"], kind=("distinct", "similar"))
    if each is None:
        return []
    gap = mean_interval(each.groupby(MODEL).mean())
    claim = "Similar and distinct classes do not differ (distinct less similar)"
    return [verdict(claim, gap, holds=gap.low <= 0 <= gap.high, fails=gap.n > 1)]


CLAIMS: Mapping[str, Claims] = {
    "5.1": claims_5_1,
    "5.2": partial(claims_of_trend, x="accuracy", words="test accuracy"),
    "5.3": partial(claims_of_trend, x="level", words="visibility"),
    "5.4": claims_5_4,
}
