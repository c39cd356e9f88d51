"""Verdicts on the claims of sections 3 and 5, each with our number and its interval. [yang2019benchmarking]"""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from scipy import stats

from forsooth import papers
from forsooth.suites.bam import settings as bam_presets
from forsooth.suites.bam.chance import (
    DRAWS,
    concept_means,
    draw,
    interval,
    means,
    order_interval,
    over_both,
    per_image,
    rank_draws,
    values_of,
)
from forsooth.suites.verdicts import Interval, above, around, mean_of, verdict

PREMISE = -0.7  # Spearman's ρ between k and the drop that the embedded data must reach
BEST = ("grad_cam", "gradient")  # GC and VG
ALIKE, UNLIKE = 0.7, 0.5  # ρ at which two orders are the same, and below which they are not
SURE = 0.95  # share of draws in which a claim on ranks must hold


def premises(known: pd.DataFrame, *, chance: float = 1 / 10) -> list[str]:
    """The claims of section 3.3 and 3.4 on f_o and f_s.

    known   value, low, high and n by net, shown and metric
    chance  the accuracy of a guess among the classes
    """
    published = papers.table("bam_figure_2").set_index(["net", "shown", "metric"])["value"] / 100

    def share(net: str, shown: str, metric: str = "accuracy") -> Interval:
        row = known.loc[(net, shown, metric)]
        return Interval(row["value"], row["low"], row["high"], int(row["n"]))

    lines = [
        at_chance("f_o is at chance without objects", share("f_o", "s"), chance),
        at_chance("f_s is at chance without scenes", share("f_s", "og"), chance),
    ]
    for net, with_, without in (("f_s", "os", "s"), ("f_o", "os", "og")):
        before, after = share(net, with_), share(net, without)
        gap = f"{before.mean:.1%} with both, {after.mean:.1%} without"
        fine, bad = after.mean >= before.mean - 0.02, after.high < before.low
        what = "objects" if net == "f_s" else "scenes"
        lines.append(verdict(f"{net} is unharmed without {what}", after, holds=fine, fails=bad, more=gap))
        if (net, without, "confidence_rises") in known.index:
            risen = share(net, without, "confidence_rises")
            lines.append(above(f"Most images of {net} gain confidence without {what}", risen, 0.5))
            theirs = float(published[net, without, "confidence_rises"])
            lines.append(around(f"Share of images of {net} that gain confidence without {what}", risen, theirs))
    return lines


def at_chance(claim: str, accuracy: Interval, chance: float) -> str:
    """The verdict on "no better than a guess": the interval holds chance, and does not hold all from 0 to twice it."""
    inside = accuracy.low <= chance <= accuracy.high
    vague = accuracy.low <= 0 and accuracy.high >= 2 * chance
    outside = accuracy.low > chance or accuracy.high < chance
    return verdict(claim, accuracy, holds=inside and not vague, fails=outside, more=f"chance {chance:.2f}")


def premise(drops: pd.DataFrame) -> list[str]:
    """Spearman's ρ between k and the drop of the class that always has the common feature."""
    drops = drops.sort_values("k")
    if len(drops) < 3:
        return ["Too few k to say whether the drop falls with k."]
    found = stats.spearmanr(drops["k"], drops["value"])
    told = ", ".join(f"{k:g}: {100 * v:.0f}" for k, v in zip(drops["k"], drops["value"], strict=True))
    holds = found.statistic <= PREMISE
    lines = [
        f"The accuracy drop falls as k grows (Spearman's rho <= {PREMISE}): {'holds' if holds else 'does not hold'}. "
        f"Ours {found.statistic:.2f}, p = {found.pvalue:.1e}, over {len(drops)} k; drop in points by k: {told}."
    ]
    if not holds:
        lines.append("These networks do not need the feature as much as k foresees, so a map cannot follow it either.")
    return lines


