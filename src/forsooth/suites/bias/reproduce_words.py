"""What a published table of M_bias made again says, in words."""

import numpy as np
from pandas import DataFrame

from forsooth.frames import lines_by, only, without, worded
from forsooth.stats.correlations import spearman
from forsooth.suites.bias.settings import SHAPLEY, Settings
from forsooth.wording import by_name

UNSAID = ("grad_cam", "lime_superpixels")  # what they did here cannot be known from the paper
BY_ROW = "{end}-{fraction:.0%} {rho:.2f}"  # end and fraction of a row of the published table, and our ρ
ERROR = "{method} {end}-{fraction:.0%} {published} → {corrected}"
HOLDS = {0.7: "holds", 0.4: "holds in part", -1.0: "does not hold"}  # from this median of Spearman's ρ on


def orders(table: DataFrame) -> DataFrame:
    """Spearman's ρ between our order of methods and the published one, for every end and fraction."""

    def line_of(both: DataFrame) -> dict[str, float]:
        return {"rho": spearman(both["ours"], both["published"]).rho}

    return lines_by(table.dropna(subset=["published"]), ["end", "fraction"], line_of)


def compared(table: DataFrame, settings: Settings) -> DataFrame:
    """The lines whose method is in the published table too.

    Where patches play instead of pixels, the bias of each method has another size (`bias/patches-against-pixels`), and
    that of Grad-CAM, which is judged on the units of its layer, has not: there it has no place in the order.
    """
    both = table.dropna(subset=["published"])
    if settings.grid:
        return without(both, method="grad_cam")
    return both


def verdict(table: DataFrame, title: str, settings: Settings, inputs: int, noise: float) -> list[str]:
    """What came out, in words."""
    both = compared(table, settings)
    if both.empty:
        return [f"{title}, {settings.models[0]}: none of these methods is in the published table."]
    return [
        *on_order(both, title, settings),
        *on_unsaid(both, settings),
        *on_failures(both),
        *on_errata(both, settings),
        on_sizes(both, settings),
        on_setting(both, settings, inputs, noise),
        on_ends(table),
    ]


def on_order(both: DataFrame, title: str, settings: Settings) -> list[str]:
    """Whether the published order of methods comes out, over all rows and row by row."""
    rho = orders(both)
    order = rho["rho"].median()
    holds = next((word for least, word in HOLDS.items() if order >= least), "is inconclusive")
    return [
        f"{title}, {settings.models[0]}: the published order of methods in a row {holds}. Spearman's ρ between the two "
        f"orders has median {order:.2f} over the ten rows.{on_all_numbers(both, settings)}",
        f"ρ by row: {', '.join(worded(rho, BY_ROW))}.",
    ]


def on_unsaid(both: DataFrame, settings: Settings) -> list[str]:
    """The same without the methods of which the paper leaves too much open."""
    sure = without(both, method=UNSAID)
    if sure.empty or len(sure) == len(both):
        return []
    rho = orders(sure)["rho"].median()
    return [
        f"Without {' and '.join(UNSAID)}, whose layer and whose superpixels the paper does not give: median ρ "
        f"{rho:.2f}.{on_all_numbers(sure, settings)}"
    ]


def on_failures(both: DataFrame) -> list[str]:
    """Whose maps said nothing, and what the order is without them; nothing where all maps are scored."""
    share = both.groupby("method", sort=False)["failed"].mean()
    if not share.any():
        return []
    who = by_name(share[share > 0], "{} {:.0%}")
    rho = orders(both.assign(ours=both["scored"]))["rho"].median()
    return [f"Maps without a score count as the worst value of their row: {who}. Left out: median ρ {rho:.2f}."]


def on_errata(both: DataFrame, settings: Settings) -> list[str]:
    """The order with printing errors corrected; nothing where there are none."""
    if "corrected" not in both:
        return []
    moved = both[both["corrected"].ne(both["published"])]
    corrected = both.assign(published=both["corrected"])
    rho = orders(corrected)
    errors = ", ".join(worded(moved, ERROR))
    rows = ", ".join(worded(moved.merge(rho), BY_ROW))
    return [
        f"With printing errors corrected ({errors}): median ρ {rho['rho'].median():.2f}, of these rows {rows}."
        f"{on_all_numbers(corrected, settings)}"
    ]


def on_sizes(both: DataFrame, settings: Settings) -> str:
    """How far each method is off, where our numbers and theirs have the same players; else why nothing is said."""
    if settings.grid:
        return (
            f"The published players are {settings.side**2:,} pixels, ours {settings.grid**2} patches: orders can be "
            "compared, the numbers cannot (`bias/patches-against-pixels`). Grad-CAM, which is judged on the units of "
            "its layer, is left out of the order."
        )
    off = (both["ours"] / both["published"]).groupby(both["method"]).median()
    return f"Ours over published, median by method: {by_name(off)}."


SETTING = (
    "{inputs} inputs, {settings.permutations} permutations, baseline {settings.baseline}, {settings.output}, colours "
    "of gradients by {settings.channels}; noise is {noise:.1%} of the squared norm of the Shapley values (median), "
    "and with the norm freed of it M_bias moves by {moves:.1%} (median)."
)


def on_setting(both: DataFrame, settings: Settings, inputs: int, noise: float) -> str:
    moves = (both["split"] / both["ours"] - 1).abs().median()
    return SETTING.format(inputs=inputs, settings=settings, noise=noise, moves=moves)


def on_ends(table: DataFrame) -> str:
    ends = only(table, method=(SHAPLEY, "constant", "random")).groupby("method")["ours"].mean()
    return f"Ends of the scale, mean over the ten rows: {by_name(ends, '{} {:.4f}') or 'not asked'}."


def on_all_numbers(both: DataFrame, settings: Settings) -> str:
    """How near the numbers themselves are, over all rows and methods; empty where players differ from the paper's."""
    if settings.grid:
        return ""
    ratio = both["ours"] / both["published"]
    rho = spearman(both["ours"], both["published"]).rho
    near = ratio.between(0.5, 2).mean()
    half = np.exp(np.log(ratio).abs().median()) - 1
    return (
        f" Over all rows and methods ρ is {rho:.2f}; {near:.0%} of the numbers lie within a factor of 2, half of them "
        f"within {half:.0%}."
    )
