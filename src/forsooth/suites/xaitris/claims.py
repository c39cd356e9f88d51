"""The claims of section 4 of the paper and of the captions of its figures, judged panel by panel. [clark2024xaitris]"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np
from pandas import DataFrame, Series, concat

from forsooth.records import Sentences
from forsooth.stats import mean_interval, share_interval
from forsooth.stats.claims import directions, surely, surely_above
from forsooth.stats.intervals import mean_estimate
from forsooth.suites.verdicts import Claim, above, family, outcome, verdict
from forsooth.suites.xaitris.tables import (
    Pairs,
    Place,
    Tables,
    differences,
    medians,
    of_methods,
    over_methods,
    paired,
    pairs_of,
    rivals,
    spreads,
)

PANEL = "{0.scenario}-{0.background} with the {0.model}"
NEARLY_ALL = 0.8  # ours: from this share of methods on "nearly all" holds
MOST = 0.5
NON_LINEAR = ("MULT", "RIGID", "XOR")
FIXED = ("MULT", "XOR")
WHERE_PATTERNS_LEAD = (
    Place("LIN", "WHITE", "llr"),
    Place("LIN", "WHITE", "mlp"),
    Place("XOR", "WHITE", "mlp"),
    Place("XOR", "CORR", "mlp"),
)
PATTERN = ("pattern_net", "pattern_attribution")
NULLS_LOSE = "most methods beat every map that never looks at the network, in most panels (share of panels)"
ALIKE = "Deep SHAP, Gradient SHAP and Shapley sampling are alike (spread over all methods less theirs, by panel)"
SHAP = ("deep_shap", "deep_shap_zero", "gradient_shap", "gradient_shap_5", "shapley_sampling")


def question_1(tables: Tables) -> Sentences:
    """No method is the best everywhere."""
    leads: Counter[str] = Counter()
    pvalues: dict[tuple[Place, str], float] = {}
    for place, table in tables.items():
        best, *others = table[of_methods(table)].median().sort_values(ascending=False).index
        leads[best] += 1
        for name in others:  # the best was picked first, and it could have been any of them
            pvalues[place, name] = len(others) * paired(table, best, name).above()
    behind = [name for (_, name), is_sure in zip(pvalues, surely(list(pvalues.values())), strict=True) if is_sure]
    unbeaten = {name for table in tables.values() for name in of_methods(table)}.difference(behind)
    name, count = leads.most_common(1)[0]
    came = outcome(not unbeaten, count == len(tables) > 1)
    words = f"{name} has the best median in {count} of {len(tables)} panels; never clearly behind the best"
    names = ", ".join(sorted(unbeaten)) or "none"
    yield f"Q1, no method is best everywhere: {came}. {words} ({holm_of(pvalues)}): {names}."


def holm_of(tests: Collection[object]) -> str:
    """How many tests are judged together, in words."""
    return f"tests corrected by Holm: {len(tests)}"


def question_2(tables: Tables) -> Sentences:
    """Kinds of non-linearity, the spread of boxes, and the two pattern methods."""
    fixed = pairs_of(tables, "scenario", ("MULT",), "RIGID")
    wider = pairs_of(tables, "scenario", NON_LINEAR, "LIN")
    yield from of_pairs("Q2, methods do better in MULT than in RIGID", medians(tables), fixed)
    yield from of_pairs("Q2, boxes are longer off LIN than in LIN", spreads(tables), wider)
    own = {method: of_method(tables, method) for method in PATTERN}
    yield from family([claim for method in PATTERN for claim in better_off_rigid(own[method], method)])
    yield from family([claim for method in PATTERN for claim in ahead_of_all(tables, own[method], method)])


def of_method(tables: Tables, method: str) -> Tables:
    """The medians of one method, where it was asked."""
    return {place: table[[method]] for place, table in medians(tables).items() if method in table}


def better_off_rigid(own: Tables, method: str) -> Iterator[Claim]:
    """Worse in RIGID than where the pattern is fixed, by panel."""
    pairs = pairs_of(own, "scenario", FIXED, "RIGID")
    if pairs:
        differs = mean_estimate(by_pair(own, pairs))
        yield Claim(f"Q2, {method} does better in MULT and XOR than in RIGID (by panel)", differs)


def ahead_of_all(tables: Tables, own: Tables, method: str) -> Iterator[Claim]:
    """The best in LIN and XOR, image by image."""
    for place in WHERE_PATTERNS_LEAD:
        if place in own:
            second = best_of(tables[place], without=PATTERN)
            words = f"Q2, {method} is ahead of all but its like in {PANEL.format(place)} (here of {second})"
            yield Claim(words, paired(tables[place], method, second))


def by_pair(tables: Tables, pairs: Pairs) -> list[float]:
    """The mean difference of each pair of panels."""
    return [float(table.to_numpy().mean()) for table in differences(tables, pairs)]


def question_3(tables: Tables) -> Sentences:
    """What correlated noise does."""
    pairs = pairs_of(tables, "background", ("WHITE",), "CORR")
    middle = medians(tables)
    falls = [difference > 0 for difference in by_pair(middle, pairs)]
    more = f"it falls in {sum(falls)} of {len(falls)} pairs of panels"
    yield from of_pairs("Q3, methods do worse on CORR than on WHITE", middle, pairs, more)
    longer = pairs_of(tables, "background", ("CORR",), "WHITE")
    yield from of_pairs("Q3, boxes are longer on CORR than on WHITE", spreads(tables), longer)


def question_4(tables: Tables) -> Sentences:
    """What the network does."""
    middle = medians(tables)
    pairs = pairs_of(tables, "model", ("cnn",), "mlp")
    fixed = within(pairs_of(tables, "model", ("mlp",), "cnn"), *FIXED)
    yield from of_pairs("Q4, in RIGID methods do better on the CNN than on the MLP", middle, within(pairs, "RIGID"))
    yield from of_pairs("Q4, in MULT and XOR methods do better on the MLP than on the CNN", middle, fixed)
    linear = differences(middle, within(pairs, "LIN"))
    others = differences(middle, within(pairs, *NON_LINEAR))
    if linear and others:
        words = "Q4, CNN and MLP differ less in LIN than off it (mean distance of medians)"
        yield above(words, over_methods([(mean_distance(others) - mean_distance(linear)).dropna(axis=1)]))


def within(pairs: Pairs, *scenarios: str) -> Pairs:
    """The pairs of panels of these scenarios."""
    return [pair for pair in pairs if pair[0].scenario in scenarios]


def mean_distance(found: Sequence[DataFrame]) -> DataFrame:
    """The mean size of differences (trainings, methods) over panels."""
    return concat(found).abs().groupby(level=0).mean()


def edge_detector(tables: Tables) -> Sentences:
    """The Laplace filter is ahead of nearly all methods on correlated noise; all methods and panels are one family."""
    found = {
        (place, method): paired(table, "laplace", method)
        for place, table in tables.items()
        if place.background == "CORR" and place.scenario in ("RIGID", "XOR") and "laplace" in table
        for method in of_methods(table)
    }
    signs = Series(directions(list(found.values())), index=list(found), dtype=int)
    for place in dict.fromkeys(place for place, _ in found):
        own = signs[[where == place for where, _ in found]]
        share = share_interval(own > 0)
        claim = f"the Laplace filter is ahead of nearly all methods in {PANEL.format(place)} (share of methods)"
        fails = (own < 0).mean() > 1 - NEARLY_ALL
        yield verdict(claim, share, holds=share.mean >= NEARLY_ALL, fails=fails, more=holm_of(found))


def against_nulls(tables: Tables) -> Sentences:
    """Most methods beat every map that never looks at the network, in most panels."""
    found = DataFrame(
        [
            {"panel": PANEL.format(place), **against_all_nulls(table, method)}
            for place, table in tables.items()
            if rivals(table)
            for method in of_methods(table)
        ]
    )
    if found.empty:
        return
    sure = found.assign(better=surely(found["better"]), worse=surely(found["worse"]))
    most = sure.groupby("panel", sort=False)[["better", "worse"]].mean() > MOST
    share = share_interval(most["better"])
    fails = most["worse"].mean() > MOST
    yield verdict(NULLS_LOSE, share, holds=share.mean > MOST, fails=fails, more=holm_of(found))


def against_all_nulls(table: DataFrame, method: str) -> dict[str, float]:
    """p-values that a method is better than every null of a panel, and that it is worse than some.

    Who beats them all beats the hardest: the largest p-value. Who is worse than some had as many chances as there are.
    """
    found = [paired(table, method, null) for null in rivals(table)]
    better = np.nan_to_num([one.above() for one in found], nan=1.0)
    worse = np.nan_to_num([one.below() for one in found], nan=1.0)
    return {"better": float(better.max()), "worse": float(len(found) * worse.min())}


def lime_fails(tables: Tables) -> Sentences:
    """LIME says no more than random maps. That many tests cannot tell it from them is no sign that it does not."""
    found = []
    for table in tables.values():
        names = [name for name in table if name.startswith("lime")]
        if names and "random" in table:
            found.append(paired(table, names[0], "random"))
    if found:
        ahead = surely_above(found).sum()
        alone = sum(one.interval.low > 0 for one in found)
        came = outcome(alone == 0, ahead > MOST * len(found))
        better = f"clearly better in {ahead} of {len(found)} panels ({holm_of(found)}), asked alone in {alone}"
        yield f"LIME fails (no better than random maps): {came}. It is {better}."


def shap_variants_agree(tables: Tables) -> Sentences:
    """Deep SHAP, Gradient SHAP and Shapley sampling lie nearer to each other than all methods do."""
    found = []
    for table in medians(tables).values():
        own = table[[name for name in SHAP if name in table]]
        if own.shape[1] > 1 and table.shape[1] > own.shape[1]:
            found.append(float((table.std(axis=1) - own.std(axis=1)).mean()))
    if found:
        yield above(ALIKE, mean_interval(found))


def simple_is_explained_best(tables: Tables) -> Sentences:
    """What is found in LIN on the linear model, against the other networks; and on the MLP, against the CNN."""
    middle = medians(tables)
    pairs = [*pairs_of(tables, "model", ("llr",), "mlp"), *pairs_of(tables, "model", ("llr",), "cnn")]
    yield from of_pairs("the truth is found best on the linear model (LIN)", middle, pairs)
    fixed = within(pairs_of(tables, "model", ("mlp",), "cnn"), "LIN", *FIXED)
    yield from of_pairs("it is found better on the MLP than on the CNN, but for RIGID", middle, fixed)


def mlp_follows_photographs(tables: Tables) -> Sentences:
    """On photographs the MLP looks at noise."""
    pairs = [pair for pair in pairs_of(tables, "model", ("cnn",), "mlp") if pair[0].background == "IMAGENET"]
    yield from of_pairs("on IMAGENET the truth is found better on the CNN than on the MLP", medians(tables), pairs)


def of_pairs(words: str, tables: Tables, pairs: Pairs, more: str = "") -> Sentences:
    """The verdict on "the first of each pair is above the second", by methods and trainings; none without pairs."""
    if pairs:
        yield above(words, over_methods(differences(tables, pairs)), more=more)


def best_of(table: DataFrame, *, without: Sequence[str]) -> str:
    """The method of the best median among the others."""
    names = [name for name in of_methods(table) if name not in without]
    if not names:  # asked alone: only nulls are beside it
        names = rivals(table)
    return str(table[names].median().idxmax())
