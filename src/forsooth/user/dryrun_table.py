"""The table of a dry run: shares of attribution on the artefact, with intervals, beside maps that ignore the model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from forsooth.counted import counted
from forsooth.records import UsageError
from forsooth.report.promises import gap_table
from forsooth.runs import write_page
from forsooth.scores.planted import ATTR
from forsooth.stats import holm
from forsooth.stats.differences import LEVEL
from forsooth.stats.spread import half_widths, pvalues, spread_of_means

HALFWAY = 0.5  # of the way from a random map to the oracle: who is surely beyond it shows the artefact
PRESENCES = ("with", "without")
SHOWN = ("artefact", "method", "present", "absent", "random", "finding", "status")
SHOWS, HINT, NOTHING = "shows it", "a hint", "nothing"


@dataclass(frozen=True)
class DryRun:
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

    table: pd.DataFrame
    rows: pd.DataFrame
    words: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.shown().to_string(index=False)}\n\n{self.words}"

    def report(self) -> Path:
        """Write the page anew and return its path."""
        return write_page([self.folder])

    def shown(self) -> pd.DataFrame:
        """The table for a reader: per cent with intervals, and empty where there is no number."""
        shown = self.table.assign(
            present=[span(*line) for line in self.table[["present", "low", "high"]].to_numpy()],
            absent=[span(*line) for line in self.table[["absent", "absent_low", "absent_high"]].to_numpy()],
            random=[percent(value) for value in self.table["random"]],
            status=[f"{s}: {m}" if m else s for s, m in self.table[["status", "message"]].to_numpy()],
        )
        explained = self.table.groupby("artefact")["present"].transform("count") > 0
        shown["method"] = shown["method"].where(explained, "")
        shown["status"] = shown["status"].where(explained, "not explained")
        return shown[explained | ~shown.duplicated("artefact")][list(SHOWN)]

    def markdown(self) -> str:
        """The table and the words as a page."""
        lines = [list(SHOWN), ["---"] * len(SHOWN), *self.shown().to_numpy().tolist()]
        body = [f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |" for line in lines]
        return "\n".join(["# Dry run", "", *body, "", self.words, ""])


@dataclass(frozen=True)
class Shares:
    """Shares of all methods on images with an artefact, or without.

    mean    method -> mean share over images
    half    method -> half its 95 % interval
    beaten  method -> null -> p-value that the method is no better
    """

    mean: Mapping[str, float]
    half: Mapping[str, float]
    beaten: Mapping[str, Mapping[str, float]]


Key = tuple[str, str]  # artefact and presence


def tabled(rows: pd.DataFrame, kinds: Mapping[str, str]) -> pd.DataFrame:
    """The table of `DryRun` from the rows of all cells; kinds: method -> method, null or oracle, in order."""
    artefacts = dict(list(rows.groupby("manipulation", sort=False)))
    shares = {
        (name, presence): shares_of(own, presence, kinds) for name, own in artefacts.items() for presence in PRESENCES
    }
    shares = corrected(shares, kinds)
    lines = []
    for artefact, own in artefacts.items():
        trained = own[own["metric"].eq("accuracy")].iloc[0]
        here = {
            "artefact": artefact,
            "accuracy": trained["value"],
            "p_star": trained["p_star"],
            "region": trained["er"],
        }
        known = {presence: shares[artefact, presence] for presence in PRESENCES}
        lines += [{**here, **line(method, kind, own, known)} for method, kind in kinds.items()]
    table = pd.DataFrame(lines)
    blind = table[table["method"].eq("random")].set_index("artefact")["present"]
    table = table.join(gap_table(rows), on="method")
    table = table.assign(random=table["artefact"].map(blind))
    return table.assign(finding=[finding(one) for one in table.to_dict("records")])


def shares_of(own: pd.DataFrame, presence: str, kinds: Mapping[str, str]) -> Shares:
    """Shares on images of one artefact, the same images for all methods; p-values are not yet corrected."""
    scored = own[own["metric"].eq("attr") & own["presence"].eq(presence) & own["sample"].ge(0)]
    scored = counted(scored, ATTR)
    if scored.empty:
        return Shares({}, {}, {})
    wide = scored.pivot(index="sample", columns="method", values="value")
    names = [name for name in kinds if name in wide]
    values = wide[names].to_numpy().T  # (methods, images)
    mean = values.mean(axis=1)
    spread = spread_of_means(values)
    better = pvalues(mean, spread) / 2  # one-sided
    better = np.where(mean[:, None] > mean, better, 1.0)
    nulls = [k for k, name in enumerate(names) if kinds[name] == "null"]
    beaten = {name: {names[null]: better[k, null] for null in nulls if null != k} for k, name in enumerate(names)}
    half = half_widths(spread)[:-1, -1]
    return Shares(dict(zip(names, mean, strict=True)), dict(zip(names, half, strict=True)), beaten)


def corrected(shares: Mapping[Key, Shares], kinds: Mapping[str, str]) -> dict[Key, Shares]:
    """The same, p-values of methods against nulls corrected as one family over all artefacts."""
    claims = [
        (key, method, null)
        for key, own in shares.items()
        for method, nulls in own.beaten.items()
        for null in nulls
        if kinds[method] == "method"
    ]
    adjusted = holm([shares[key].beaten[method][null] for key, method, null in claims])
    beaten = {key: {method: dict(nulls) for method, nulls in own.beaten.items()} for key, own in shares.items()}
    for (key, method, null), pvalue in zip(claims, adjusted, strict=True):
        beaten[key][method][null] = float(pvalue)
    return {key: replace(own, beaten=beaten[key]) for key, own in shares.items()}


def line(method: str, kind: str, own: pd.DataFrame, shares: Mapping[str, Shares]) -> dict[str, Any]:
    """What one method scored on one artefact, with it and without."""
    rows = own[own["method"].eq(method) & own["metric"].eq("attr")]
    took_part = counted(rows, ATTR)
    found: dict[str, Any] = {"method": method, "kind": kind, "status": "ok", "message": ""}
    found["failed"] = took_part["failed"].mean() if len(took_part) else 1.0
    with_it = took_part[took_part["presence"].eq(PRESENCES[0]) & ~took_part["failed"]]
    found["present_defined"] = with_it["value"].mean()
    if found["failed"] == 1:  # not one map
        found |= {"status": rows["status"].iloc[0], "message": rows["message"].iloc[0]}
    for presence, prefix, name in (("with", "", "present"), ("without", "absent_", "absent")):
        here = shares[presence]
        known = method in here.mean and found["failed"] < 1
        mean = here.mean[method] if known else np.nan
        half = here.half[method] if known else np.nan
        found |= {
            name: mean,
            f"{prefix}low": np.maximum(0.0, mean - half),
            f"{prefix}high": np.minimum(1.0, mean + half),
        }
        found |= {f"{prefix}unbeaten": ", ".join(unbeaten(method, here) if known else [])}
    return found


def unbeaten(method: str, shares: Shares) -> list[str]:
    """Nulls that the method is not clearly better than, the strongest first."""
    left = [null for null, pvalue in shares.beaten[method].items() if not pvalue <= LEVEL]
    return sorted(left, key=lambda null: -shares.mean[null])


def finding(one: Mapping[str, Any]) -> str:
    """How well a method shows the artefact where it is present; empty for nulls and where there is no number."""
    if one["kind"] != "method" or one["present"] != one["present"]:
        return ""
    if by_chance(one["unbeaten"]):
        return NOTHING
    way = (one["low"] - one["region"]) / (1 - one["region"]) if one["region"] < 1 else 0.0
    return HINT if one["unbeaten"] or way < HALFWAY else SHOWS


def by_chance(unbeaten: str) -> bool:
    """Whether a map that says nothing is among the unbeaten."""
    return bool({"random", "constant"} & set(unbeaten.split(", ")))


def demand_a_model(rows: pd.DataFrame) -> None:
    """UsageError where every training failed: there is nothing to show but the reason."""
    trained = rows[rows["metric"].eq("accuracy")]
    if trained["status"].eq("error").all():
        raise UsageError(f"`train` must give a model to explain, but {trained['message'].iloc[0]}")


def percent(value: float) -> str:
    """
    >>> percent(0.612), percent(0.004), percent(float("nan"))
    ('61 %', '0.4 %', '')
    """
    if value != value:
        return ""
    return f"{100 * value:.0f} %" if value >= 0.01 or value == 0 else f"{100 * value:.1f} %"


def span(value: float, low: float, high: float) -> str:
    """
    >>> span(0.612, 0.58, 0.641), span(float("nan"), 0, 0)
    ('61 % [58, 64]', '')
    """
    return "" if value != value else f"{percent(value)} [{100 * low:.0f}, {100 * high:.0f}]"
