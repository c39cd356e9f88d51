"""The answer: a table with intervals, who is indistinguishable, and all rows behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from torch import Tensor

from forsooth.frames import only
from forsooth.games.shapley import Estimate
from forsooth.records import SCORED, Cell, Facts, Line, Row, Tensors
from forsooth.report.promises import gap_table
from forsooth.scores import bias
from forsooth.stats.boards import compared_means, tie_groups
from forsooth.stats.failures import Scores, filled
from forsooth.stats.panels import Floats
from forsooth.suites import explain
from forsooth.suites.bias import anchor as anchors
from forsooth.user.pages import PagedResult
from forsooth.user.results import written
from forsooth.wording import share, significant

END = "shapley"  # the other end of the scale: Shapley values of another seed, or the anchor itself where it is exact
NULLS = ("constant", "random")
SHOWN = ("method", "m_bias", "low", "high", "relative", "worst", "group", "failed", "status")
NUMBERS = ("m_bias", "low", "high", "relative")
ROWS = ("method", "sample", "target", "end", "fraction", "metric", "value", "error", "players", "noise")
Pairs = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class BiasResult(PagedResult):
    """How far every method is off, and what follows.

    table  one line per method, least biased first:
           m_bias     mean over the inputs of the mean over the rows; a row is the top or the bottom 10, 30, 50, 70 or
                      90 % of the players, as far as there are enough players
           low, high  95 % interval of this method alone, Student's over the inputs, widened by the jackknife variance
                      of the sampled Shapley values: rather too wide than too narrow; none of one input
           relative   m_bias times the root of the number of players: 1 is what a constant map says of each player
           m_bias_split  the same without the noise in the norm of the Shapley values, where that is defined
           worst      the row with the largest mean over the inputs
           group      the same letter: indistinguishable from the first of the group; paired differences, all pairs
                      corrected as one family, so that of equal methods any two differ in at most 5 % of runs
           beats_constant, beats_random  whether it is clearly below that null, in the same family
           failed     share of the inputs without a usable map; each counts as the worse of the two nulls
           gap, broken  median gap of a method that promises a sum, and share of the inputs where it misses by over 0.1
           kind       method, null (ignores the model) or anchor (the Shapley values themselves, sampled once more)
    rows   one line per method, input, end, fraction and metric
    words  the same in plain words; the last sentence says what to do
    """

    title: ClassVar[str] = "Bias of explanations"

    def shown(self) -> pd.DataFrame:
        """The table for a reader: three digits, and empty where there is no number."""
        return written(self.table, SHOWN, {**dict.fromkeys(NUMBERS, significant), "failed": share})


@dataclass(frozen=True)
class Judged:
    """What there is to judge.

    anchor   the Shapley values
    noise    (n,) share of noise in their squared norm, nan where they are all zero
    target   (n,) the explained classes
    answers  method -> its cell, with `players` (n, players) where it gave maps, and status and message
    kinds    method -> method, null or anchor
    """

    anchor: Estimate
    noise: list[float]
    target: Tensor
    answers: Mapping[str, Cell]
    kinds: Mapping[str, str]

    @property
    def maps(self) -> Tensors:
        """method -> (n, players), of those that gave maps."""
        return {name: cell.tensors["players"] for name, cell in self.answers.items() if "players" in cell.tensors}

    @property
    def silent(self) -> dict[str, Line]:
        """method -> status and message, of those that gave none."""
        return {name: cell.facts for name, cell in self.answers.items() if "players" not in cell.tensors}


def tabled(judged: Judged) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table and the rows of `BiasResult`."""
    lines = compared(judged.maps, judged.anchor).to_dict("records")
    for name, facts in judged.silent.items():
        lines.append({"method": name, "group": "", "worst": "", "status": facts["status"], "message": facts["message"]})
    rows = all_rows(judged)
    table = pd.DataFrame(lines)
    table["kind"] = table["method"].map(judged.kinds)
    split = only(rows, metric="m_bias_split", status=SCORED).groupby("method")["value"].mean()
    table = table.join(split.rename("m_bias_split"), on="method").join(gap_table(rows), on="method")
    return table, rows[[*ROWS, "status", "message"]]


