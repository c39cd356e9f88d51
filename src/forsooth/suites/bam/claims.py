"""Verdicts on the claims of section 5 on MCS, IDR and IIR, each with our number and its interval."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pandas import DataFrame, concat

from forsooth.frames import only, worded
from forsooth.stats import Interval, mean_interval
from forsooth.stats.bootstrap import Drawn, concept_lead, per_sample
from forsooth.stats.claims import surely_above, surely_below
from forsooth.stats.correlations import order_correlation, spearman
from forsooth.stats.intervals import Estimate, estimate_of, no_estimate
from forsooth.suites.bam.settings import AS_BUILT, NULLS, PUBLISHED
from forsooth.suites.bam.tables import TCAV, of_object, relative_changes, score_of
from forsooth.suites.verdicts import Claim, above, corrected, family, outcome, verdict
from forsooth.wording import by_name

BEST = ("grad_cam", "gradient")  # GC and VG
ALIKE = 0.7  # ρ at which two orders are the same
UNLIKE = 0.5  # and below which they are not
DRAWN_TO = 0.8  # share of images in which most maps are drawn to a patch
HALF = 0.5
NEAR_HALF = 0.1


class Order(NamedTuple):
    """A claim that two orders are the same: ρ between them, and more beside the verdict."""

    words: str
    rho: Drawn
    more: str


def claims_mcs(table: DataFrame, own: DataFrame) -> list[str]:
    """Section 5.1. table: a line per method; own: the rows of the metric, as they take part"""
    return [
        "Section 5.1, coarse.",
        *family(leads("GC has the highest MCS of all maps", "grad_cam", table, own)),
        *claims_tcav(table, own),
        above("Smoothing improves the gradient (SG less VG)", lead(own, "smooth_grad", "gradient").interval),
        *family(leads("SG outperforms the rest", "smooth_grad", table, own, but=("grad_cam",))),
        *robust(table, own),
    ]


def claims_idr(table: DataFrame, own: DataFrame) -> list[str]:
    """Section 5.2."""
    claims: list[Claim] = []
    for name in BEST:
        claims += leads(f"{name} has a higher IDR than all others", name, table, own, but=BEST)
    lines = ["Section 5.2.", *family(claims), random_baseline(own)]
    false = (1 - table[["value", "low", "high"]]).reset_index()
    lines += worded(false, "{method}: false positives (1 - IDR) {value:.0%} [{high:.0%}, {low:.0%}].")
    return lines + robust(table, own)


def claims_iir(table: DataFrame, own: DataFrame) -> list[str]:
    """Section 5.3."""
    maps = published_maps(table)
    affected = [
        Claim(f"{name} is more affected than the gradient (IIR of VG less its)", lead(own, "gradient", name))
        for name in ("gradient_x_input", "integrated_gradients")
    ]
    drawn = [drawn_to_patch(name, own) for name in maps.index]
    lines = ["Section 5.3.", *family(drawn), *family(affected), *appendix_c(maps, own)]
    nulls = by_name(table["value"][table.index.isin(NULLS)])
    return [*lines, f"Maps that never look at the model: {nulls}."]


CLAIMS: Mapping[str, Callable[[DataFrame, DataFrame], list[str]]] = {
    "mcs": claims_mcs,
    "idr": claims_idr,
    "iir": claims_iir,
}


def published_maps(table: DataFrame) -> DataFrame:
    """The maps of the paper, best first."""
    return table[table.index.isin(PUBLISHED)].sort_values("value", ascending=False)


def leads(claim: str, name: str, table: DataFrame, own: DataFrame, *, but: Sequence[str] = ()) -> list[Claim]:
    """The claim that a map is above the best of the others, without some of them; none where there is no other."""
    maps = published_maps(table).index
    rival = next((other for other in maps if other not in (name, *but)), None)
    if name not in maps or rival is None:
        return []
    return [Claim(f"{claim} (its lead over {rival})", lead(own, name, rival))]


def lead(own: DataFrame, one: str, two: str) -> Estimate:
    """How much higher the first is, image by image, over images and trainings."""
    part = only(own, part="samples", mask="object")
    wide = part.pivot_table(index=["model_seed", "sample"], columns="method", values="value")
    if one not in wide or two not in wide:
        return no_estimate()
    difference = (wide[one] - wide[two]).dropna().rename("value").reset_index()
    return estimate_of(difference, bounds=(-2, 2))


def claims_tcav(table: DataFrame, own: DataFrame) -> list[str]:
    """TCAV against the best map, and what its layers say."""
    scores = table["value"].dropna()
    if TCAV not in scores.index:
        return ["TCAV has the highest MCS: inconclusive, no layer of one network passed the test."]
    rival = published_maps(table).index[0]
    gap = tcav_lead(own, rival, scores[TCAV] - scores[rival])
    shown = [name for name in dict.fromkeys([TCAV, rival, "grad_cam"]) if name in scores.index]
    beside = by_name(scores[shown])
    layers = only(own, part="concepts", mask="object")
    return [
        above(f"TCAV has the highest MCS (its lead over {rival})", gap, more=beside),
        *worded(layers, "TCAV by layer, of which it is the mean. {message}."),
    ]


def tcav_lead(own: DataFrame, rival: str, gap: float) -> Interval:
    """How much higher TCAV is than a map. It has other images than the map, and its random sets."""
    concept = only(own, method=TCAV)
    return concept_lead(
        gap,
        only(concept, part="concept_inputs"),
        only(concept, part="concept_sets"),
        only(own, part="samples", mask="object", method=rival),
        trainings=sorted(own["model_seed"].unique()),
    )


def robust(table: DataFrame, own: DataFrame) -> list[str]:
    """Whether the score and the order of methods that look at a model stay when objects have other sizes or places."""
    rows = only(own, part=("samples", "robustness"), mask="object")
    rows = rows.assign(kind=rows["placing"])
    table = table.drop(list(NULLS), errors="ignore")  # nulls tie, or never move
    places = [column for column in table if column.startswith("at_")]
    return orders([robust_at(place, table[["value", place]].dropna(), rows) for place in places])


def robust_at(place: str, both: DataFrame, rows: DataFrame) -> Order:
    """The same for one size or place, a column of both."""
    placing = place.removeprefix("at_")
    rho = spearman(both["value"], both[place]).rho
    found = order_correlation(rows, (AS_BUILT, placing), list(both.index), rho)
    moves = mean_interval(both[place] - both["value"])
    return Order(f"Robust with objects {placing} (order of methods)", found, f"; the score moves by {moves}")


def orders(claims: Sequence[Order]) -> list[str]:
    """The verdicts on two orders, for a family of claims; draws that say otherwise than ρ, or none, leave one open."""
    rhos = [claim.rho for claim in claims]
    lines = []
    for claim, high, low in zip(claims, surely_above(rhos, UNLIKE), surely_below(rhos, ALIKE), strict=True):
        holds = claim.rho.point >= ALIKE and high
        fails = claim.rho.point < UNLIKE and low
        words = f"{claim.words}{corrected(len(claims))}"
        lines.append(f"{words}: {outcome(holds, fails)}. Ours rho {claim.rho.interval}{claim.more}.")
    return lines


def random_baseline(own: DataFrame) -> str:
    by_method = only(own, mask="random", part="random", method=PUBLISHED).groupby("method")
    means = mean_interval([per_sample(part).mean() for _, part in by_method])
    inside = abs(means.mean - HALF) <= NEAR_HALF
    return verdict("The baseline with random masks is around 50 %", means, holds=inside, fails=not inside)


def drawn_to_patch(name: str, own: DataFrame) -> Claim:
    """Whether a map is drawn to a patch in most images, or, of the two best, is not."""
    scored = only(of_object(own), method=name)
    share = score_of(scored.assign(value=1 - scored["value"]), "iir")
    claim = f"{name} draws attention to the patch in"
    if name in BEST:
        return Claim(f"{claim} less than 80 %", share, DRAWN_TO, side=-1)
    return Claim(f"{claim} over 80 %", share, DRAWN_TO)


def appendix_c(maps: DataFrame, own: DataFrame) -> list[str]:
    """Whether the mean change of saliency has the order of IIR."""
    both = maps[["value", "change"]].dropna()
    rho = spearman(both["value"], -both["change"])
    if rho.n < 3:
        return []
    each = only(own, part="samples")
    kinds = [each.assign(kind="iir"), each.assign(kind="change", value=-relative_changes(each))]
    found = order_correlation(concat(kinds), ("iir", "change"), list(both.index), rho.rho)
    return orders([Order("Appendix C ranks as IIR does", found, f", between the two over {rho.n} methods")])
