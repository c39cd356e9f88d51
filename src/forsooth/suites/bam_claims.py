"""Verdicts on the claims of sections 3 and 5, each with our number and its interval. [yang2019benchmarking]"""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from scipy import stats

from forsooth.suites import bam_presets
from forsooth.suites.planted_figures import Interval, above, mean_of, share_of, verdict

PREMISE = -0.7  # Spearman's ρ between k and the drop that the embedded data must reach
BEST = ("grad_cam", "gradient")  # GC and VG


def premises(known: pd.DataFrame) -> list[str]:
    """The claims of section 3.3 and 3.4 on f_o and f_s."""

    def share(net: str, shown: str, metric: str = "accuracy") -> Interval:
        row = known.loc[(net, shown, metric)]
        hits = round(row["value"] * row["n"])
        return share_of([True] * hits + [False] * (int(row["n"]) - hits))

    chance = 1 / 10
    near = 2 * chance
    lost, blind = share("f_o", "s"), share("f_s", "og")
    lines = [
        verdict("f_o is at chance without objects", lost, holds=lost.low <= near, fails=lost.low > near),
        verdict("f_s is at chance without scenes", blind, holds=blind.low <= near, fails=blind.low > near),
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
    return lines


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
    """How much higher the first is, image by image."""
    part = own[own["part"].eq("samples") & own["mask"].eq("object")]
    wide = part.pivot_table(index="sample", columns="method", values="value")
    if one not in wide or two not in wide:
        return mean_of([])
    return mean_of((wide[one] - wide[two]).dropna())


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
    if "tcav" in table.index and "grad_cam" in maps.index:
        tcav, best = table.loc["tcav", "value"], maps.loc["grad_cam"]
        said = "holds" if tcav > best["high"] else "does not hold" if tcav < best["low"] else "cannot be told"
        lines.append(f"TCAV has the highest MCS: {said}. Ours {tcav:.2f}, GC {best['value']:.2f}.")
    elif "grad_cam" in maps.index:
        lines.append("TCAV has the highest MCS: cannot be told, no layer of one network passed the test.")
    lines.append(above("Smoothing improves the gradient (SG less VG)", lead(own, "smooth_grad", "gradient")))
    others = [name for name in maps.index if name not in ("grad_cam", "smooth_grad")]
    if others and "smooth_grad" in maps.index:
        lines.append(above(f"SG outperforms the rest (its lead over {others[0]})", lead(own, "smooth_grad", others[0])))
    return lines + robust(table, own)


def robust(table: pd.DataFrame, own: pd.DataFrame) -> list[str]:
    """Whether the score and the order of methods stay when objects have other sizes or places."""
    lines = []
    for column in [name for name in table if name.startswith("at_")]:
        both = table[["value", column]].dropna()
        rho = stats.spearmanr(both["value"], both[column]).statistic if len(both) > 2 else float("nan")
        gap = mean_of(both[column] - both["value"])
        said = "holds" if rho >= 0.7 else "does not hold" if rho < 0.5 else "cannot be told"
        name = column.removeprefix("at_")
        lines.append(
            f"Robust with objects {name} (order of methods): {said}. Ours rho {rho:.2f}; the score moves by {gap}."
        )
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
    near = mean_of(chance.groupby("method")["value"].mean())
    inside = abs(near.mean - 0.5) <= 0.1
    lines.append(verdict("The baseline with random masks is around 50 %", near, holds=inside, fails=not inside))
    for name, value, low, high in table[["value", "low", "high"]].itertuples():
        lines.append(f"{name}: false positives (1 - IDR) {1 - value:.0%} [{1 - high:.0%}, {1 - low:.0%}].")
    return lines + robust(table, own)


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
        said = "holds" if rho >= 0.7 else "does not hold" if rho < 0.5 else "cannot be told"
        lines.append(
            f"Appendix C ranks as IIR does: {said}. Ours rho {rho:.2f} between the two over {len(both)} methods."
        )
    still = table[table.index.isin(bam_presets.NULLS)]["value"].to_dict()
    lines.append(f"Maps that never look at the model: {', '.join(f'{n} {v:.2f}' for n, v in still.items())}.")
    return lines


def claims_fine(table: pd.DataFrame) -> list[str]:
    known = table.set_index("method")
    maps = known[known.index.isin(bam_presets.PUBLISHED)].sort_values("rho", ascending=False)
    lines = ["Section 5.1, fine."]
    for name, line in known[known["published"].notna()].iterrows():
        inside = line["rho_low"] <= line["published"] <= line["rho_high"]
        said = "agrees" if inside else "differs" if np.isfinite(line["rho_low"]) else "cannot be told"
        ends = f"{line['rho']:.2f} [{line['rho_low']:.2f}, {line['rho_high']:.2f}]"
        lines.append(f"rho of {name}: {said}. Ours {ends}; published {line['published']:.2f}.")
    others = [name for name in maps.index if name != "grad_cam"]
    if "grad_cam" in maps.index and others:
        best, gc = maps.loc[others[0]], maps.loc["grad_cam"]
        said = (
            "holds"
            if gc["rho"] > best["rho_high"]
            else "does not hold"
            if gc["rho_high"] < best["rho"]
            else "cannot be told"
        )
        lines.append(
            f"GC follows the drop best of all maps: {said}. Ours {gc['rho']:.2f}, {others[0]} {best['rho']:.2f}."
        )
        widest = maps.drop(index="grad_cam")["range"]
        small = gc["range"] > 2 * widest.max()
        lines.append(
            f"All maps but GC change at a much smaller scale (half or less): {'holds' if small else 'does not hold'}. "
            f"Ours: GC {gc['range']:.2f}, the next {widest.idxmax()} {widest.max():.2f}."
        )
        if "guided_backprop" in widest.index:
            least = widest.idxmin() == "guided_backprop"
            said = "holds" if least else "does not hold"
            lines.append(
                f"GB evolves minimally: {said}. Ours {widest['guided_backprop']:.2f}, least {widest.idxmin()}."
            )
    return lines


CLAIMS: Mapping[str, Callable[[pd.DataFrame, pd.DataFrame], list[str]]] = {
    "mcs": claims_mcs,
    "idr": claims_idr,
    "iir": claims_iir,
}
