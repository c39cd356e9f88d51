"""The answer in plain words: who is least biased, who cannot be told apart, and what to do about it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from forsooth.report.promises import broken_promises, with_word
from forsooth.scores import convergence
from forsooth.stats.differences import enough_for_pairs
from forsooth.user.subject import Subject

FEW = 20  # inputs from which intervals say something of other inputs
# They hide parts of the input as the Shapley values do: near to them, and nearly as dear.
HIDING = (
    "kernel_shap",
    "kernel_shap_25",
    "lime",
    "lime_25",
    "lime_superpixels",
    "lime_quickshift_200",
    "pfi",
    "shapley_sampling",
)


def told(about: Subject, table: pd.DataFrame, noise: Sequence[float]) -> str:
    """One paragraph on what was asked, one on what was found, and the advice.

    table  of `BiasResult`
    noise  (n,) share of noise in the squared norm of the Shapley values, nan where they are all zero
    """
    scored = table[table["m_bias"].notna()]
    methods = scored[scored["kind"].eq("method")]
    found = [*left_out(noise), *least(methods), *against_nulls(methods), *floor(about, table), *promises(table)]
    inputs = sum(share == share for share in noise)
    warned = [*noisy(about, methods, noise), *few(inputs, compared(table))]
    parts = [" ".join([setting(about), *about.said]), " ".join(found), *warned, advice(about, table, methods, noise)]
    return "\n\n".join(part for part in parts if part)


def setting(about: Subject) -> str:
    how = f"all {2**about.count:,} coalitions" if about.exact else f"{about.asked.permutations:,} random orders"
    inputs = "1 input" if len(about.x) == 1 else f"{len(about.x)} inputs"
    return (
        f"{inputs} of {about.kind}, {about.count:,} {about.noun}; Shapley values from {how}, "
        f"{about.forwards():,} forwards for an input."
    )


def left_out(noise: Sequence[float]) -> list[str]:
    """Inputs whose Shapley values are all zero have no norm, and so no score."""
    none = sum(share != share for share in noise)
    if not none:
        return []
    return [f"{none} of {len(noise)} inputs are left out: all Shapley values are zero there, nothing hidden matters."]


def least(methods: pd.DataFrame) -> list[str]:
    """The least biased method, and those that cannot be told apart from it."""
    if methods.empty:
        return ["No method gave a usable map."]
    best = methods.iloc[0]
    interval = f"m_bias {short(best['m_bias'])}"
    if best["low"] == best["low"]:
        interval += f", 95 % interval {short(best['low'])} to {short(best['high'])}"
    tied = methods["method"][methods["group"].eq(best["group"])].tolist()[1:]
    if len(methods) == 1:
        return [f"{best['method']} has {interval}."]
    rest = f"{joined(tied)} cannot be told apart from it" if tied else "it is clearly below all others"
    return [f"Least biased: {best['method']} ({interval}); {rest}."]


def against_nulls(methods: pd.DataFrame) -> list[str]:
    """Who beats the maps that never look at the model."""
    winners = methods["method"][beats(methods)].tolist()
    if not len(methods):
        return []
    if not winners:
        return ["No method clearly beats both the constant and the random map."]
    verb = "beats" if len(winners) == 1 else "beat"
    losers = methods["method"][~beats(methods)].tolist()
    others = f"; {joined(losers)} {'does' if len(losers) == 1 else 'do'} not" if losers else ""
    return [f"{joined(winners)} {verb} both the constant and the random map{others}."]


def beats(methods: pd.DataFrame) -> pd.Series:
    return methods["beats_constant"].astype(bool) & methods["beats_random"].astype(bool)


def floor(about: Subject, table: pd.DataFrame) -> list[str]:
    """What the Shapley values themselves score when they are sampled once more."""
    own = table["m_bias"][table["kind"].eq("anchor")]
    if about.exact or own.isna().all():
        return []
    return [
        f"Shapley values sampled once more score {short(own.iloc[0])}: a method at that height may be as good as they."
    ]


def promises(table: pd.DataFrame) -> list[str]:
    """Who misses the sum that it promises."""
    return list(broken_promises(table.set_index("method")).values())


def noisy(about: Subject, methods: pd.DataFrame, noise: Sequence[float]) -> list[str]:
    """A warning where the Shapley values are noisy: the permutations that it takes, and what the noise does."""
    rough = [share for share in noise if share >= convergence.UNCONVERGED]
    if about.exact or not rough:
        return []
    what = convergence.not_converged(float(np.median(rough)), int(about.asked.permutations))
    said = f"Warning: at {len(rough)} of {len(noise)} inputs {what[0].lower()}{what[1:]} (at the median of them)."
    for _, best in methods[methods["m_bias_split"].notna()].head(1).iterrows():
        figures = f"{short(best['m_bias_split'])}, not {short(best['m_bias'])}"
        said += f" Without the noise in the norm {best['method']} has {figures}."
    return [said]


def compared(table: pd.DataFrame) -> int:
    """How many methods and nulls are compared with each other."""
    return int(table["group"].ne("").sum())


def few(inputs: int, rivals: int) -> list[str]:
    """A warning where inputs are few, and how many it takes before anything can be told apart.

    inputs  that have a score
    rivals  methods and nulls that are compared
    """
    if inputs >= FEW or not inputs:
        return []
    needed = enough_for_pairs(rivals)
    many = "one input" if inputs == 1 else f"{inputs} inputs"
    if inputs < needed:
        none = "there is no interval, and " if inputs == 1 else ""
        return [
            f"Warning: with {many} {none}nothing can be told apart; to compare {rivals} maps give at least {needed}, "
            f"better {max(FEW, 2 * needed)}."
        ]
    return [f"Warning: with {many} the intervals say little about other inputs; give at least {FEW}."]


def advice(about: Subject, table: pd.DataFrame, methods: pd.DataFrame, noise: Sequence[float]) -> str:
    """What to do, in one sentence."""
    finite = [share for share in noise if share == share]
    if not finite:
        return "Choose another baseline: the model says the same whatever is hidden, so there is nothing to explain."
    rough = not about.exact and float(np.median(finite)) >= convergence.UNCONVERGED
    winners = methods[beats(methods)]
    cost = f"{about.forwards():,} forwards for an input"
    if winners.empty and rough:
        return "Ask again with more permutations before you choose: nothing here can be told from a constant map."
    needed = enough_for_pairs(compared(table))
    if winners.empty and len(finite) < needed:
        return f"Ask again with at least {needed} inputs before you choose: with fewer, nothing can be told apart."
    if winners.empty:
        return (
            f"Use Shapley values themselves, at {cost}: no method here is clearly better than a map that says nothing."
        )
    best = winners["method"][winners["group"].eq(winners.iloc[0]["group"])].tolist()
    losers = methods[~beats(methods)]
    named = with_word(best, broken_promises(table.set_index("method")))
    use = f"Use {joined(named, 'or')}{cheaper(winners, best)}"
    if losers.empty:
        return f"{use}."
    are = "it is" if len(losers) == 1 else "they are"
    single = f"do not rank single {about.noun} by {joined(losers['method'].tolist(), 'or')} here"
    return f"{use}; {single}: {are} not clearly better than {unbeaten(losers)} map."


def cheaper(winners: pd.DataFrame, best: Sequence[str]) -> str:
    """The least biased of those that take a few passes only, where the best take many."""
    quick = winners[~winners["method"].isin(HIDING)]
    if quick.empty or not set(best) <= set(HIDING):
        return ""
    names = quick["method"][quick["group"].eq(quick.iloc[0]["group"])].tolist()
    names = with_word(names, broken_promises(winners.set_index("method")))
    return f", or {joined(names, 'or')} where many forwards are too dear"


def unbeaten(losers: pd.DataFrame) -> str:
    """The null that none of them beats, or both where some fail at one and some at the other."""
    for null in ("constant", "random"):
        if not losers[f"beats_{null}"].astype(bool).any():
            return f"a {null}"
    return "a constant or a random"


def short(value: float) -> str:
    """Three digits; what is below rounding is zero.

    >>> short(0.123456), short(2e-17)
    ('0.123', '0')
    """
    return f"{value:.3g}" if abs(value) >= 1e-9 else "0"


def joined(names: Sequence[str], word: str = "and") -> str:
    """
    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
