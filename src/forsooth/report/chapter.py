"""What the page says of one run: plain values for the template, every one still to be escaped."""

import itertools
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from forsooth.frames import only
from forsooth.papers.references import cited
from forsooth.report.advice import advice
from forsooth.report.aggregate import Record, Results, Values, Written, levels, nulls_in, panel_names
from forsooth.report.classes import classes
from forsooth.report.families import kind_of
from forsooth.report.leaderboard import Boards, board, boards_by
from forsooth.report.medians import CEILING, Medians, Tables
from forsooth.report.notes import notes
from forsooth.report.promises import gap_table
from forsooth.report.reasons import by_reason, skipped_by_reason
from forsooth.report.tables import accuracies, display, failures, settings, skips, times, unless_missing
from forsooth.report.verdict import NOTABLE, caution, verdict
from forsooth.wording import agreeing, joined, number, share, text

SAME_MAPS = ("end", "fraction")  # factors that ask the same maps in another way


def chapter(results: Results, tables: Tables) -> Values:
    """Everything but the drawings."""
    gaps = gap_table(results.rows)
    boards = {metric: board(table, gaps=gaps) for metric, table in tables.items()}
    return {
        **_about(results),
        **_findings(results, tables, boards),
        **_words(results, tables, boards),
        "tiles": _tiles(results, tables),
        "boards": {metric: _lines(lines) for metric, lines in boards.items()},
        "by": _by_model(results, tables),
        "heat": {metric: _heat(results, tables[metric], lines) for metric, lines in boards.items()},
        **_parts(results, tables),
    }


def _parts(results: Results, tables: Tables) -> Values:
    """Who took part, with which accuracy, and who did not."""
    return {
        "classes": classes(results).to_dict("records"),
        "accuracies": _accuracies(results),
        "failures": by_reason(failures(list(tables.values()))),
        "skips": skipped_by_reason(skips(results), [name for name in results.run["methods"] if name not in CEILING]),
    }


def _words(results: Results, tables: Tables, boards: Boards) -> Values:
    """What the page says in sentences."""
    return {
        "caution": caution(tables),
        "about_methods": {name: kind_of(record) for name, record in results.run["methods"].items()},
        "notes": {metric: notes(results, table, boards[metric]) for metric, table in tables.items()},
        "references": cited(_keys(results)),
    }


def _about(results: Results) -> Values:
    """What was run, in the words of run.json."""
    run = results.run
    return {
        **run,
        **{name: _flat(run[name]) for name in ("versions", "hardware", "settings")},
        "reproduction": run["reproduction"] and _reproduction(run["reproduction"]),
        "factors": ", ".join(run["factors"]),
        "levels": {factor: ", ".join(levels(results, factor)) for factor in run["factors"]},
        "metrics": [_metric(name, record) for name, record in run["metrics"].items()],
        "methods": _methods(results),
        "repeat": {"seed": run["seed"], "started": run["started"], "took": _time(run["seconds"])},
    }


def _findings(results: Results, tables: Tables, boards: Boards) -> Values:
    """What came out, and what to do; a run on the user's own model and a reproduction have words of their own."""
    run = results.run
    if run["reproduction"] is not None:
        return {"verdict": tuple(run["reproduction"]["words"].strip().splitlines()), "advice": ""}
    if run.get("answer"):
        return {"verdict": run["answer"], "advice": ""}
    return {"verdict": verdict(results, tables, boards), "advice": advice(tables, boards, preset=run["preset"])}


def _keys(results: Results) -> list[str]:
    """Keys of all papers that the page names."""
    records = [*results.run["metrics"].values(), *results.run["methods"].values()]
    return [record.get("cite") or "" for record in records] + ["ancona2018towards"]


def _reproduction(record: Record) -> Values:
    """The published table beside ours, every value as text."""
    lines = record["table"]
    names = list(dict.fromkeys(name for line in lines for name in line))
    shown = [{name: _short(line[name]) for name in names} for line in lines]
    return {**record, "columns": names, "lines": shown}


def _short(value: Any) -> str:
    return number(value) if isinstance(value, float) else text(value)


def _flat(mapping: Record) -> Written:
    """Nested settings as one line each: {"a": {"b": 1}} -> {"a": "b=1"}."""
    return {name: settings(value) if isinstance(value, Mapping) else text(value) for name, value in mapping.items()}


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {rest} s"
    return f"{rest} s"


def _tiles(results: Results, tables: Tables) -> Written:
    tiles = _counts(results)
    for table in list(tables.values())[:1]:
        tiles |= _maps_scored(table)
    trained = len(only(results.rows, part="training", metric="accuracy"))
    if trained:
        tiles["models trained"] = f"{trained:,}"
    return tiles | {"in all": _time(results.run["seconds"])}


def _counts(results: Results) -> Written:
    """How many methods, nulls, and ends of the scale there are; the findings count in the same way."""
    ends = [name for name in results.run["methods"] if name in CEILING]
    nulls = set(nulls_in(results)) - set(ends)
    tiles = {"methods": len(results.run["methods"]) - len(nulls) - len(ends), "nulls": len(nulls)}
    if ends:
        tiles[f"told the truth: {joined(ends)}"] = len(ends)
    return {name: str(count) for name, count in tiles.items()}


