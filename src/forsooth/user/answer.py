"""The answer to the user: a table with intervals, who cannot be told apart, and all rows behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from forsooth.games.shapley import Estimate
from forsooth.records import SCORED, Cell, Row
from forsooth.report.promises import gap_table
from forsooth.scores import bias
from forsooth.stats.differences import LEVEL, Bools, differing, letters
from forsooth.stats.panels import Floats
from forsooth.stats.spread import half_widths, pvalues, spread_of_means
from forsooth.suites import explain
from forsooth.suites.bias import anchor as anchors
from forsooth.user import words
from forsooth.user.subject import Subject

END = "shapley"  # the other end of the scale: Shapley values of another seed, or the anchor itself where it is exact
NULLS = ("constant", "random")
SHOWN = ("method", "m_bias", "low", "high", "relative", "worst", "group", "failed", "status")
ROWS = ("method", "sample", "target", "end", "fraction", "metric", "value", "error", "players", "noise")
Pairs = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class BiasResult:
    """How far every method is off, and what follows.

    table  one line per method, least biased first:
           m_bias     mean over the inputs of the mean over the rows; a row is the top or the bottom 10, 30, 50, 70 or
                      90 % of the players, as far as there are enough players
           low, high  95 % interval of this method alone, Student's over the inputs, widened by the jackknife variance
                      of the sampled Shapley values: rather too wide than too narrow; none of one input
           relative   m_bias times the root of the number of players: 1 is what a constant map says of each player
           m_bias_split  the same without the noise in the norm of the Shapley values, where that is defined
           worst      the row with the largest mean over the inputs
           group      the same letter: cannot be told apart from the first of the group; paired differences, all pairs
                      corrected as one family, so that of equal methods any two differ in at most 5 % of runs
           beats_constant, beats_random  whether it is clearly below that null, in the same family
           failed     share of the inputs without a usable map; each counts as the worse of the two nulls
           gap, broken  median gap of a method that promises a sum, and share of the inputs where it misses by over 0.1
           kind       method, null (ignores the model) or anchor (the Shapley values themselves, sampled once more)
    rows   one line per method, input, end, fraction and metric
    words  the same in plain words; the last sentence says what to do
    """

    table: pd.DataFrame
    rows: pd.DataFrame
    words: str

    def __str__(self) -> str:
        return f"{self.shown().to_string(index=False)}\n\n{self.words}"

    def shown(self) -> pd.DataFrame:
        """The table for a reader: three digits, and empty where there is no number."""
        shown = self.table[list(SHOWN)].copy()
        for name in ("m_bias", "low", "high", "relative"):
            shown[name] = [words.short(value) if value == value else "" for value in self.table[name]]
        shown["failed"] = [f"{value:.0%}" if value == value else "" for value in self.table["failed"]]
        told = zip(self.table["status"], self.table["message"], strict=True)
        shown["status"] = [f"{status}: {message}" if message else status for status, message in told]
        return shown

    def markdown(self) -> str:
        """The table and the words as a page."""
        lines = [list(SHOWN), ["---"] * len(SHOWN), *self.shown().to_numpy().tolist()]
        body = [f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |" for line in lines]
        return "\n".join(["# Bias of explanations", "", *body, "", self.words, ""])


def judged(
    about: Subject, done: Mapping[Any, Cell], skipped: Mapping[str, str], names: Mapping[str, bool]
) -> BiasResult:
    """The answer from the cells of all pieces. `names` says for each method whether it ignores the model."""
    anchor, _, noise = anchors.joined([cell for (role, _), cell in done.items() if role == "anchor"])
    noise = [share if bool(own.any()) else float("nan") for share, own in zip(noise, anchor.values, strict=True)]
    again = [cell for (role, _), cell in done.items() if role == END]
    made = {name: done["method", name] for name in names if name not in skipped}
    made[END] = Cell(tensors={"players": anchors.joined(again)[0].values if again else anchor.values})
    maps = {name: cell.tensors["players"] for name, cell in made.items() if "players" in cell.tensors}
    kinds = {name: "null" if null else "method" for name, null in names.items()} | {END: "anchor"}
    silent = {name: (cell.facts["status"], cell.facts["message"]) for name, cell in made.items() if name not in maps}
    silent |= {name: ("skipped", reason) for name, reason in skipped.items()}
    lines = compared(maps, anchor)
    lines += [
        {"method": name, "group": "", "worst": "", "status": state, "message": why}
        for name, (state, why) in silent.items()
    ]
    rows = [row for name, a in maps.items() for row in rows_of(name, a, anchor)]
    rows = [row for name in maps for row in checked(name, made[name], [row for row in rows if row["method"] == name])]
    rows += [row for name, (status, why) in silent.items() for row in no_rows(name, status, why, len(about.x))]
    frame = pd.DataFrame(
        [{**row, "target": int(about.target[row["sample"]]), "noise": noise[row["sample"]]} for row in rows]
    )
    table = pd.DataFrame(lines).assign(kind=lambda made: made["method"].map(kinds))
    split = frame[frame["metric"].eq("m_bias_split") & frame["status"].isin(SCORED)].groupby("method")["value"].mean()
    table = table.join(split.rename("m_bias_split"), on="method").join(gap_table(frame), on="method")
    return BiasResult(table=table, rows=frame[[*ROWS, "status", "message"]], words=words.told(about, table, noise))


def rows_of(name: str, attribution: Tensor, anchor: Estimate) -> list[dict[str, Any]]:
    """Rows of a method that gave maps, attribution (n, players): one per input, end, fraction and metric."""
    template = Row("bias", "scores", method=name)
    rows = anchors.biases(template, attribution, anchor, ends=bias.ENDS, fractions=bias.FRACTIONS, ties="share")
    return [row.flat() for row in rows]


def checked(name: str, said: Cell, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a method, with those of its gaps where it promises a sum."""
    gap = said.tensors.get("gap")
    samples = range(0 if gap is None else len(gap))
    return explain.with_gaps(rows, gap, samples, method=name, end="")