def lead(own: pd.DataFrame, one: str, two: str) -> Interval:
    """How much higher the first is, image by image, with an interval over images and trainings."""
    part = own[own["part"].eq("samples") & own["mask"].eq("object")]
    wide = part.pivot_table(index=["model_seed", "sample"], columns="method", values="value")
    if one not in wide or two not in wide:
        return mean_of([])
    return over_both((wide[one] - wide[two]).dropna().rename("value").reset_index(), bounds=(-2, 2))


def tcav_lead(own: pd.DataFrame, rival: str, gap: float) -> Interval:
    """How much higher TCAV is than a map. It has other images than the map, and its random sets."""
    parts = [own[own["part"].eq(part) & own["method"].eq("tcav")] for part in ("concept_inputs", "concept_sets")]
    parts.append(own[own["part"].eq("samples") & own["mask"].eq("object") & own["method"].eq(rival)])
    if any(part.empty for part in parts):
        return Interval(gap, np.nan, np.nan, 0)
    trainings = sorted(own["model_seed"].unique())
    inputs, sets, maps = (values_of(part, ["method"], trainings=trainings)[0] for part in parts)
    many = concept_means(inputs, sets, draw(inputs.shape[1], len(trainings), pool=1))
    lower = means(maps, draw(maps.shape[1], len(trainings)))
    return interval(gap, (many - lower)[:, 0], min(inputs.shape[1], maps.shape[1]))


def order(claim: str, rho: Interval, more: str) -> str:
    """The verdict on two orders; an interval that says otherwise than ρ, or none, leaves it open."""
    holds, fails = rho.mean >= ALIKE and rho.low >= UNLIKE, rho.mean < UNLIKE and rho.high <= ALIKE
    said = "holds" if holds else "does not hold" if fails else "cannot be told"
    return f"{claim}: {said}. Ours rho {rho}{more}."


def published_maps(table: pd.DataFrame) -> pd.DataFrame:
    """The maps of the paper, best first."""
    return table[table.index.isin(bam_presets.PUBLISHED)].sort_values("value", ascending=False)


def claims_mcs(table: pd.DataFrame, own: pd.DataFrame) -> list[str]:
    maps = published_maps(table)
    rivals = [name for name in maps.index if name != "grad_cam"]
    lines = ["Section 5.1, coarse."]
    if "grad_cam" in maps.index and rivals:
        lines.append(
            above(f"GC has the highest MCS of all maps (its lead over {rivals[0]})", lead(own, "grad_cam", rivals[0]))
        )
    if "tcav" in table["value"].dropna().index:
        shown = table["value"].reindex(["tcav", *dict.fromkeys([maps.index[0], "grad_cam"])]).dropna()
        found = tcav_lead(own, maps.index[0], shown["tcav"] - shown[maps.index[0]])
        told = ", ".join(f"{name} {value:.2f}" for name, value in shown.items())
        lines.append(above(f"TCAV has the highest MCS (its lead over {maps.index[0]})", found, more=told))
        by_layer = own[own["part"].eq("concepts") & own["mask"].eq("object")]["message"]
        lines += [f"TCAV by layer, of which it is the mean. {message}." for message in by_layer]
    else:
        lines.append("TCAV has the highest MCS: cannot be told, no layer of one network passed the test.")
    lines.append(above("Smoothing improves the gradient (SG less VG)", lead(own, "smooth_grad", "gradient")))
    others = [name for name in maps.index if name not in ("grad_cam", "smooth_grad")]
    if others and "smooth_grad" in maps.index:
        lines.append(above(f"SG outperforms the rest (its lead over {others[0]})", lead(own, "smooth_grad", others[0])))
    return lines + robust(table, own)


def robust(table: pd.DataFrame, own: pd.DataFrame) -> list[str]:
    """Whether the score and the order of methods that look at a model stay when objects have other sizes or places."""
    lines = []
    rows = own[own["part"].isin(["samples", "robustness"]) & own["mask"].eq("object")]
    rows = rows.assign(kind=rows["placing"])
    for column in [name for name in table if name.startswith("at_")]:
        both = table.loc[~table.index.isin(bam_presets.NULLS), ["value", column]].dropna()  # nulls tie, or never move
        rho = stats.spearmanr(both["value"], both[column]).statistic if len(both) > 2 else float("nan")
        gap = mean_of(both[column] - both["value"])
        name = column.removeprefix("at_")
        found = order_interval(rows, ("as_built", name), list(both.index), rho)
        lines.append(order(f"Robust with objects {name} (order of methods)", found, f"; the score moves by {gap}"))
    return lines


