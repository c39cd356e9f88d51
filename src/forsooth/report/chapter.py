"""What the page says of one run: plain values for the template, every one still to be escaped."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from forsooth.papers.references import cited
from forsooth.report.advice import advice
from forsooth.report.aggregate import Results, levels, panel_names
from forsooth.report.anchors import anchor
from forsooth.report.classes import classes
from forsooth.report.families import kind_of
from forsooth.report.leaderboard import board
from forsooth.report.medians import CEILING, Medians, where
from forsooth.report.notes import notes
from forsooth.report.promises import gap_table
from forsooth.report.reasons import by_reason, skipped_by_reason
from forsooth.report.tables import accuracies, display, failures, settings, skips, times
from forsooth.report.verdict import NOTABLE, caution, verdict
from forsooth.stats.panels import Floats
from forsooth.wording import joined, number, share, text

Values = dict[str, Any]
SAME_MAPS = ("end", "fraction")  # factors that ask the same maps in another way


def chapter(results: Results, tables: Mapping[str, Medians]) -> Values:
    """Everything but the drawings."""
    gaps = gap_table(results.rows)
    boards = {metric: board(table, gaps=gaps) for metric, table in tables.items()}
    return {
        **_about(results),
        **_words(results, tables, boards),
        "tiles": _tiles(results, tables),
        "boards": {metric: _lines(lines) for metric, lines in boards.items()},
        "by": _by_model(results, tables, gaps),
        "heat": {metric: _heat(results, tables[metric], lines) for metric, lines in boards.items()},
        **_parts(results, tables),
    }


def _parts(results: Results, tables: Mapping[str, Medians]) -> Values:
    """Who took part, with which accuracy, and who did not."""
    return {
        "classes": classes(results).to_dict("records"),
        "accuracies": _accuracies(results),
        "failures": by_reason(failures(list(tables.values()))),
        "skips": skipped_by_reason(skips(results), [name for name in results.run["methods"] if name not in CEILING]),
    }


def _words(results: Results, tables: Mapping[str, Medians], boards: Mapping[str, pd.DataFrame]) -> Values:
    """What the page says in sentences."""
    return {
        "verdict": _verdict(results, tables, boards),
        "advice": _advice(results, tables, boards),
        "caution": caution(tables),
        "about_methods": {name: kind_of(record) for name, record in results.run["methods"].items()},
        "notes": {metric: notes(results, table, boards[metric]) for metric, table in tables.items()},
        "references": [vars(paper) for paper in cited(_keys(results))],
    }


def _about(results: Results) -> Values:
    """What was run, in the words of run.json."""
    run = results.run
    return {
        **{name: run[name] for name in ("suite", "title", "question", "preset", "seed", "command", "facts", "cells")},
        **{name: _flat(run[name]) for name in ("versions", "hardware", "settings")},
        "table": run["table"],
        "reproduction": run["reproduction"] and _reproduction(run["reproduction"]),
        "factors": ", ".join(run["factors"]),
        "levels": {factor: ", ".join(levels(results, factor)) for factor in run["factors"]},
        "metrics": [_metric(name, record) for name, record in run["metrics"].items()],
        "methods": _methods(results),
        "repeat": {"seed": run["seed"], "started": run["started"], "took": _time(run["seconds"])},
    }


def _verdict(results: Results, tables: Mapping[str, Medians], boards: Mapping[str, pd.DataFrame]) -> tuple[str, ...]:
    """What came out; a run on the user's own model and a reproduction have words of their own."""
    if results.run["reproduction"] is not None:
        return tuple(results.run["reproduction"]["words"].strip().splitlines())
    return tuple(results.run.get("answer", ())) or verdict(results, tables, boards)


def _advice(results: Results, tables: Mapping[str, Medians], boards: Mapping[str, pd.DataFrame]) -> str:
    """What to do; empty where the run has words of its own for that."""
    if results.run["reproduction"] is not None or results.run.get("answer"):
        return ""
    return advice(tables, boards, preset=results.run["preset"])


def _keys(results: Results) -> list[str]:
    """Keys of all papers that the page names."""
    records = [*results.run["metrics"].values(), *results.run["methods"].values()]
    return [record.get("cite") or "" for record in records] + ["ancona2018towards"]


