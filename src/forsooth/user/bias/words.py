"""The answer in plain words: who is least biased, who is indistinguishable, and what to do about it."""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from forsooth.report.promises import broken_promises, with_word
from forsooth.scores import convergence
from forsooth.stats.differences import enough_for_pairs
from forsooth.user.bias.subject import Subject
from forsooth.wording import agreeing, joined, plural, significant

FEW = 20  # inputs from which intervals say something of other inputs


def summary(subject: Subject, table: pd.DataFrame, noise: Sequence[float], costly: Collection[str]) -> str:
    """One paragraph on what was asked, one on what came out, and the advice.

    table   of `BiasResult`
    noise   (n,) share of noise in the squared norm of the Shapley values, nan where they are all zero
    costly  methods that take many passes for a map
    """
    methods = table[table["m_bias"].notna() & table["kind"].eq("method")]
    inputs = sum(share == share for share in noise)
    findings = [*left_out(noise), *least(methods), *against_nulls(methods), *floor(subject, table), *promises(table)]
    parts = [
        " ".join([setting(subject), *subject.notes]),
        " ".join(findings),
        *noisy(subject, methods, noise),
        *few(inputs, rivals(table)),
        advice(subject, table, noise, costly),
    ]
    return "\n\n".join(part for part in parts if part)


def setting(subject: Subject) -> str:
    if subject.exact:
        orders = f"all {2**subject.seats.count:,} coalitions"
    else:
        orders = f"{subject.request.permutations:,} random orders"
    players = f"{subject.seats.count:,} {subject.seats.noun}"
    inputs = plural(len(subject.x), "input")
    return f"{inputs} of {subject.kind}, {players}; Shapley values from {orders}, {cost(subject)}."


def cost(subject: Subject) -> str:
    return f"{subject.forwards():,} forward passes for an input"


def left_out(noise: Sequence[float]) -> list[str]:
    """Inputs whose Shapley values are all zero have no norm, and so no score."""
    none = sum(share != share for share in noise)
    if not none:
        return []
    return [f"{none} of {len(noise)} inputs are left out: all Shapley values are zero there, nothing hidden matters."]


def least(methods: pd.DataFrame) -> list[str]:
    """The least biased method, and those that are indistinguishable from it."""
    if methods.empty:
        return ["No method gave a usable map."]
    best = methods.iloc[0]
    score = f"m_bias {significant(best['m_bias'])}"
    if best["low"] == best["low"]:
        score += f", 95 % interval {significant(best['low'])} to {significant(best['high'])}"
    if len(methods) == 1:
        return [f"{best['method']} has {score}."]
    tied = first_group(methods)[1:]
    rest = "it is clearly below all others"
    if tied:
        rest = f"{joined(tied)} {agreeing(tied, 'is', 'are')} indistinguishable from it"
    return [f"Least biased: {best['method']} ({score}); {rest}."]


def first_group(methods: pd.DataFrame) -> list[str]:
    """The names of those in the tie group of the first."""
    return list(methods["method"][methods["group"].eq(methods.iloc[0]["group"])])


def against_nulls(methods: pd.DataFrame) -> list[str]:
    """Who beats the maps that never look at the model."""
    winners = methods["method"][beats(methods)].tolist()
    losers = methods["method"][~beats(methods)].tolist()
    if methods.empty:
        return []
    if not winners:
        return ["No method clearly beats both the constant and the random map."]
    sentence = f"{joined(winners)} {agreeing(winners, 'beats', 'beat')} both the constant and the random map"
    if losers:
        sentence += f"; {joined(losers)} {agreeing(losers, 'does', 'do')} not"
    return [f"{sentence}."]


def beats(methods: pd.DataFrame) -> pd.Series:
    return methods["beats_constant"].astype(bool) & methods["beats_random"].astype(bool)


def floor(subject: Subject, table: pd.DataFrame) -> list[str]:
    """What the Shapley values themselves score when they are sampled once more."""
    own = table["m_bias"][table["kind"].eq("anchor")]
    if subject.exact or own.isna().all():
        return []
    score = significant(own.iloc[0])
    meaning = "a method that scores no higher is indistinguishable from the Shapley values"
    return [f"Shapley values sampled once more score {score}: {meaning}."]