def claims_idr(table: pd.DataFrame, own: pd.DataFrame) -> list[str]:
    maps = published_maps(table)
    lines = ["Section 5.2."]
    rivals = [name for name in maps.index if name not in BEST]
    for name in BEST:
        if name in maps.index and rivals:
            claim = f"{name} has a higher IDR than all others (its lead over {rivals[0]})"
            lines.append(above(claim, lead(own, name, rivals[0])))
    chance = own[own["mask"].eq("random") & own["part"].eq("random") & own["method"].isin(bam_presets.PUBLISHED)]
    near = mean_of([per_image(part).mean() for _, part in chance.groupby("method")])
    inside = abs(near.mean - 0.5) <= 0.1
    lines.append(verdict("The baseline with random masks is around 50 %", near, holds=inside, fails=not inside))
    for name, value, low, high in table[["value", "low", "high"]].itertuples():
        lines.append(f"{name}: false positives (1 - IDR) {1 - value:.0%} [{1 - high:.0%}, {1 - low:.0%}].")
    return lines + robust(table, own)


def change(rows: pd.DataFrame) -> pd.Series:
    """By how much of its saliency a place is changed by the patch (appendix C); nan where it had none."""
    return ((rows["first"] - rows["second"]).abs() / rows["second"]).replace(np.inf, np.nan)


def claims_iir(table: pd.DataFrame, own: pd.DataFrame) -> list[str]:
    maps = published_maps(table)
    lines = ["Section 5.3."]
    for name in maps.index:
        line = maps.loc[name]
        drawn_to = Interval(1 - line["value"], 1 - line["high"], 1 - line["low"], int(line["images"]))
        if name in BEST:
            low, high = drawn_to.high <= 0.8, drawn_to.low > 0.8
            lines.append(
                verdict(f"{name} draws attention to the patch in less than 80 %", drawn_to, holds=low, fails=high)
            )
        else:
            lines.append(above(f"{name} draws attention to the patch in over 80 %", drawn_to, 0.8))
    for name in ("gradient_x_input", "integrated_gradients"):
        lines.append(
            above(f"{name} is more affected than the gradient (IIR of VG less its)", lead(own, "gradient", name))
        )
    both = maps[["value", "change"]].dropna()
    if len(both) > 2:
        rho = stats.spearmanr(both["value"], -both["change"]).statistic
        each = own[own["part"].eq("samples")]
        rows = pd.concat([each.assign(kind="iir"), each.assign(kind="change", value=-change(each))])
        found = order_interval(rows, ("iir", "change"), list(both.index), rho)
        lines.append(order("Appendix C ranks as IIR does", found, f", between the two over {len(both)} methods"))
    still = table[table.index.isin(bam_presets.NULLS)]["value"].to_dict()
    lines.append(f"Maps that never look at the model: {', '.join(f'{n} {v:.2f}' for n, v in still.items())}.")
    return lines