def _reproduction(record: Mapping[str, Any]) -> Values:
    """The published table beside ours, every value as text."""
    lines = record["table"]
    names = list(dict.fromkeys(name for line in lines for name in line))
    shown = [{name: _short(line[name]) for name in names} for line in lines]
    return {"name": record["name"], "title": record["title"], "columns": names, "lines": shown}


def _short(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    return text(value)


def _flat(mapping: Mapping[str, Any]) -> dict[str, str]:
    """Nested settings as one line each: {"a": {"b": 1}} -> {"a": "b=1"}."""
    return {name: _one_line(value) for name, value in mapping.items()}


def _one_line(value: Any) -> str:
    if isinstance(value, Mapping):
        return settings(value)
    return text(value)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {rest} s"
    return f"{rest} s"


def _tiles(results: Results, tables: Mapping[str, Medians]) -> dict[str, str]:
    run = results.run
    tiles = _counts(run["methods"])
    for table in list(tables.values())[:1]:
        tiles |= _maps_scored(table)
    trained = results.rows["part"].eq("training") & results.rows["metric"].eq("accuracy")
    if trained.any():
        tiles["models trained"] = f"{int(trained.sum()):,}"
    return tiles | {"in all": _time(run["seconds"])}


def _counts(methods: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """How many methods, nulls, and ends of the scale there are; the findings count in the same way."""
    ends = [name for name in methods if name in CEILING]
    nulls = [name for name, record in methods.items() if record.get("null") and name not in ends]
    tiles = {"methods": str(len(methods) - len(nulls) - len(ends)), "nulls": str(len(nulls))}
    if ends:
        tiles = {**tiles, f"told the truth: {joined(ends)}": str(len(ends))}
    return tiles


def _maps_scored(table: Medians) -> dict[str, str]:
    """How many maps of methods that look at the model were scored by the first metric."""
    nulls = [name for name, null in zip(table.methods, table.null, strict=True) if null]
    scores = table.rows[~table.rows["method"].isin([*nulls, *CEILING])]
    asked = [name for name in table.panels if name not in SAME_MAPS]
    maps = scores.drop_duplicates([*asked, "method", "model_seed", "sample"])
    lost = "–"
    if len(scores):
        lost = share(scores["failed"].mean())
    panels = {1: "panel"}.get(len(table.panels), "panels")
    return {panels: str(len(table.panels)), "maps scored": f"{len(maps):,}", "of them without a score": lost}


def _metric(name: str, record: Mapping[str, Any]) -> dict[str, str]:
    low, high = record.get("bounds") or (None, None)
    bounds = f"{text(low) or '−∞'} to {text(high) or '∞'}"
    about = record.get("about") or ""  # older runs have none
    return {
        "metric": name,
        "what it is": about,
        "better": record["better"],
        "bounds": bounds,
        "source": record.get("cite", ""),
    }


def _methods(results: Results) -> list[dict[str, str]]:
    seconds = {name: f"{taken:.1f}" for name, taken in times(results).items()}
    methods = results.run["methods"].items()
    return [{**_method(name, record), "seconds": seconds.get(name, "")} for name, record in methods]


def _method(name: str, record: Mapping[str, Any]) -> dict[str, str]:
    return {
        "method": name,
        "what it is": record.get("about") or "",
        "family": kind_of(record)["family"],
        "needs": ", ".join(kind_of(record)["needs"]),
        "settings": settings(record.get("settings") or {}),
        "promise": record.get("promise") or "",
        "signed": {True: "yes", False: "no"}[bool(record.get("signed"))],
        "source": record.get("cite") or "",
    }


def _lines(lines: pd.DataFrame) -> list[Values]:
    """Lines of a leaderboard: its words, what to sort them by, and places on a bar in per cent."""
    least = min(lines["low"].min(), lines["q1"].min())
    most = max(lines["high"].max(), lines["q3"].max())
    scaled = (lines[["score", "low", "high", "q1", "q3"]] - least) * (100 / ((most - least) or 1.0))
    words = display(lines).to_dict("records")
    groups = lines["group"].tolist()
    shown = []
    for k, line in enumerate(lines.to_dict("records")):
        starts = k > 0 and groups[k] != groups[k - 1]
        shown.append({"words": words[k], "sort": _sort(line), "starts": starts, **_marks(line), **_bar(scaled.iloc[k])})
    return shown


def _marks(line: Mapping[str, Any]) -> Values:
    name = str(line["method"])
    about = {"method": name, "anchor": anchor(name)}
    return {**about, "score": line["score"], "null": line["null"], "failing": line["failed"] >= NOTABLE}


def _bar(at: pd.Series) -> dict[str, str]:
    """Places of the dot, the interval and the quartiles, in per cent of the bar."""
    return {
        "dot": f"{at['score']:.2f}",
        "low": f"{at['low']:.2f}",
        "q1": f"{at['q1']:.2f}",
        "width": f"{at['high'] - at['low']:.2f}",
        "quartiles": f"{at['q3'] - at['q1']:.2f}",
    }


def _sort(line: Mapping[str, Any]) -> dict[str, Any]:
    names = {"95 % interval": "low", "quartiles": "q1", "score": "score", "rank": "rank", "group": "group"}
    names |= {name: name for name in ("failed", "gap", "broken", "spread", "wins", "panels", "over")}
    known = {shown: line[name] for shown, name in names.items() if not pd.isna(line[name])}
    return {**dict.fromkeys(names, ""), **known}


def _by_model(
    results: Results, tables: Mapping[str, Medians], gaps: pd.DataFrame
) -> dict[str, dict[str, list[Values]]]:
    """One set of leaderboards per architecture, where there are several."""
    if "model" not in results.run["factors"] or len(levels(results, "model")) < 2:
        return {}
    found: dict[str, dict[str, list[Values]]] = {}
    for model in levels(results, "model"):
        for metric, table in tables.items():
            keep = table.panels["model"].eq(model).to_numpy()
            if keep.any():
                found.setdefault(model, {})[metric] = _lines(board(where(table, keep), gaps=gaps))
    return found


def _heat(results: Results, table: Medians, lines: pd.DataFrame) -> Values:
    """Median of every method in every panel, with a shade between the worst and the best seen."""
    good = table.sign * table.value
    span = np.ptp(good[np.isfinite(good)]) or 1.0
    parts = (good - np.nanmin(good)) / span
    names = panel_names(results, table.panels)
    rows = [_heat_line(table, parts, line) for line in lines.to_dict("records")]
    return {"names": names, "anchors": [anchor(name) for name in names], "lines": rows}


def _heat_line(table: Medians, parts: Floats, line: Mapping[Hashable, Any]) -> Values:
    """The cells of one method; parts (panels, methods) from 0, the worst, to 1."""
    name = line["method"]
    method = table.methods.index(name)
    columns = zip(table.value[:, method], parts[:, method], table.wins[:, method], strict=True)
    cells = [_cell(*column) for column in columns]
    return {"method": name, "anchor": anchor(name), "null": line["null"], "cells": cells}


def _cell(value: float, part: float, win: bool) -> Values | None:
    """A panel of a method, the darker the better, in per cent; None where it took no part."""
    if not np.isfinite(value):
        return None
    return {"value": number(value, digits=2), "win": win, "shade": round(100 * part)}


def _accuracies(results: Results) -> list[dict[str, str]]:
    """A line for each panel, without the columns that are empty in all of them."""
    lines = [_accuracy(results, line) for _, line in accuracies(results).iterrows()]
    told = {name for line in lines for name, words in line.items() if words}
    return [{name: words for name, words in line.items() if name in told} for line in lines]


def _accuracy(results: Results, line: pd.Series) -> dict[str, str]:
    def shown(name: str, digits: str) -> str:
        if pd.isna(line[name]):
            return ""
        return format(line[name], digits)

    return {
        "panel": panel_names(results, line.to_frame().T)[0],
        "α": shown("alpha", "g"),
        "published α": shown("published_alpha", "g"),
        "trainings": str(line["trainings"]),
        "below gate": str(line["below"] or ""),
        "accuracy, %": shown("accuracy", ".1f"),
        "lowest": shown("lowest", ".1f"),
        "highest": shown("highest", ".1f"),
        "published, %": shown("published", ".1f"),
        "difference": shown("difference", "+.1f"),
    }
