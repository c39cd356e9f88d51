"""What the page says of one run: plain values for the template, every one still to be escaped."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from forsooth.report.aggregate import Results, levels, panel_names, text
from forsooth.report.classes import classes
from forsooth.report.leaderboard import board, wins
from forsooth.report.medians import Medians, where
from forsooth.report.promises import gap_table
from forsooth.report.tables import accuracies, display, failures, number, settings, share, skips, times
from forsooth.report.verdict import NOTABLE, caution, verdict

Values = dict[str, Any]


def chapter(results: Results, tables: Mapping[str, Medians]) -> Values:
    """Everything but the drawings."""
    run, gaps = results.run, gap_table(results.rows)
    boards = {metric: board(table, gaps=gaps) for metric, table in tables.items()}
    return {
        **{name: run[name] for name in ("suite", "title", "question", "preset", "seed", "command", "facts", "cells")},
        **{name: _flat(run[name]) for name in ("versions", "hardware", "settings")},
        "verdict": _verdict(results, tables, boards),
        "reproduction": run["reproduction"] and _reproduction(run["reproduction"]),
        "caution": caution(tables),
        "tiles": _tiles(results, tables),
        "factors": ", ".join(run["factors"]),
        "levels": {factor: ", ".join(levels(results, factor)) for factor in run["factors"]},
        "metrics": [_metric(name, record) for name, record in run["metrics"].items()],
        "methods": _methods(results),
        "classes": classes(results).to_dict("records"),
        "boards": {metric: _lines(lines) for metric, lines in boards.items()},
        "by": _by_model(results, tables, gaps),
        "heat": {metric: _heat(results, tables[metric], lines) for metric, lines in boards.items()},
        "accuracies": [_accuracy(results, line) for _, line in accuracies(results).iterrows()],
        "failures": [_failure(line) for line in failures(list(tables.values())).to_dict("records")],
        "skips": skips(results).rename(columns={"message": "reason"}).to_dict("records"),
        "repeat": {"seed": run["seed"], "started": run["started"], "took": _time(run["seconds"])},
    }


def _verdict(results: Results, tables: Mapping[str, Medians], boards: Mapping[str, pd.DataFrame]) -> tuple[str, ...]:
    """What came out; a run on the user's own model and a reproduction have words of their own."""
    if results.run["reproduction"] is not None:
        return tuple(results.run["reproduction"]["words"].strip().splitlines())
    return tuple(results.run.get("answer", ())) or verdict(results, tables, boards)


def _reproduction(record: Mapping[str, Any]) -> Values:
    """The published table beside ours, every value as text."""
    lines = record["table"]
    names = list(lines[0]) if lines else []
    shown = [{name: _short(line[name]) for name in names} for line in lines]
    return {"name": record["name"], "title": record["title"], "columns": names, "lines": shown}


def _short(value: Any) -> str:
    return number(value) if isinstance(value, float) else text(value)


def _flat(mapping: Mapping[str, Any]) -> dict[str, str]:
    """Nested settings as one line each: {"a": {"b": 1}} -> {"a": "b=1"}."""
    return {name: settings(value) if isinstance(value, Mapping) else text(value) for name, value in mapping.items()}


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _tiles(results: Results, tables: Mapping[str, Medians]) -> dict[str, str]:
    run, rows = results.run, results.rows
    nulls = sum(bool(record.get("null")) for record in run["methods"].values())
    tiles = {"methods": str(len(run["methods"]) - nulls), "nulls": str(nulls)}
    for table in list(tables.values())[:1]:
        ignorant = [name for name, null in zip(table.methods, table.null, strict=True) if null]
        maps = table.rows[~table.rows["method"].isin(ignorant)]
        tiles |= {"panels": str(len(table.panels)), "maps scored": f"{len(maps):,}"}
        tiles["of them without a score"] = share(maps["failed"].mean()) if len(maps) else "–"
    trained = rows["part"].eq("training") & rows["metric"].eq("accuracy")
    return tiles | {"models trained": f"{int(trained.sum()):,}", "in all": _time(run["seconds"])}


