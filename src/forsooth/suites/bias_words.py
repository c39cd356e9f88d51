"""What a published table of M_bias made again says, in words."""

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from forsooth.suites import bias

UNSAID = ("grad_cam", "lime_superpixels")  # what they did here cannot be known from the paper


def orders(table: pd.DataFrame) -> pd.DataFrame:
    """Spearman's ρ between our order of methods and the published one, for every end and fraction."""
    both = table.dropna(subset=["expected"])
    lines = []
    for (end, fraction), group in both.groupby(["end", "fraction"], sort=False):
        rho = spearmanr(group["ours"], group["expected"]).statistic if len(group) > 2 else np.nan
        lines.append({"end": end, "fraction": fraction, "rho": rho})
    return pd.DataFrame(lines, columns=["end", "fraction", "rho"])


def verdict(table: pd.DataFrame, title: str, settings: bias.Settings, inputs: int, noise: float) -> str:
    """What came out, in words."""
    if table["expected"].isna().all():
        return f"{title}, {settings.models[0]}: none of these methods is in the published table.\n"
    both, rho = table.dropna(subset=["expected"]), orders(table)
    order = rho["rho"].median()
    holds = "holds" if order >= 0.7 else "holds in part" if order >= 0.4 else "does not hold"
    lines = [
        f"{title}, {settings.models[0]}: the published order of methods in a row {holds}. Spearman's ρ between the two "
        f"orders has median {order:.2f} over the ten rows. {_sizes(both)}",
        "ρ by row: " + ", ".join(f"{r.end}-{r.fraction:.0%} {r.rho:.2f}" for r in rho.itertuples()) + ".",
    ]
    sure = both[~both["method"].isin(UNSAID)]
    if len(sure) and len(sure) < len(both):
        lines.append(
            f"Without {' and '.join(UNSAID)}, whose layer and whose superpixels the paper does not give: median ρ "
            f"{orders(sure)['rho'].median():.2f}. {_sizes(sure)}"
        )
    lines += [*on_failures(both), *on_errata(both)]
    off = (both["ours"] / both["expected"]).groupby(both["method"]).median()
    lines.append("Ours over published, median by method: " + ", ".join(f"{m} {v:.2f}" for m, v in off.items()) + ".")
    if settings.grid:
        lines.append(
            f"The published players are {settings.side**2:,} pixels, ours {settings.grid**2} patches. M_bias has the "
            f"size 1 / √N, so all published numbers but Grad-CAM's, which is judged on the units of its layer, were "
            f"multiplied by {settings.side / settings.grid:g} before they were compared (column expected)."
        )
    lines.append(
        f"{inputs} inputs, {settings.permutations} permutations, baseline {settings.baseline}, {settings.output}, "
        "colours "
        f"of gradients by {settings.channels}; noise is {noise:.1%} of the squared norm of the Shapley values "
        "(median), and "
        f"with the norm freed of it M_bias moves by {(both['split'] / both['ours'] - 1).abs().median():.1%} (median)."
    )
    ends = table[table["method"].isin([bias.END, "constant", "random"])].groupby("method")["ours"].mean()
    told = ", ".join(f"{name} {value:.4f}" for name, value in ends.items())
    lines.append(f"Ends of the scale, mean over the ten rows: {told or 'not asked'}.")
    return "\n".join(lines) + "\n"


def on_failures(both: pd.DataFrame) -> list[str]:
    """Whose maps said nothing, and what the order is without them; nothing where all maps are scored."""
    share = both.groupby("method", sort=False)["failed"].mean()
    if not share.any():
        return []
    who = ", ".join(f"{name} {value:.0%}" for name, value in share[share > 0].items())
    rho = orders(both.assign(ours=both["scored"]))["rho"].median()
    return [f"Maps without a score count as the worst value of their row: {who}. Left out: median ρ {rho:.2f}."]


def on_errata(both: pd.DataFrame) -> list[str]:
    """The order with printing errors corrected; nothing where there are none."""
    if "corrected" not in both:
        return []
    times = both["corrected"] / both["published"]
    right = both.assign(expected=both["expected"] * times)
    moved = right[times.ne(1)]
    where = ", ".join(f"{r.method} {r.end}-{r.fraction:.0%} {r.published} → {r.corrected}" for r in moved.itertuples())
    rho = orders(right).set_index(["end", "fraction"])["rho"]
    rows = ", ".join(f"{r.end}-{r.fraction:.0%} {rho[r.end, r.fraction]:.2f}" for r in moved.itertuples())
    return [
        f"With printing errors corrected ({where}): median ρ {rho.median():.2f}, of these rows {rows}. {_sizes(right)}"
    ]


def _sizes(both: pd.DataFrame) -> str:
    """How near the numbers themselves are, over all rows and methods."""
    ratio = both["ours"] / both["expected"]
    over_all = spearmanr(both["ours"], both["expected"]).statistic if len(both) > 2 else np.nan
    return (
        f"Over all rows and methods ρ is {over_all:.2f}; {ratio.between(0.5, 2).mean():.0%} of the numbers lie within "
        "a "
        f"factor of 2, half of them within {np.exp(np.log(ratio).abs().median()) - 1:.0%}."
    )