def no_rows(name: str, status: str, message: str, inputs: int) -> list[dict[str, Any]]:
    """A row per input for a method that gave no maps."""
    told = {"method": name, "metric": "m_bias", "value": float("nan"), "status": status, "message": message}
    return [{**told, "sample": sample, "end": ""} for sample in range(inputs)]


@dataclass(frozen=True)
class Held:
    """Methods held against the anchor, (m, n, rows) and, without each group of permutations, (m, n, g)."""

    by_row: Floats
    left: Floats


def hold(maps: Sequence[Tensor], shapley: Estimate, pairs: Pairs) -> Held:
    """M_bias (equation 3) of maps (n, players) in every row, and its mean over rows without each group."""
    square, squares = bias.squared_norms(shapley, "plain")
    by_row, left = [], []
    for attribution in maps:
        a, own, others = bias.unit(attribution), [], []
        for end, fraction in pairs:
            s = bias.chosen(attribution, fraction=fraction, end=end)
            first = (s * a).sum(1) / s.sum(1)
            mean, means = bias.means_over(s, shapley)
            own.append((first - bias.over_root(mean, square)).abs())
            others.append((first[:, None] - bias.over_root(means, squares)).abs())
        by_row.append(torch.stack(own, dim=1).numpy())
        left.append(torch.stack(others).mean(0).numpy())
    return Held(np.stack(by_row), np.stack(left))


def compared(maps: Mapping[str, Tensor], anchor: Estimate) -> list[dict[str, Any]]:
    """A line for every method that gave maps (n, players), least biased first."""
    names, count = list(maps), anchor.values.shape[1]
    pairs = [(end, fraction) for end, fraction in bias.PAIRS if not bias.too_few(count, fraction)]
    held = hold(list(maps.values()), anchor, pairs)
    nulls = [names.index(name) for name in NULLS]
    values = held.by_row.mean(2)  # (m, n)
    usable = np.isfinite(values[nulls]).all(0)  # the others have no anchor: all their Shapley values are zero
    bad = ~np.isfinite(values[:, usable])
    failed = bad.mean(1) if usable.any() else np.ones(len(names))
    filled = np.where(bad, values[nulls][:, usable].max(0), values[:, usable])  # (m, usable)
    left = np.where(bad[..., None], held.left[nulls][:, usable].max(0), held.left[:, usable])
    mean = np.where(failed < 1, filled.sum(1) / max(1, usable.sum()), np.nan)
    parts = jackknifed(filled, left, anchor)
    half, differ = judged_pairs(filled, parts, rivals=np.isfinite(mean) & (np.array(names) != END), scale=count**0.5)
    lines = []
    for k in np.argsort(mean, kind="stable"):
        state = ("ok", "") if failed[k] < 1 else ("undefined", why_nothing(maps[names[k]], bool(usable.any())))
        line = {
            "method": names[k],
            "group": "",
            "failed": failed[k],
            "status": state[0],
            "message": state[1],
            "place": k,
        }
        own = {"m_bias": mean[k], "low": np.maximum(0.0, mean[k] - half[k]), "high": mean[k] + half[k]}
        own |= {"relative": mean[k] * count**0.5, "worst": worst(held.by_row[k], pairs)}
        lines.append({**line, **own})
    return lettered(lines, differ, nulls)