def _maps_scored(table: Medians) -> Written:
    """How many maps of methods that look at the model were scored by the first metric."""
    scores = table.rows[~table.rows["method"].map(table.nulls) & ~table.rows["method"].isin(CEILING)]
    asked = [name for name in table.panels if name not in SAME_MAPS]
    maps = scores.drop_duplicates([*asked, "method", "model_seed", "sample"])
    lost = share(scores["failed"].mean()) if len(scores) else "–"
    panels = agreeing(table.panels, "panel", "panels")
    return {panels: str(len(table.panels)), "maps scored": f"{len(maps):,}", "of them without a score": lost}


def _metric(name: str, record: Record) -> Written:
    low, high = record.get("bounds") or (None, None)
    return {
        "metric": name,
        "what it is": record.get("about") or "",  # older runs have none
        "better": record["better"],
        "bounds": f"{text(low) or '−∞'} to {text(high) or '∞'}",
        "source": record.get("cite", ""),
    }


def _methods(results: Results) -> list[Written]:
    seconds = {name: f"{taken:.1f}" for name, taken in times(results).items()}
    methods = results.run["methods"].items()
    return [{**_method(name, record), "seconds": seconds.get(name, "")} for name, record in methods]


def _method(name: str, record: Record) -> Written:
    kind = kind_of(record)
    return {
        "method": name,
        "what it is": record.get("about") or "",
        "family": kind["family"],
        "needs": ", ".join(kind["needs"]),
        "settings": settings(record.get("settings") or {}),
        "promise": record.get("promise") or "",
        "signed": "yes" if record.get("signed") else "no",
        "source": record.get("cite") or "",
    }


SORTED_BY = {
    **{name: name for name in ("rank", "score", "failed", "gap", "broken", "spread", "wins", "panels")},
    **{"95 % interval": "low", "quartiles": "q1"},
}


def _lines(lines: DataFrame) -> list[Values]:
    """Lines of a leaderboard: its words, what to sort them by, and places on a bar in per cent."""
    groups = lines["group"].tolist()
    bars = _bars(lines).to_dict("records")
    words = display(lines).to_dict("records")
    shown = []
    for k, line in enumerate(lines.to_dict("records")):
        marks = {name: line[name] for name in ("method", "score", "null")}
        starts = k > 0 and groups[k] != groups[k - 1]
        sort = {name: "" if pd.isna(line[by]) else line[by] for name, by in SORTED_BY.items()}
        about = {"words": words[k], "sort": sort, "starts": starts, "failing": line["failed"] >= NOTABLE}
        shown.append({**marks, **about, "bar": bars[k]})
    return shown


def _bars(lines: DataFrame) -> DataFrame:
    """Places of score, interval and quartiles, and how wide these are, in per cent of the bar."""
    least = min(lines["low"].min(), lines["q1"].min())
    most = max(lines["high"].max(), lines["q3"].max())
    at = (lines[["score", "low", "high", "q1", "q3"]] - least) * (100 / ((most - least) or 1.0))
    return at.assign(width=at["high"] - at["low"], quartiles=at["q3"] - at["q1"]).map("{:.2f}".format)


def _by_model(results: Results, tables: Tables) -> dict[str, dict[str, list[Values]]]:
    """One set of leaderboards per architecture, where there are several."""
    if "model" not in results.run["factors"] or len(levels(results, "model")) < 2:
        return {}
    found: dict[str, dict[str, list[Values]]] = {}
    for metric, table in tables.items():
        for model, lines in boards_by(results, table, "model").items():
            found.setdefault(model, {})[metric] = _lines(lines)
    return found


def _heat(results: Results, table: Medians, lines: DataFrame) -> Values:
    """Median of every method in every panel, with a shade between the worst and the best seen."""
    good = table.sign * table.value
    span = np.ptp(good[np.isfinite(good)]) or 1.0
    parts = (good - np.nanmin(good)) / span
    rows = []
    for name, null in zip(lines["method"], lines["null"], strict=True):
        method = table.methods.index(name)
        columns = zip(table.value[:, method], parts[:, method], table.wins[:, method], strict=True)
        rows.append({"method": name, "null": null, "cells": list(itertools.starmap(_cell, columns))})
    return {"names": panel_names(results, table.panels), "lines": rows}


def _cell(value: float, part: float, win: bool) -> Values | None:
    """A panel of a method, the darker the better, in per cent; part from 0, the worst, to 1; None: it took no part."""
    if not np.isfinite(value):
        return None
    return {"value": number(value, digits=2), "win": win, "shade": round(100 * part)}


ACCURACIES = {
    "α": ("alpha", "{:g}"),
    "published α": ("published_alpha", "{:g}"),
    "trainings": ("trainings", "{}"),
    "below gate": ("below", "{:.0f}"),
    "accuracy, %": ("accuracy", "{:.1f}"),
    "lowest": ("lowest", "{:.1f}"),
    "highest": ("highest", "{:.1f}"),
    "published, %": ("published", "{:.1f}"),
    "difference": ("difference", "{:+.1f}"),
}


def _accuracies(results: Results) -> list[dict[Hashable, str]]:
    """A line for each panel, without the columns that are empty in all of them."""
    table = accuracies(results)
    if table.empty:
        return []
    table = table.assign(below=table["below"].where(table["below"].gt(0)))
    shown = DataFrame({"panel": panel_names(results, table)}, index=table.index)
    for words, (name, digits) in ACCURACIES.items():
        shown[words] = [unless_missing(value, digits.format) for value in table[name]]
    return list(shown.loc[:, shown.ne("").any()].to_dict("records"))
