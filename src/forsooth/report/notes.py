"""What looks odd on a board and is none, in words that stand below it."""

from collections.abc import Iterator, Mapping

import numpy as np
from pandas import DataFrame

from forsooth.report.aggregate import Results
from forsooth.report.medians import Medians
from forsooth.wording import agreeing, joined, share

# pairs whose maps are equal by their definitions, where that holds
EQUAL_BY_DEFINITION: Mapping[frozenset[str], str] = {
    frozenset({"lrp", "gradient_x_input"}): (
        "on a network of ReLUs without biases, LRP with ε near zero is gradient × input [ancona2018towards]"
    ),
    frozenset({"deep_lift", "gradient_x_input"}): (
        "on a network of ReLUs without biases and a baseline of zeros, DeepLIFT's Rescale rule is gradient × input "
        "[ancona2018towards]"
    ),
    frozenset({"deep_lift", "lrp"}): (
        "on a network of ReLUs without biases and a baseline of zeros, both are gradient × input [ancona2018towards]"
    ),
    frozenset({"deep_lift", "deep_shap_zero"}): "Deep SHAP with a baseline of zeros alone is DeepLIFT",
    frozenset({"gradient", "saliency"}): "the score reads |attribution|, and saliency is the gradient's absolute value",
}
ANY_PAIR = "wherever this score looks, their maps are the same"
LARGE_GAP = 0.05  # of a promised sum, from which the gap is explained
WHY = {
    "conserve": "relevance that biases, or a stabiliser ε, take on the way down is missing from its sum",
    "complete": "its integral or its sample is too coarse for this model, or a layer breaks its rule",
    "complete to background": "its sample of the background is small, or a layer breaks its rule",
}


def notes(results: Results, table: Medians, board: DataFrame) -> list[str]:
    """Sentences for below the board of one score."""
    return [*letters(board), *_twins(table), *_gaps(results, board), *_spread(board), *_missed(board)]


def letters(board: DataFrame) -> Iterator[str]:
    """Why methods share a letter though the interval of one lies apart from that of the letter's first."""
    ranked = board[board["group"].ne("")]
    first = ranked.groupby("group")[["low", "high"]].transform("first")
    apart = ranked["low"].gt(first["high"]) | ranked["high"].lt(first["low"])
    if apart.any():
        yield (
            "Methods share a letter though their intervals lie apart: an interval is of one score alone, a letter "
            "holds for all pairs at once, and for other samples and trainings. With more of these they may part."
        )


def _twins(table: Medians) -> Iterator[str]:
    """Methods that have the same median in every panel, each pair once; nulls are left out."""
    own = np.flatnonzero(~table.null)
    for place, one in enumerate(own):
        for other in own[place + 1 :]:
            if np.array_equal(table.value[:, one], table.value[:, other], equal_nan=True):
                yield _twin_words(table.methods[one], table.methods[other])


def _twin_words(one: str, other: str) -> str:
    reason = EQUAL_BY_DEFINITION.get(frozenset({one, other}), ANY_PAIR)
    return f"{one} and {other} have the same score in every panel. That is no error: {reason}."


def _gaps(results: Results, board: DataFrame) -> Iterator[str]:
    """Why a method that promises a sum misses it by much."""
    for line in board[board["gap"].gt(LARGE_GAP)].to_dict("records"):
        promise = results.run["methods"].get(line["method"], {}).get("promise")
        if promise in WHY:
            yield (
                f"{line['method']} promises a sum ({promise}) and misses it on {share(line['broken'])} of samples, by "
                f"{line['gap']:.2g} at the median: {WHY[promise]}."
            )


def _spread(board: DataFrame) -> Iterator[str]:
    own = board[~board["null"]]
    if len(own) and own["spread"].isna().all():
        yield "The column spread is empty: with one training per panel, nothing is known of how trainings differ."


def _missed(board: DataFrame) -> Iterator[str]:
    missed = board[board["panels"].lt(board["of"])]["method"].tolist()
    if missed:
        yield (
            f"{joined(missed)} took part in some panels only and so {agreeing(missed, 'stands', 'stand')} at the end: "
            f"{agreeing(missed, 'its', 'their')} score is a mean over other panels than that of the rest. What took no "
            "part, and why, is below."
        )