def all_rows(judged: Judged) -> pd.DataFrame:
    """One line per method, input, end, fraction and metric, and one per input of a method that gave no maps."""
    rows: list[Row] = []
    for name, attribution in judged.maps.items():
        rows += rows_of(template(name), attribution, judged.anchor, judged.answers[name])
    for name, facts in judged.silent.items():
        rows += explain.no_scores(template(name), ["m_bias"], range(len(judged.target)), facts)
    frame = pd.DataFrame([row.flat() for row in rows])
    samples = frame["sample"].to_numpy()
    return frame.assign(target=judged.target.cpu().numpy()[samples], noise=np.array(judged.noise)[samples])


def template(name: str) -> Row:
    """What all rows of a method share."""
    return Row("bias", "scores", method=name, columns={"end": ""})


def rows_of(template: Row, attribution: Tensor, anchor: Estimate, answer: Cell) -> list[Row]:
    """Rows of a method that gave attribution (n, players), and of its gaps where it promises a sum."""
    rows = anchors.biases(template, attribution, anchor, ends=bias.ENDS, fractions=bias.FRACTIONS, ties="share")
    return explain.promise_rows(template, rows, answer.tensors.get("gap"), range(len(attribution)))


def compared(maps: Tensors, anchor: Estimate) -> pd.DataFrame:
    """A line for every method that gave maps (n, players), least biased first."""
    names = list(maps)
    nulls = [names.index(name) for name in NULLS]
    count = anchor.values.shape[1]
    pairs = [(end, fraction) for end, fraction in bias.PAIRS if not bias.too_few(count, fraction)]
    by_pair, left = (part.numpy() for part in bias.replicates(list(maps.values()), anchor, pairs=pairs))
    scores = filled(by_pair.mean(2), left, nulls=nulls)
    rivals = np.isfinite(scores.mean) & (np.array(names) != END)
    parts = scores.sampling_parts(anchor.sizes.numpy())
    half, differ = compared_means(scores.values, parts, rivals=rivals, scale=count**0.5)
    table = pd.DataFrame(
        {
            "method": names,
            "group": tie_groups(-scores.mean, differ, ranked=rivals),
            **states(scores, maps),
            **intervals(scores.mean, half, scale=count**0.5),
            "worst": [worst(own, pairs) for own in by_pair],
        }
    )
    for null in nulls:
        table[f"beats_{names[null]}"] = differ[:, null] & (scores.mean < scores.mean[null])
    return table.iloc[np.argsort(scores.mean, kind="stable")]


def intervals(mean: Floats, half: Floats, *, scale: float) -> dict[str, Floats]:
    """The columns on the means (m,) with half their intervals (m,); `relative` is the mean times the scale."""
    return {"m_bias": mean, "low": np.maximum(0.0, mean - half), "high": mean + half, "relative": mean * scale}


def states(scores: Scores, maps: Tensors) -> Facts:
    """The columns on failures: their share, and why a method has no score where it has none."""
    lost = scores.failed == 1
    anchored = scores.values.shape[1] > 0
    reasons = [why_nothing(own, anchored=anchored) for own in maps.values()]
    return {
        "failed": scores.failed,
        "status": np.where(lost, "undefined", "ok"),
        "message": np.where(lost, reasons, ""),
    }


def worst(by_pair: Floats, pairs: Pairs) -> str:
    """The row with the largest mean over the inputs that have one, (n, pairs)."""
    usable = np.isfinite(by_pair).all(1)
    if not usable.any():
        return ""
    end, fraction = pairs[int(by_pair[usable].mean(0).argmax())]
    return f"{end} {share(fraction)}"


def why_nothing(attribution: Tensor, *, anchored: bool) -> str:
    if not anchored:
        return "all Shapley values are zero"
    if bool((attribution == 0).all()):
        return "every map is zero"
    return "no map is usable: zero, nan or infinite"
