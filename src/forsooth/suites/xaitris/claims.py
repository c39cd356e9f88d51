"""The claims of section 4 of the paper and of the captions of its figures, judged panel by panel. [clark2024xaitris]"""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from forsooth.stats import mean_interval, share_interval
from forsooth.suites.verdicts import above, outcome, verdict
from forsooth.suites.xaitris.panels import (
    Place,
    Tables,
    contrast,
    differences,
    medians,
    of_methods,
    over_methods,
    paired,
    pairs_of,
    rivals,
    spreads,
)

NEARLY_ALL = 0.8  # ours: from this share of methods on "nearly all" holds
MOST = 0.5
NON_LINEAR = ("MULT", "RIGID", "XOR")
FIXED = ("MULT", "XOR")
WHERE_PATTERNS_LEAD = (
    ("LIN", "WHITE", "llr"),
    ("LIN", "WHITE", "mlp"),
    ("XOR", "WHITE", "mlp"),
    ("XOR", "CORR", "mlp"),
)
PATTERN = ("pattern_net", "pattern_attribution")
SHAP = ("deep_shap", "deep_shap_zero", "gradient_shap", "gradient_shap_5", "shapley_sampling")


def question_1(tables: Tables) -> list[str]:
    """No method is the best everywhere."""
    orders = {place: by_median(table) for place, table in tables.items()}
    unbeaten = set().union(*orders.values())
    for place, order in orders.items():
        unbeaten -= {name for name in order[1:] if paired(tables[place], order[0], name).low > 0}
    name, count = Counter(order[0] for order in orders.values()).most_common(1)[0]
    came = outcome(not unbeaten, count == len(tables) > 1)
    words = f"{name} has the best median in {count} of {len(tables)} panels; never clearly behind the best: "
    return [f"Q1, no method is best everywhere: {came}. {words}{', '.join(sorted(unbeaten)) or 'none'}."]


def by_median(table: pd.DataFrame) -> list[str]:
    """The methods of a panel, the best first."""
    return list(table[of_methods(table)].median().sort_values(ascending=False).index)


def question_2(tables: Tables) -> list[str]:
    """Kinds of non-linearity, the spread of boxes, and the two pattern methods."""
    middle = medians(tables)
    wider = [pair for scenario in NON_LINEAR for pair in pairs_of(tables, 0, scenario, "LIN")]
    lines = of_pairs("Q2, methods do better in MULT than in RIGID", middle, pairs_of(tables, 0, "MULT", "RIGID"))
    lines += of_pairs("Q2, boxes are longer off LIN than in LIN", spreads(tables), wider)
    for method in PATTERN:
        lines += of_pattern_method(tables, method)
    return lines


def of_pattern_method(tables: Tables, method: str) -> list[str]:
    """Worse in RIGID than where the pattern is fixed, by panel; and best in LIN and XOR, image by image."""
    own = {place: table[[method]] for place, table in medians(tables).items() if method in table}
    pairs = [pair for scenario in FIXED for pair in pairs_of(own, 0, scenario, "RIGID")]
    lines = []
    if pairs:
        by_pair = [float(table.to_numpy().mean()) for table in differences(own, pairs)]
        words = f"Q2, {method} does better in MULT and XOR than in RIGID (by panel)"
        lines.append(above(words, mean_interval(by_pair)))
    return lines + [ahead(tables, method, place) for place in WHERE_PATTERNS_LEAD if place in own]


def ahead(tables: Tables, method: str, place: Place) -> str:
    """Whether a pattern method leads in a panel."""
    second = best_of(tables[place], without=PATTERN)
    words = f"Q2, {method} is ahead of all but its like in {named(place)} (here of {second})"
    return above(words, paired(tables[place], method, second))


def question_3(tables: Tables) -> list[str]:
    """What correlated noise does."""
    pairs = pairs_of(tables, 1, "WHITE", "CORR")
    middle = medians(tables)
    falls = [float(table.to_numpy().mean()) > 0 for table in differences(middle, pairs)]
    more = f"it falls in {sum(falls)} of {len(falls)} pairs of panels"
    longer = [(two, one) for one, two in pairs]
    lines = of_pairs("Q3, methods do worse on CORR than on WHITE", middle, pairs, more)
    return lines + of_pairs("Q3, boxes are longer on CORR than on WHITE", spreads(tables), longer)


def question_4(tables: Tables) -> list[str]:
    """What the network does."""
    middle = medians(tables)
    pairs = pairs_of(tables, 2, "cnn", "mlp")
    rigid = [pair for pair in pairs if pair[0][0] == "RIGID"]
    fixed = [(two, one) for one, two in pairs if one[0] in FIXED]
    lines = of_pairs("Q4, in RIGID methods do better on the CNN than on the MLP", middle, rigid)
    lines += of_pairs("Q4, in MULT and XOR methods do better on the MLP than on the CNN", middle, fixed)
    return lines + alike_in_lin(middle, pairs)