def judged_pairs(values: Floats, parts: Floats | None, *, rivals: Bools, scale: float) -> tuple[Floats, Bools]:
    """Half the interval of each mean (m,), nan of one input, and which rivals differ (m, m), all pairs one family.

    values  (m, n) of every method and input
    parts   (m, g) of `jackknifed`
    scale   times which values are relative: there a tolerance for rounding has sense
    """
    none = np.full(len(values), np.nan)
    if values.shape[1] == 0:
        return none, np.zeros((len(values), len(values)), dtype=bool)
    spread = spread_of_means(scale * values, None if parts is None else scale * parts)
    known = rivals[:, None] & rivals & ~np.eye(len(values), dtype=bool)
    found = np.where(known, pvalues(scale * values.mean(1), spread), np.nan)
    return half_widths(spread)[:-1, -1] / scale, differing(found, level=LEVEL)


def worst(by_row: Floats, pairs: Pairs) -> str:
    """The row with the largest mean over the inputs that have one, (n, rows)."""
    usable = np.isfinite(by_row).all(1)
    if not usable.any():
        return ""
    end, fraction = pairs[int(by_row[usable].mean(0).argmax())]
    return f"{end} {100 * fraction:g} %"


def why_nothing(attribution: Tensor, anchored: bool) -> str:
    if not anchored:
        return "all Shapley values are zero"
    return "every map is zero" if bool((attribution == 0).all()) else "no map is usable: zero, nan or infinite"


def lettered(lines: list[dict[str, Any]], differ: Bools, nulls: Sequence[int]) -> list[dict[str, Any]]:
    """The lines, in their order, with tie groups and whether they beat the nulls; the anchor is no rival."""
    rivals = [line for line in lines if line["m_bias"] == line["m_bias"] and line["method"] != END]
    places = [line["place"] for line in rivals]
    for line, letter in zip(rivals, letters(differ[np.ix_(places, places)]), strict=True):
        line["group"] = letter
    height = {line["place"]: line["m_bias"] for line in lines}
    for line in lines:
        own = line.pop("place")
        for name, null in zip(NULLS, nulls, strict=True):
            line[f"beats_{name}"] = bool(differ[own, null]) and height[own] < height[null]
    return lines


def jackknifed(values: Floats, left: Floats, anchor: Estimate) -> Floats | None:
    """What the sampling of the Shapley values does to the mean over inputs, the same permutations for all methods.

    values   (m, n) M_bias of every method and input
    left     (m, n, g) the same without each group of permutations
    returns  (m, g) parts of the delete-a-group jackknife (`scores.bias.jackknife`), whose squares sum to the variance
             of the mean; None where nothing was sampled

    All inputs walk the same permutations, so that this error does not average out over them. What is independent from
    input to input is counted twice, which makes the interval a little too wide.
    """
    if anchor.permutations == 0 or left.shape[2] < 2 or values.shape[1] == 0:
        return None
    ratio = (anchor.sizes.sum() / anchor.sizes).numpy()  # (g,)
    whole = values.mean(1, keepdims=True)  # (m, 1)
    without = left.mean(1)  # (m, g)
    pseudo = ratio * whole - (ratio - 1) * without
    centre = (pseudo / ratio).sum(1, keepdims=True)
    return np.asarray((pseudo - centre) / np.sqrt((ratio - 1) * len(ratio)))
