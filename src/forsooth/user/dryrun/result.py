"""The table of a dry run: shares of attribution on the artefact, with intervals, beside maps that ignore the model."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pandas import DataFrame

from forsooth.counted import counted
from forsooth.frames import only
from forsooth.records import Facts, UsageError
from forsooth.report.promises import gap_table
from forsooth.runs import write_page
from forsooth.scores.planted import ATTR
from forsooth.stats.boards import better_means
from forsooth.stats.claims import holm_by_name
from forsooth.stats.differences import LEVEL
from forsooth.user.results import Result, or_blank, with_messages
from forsooth.wording import share

HALFWAY = 0.5  # of the way from a random map to the oracle: who is surely beyond it shows the artefact
PREFIXES = {"with": "", "without": "absent_"}  # of the columns of each presence
SHOWN = ("artefact", "method", "present", "absent", "random", "finding", "status")
SHOWS = "shows it"
HINT = "a hint"
NOTHING = "nothing"


@dataclass(frozen=True)
class DryRun(Result):
    """What the planned methods make of artefacts that a model is known to use.

    table   one line per artefact and method, in the order asked; behind them the nulls and the oracle:
            present, low, high     mean share of |attribution| on the artefact's region over test images that have it,
                                   with Student's 95 % interval; an image without a usable map counts as 0
            absent, absent_low, absent_high  the same over images without it: there its absence tells the label
            region                 share of the image that the region takes: what a constant map scores
            random                 what random maps scored
            accuracy, p_star       of the model on test images, and what it could expect without the artefact
            finding                "shows it": clearly better than every null, and the interval lies beyond halfway from
                                   the region's share to 1; "a hint": clearly better than a random and a constant map;
                                   "nothing": not even that
            unbeaten, absent_unbeaten  nulls that the method does not clearly beat, the strongest first; "clearly" is
                                   corrected over all methods, nulls and artefacts of the table
            kind                   method, null (ignores the model) or oracle (is told the region)
            failed                 share of explained images without a usable map
            gap, broken            median gap of a method that promises a sum, and share of images where it misses it
            present_defined        mean share over the others that have the artefact
            status, message        ok, or why there is no number
    rows    one row per image and metric
    words   the same in plain words; the last paragraph says whom to trust
    folder  the run: report.html, scores.parquet, dryrun.csv, dryrun.md …
    """

    title: ClassVar[str] = "Dry run"
    folder: Path

    def report(self) -> Path:
        """Write the page again and return its path."""
        return write_page([self.folder])

    def shown(self) -> DataFrame:
        """The table for a reader: per cent with intervals, and empty where there is no number."""
        shown = self.table.assign(
            present=[span(*line) for line in self.table[["present", "low", "high"]].to_numpy()],
            absent=[span(*line) for line in self.table[["absent", "absent_low", "absent_high"]].to_numpy()],
            random=or_blank(self.table["random"], share),
            status=with_messages(self.table),
        )
        explained = self.table.groupby("artefact")["present"].transform("count") > 0
        shown["method"] = shown["method"].where(explained, "")
        shown["status"] = shown["status"].where(explained, "not explained")
        return shown[explained | ~shown.duplicated("artefact")][list(SHOWN)]


@dataclass(frozen=True)
class Shares:
    """Shares of all methods on images with an artefact, or without.

    mean     method -> mean share over images
    half     method -> half its 95 % interval
    pvalues  method and null -> p-value that the method is better
    """

    mean: Mapping[str, float]
    half: Mapping[str, float]
    pvalues: Mapping[tuple[str, str], float]

    def unbeaten(self, method: str) -> list[str]:
        """Nulls that the method is not clearly better than, the strongest first."""
        left = [null for (one, null), pvalue in self.pvalues.items() if one == method and not pvalue <= LEVEL]
        return sorted(left, key=lambda null: -self.mean[null])


NO_SHARES = Shares({}, {}, {})
Key = tuple[str, str]  # artefact and presence


def tabled(rows: DataFrame, kinds: Mapping[str, str]) -> DataFrame:
    """The table of `DryRun` from the rows of all cells; kinds: method -> method, null or oracle, in order."""
    artefacts = dict(list(rows.groupby("manipulation", sort=False)))
    shares = {key: shares_of(artefacts[key[0]], key[1], kinds) for key in itertools.product(artefacts, PREFIXES)}
    shares = corrected(shares, kinds)
    lines = []
    for (artefact, own), method in itertools.product(artefacts.items(), kinds):
        line = {"artefact": artefact, **model_facts(own), "method": method, "kind": kinds[method]}
        by_presence = {presence: shares[artefact, presence] for presence in PREFIXES}
        lines.append({**line, **line_of(only(own, method=method), method, by_presence)})
    table = DataFrame(lines).join(gap_table(rows), on="method")
    random = only(table, method="random").set_index("artefact")["present"]
    table = table.assign(random=table["artefact"].map(random))
    return table.assign(finding=[finding(line) for line in table.to_dict("records")])


def model_facts(rows: DataFrame) -> dict[str, float]:
    """What the training of one artefact came to, from its rows."""
    trained = only(rows, metric="accuracy").iloc[0]
    return {"accuracy": trained["value"], "p_star": trained["p_star"], "region": trained["er"]}


def shares_of(rows: DataFrame, presence: str, kinds: Mapping[str, str]) -> Shares:
    """Shares on images of one artefact, the same images for all methods; p-values are not yet corrected."""
    scored = counted(only(rows[rows["sample"].ge(0)], metric="attr", presence=presence), ATTR)
    if scored.empty:
        return NO_SHARES
    wide = scored.pivot(index="sample", columns="method", values="value")
    names = [name for name in kinds if name in wide]
    mean, half, better = better_means(wide[names].to_numpy().T)
    pvalues = zip(itertools.product(names, repeat=2), better.ravel().tolist(), strict=True)
    return Shares(
        mean=dict(zip(names, mean, strict=True)),
        half=dict(zip(names, half, strict=True)),
        pvalues={(one, two): pvalue for (one, two), pvalue in pvalues if kinds[two] == "null" and one != two},
    )


def corrected(shares: Mapping[Key, Shares], kinds: Mapping[str, str]) -> dict[Key, Shares]:
    """The same, p-values of methods against nulls corrected as one family over all artefacts."""
    claims = {}
    for key, own in shares.items():
        for pair, pvalue in own.pvalues.items():
            if kinds[pair[0]] == "method":
                claims[key, pair] = pvalue
    adjusted = holm_by_name(claims)
    by_key = {}
    for key, own in shares.items():
        pvalues = {pair: adjusted.get((key, pair), pvalue) for pair, pvalue in own.pvalues.items()}
        by_key[key] = Shares(own.mean, own.half, pvalues)
    return by_key


def line_of(rows: DataFrame, method: str, shares: Mapping[str, Shares]) -> Facts:
    """What one method scored on one artefact, with it and without, from its rows."""
    rows = only(rows, metric="attr")
    took_part = counted(rows, ATTR)
    usable = only(took_part, presence="with", failed=False)
    line: Facts = {"status": "ok", "message": "", "failed": took_part["failed"].mean()}
    if took_part["failed"].all():  # not one map
        line = {"status": rows["status"].iloc[0], "message": rows["message"].iloc[0], "failed": 1.0}
        shares = dict.fromkeys(PREFIXES, NO_SHARES)
    line["present_defined"] = usable["value"].mean()
    for presence, prefix in PREFIXES.items():
        line |= interval(shares[presence], method, prefix)
    return line


def interval(shares: Shares, method: str, prefix: str) -> Facts:
    """The columns of one presence."""
    mean = shares.mean.get(method, np.nan)
    half = shares.half.get(method, np.nan)
    return {
        prefix.rstrip("_") or "present": mean,
        f"{prefix}low": np.maximum(0.0, mean - half),
        f"{prefix}high": np.minimum(1.0, mean + half),
        f"{prefix}unbeaten": ", ".join(shares.unbeaten(method)),
    }


def finding(line: Mapping[str, Any]) -> str:
    """How well a method shows the artefact where it is present; empty for nulls and where there is no number."""
    if line["kind"] != "method" or line["present"] != line["present"]:
        return ""
    if by_chance(line["unbeaten"]):
        return NOTHING
    region = line["region"]
    if line["unbeaten"] or region >= 1 or (line["low"] - region) / (1 - region) < HALFWAY:
        return HINT
    return SHOWS


def by_chance(unbeaten: str) -> bool:
    """Whether a map that says nothing is among the unbeaten."""
    return bool({"random", "constant"} & set(unbeaten.split(", ")))


def demand_a_model(rows: DataFrame) -> None:
    """UsageError where every training failed: there is nothing to show but the reason."""
    trained = only(rows, metric="accuracy")
    if trained["status"].eq("error").all():
        raise UsageError(f"`train` must give a model to explain, but {trained['message'].iloc[0]}")


def span(value: float, low: float, high: float) -> str:
    """
    >>> span(0.612, 0.58, 0.641), span(float("nan"), 0, 0)
    ('61 % [58, 64]', '')
    """
    if value != value:
        return ""
    return f"{share(value)} [{100 * low:.0f}, {100 * high:.0f}]"