def claims_fine(table: pd.DataFrame, rhos: pd.DataFrame, widths: pd.DataFrame) -> list[str]:
    """Our ρ beside the published ones, and the claims on them.

    rhos, widths  draws of ρ and of the range over k, one column per method
    """
    known = table.set_index("method")
    maps = known[known.index.isin(bam_presets.PUBLISHED)].sort_values("rho", ascending=False)
    lines = ["Section 5.1, fine."]
    for name, line in known[known["published"].notna()].iterrows():
        inside = line["rho_low"] <= line["published"] <= line["rho_high"]
        said = "agrees" if inside else "differs" if np.isfinite(line["rho_low"]) else "cannot be told"
        ends = f"{line['rho']:.2f} [{line['rho_low']:.2f}, {line['rho_high']:.2f}]"
        lines.append(f"rho of {name}: {said}. Ours {ends}; published {line['published']:.2f}.")
    for name, short, rivals in (("grad_cam", "GC", "all maps"), ("tcav", "TCAV", "all")):
        others = [other for other in maps.index if other != name]
        if name in known.index and others:
            own, best = known.loc[name, "rho"], maps.loc[others[0], "rho"]
            n = int(known.loc[[name, others[0]], "images"].min())
            found = interval(own - best, (rhos[name] - rhos[others[0]]).to_numpy(), n)
            claim = f"{short} follows the drop best of {rivals} (its rho less that of {others[0]})"
            lines.append(above(claim, found, more=f"{short} {own:.2f}, {others[0]} {best:.2f}"))
        elif others:
            lines.append(f"{short} follows the drop best of {rivals}: cannot be told, it has no series over k.")
    return lines + claims_on_ranges(maps, widths)


def claims_on_ranges(maps: pd.DataFrame, widths: pd.DataFrame) -> list[str]:
    """How far the maps change over k: GC the most by far, GB the least."""
    others = [name for name in maps.index if name != "grad_cam"]
    if "grad_cam" not in maps.index or not others:
        return []
    gc, wide, n = maps.loc["grad_cam"], maps.loc[others, "range"], int(maps["images"].min())
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = (widths[others].max(axis=1) / widths["grad_cam"]).to_numpy()
        found = interval(np.divide(wide.max(), gc["range"]), drawn, n)
    claim = "All maps but GC change at a much smaller scale (the widest range of theirs by that of GC: half or less)"
    told = f"GC {gc['range']:.2f}, the next {wide.idxmax()} {wide.max():.2f}"
    lines = [verdict(claim, found, holds=found.high < 0.5, fails=found.low > 0.5, more=told)]
    if "guided_backprop" in others:
        rest = maps["range"].drop("guided_backprop")
        drawn = (widths["guided_backprop"] - widths[list(rest.index)].min(axis=1)).to_numpy()
        found = interval(maps.loc["guided_backprop", "range"] - rest.min(), drawn, n)
        claim, told = "GB evolves minimally (its range less the least of the others)", f"least of them {rest.idxmin()}"
        lines.append(verdict(claim, found, holds=found.high < 0, fails=found.low > 0, more=told))
    return lines


def claims_summary(table: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """Whether the gradient ranks high in IDR and IIR and low in MCS."""
    metrics, lines = ("mcs", "idr", "iir"), ["Section 5, summary."]
    wide = table.pivot_table(index="method", columns="metric", values="value")
    maps = wide[wide.index.isin(bam_presets.PUBLISHED)].dropna()
    if not set(metrics) <= set(maps) or "gradient" not in maps.index or len(maps) < 3:
        return lines
    place, half = maps.rank(ascending=False, method="min").loc["gradient"].astype(int), len(maps) / 2
    drawn = pd.DataFrame(rank_draws(rows, "gradient", list(maps.index), metrics)).dropna()
    claim = "The metrics are complementary (VG: high IDR and IIR, low MCS)"
    if drawn.empty:
        ranks = ", ".join(f"{name} {place[name]}" for name in metrics)
        return [*lines, f"{claim}: cannot be told, too few images. Ours, ranks: {ranks} of {len(maps)}."]
    share = (drawn["idr"].le(half) & drawn["iir"].le(half) & drawn["mcs"].gt(half)).mean()
    said = "holds" if share >= SURE else "does not hold" if share <= 1 - SURE else "cannot be told"
    ends = drawn.quantile([0.025, 0.975], interpolation="nearest").astype(int)
    ranks = ", ".join(f"{name} {place[name]} of {len(maps)} {ends[name].tolist()}" for name in metrics)
    return [*lines, f"{claim}: {said}. Ours, ranks: {ranks}; so in {share:.0%} of {DRAWS} draws."]


CLAIMS: Mapping[str, Callable[[pd.DataFrame, pd.DataFrame], list[str]]] = {
    "mcs": claims_mcs,
    "idr": claims_idr,
    "iir": claims_iir,
}
