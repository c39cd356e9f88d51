"""The answer in plain words: who is least biased, who is indistinguishable, and what to do about it."""

from collections.abc import Collection, Sequence

import pandas as pd

from forsooth.attributions import METHODS
from forsooth.frames import only, without
from forsooth.records import Facts
from forsooth.report.promises import broken_promises, with_word
from forsooth.scores.convergence import UNCONVERGED, not_converged
from forsooth.stats.differences import enough_for_pairs
from forsooth.user.bias.subject import Subject
from forsooth.wording import text_of

SAME = 1e-5  # M_bias below which a map differs from the Shapley values by rounding alone
# They hide parts of the input, and give exact Shapley values where they play all coalitions: they are the anchor.
PLAYERS_OF_COALITIONS = {method.name for method in METHODS if method.hides and method.promise}
FEW = 20  # inputs from which intervals say something of other inputs


def summary(subject: Subject, table: pd.DataFrame, noise: Sequence[float], costly: Collection[str]) -> str:
    """One paragraph on what was asked, one on what came out, and the advice; the sentences are in words.jinja.

    table   of `BiasResult`
    noise   (n,) share of noise in the squared norm of the Shapley values, nan where they are all zero
    costly  methods that take many passes for a map
    """
    methods = only(table, kind="method").dropna(subset="m_bias")
    beats = methods[["beats_constant", "beats_random"]].astype(bool).all(axis=1)
    winners = methods[beats]
    losers = methods[~beats]
    promises = broken_promises(table.set_index("method"))
    best = first_group(winners)
    cheaper: list[str] = []
    if set(best) <= set(costly):
        cheaper = first_group(without(winners, method=costly))
    rivals = int(table["group"].ne("").sum())  # methods and nulls that are compared with each other
    return text_of(
        __package__,
        "words.jinja",
        subject=subject,
        few=FEW,
        needed=enough_for_pairs(rivals),
        rivals=rivals,
        methods=methods.to_dict("records"),
        tied=first_group(methods)[1:],
        winners=winners["method"].tolist(),
        losers=losers["method"].tolist(),
        unbeaten=unbeaten(losers),
        best_of_winners=with_word(best, promises),
        cheaper=with_word(cheaper, promises),
        floor=only(table, kind="anchor")["m_bias"].max(),
        promises=promises,
        same=only(methods[methods["m_bias"].lt(SAME)], method=PLAYERS_OF_COALITIONS)["method"].tolist(),
        **on_noise(subject, pd.Series(noise, dtype=float)),
    )


def on_noise(subject: Subject, noise: "pd.Series[float]") -> Facts:
    """How much of the Shapley values is noise, (n,): what the template says of it."""
    known = noise.dropna()
    rough = known[known.ge(UNCONVERGED)]
    unconverged = ""
    if len(rough) and not subject.exact:
        unconverged = not_converged(float(rough.median()), int(subject.request.permutations))
    return {
        "inputs": len(noise),
        "scored": len(known),
        "rough": len(rough),
        "unconverged": unconverged,
        "noisy": not subject.exact and known.median() >= UNCONVERGED,
    }


def first_group(methods: pd.DataFrame) -> list[str]:
    """The names of those in the tie group of the first."""
    return list(methods["method"][methods["group"].isin(methods["group"][:1])])


def unbeaten(losers: pd.DataFrame) -> str:
    """The null that none of them beats, or both where some fail at one and some at the other."""
    for null in ("constant", "random"):
        if not losers[f"beats_{null}"].astype(bool).any():
            return f"a {null}"
    return "a constant or a random"
