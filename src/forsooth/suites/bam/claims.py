"""Verdicts on the claims of section 5 on MCS, IDR and IIR, each with our number and its interval."""

from collections.abc import Callable, Mapping, Sequence

from pandas import DataFrame, Series, concat

from forsooth.frames import only, worded
from forsooth.stats import Interval, mean_interval, samples_and_trainings
from forsooth.stats.bootstrap import concept_lead, per_sample
from forsooth.stats.correlations import order_correlation, spearman
from forsooth.stats.intervals import no_interval
from forsooth.suites.bam.settings import AS_BUILT, NULLS, PUBLISHED
from forsooth.suites.bam.tables import TCAV, relative_changes
from forsooth.suites.verdicts import above, below, outcome, verdict
from forsooth.wording import by_name

BEST = ("grad_cam", "gradient")  # GC and VG
ALIKE = 0.7  # ρ at which two orders are the same
UNLIKE = 0.5  # and below which they are not
DRAWN_TO = 0.8  # share of images in which most maps are drawn to a patch
HALF = 0.5
NEAR_HALF = 0.1


def claims_mcs(table: DataFrame, own: DataFrame) -> list[str]:
    """Section 5.1. table: a line per method; own: the rows of the metric, as they take part"""
    return [
        "Section 5.1, coarse.",
        *leads("GC has the highest MCS of all maps", "grad_cam", table, own),
        *claims_tcav(table, own),
        above("Smoothing improves the gradient (SG less VG)", lead(own, "smooth_grad", "gradient")),
        *leads("SG outperforms the rest", "smooth_grad", table, own, but=("grad_cam",)),
        *robust(table, own),
    ]


def claims_idr(table: DataFrame, own: DataFrame) -> list[str]:
    """Section 5.2."""
    lines = ["Section 5.2."]
    for name in BEST:
        lines += leads(f"{name} has a higher IDR than all others", name, table, own, but=BEST)
    lines.append(random_baseline(own))
    false = (1 - table[["value", "low", "high"]]).reset_index()
    lines += worded(false, "{method}: false positives (1 - IDR) {value:.0%} [{high:.0%}, {low:.0%}].")
    return lines + robust(table, own)


def claims_iir(table: DataFrame, own: DataFrame) -> list[str]:
    """Section 5.3."""
    maps = published_maps(table)
    lines = ["Section 5.3."]
    lines += [drawn_to_patch(name, maps.loc[name]) for name in maps.index]
    for name in ("gradient_x_input", "integrated_gradients"):
        claim = f"{name} is more affected than the gradient (IIR of VG less its)"
        lines.append(above(claim, lead(own, "gradient", name)))
    lines += appendix_c(maps, own)
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


def leads(claim: str, name: str, table: DataFrame, own: DataFrame, *, but: Sequence[str] = ()) -> list[str]:
    """The verdict on a map that should be above the best of the others, without some of them."""
    maps = published_maps(table).index
    rival = next((other for other in maps if other not in (name, *but)), None)
    if name not in maps or rival is None:
        return []
    return [above(f"{claim} (its lead over {rival})", lead(own, name, rival))]


def lead(own: DataFrame, one: str, two: str) -> Interval:
    """How much higher the first is, image by image, with an interval over images and trainings."""
    part = only(own, part="samples", mask="object")
    wide = part.pivot_table(index=["model_seed", "sample"], columns="method", values="value")
    if one not in wide or two not in wide:
        return no_interval()
    difference = (wide[one] - wide[two]).dropna().rename("value").reset_index()
    return samples_and_trainings(difference, bounds=(-2, 2))


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
    return [robust_at(place, table[["value", place]].dropna(), rows) for place in places]


def robust_at(place: str, both: DataFrame, rows: DataFrame) -> str:
    """The same for one size or place, a column of both."""
    placing = place.removeprefix("at_")
    rho = spearman(both["value"], both[place]).rho
    interval = order_correlation(rows, (AS_BUILT, placing), list(both.index), rho)
    moves = mean_interval(both[place] - both["value"])
    return order(f"Robust with objects {placing} (order of methods)", interval, f"; the score moves by {moves}")


def order(claim: str, rho: Interval, more: str) -> str:
    """The verdict on two orders; an interval that says otherwise than ρ, or none, leaves it open."""
    holds = rho.mean >= ALIKE and rho.low >= UNLIKE
    fails = rho.mean < UNLIKE and rho.high <= ALIKE
    return f"{claim}: {outcome(holds, fails)}. Ours rho {rho}{more}."


def random_baseline(own: DataFrame) -> str:
    by_method = only(own, mask="random", part="random", method=PUBLISHED).groupby("method")
    means = mean_interval([per_sample(part).mean() for _, part in by_method])
    inside = abs(means.mean - HALF) <= NEAR_HALF
    return verdict("The baseline with random masks is around 50 %", means, holds=inside, fails=not inside)


def drawn_to_patch(name: str, line: Series) -> str:
    """Whether a map is drawn to a patch in most images, or, of the two best, is not."""
    share = Interval(1 - line["value"], 1 - line["high"], 1 - line["low"], int(line["images"]))
    claim = f"{name} draws attention to the patch in"
    if name not in BEST:
        return above(f"{claim} over 80 %", share, DRAWN_TO)
    return below(f"{claim} less than 80 %", share, DRAWN_TO)


def appendix_c(maps: DataFrame, own: DataFrame) -> list[str]:
    """Whether the mean change of saliency has the order of IIR."""
    both = maps[["value", "change"]].dropna()
    rho = spearman(both["value"], -both["change"])
    if rho.n < 3:
        return []
    each = only(own, part="samples")
    kinds = [each.assign(kind="iir"), each.assign(kind="change", value=-relative_changes(each))]
    interval = order_correlation(concat(kinds), ("iir", "change"), list(both.index), rho.rho)
    return [order("Appendix C ranks as IIR does", interval, f", between the two over {rho.n} methods")]
