"""The table of a dry run: shares of attribution on the artefact, with intervals, beside maps that ignore the model."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from pandas import DataFrame

from forsooth.counted import counted
from forsooth.frames import only
from forsooth.records import Facts, Line, UsageError
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


Key = tuple[str, str, str]  # artefact, presence and method


@dataclass(frozen=True)
class Shares:
    """Shares of all methods on the images with each artefact, and without.

    means    key -> mean share over images, and half its 95 % interval
    pvalues  key and null -> p-value that the method is better
    """

    means: dict[Key, tuple[float, float]] = field(default_factory=dict)
    pvalues: dict[tuple[Key, str], float] = field(default_factory=dict)

    def unbeaten(self, key: Key) -> list[str]:
        """Nulls that the method is not clearly better than, the strongest first."""
        left = [null for (own, null), pvalue in self.pvalues.items() if own == key and not pvalue <= LEVEL]
        return sorted(left, key=lambda null: -self.means[*key[:2], null][0])


def tabled(rows: DataFrame, kinds: Mapping[str, str]) -> DataFrame:
    """The table of `DryRun` from the rows of all cells; kinds: method -> method, null or oracle, in order."""
    shares = shares_of(rows, kinds)
    lines = []
    for artefact, own in rows.groupby("manipulation", sort=False):
        for method, kind in kinds.items():
            line = {"artefact": artefact, **model_facts(own), "method": method, "kind": kind}
            lines.append({**line, **line_of(only(own, method=method, metric="attr"), line, shares)})
    table = DataFrame(lines).join(gap_table(rows), on="method")
    random = only(table, method="random").set_index("artefact")["present"]
    findings = [finding(line) for line in table.to_dict("records")]
    return table.assign(random=table["artefact"].map(random), finding=findings)


def model_facts(rows: DataFrame) -> dict[str, float]:
    """What the training of one artefact came to, from its rows."""
    trained = only(rows, metric="accuracy").iloc[0]
    return {"accuracy": trained["value"], "p_star": trained["p_star"], "region": trained["er"]}


def shares_of(rows: DataFrame, kinds: Mapping[str, str]) -> Shares:
    """Shares on the images of each artefact, the same images for all methods.

    p-values of methods against nulls are corrected as one family over all artefacts.
    """
    scored = counted(only(rows[rows["sample"].ge(0)], metric="attr"), ATTR)
    shares = Shares()
    for (artefact, presence), own in scored.groupby(["manipulation", "presence"], sort=False):
        wide = own.pivot(index="sample", columns="method", values="value")
        names = [name for name in kinds if name in wide]
        mean, half, better = better_means(wide[names].to_numpy().T)
        keys = [(artefact, presence, name) for name in names]
        shares.means.update(zip(keys, zip(mean, half, strict=True), strict=True))
        pairs = zip(itertools.product(keys, names), better.ravel().tolist(), strict=True)
        shares.pvalues.update({(key, two): p for (key, two), p in pairs if kinds[two] == "null" and key[2] != two})
    claims = {pair: pvalue for pair, pvalue in shares.pvalues.items() if kinds[pair[0][2]] == "method"}
    shares.pvalues.update(holm_by_name(claims))
    return shares


def line_of(rows: DataFrame, about: Line, shares: Shares) -> Facts:
    """What one method scored on one artefact (see `about`), with it and without, from its rows."""
    took_part = counted(rows, ATTR)
    usable = only(took_part, presence="with", failed=False)
    line: Facts = {"status": "ok", "message": "", "failed": took_part["failed"].mean()}
    if took_part["failed"].all():  # not one map
        line = {"status": rows["status"].iloc[0], "message": rows["message"].iloc[0], "failed": 1.0}
        shares = Shares()
    line["present_defined"] = usable["value"].mean()
    for presence, prefix in PREFIXES.items():
        line |= interval(shares, (about["artefact"], presence, about["method"]), prefix)
    return line


def interval(shares: Shares, key: Key, prefix: str) -> Facts:
    """The columns of one presence."""
    mean, half = shares.means.get(key, (np.nan, np.nan))
    return {
        prefix.rstrip("_") or "present": mean,
        f"{prefix}low": np.maximum(0.0, mean - half),
        f"{prefix}high": np.minimum(1.0, mean + half),
        f"{prefix}unbeaten": ", ".join(shares.unbeaten(key)),
    }


def finding(line: Line) -> str:
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