def alike_in_lin(middle: Tables, pairs: Sequence[tuple[Place, Place]]) -> list[str]:
    """In LIN the networks of each pair of panels lie near each other.

    middle  medians by training and method
    """
    linear = [table.abs() for table in differences(middle, [pair for pair in pairs if pair[0][0] == "LIN"])]
    others = [table.abs() for table in differences(middle, [pair for pair in pairs if pair[0][0] != "LIN"])]
    if not linear or not others:
        return []
    more = pd.concat(others).groupby(level=0).mean() - pd.concat(linear).groupby(level=0).mean()
    words = "Q4, CNN and MLP differ less in LIN than off it (mean distance of medians)"
    return [above(words, over_methods([more.dropna(axis=1)]))]


def edge_detector(tables: Tables) -> list[str]:
    """The Laplace filter is ahead of nearly all methods on correlated noise."""
    lines = []
    for place, table in tables.items():
        if place[1] == "CORR" and place[0] in ("RIGID", "XOR") and "laplace" in table:
            beaten = [paired(table, "laplace", method) for method in of_methods(table)]
            words = f"the Laplace filter is ahead of nearly all methods in {named(place)} (share of methods)"
            lines.append(nearly_all(words, [found.low > 0 for found in beaten], [found.high < 0 for found in beaten]))
    return lines


def against_nulls(tables: Tables) -> list[str]:
    """Most methods beat every map that never looks at the network, in most panels."""
    found = [against_best_null(table) for table in tables.values() if rivals(table)]
    if not found:
        return []
    most = [better > MOST for better, _ in found]
    least = [worse > MOST for _, worse in found]
    words = "most methods beat every map that never looks at the network, in most panels (share of panels)"
    holds = sum(most) > MOST * len(most)
    return [verdict(words, share_interval(most), holds=holds, fails=sum(least) > MOST * len(least))]


def against_best_null(table: pd.DataFrame) -> tuple[float, float]:
    """The shares of methods clearly better and clearly worse than the null of the best median."""
    best = str(table[rivals(table)].median().idxmax())
    found = [paired(table, method, best) for method in of_methods(table)]
    return sum(one.low > 0 for one in found) / len(found), sum(one.high < 0 for one in found) / len(found)


def lime_fails(tables: Tables) -> list[str]:
    """LIME says no more than random maps."""
    found = []
    for table in tables.values():
        names = [name for name in table if name.startswith("lime")]
        if names and "random" in table:
            found.append(paired(table, names[0], "random"))
    if not found:
        return []
    ahead = sum(one.low > 0 for one in found)
    came = outcome(ahead == 0, ahead > MOST * len(found))
    return [f"LIME fails (no better than random maps): {came}. It is clearly better in {ahead} of {len(found)} panels."]


def shap_variants_agree(tables: Tables) -> list[str]:
    """Deep SHAP, Gradient SHAP and Shapley sampling lie nearer to each other than all methods do."""
    found = []
    for table in medians(tables).values():
        own = table[[name for name in SHAP if name in table]]
        if own.shape[1] > 1 and table.shape[1] > own.shape[1]:
            found.append(float((table.std(axis=1) - own.std(axis=1)).mean()))
    if not found:
        return []
    words = "Deep SHAP, Gradient SHAP and Shapley sampling are alike (spread over all methods less theirs, by panel)"
    return [above(words, mean_interval(found))]


def simple_is_explained_best(tables: Tables) -> list[str]:
    """What is found in LIN on the linear model, against the other networks; and on the MLP, against the CNN."""
    pairs = [pair for other in ("mlp", "cnn") for pair in pairs_of(tables, 2, "llr", other)]
    lines = of_pairs("the truth is found best on the linear model (LIN)", medians(tables), pairs)
    fixed = [pair for pair in pairs_of(tables, 2, "mlp", "cnn") if pair[0][0] != "RIGID"]
    return lines + of_pairs("it is found better on the MLP than on the CNN, but for RIGID", medians(tables), fixed)


def mlp_follows_photographs(tables: Tables) -> list[str]:
    """On photographs the MLP looks at noise."""
    pairs = [pair for pair in pairs_of(tables, 2, "cnn", "mlp") if pair[0][1] == "IMAGENET"]
    return of_pairs("on IMAGENET the truth is found better on the CNN than on the MLP", medians(tables), pairs)


def of_pairs(words: str, tables: Tables, pairs: Sequence[tuple[Place, Place]], more: str = "") -> list[str]:
    """The verdict on "the first of each pair is above the second", by methods and trainings; none without pairs."""
    if not pairs:
        return []
    return [above(words, contrast(tables, pairs), more=more)]


def nearly_all(words: str, surely: Sequence[bool], surely_not: Sequence[bool]) -> str:
    """The verdict on "nearly all", where so many are surely so and so many surely not."""
    share = share_interval(surely)
    fails = sum(surely_not) > (1 - NEARLY_ALL) * len(surely_not)
    return verdict(words, share, holds=share.mean >= NEARLY_ALL, fails=fails)


def best_of(table: pd.DataFrame, *, without: Sequence[str]) -> str:
    """The method of the best median among the others."""
    names = [name for name in of_methods(table) if name not in without]
    if not names:  # asked alone: only nulls are beside it
        names = rivals(table)
    return str(table[names].median().idxmax())


def named(place: Place) -> str:
    return f"{place[0]}-{place[1]} with the {place[2]}"
