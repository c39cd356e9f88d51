"""The table of a dry run: shares of attribution on the artefact, with intervals, beside maps that ignore the model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from forsooth import report
from forsooth.counted import counted
from forsooth.records import UsageError
from forsooth.report import bootstrap
from forsooth.report.bootstrap import Floats
from forsooth.report.promises import gap_table
from forsooth.scores.planted import ATTR

DRAWS = 2_000
HALFWAY = 0.5  # of the way from a random map to the oracle: who is surely beyond it shows the artefact
PRESENCES = ("with", "without")
SHOWN = ("artefact", "method", "present", "absent", "random", "finding", "status")
SHOWS, HINT, NOTHING = "shows it", "a hint", "nothing"


@dataclass(frozen=True)
class DryRun:
    """What the planned methods make of artefacts that a model is known to use.

    table   one line per artefact and method, in the order asked; behind them the nulls and the oracle:
            present, low, high     mean share of |attribution| on the artefact's region over test images that have it,
                                   with a 95 % bootstrap interval; an image without a usable map counts as 0
            absent, absent_low, absent_high  the same over images without it: there its absence tells the label
            region                 share of the image that the region takes: what a constant map scores
            random                 what random maps scored
            accuracy, p_star       of the model on test images, and what it could expect without the artefact
            finding                "shows it": clearly better than every null, and the interval lies beyond halfway from
                                   the region's share to 1; "a hint": clearly better than a random and a constant map;
                                   "nothing": not even that
            unbeaten, absent_unbeaten  nulls that the method does not clearly beat, the strongest first
            kind                   method, null (ignores the model) or oracle (is told the region)
            failed                 share of explained images without a usable map
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
        return report.write_page([self.folder])

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


def tabled(rows: pd.DataFrame, kinds: Mapping[str, str]) -> pd.DataFrame:
    """The table of `DryRun` from the rows of all cells; kinds: method -> method, null or oracle, in order."""
    lines = []
    for artefact, own in rows.groupby("manipulation", sort=False):
        trained = own[own["metric"].eq("accuracy")].iloc[0]
        here = {
            "artefact": artefact,
            "accuracy": trained["value"],
            "p_star": trained["p_star"],
            "region": trained["er"],
        }
        drawn = {presence: draws(own, presence, kinds) for presence in PRESENCES}
        lines += [{**here, **line(method, kind, own, drawn, kinds)} for method, kind in kinds.items()]
    table = pd.DataFrame(lines)
    blind = table[table["method"].eq("random")].set_index("artefact")["present"]
    table = table.join(gap_table(rows), on="method")
    table = table.assign(random=table["artefact"].map(blind))
    return table.assign(finding=[finding(one) for one in table.to_dict("records")])


def draws(own: pd.DataFrame, presence: str, kinds: Mapping[str, str]) -> dict[str, tuple[float, Floats]]:
    """method -> mean share and draws of it (draws,), the same images for all."""
    scored = own[own["metric"].eq("attr") & own["presence"].eq(presence) & own["sample"].ge(0)]
    scored = counted(scored, ATTR)
    if scored.empty:
        return {}
    shares = scored.pivot(index="sample", columns="method", values="value")
    rng = np.random.default_rng(list(f"dry run {presence}".encode()))
    weights = bootstrap.counts(len(shares), draws=DRAWS, rng=rng) / len(shares)  # (n, draws)
    values = {name: shares[name].to_numpy() for name in kinds if name in shares}
    return {name: (float(own.mean()), own @ weights) for name, own in values.items()}


def line(
    method: str,
    kind: str,
    own: pd.DataFrame,
    drawn: Mapping[str, Mapping[str, tuple[float, Floats]]],
    kinds: Mapping[str, str],
) -> dict[str, Any]:
    """What one method scored on one artefact, with it and without."""
    rows = own[own["method"].eq(method) & own["metric"].eq("attr")]
    took_part = counted(rows, ATTR)
    found: dict[str, Any] = {"method": method, "kind": kind, "status": "ok", "message": ""}
    found["failed"] = took_part["failed"].mean() if len(took_part) else 1.0
    with_it = took_part[took_part["presence"].eq(PRESENCES[0]) & ~took_part["failed"]]
    found["present_defined"] = with_it["value"].mean()
    if found["failed"] == 1:  # not one map
        found |= {"status": rows["status"].iloc[0], "message": rows["message"].iloc[0]}
        drawn = {}
    for presence, prefix, name in (("with", "", "present"), ("without", "absent_", "absent")):
        here = drawn.get(presence, {})
        mean, all_draws = here.get(method, (np.nan, np.full(1, np.nan)))
        low, high = bootstrap.interval(all_draws)
        rivals = [null for null, k in kinds.items() if k == "null" and null in here and null != method]
        better = [null for null in rivals if bootstrap.exceeds(all_draws - here[null][1])]
        found |= {name: mean, f"{prefix}low": float(low), f"{prefix}high": float(high)}
        strongest = sorted(set(rivals) - set(better), key=lambda null: -here[null][0])
        found |= {f"{prefix}unbeaten": ", ".join(strongest)}
    return found


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