def _metric(name: str, record: Mapping[str, Any]) -> dict[str, str]:
    ends = zip(record.get("bounds") or (None, None), ("−∞", "∞"), strict=True)
    bounds = [endless if bound is None else text(bound) for bound, endless in ends]
    return {"metric": name, "better": record["better"], "bounds": " to ".join(bounds), "source": record.get("cite", "")}


def _methods(results: Results) -> list[dict[str, str]]:
    seconds = times(results)
    return [
        {
            "method": name,
            "kind": "null" if record.get("null") else "method",
            "settings": settings(record.get("settings") or {}),
            "promise": record.get("promise") or "",
            "signed": "yes" if record.get("signed") else "no",
            "source": record.get("cite") or "",
            "seconds": f"{seconds[name]:.1f}" if name in seconds else "",
        }
        for name, record in results.run["methods"].items()
    ]


def _lines(lines: pd.DataFrame) -> list[Values]:
    """Lines of a leaderboard: its words, what to sort them by, and places on a bar in per cent."""
    least, most = min(lines["low"].min(), lines["q1"].min()), max(lines["high"].max(), lines["q3"].max())
    scaled = (lines[["score", "low", "high", "q1", "q3"]] - least) * (100 / ((most - least) or 1.0))
    words, shown = display(lines).to_dict("records"), []
    for k, line in enumerate(lines.to_dict("records")):
        at = scaled.iloc[k]
        shown.append(
            {
                "words": words[k],
                "sort": _sort(line),
                "score": line["score"],
                "null": line["null"],
                "starts": bool(k) and line["group"] != lines["group"].iloc[k - 1],
                "failing": line["failed"] >= NOTABLE,
                **{"dot": f"{at['score']:.2f}", "low": f"{at['low']:.2f}", "q1": f"{at['q1']:.2f}"},
                **{"width": f"{at['high'] - at['low']:.2f}", "quartiles": f"{at['q3'] - at['q1']:.2f}"},
            }
        )
    return shown


def _sort(line: Mapping[str, Any]) -> dict[str, Any]:
    names = {"95 % interval": "low", "quartiles": "q1", "score": "score", "rank": "rank", "group": "group"}
    names |= {name: name for name in ("failed", "gap", "broken", "spread", "wins", "panels", "over")}
    return {shown: "" if pd.isna(line[name]) else line[name] for shown, name in names.items()}


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
    """Median of every method in every panel, with a colour between the worst and the best seen."""
    won, good = wins(table), table.sign * table.value
    least, span = np.nanmin(good), np.ptp(good[np.isfinite(good)]) or 1.0
    rows = []
    for line in lines.itertuples():
        m, cells = table.methods.index(line.method), []
        for panel in range(len(table.panels)):
            value = table.value[panel, m]
            there = np.isfinite(value)
            cells.append(_cell(value, (good[panel, m] - least) / span, won[panel, m]) if there else None)
        rows.append({"method": line.method, "null": line.null, "cells": cells})
    return {"names": [name.split("-") for name in panel_names(results, table.panels)], "lines": rows}


def _cell(value: float, part: float, win: bool) -> Values:
    darkest = (126, 190, 226) if win else (205, 209, 215)
    red, green, blue = (round(255 - part * (255 - end)) for end in darkest)
    return {"value": number(value, digits=2), "win": win, "colour": f"rgb({red},{green},{blue})"}


def _accuracy(results: Results, line: pd.Series) -> dict[str, str]:
    def shown(name: str, digits: str) -> str:
        return "" if pd.isna(line[name]) else format(line[name], digits)

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


def _failure(line: Mapping[str, Any]) -> dict[str, str]:
    return {
        **{"method": line["method"], "status": line["status"], "reason": line["message"], "scores": line["metrics"]},
        **{"panels": str(line["panels"]), "share": share(line["share"])},
    }
