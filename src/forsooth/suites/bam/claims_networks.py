"""Verdicts on what the networks need, sections 3.3 and 3.4: accuracies, confidence, and the drop over k."""

from collections.abc import Mapping

from pandas import DataFrame

from forsooth import papers
from forsooth.stats import Interval
from forsooth.stats.correlations import spearman
from forsooth.suites.verdicts import holding, outcome, verdict
from forsooth.wording import by_name

PREMISE = -0.7  # Spearman's ρ between k and the drop that the embedded data must reach
FEWEST_KS = 3  # k that have an order
UNHARMED = 0.02  # accuracy that may be lost
HALF = 0.5


def claims_networks(table: DataFrame, classes: Mapping[str, int]) -> list[str]:
    """The claims on f_o and f_s.

    table    value, low, high and n by net, shown and metric
    classes  network -> how many classes it tells apart, among which a guess is right by chance
    """
    return [
        at_chance("f_o is at chance without objects", share_of(table, "f_o", "s"), 1 / classes["f_o"]),
        at_chance("f_s is at chance without scenes", share_of(table, "f_s", "og"), 1 / classes["f_s"]),
        *unharmed(table, "f_s", "s", "objects"),
        *unharmed(table, "f_o", "og", "scenes"),
    ]


def share_of(table: DataFrame, net: str, shown: str, metric: str = "accuracy") -> Interval:
    return Interval.of(table.loc[(net, shown, metric)], "value", "low", "high", "n")


def at_chance(claim: str, accuracy: Interval, chance: float) -> str:
    """The verdict on "no better than a guess": the interval holds chance, and all of it is below twice chance."""
    inside = accuracy.low <= chance <= accuracy.high
    outside = accuracy.low > chance or accuracy.high < chance
    holds = inside and accuracy.high < 2 * chance
    return verdict(claim, accuracy, holds=holds, fails=outside, more=f"chance {chance:.2f}")


def unharmed(table: DataFrame, net: str, without: str, what: str) -> list[str]:
    """Accuracy and confidence of a network without what it does not need."""
    before = share_of(table, net, "os")
    after = share_of(table, net, without)
    holds = after.mean >= before.mean - UNHARMED
    both = f"{before.mean:.1%} with both, {after.mean:.1%} without"
    claim = f"{net} is unharmed without {what}"
    line = verdict(claim, after, holds=holds, fails=after.high < before.low, more=both)
    key = (net, without, "confidence_rises")
    if key not in table.index:
        return [line]
    claim = f"Share of images of {net} that gain confidence without {what}"
    published = papers.table("bam_figure_2").set_index(["net", "shown", "metric"])["value"]
    return [line, confidence(claim, share_of(table, *key), published[key] / 100)]


def confidence(claim: str, rises: Interval, published: float) -> str:
    """Our share beside the published one. Both may be most images, and yet differ.

    An interval that holds the published share and one half, where nothing rises or falls, is inconclusive.
    """
    most = outcome(rises.low > HALF, rises.high <= HALF)
    result = holding(rises.low, rises.high, published)
    if result == "agrees" and most == "inconclusive":
        result = most
    half = {"holds": ", more than half", "does not hold": ", not more than half"}.get(most, "")
    return f"{claim}: {result}. Ours {rises}{half}; published {published:.2f}."


def claims_drop(drops: DataFrame) -> list[str]:
    """Spearman's ρ between k and the drop of the class that always has the common feature."""
    drops = drops.sort_values("k")
    if len(drops) < FEWEST_KS:
        return ["Too few k to say whether the drop falls with k."]
    order = spearman(drops["k"], drops["value"])
    points = by_name(100 * drops.set_index("k")["value"], "{:g}: {:.0f}")
    holds = order.rho <= PREMISE
    lines = [
        f"The accuracy drop falls as k grows (Spearman's rho <= {PREMISE}): {outcome(holds, not holds)}. "
        f"Ours {order.rho:.2f}, p = {order.pvalue:.1e}, over {order.n} k; drop in points by k: {points}."
    ]
    if not holds:
        lines.append("These networks do not need the feature as much as k foresees, so a map cannot follow it either.")
    return lines
