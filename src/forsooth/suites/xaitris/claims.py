"""The claims of section 4 of the paper and of the captions of its figures, judged panel by panel. [clark2024xaitris]"""

from collections import Counter
from collections.abc import Sequence

from pandas import DataFrame, concat

from forsooth.records import Sentences
from forsooth.stats import mean_interval, share_interval
from forsooth.suites.verdicts import above, outcome, verdict
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
    unbeaten = {name for table in tables.values() for name in of_methods(table)}
    leads: Counter[str] = Counter()
    for table in tables.values():
        best, *others = table[of_methods(table)].median().sort_values(ascending=False).index
        unbeaten -= {name for name in others if paired(table, best, name).low > 0}
        leads[best] += 1
    name, count = leads.most_common(1)[0]
    came = outcome(not unbeaten, count == len(tables) > 1)
    words = f"{name} has the best median in {count} of {len(tables)} panels; never clearly behind the best: "
    yield f"Q1, no method is best everywhere: {came}. {words}{', '.join(sorted(unbeaten)) or 'none'}."


def question_2(tables: Tables) -> Sentences:
    """Kinds of non-linearity, the spread of boxes, and the two pattern methods."""
    fixed = pairs_of(tables, "scenario", ("MULT",), "RIGID")
    wider = pairs_of(tables, "scenario", NON_LINEAR, "LIN")
    yield from of_pairs("Q2, methods do better in MULT than in RIGID", medians(tables), fixed)
    yield from of_pairs("Q2, boxes are longer off LIN than in LIN", spreads(tables), wider)
    for method in PATTERN:
        yield from of_pattern_method(tables, method)


def of_pattern_method(tables: Tables, method: str) -> Sentences:
    """Worse in RIGID than where the pattern is fixed, by panel; and best in LIN and XOR, image by image."""
    own = {place: table[[method]] for place, table in medians(tables).items() if method in table}
    pairs = pairs_of(own, "scenario", FIXED, "RIGID")
    if pairs:
        differs = mean_interval(by_pair(own, pairs))
        yield above(f"Q2, {method} does better in MULT and XOR than in RIGID (by panel)", differs)
    for place in WHERE_PATTERNS_LEAD:
        if place in own:
            second = best_of(tables[place], without=PATTERN)
            found = paired(tables[place], method, second)
            yield above(f"Q2, {method} is ahead of all but its like in {PANEL.format(place)} (here of {second})", found)


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
    """The Laplace filter is ahead of nearly all methods on correlated noise."""
    for place, table in tables.items():
        if place.background == "CORR" and place.scenario in ("RIGID", "XOR") and "laplace" in table:
            found = [paired(table, "laplace", method) for method in of_methods(table)]
            share = share_interval([one.low > 0 for one in found])
            behind = share_interval([one.high < 0 for one in found])
            claim = f"the Laplace filter is ahead of nearly all methods in {PANEL.format(place)} (share of methods)"
            yield verdict(claim, share, holds=share.mean >= NEARLY_ALL, fails=behind.mean > 1 - NEARLY_ALL)


def against_nulls(tables: Tables) -> Sentences:
    """Most methods beat every map that never looks at the network, in most panels."""
    found = DataFrame([against_best_null(table) for table in tables.values() if rivals(table)]) > MOST
    if len(found):
        share = share_interval(found["better"])
        yield verdict(NULLS_LOSE, share, holds=share.mean > MOST, fails=found["worse"].mean() > MOST)


def against_best_null(table: DataFrame) -> dict[str, float]:
    """The shares of methods clearly better and clearly worse than the null of the best median."""
    best = str(table[rivals(table)].median().idxmax())
    found = [paired(table, method, best) for method in of_methods(table)]
    count = len(found)
    return {"better": sum(one.low > 0 for one in found) / count, "worse": sum(one.high < 0 for one in found) / count}


def lime_fails(tables: Tables) -> Sentences:
    """LIME says no more than random maps."""
    found = []
    for table in tables.values():
        names = [name for name in table if name.startswith("lime")]
        if names and "random" in table:
            found.append(paired(table, names[0], "random"))
    if found:
        ahead = sum(one.low > 0 for one in found)
        came = outcome(ahead == 0, ahead > MOST * len(found))
        better = f"clearly better in {ahead} of {len(found)} panels"
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