def promises(table: pd.DataFrame) -> list[str]:
    """Who misses the sum that it promises."""
    return list(broken_promises(table.set_index("method")).values())


def noisy(subject: Subject, methods: pd.DataFrame, noise: Sequence[float]) -> list[str]:
    """A warning where the Shapley values are noisy: the permutations that it takes, and what the noise does."""
    rough = [share for share in noise if share >= convergence.UNCONVERGED]
    if subject.exact or not rough:
        return []
    what = convergence.not_converged(float(np.median(rough)), int(subject.request.permutations))
    warning = f"Warning: at {len(rough)} of {len(noise)} inputs {what[0].lower()}{what[1:]} (at the median of them)."
    known = methods[methods["m_bias_split"].notna()]
    if known.empty:
        return [warning]
    best = known.iloc[0]
    scores = f"{significant(best['m_bias_split'])}, not {significant(best['m_bias'])}"
    return [f"{warning} Without the noise in the norm {best['method']} has {scores}."]


def rivals(table: pd.DataFrame) -> int:
    """How many methods and nulls are compared with each other."""
    return int(table["group"].ne("").sum())


def few(inputs: int, rivals: int) -> list[str]:
    """A warning where inputs are few, and how many it takes before any two can be distinguished.

    inputs  that have a score
    rivals  methods and nulls that are compared
    """
    if inputs >= FEW or not inputs:
        return []
    needed = enough_for_pairs(rivals)
    many = f"{inputs} inputs"
    none = ""
    if inputs == 1:
        many = "one input"
        none = "there is no interval, and "
    if inputs >= needed:
        return [f"Warning: with {many} the intervals say little about other inputs; give at least {FEW}."]
    give = f"give at least {needed}, better {max(FEW, 2 * needed)}"
    return [f"Warning: with {many} {none}no two maps can be distinguished; to compare {rivals} maps {give}."]


def advice(subject: Subject, table: pd.DataFrame, noise: Sequence[float], costly: Collection[str]) -> str:
    """What to do, in one sentence."""
    methods = table[table["m_bias"].notna() & table["kind"].eq("method")]
    finite = [share for share in noise if share == share]
    if not finite:
        return "Choose another baseline: the model says the same whatever is hidden, so there is nothing to explain."
    winners = methods[beats(methods)]
    if winners.empty:
        return without_winner(subject, finite, rivals(table))
    losers = methods[~beats(methods)]
    best = first_group(winners)
    sentences = broken_promises(table.set_index("method"))
    use = f"Use {joined(with_word(best, sentences), 'or')}{cheaper(winners, best, costly)}"
    if losers.empty:
        return f"{use}."
    names = losers["method"].tolist()
    single = f"do not rank single {subject.seats.noun} by {joined(names, 'or')} here"
    return f"{use}; {single}: {agreeing(names, 'it is', 'they are')} not clearly better than {unbeaten(losers)} map."


def without_winner(subject: Subject, noise: Sequence[float], rivals: int) -> str:
    """What to do where no method beats the nulls; noise of the inputs that have an anchor."""
    if not subject.exact and float(np.median(noise)) >= convergence.UNCONVERGED:
        why = "nothing here can be distinguished from a constant map"
        return f"Ask again with more permutations before you choose: {why}."
    needed = enough_for_pairs(rivals)
    if len(noise) < needed:
        why = "with fewer, no two maps can be distinguished"
        return f"Ask again with at least {needed} inputs before you choose: {why}."
    why = "no method here is clearly better than a map that says nothing"
    return f"Use Shapley values themselves, at {cost(subject)}: {why}."


def cheaper(winners: pd.DataFrame, best: Sequence[str], costly: Collection[str]) -> str:
    """The least biased of those that take a few passes only, where the best take many."""
    quick = winners[~winners["method"].isin(costly)]
    if quick.empty or not set(best) <= set(costly):
        return ""
    names = with_word(first_group(quick), broken_promises(winners.set_index("method")))
    return f", or {joined(names, 'or')} where many forward passes are too expensive"


def unbeaten(losers: pd.DataFrame) -> str:
    """The null that none of them beats, or both where some fail at one and some at the other."""
    for null in ("constant", "random"):
        if not losers[f"beats_{null}"].astype(bool).any():
            return f"a {null}"
    return "a constant or a random"
