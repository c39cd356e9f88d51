"""A run folder becomes `Results`; its tidy rows become the panels and samples that the tables speak of."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series, concat
from safetensors.numpy import load_file

from forsooth import strangers
from forsooth.counted import ABSENT, counted, filled
from forsooth.frames import only, without
from forsooth.names import unknown
from forsooth.records import NO_MODEL, SCORED, UsageError
from forsooth.report.shape import wrong_fields
from forsooth.scores import METRICS
from forsooth.store import file_sum, locked
from forsooth.wording import text, with_text

COLUMNS = (
    *("part", "model", "model_seed", "method", "metric"),
    *("sample", "value", "status", "message", "cell"),
)
Record = Mapping[str, Any]  # what run.json or a line of a table has, by name
Values = dict[str, Any]  # what the page's template shows, by name
Written = dict[str, str]  # the same, all of it in words
Picture = NDArray[Any]  # (height, width) or (channels, height, width)
SUMMED = ("scores.parquet", "timings.parquet", "pictures.safetensors")
NUMBERS = ("integer", "floating", "mixed-integer-float", "empty")
TEXTS = ("string", "empty")
ANY = (*NUMBERS, *TEXTS, "boolean", "mixed", "mixed-integer")
KINDS = {
    **dict.fromkeys(("model_seed", "sample", "value", "seconds"), (NUMBERS, "numbers")),
    **dict.fromkeys(("part", "model", "method", "metric", "status", "message", "cell"), (TEXTS, "text")),
}
DEFAULTS: Record = {
    **{"question": "", "preset": "", "seed": 0, "command": "", "started": "", "seconds": 0.0},
    **{"settings": {}, "versions": {}, "hardware": {}, "levels": {}, "reproduction": None},
    **{"exhibits": [], "pictures": [], "facts": [], "cells": [], "classes": [], "table": []},
}


@dataclass(frozen=True)
class Results:
    """One finished run, read once.

    run       run.json, with defaults for what it leaves out
    rows      scores.parquet; factors are text ("8", "LIN")
    timings   cell, seconds; empty where nobody took the time
    pictures  name -> (*map) or (channels, *map)
    """

    folder: Path
    run: Record
    rows: DataFrame
    timings: DataFrame
    pictures: Mapping[str, Picture]


def read(run_dir: str | Path) -> Results:
    """The run in the folder `run_dir`: run.json and scores.parquet; timings and pictures where there are any."""
    folder = Path(run_dir)
    for name in ("run.json", "scores.parquet"):
        if not strangers.is_there(folder / name):
            raise UsageError(f"`run_dir` must hold run.json and scores.parquet, got {folder} without {name}")
    with locked(folder):  # a run that goes on may be writing its files
        run = {**DEFAULTS, **about(folder)}
        _check_sums(folder, run)
        return Results(
            folder=folder,
            run=run,
            rows=_rows(folder / "scores.parquet", run["factors"]),
            timings=read_timings(folder),
            pictures=_pictures(folder),
        )


def _check_sums(folder: Path, run: Record) -> None:
    """UsageError where a file is not the one that was written with this run.json; older ones have no sums."""
    sums = run.get("sums")
    if not isinstance(sums, dict):
        return
    for name in SUMMED:
        file = folder / name
        if name in sums and file.is_file() and file_sum(file.read_bytes()) != sums[name]:
            raise UsageError(f"{file} is not what was written with run.json: the same run command writes both again")


def about(folder: Path) -> Record:
    """What is in the run.json of a run."""
    file = folder / "run.json"
    try:
        run = _without_surrogates(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        raise unreadable(file, error) from error
    if not isinstance(run, dict):
        raise UsageError(f"{file} must hold an object, got a {type(run).__name__}")
    _demand(file, needed=("suite", "title", "factors", "metrics", "methods"), given=run)
    wrong = wrong_fields(run)
    if wrong:
        raise UsageError(f"{file} must be as a run left it; it has another shape in {', '.join(wrong)}")
    return run


def _without_surrogates(value: Any) -> Any:
    """The JSON value with "?" for each half of a character, which JSON can hold and no table, figure or page can."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


def _rows(file: Path, factors: Sequence[str]) -> DataFrame:
    """The rows of a run, with factors as text and without gaps in the columns that all rows have.

    A factor that only scores have is no column of a run without a score: it is empty then.
    """
    rows = read_table(file, columns=COLUMNS)
    rows = rows.assign(**{factor: "" for factor in factors if factor not in rows})
    return with_text(rows, factors).fillna(
        {"message": "", "method": "", "metric": "", "model": "", "model_seed": -1, "sample": -1}
    )


def read_table(file: Path, columns: Sequence[str]) -> DataFrame:
    """A parquet file of a run that has these columns, numbers and text where they belong."""
    try:
        strangers.check_parquet(file)
        with strangers.sound():
            table = pd.read_parquet(file)
    except ValueError as error:
        raise unreadable(file, error) from error
    _demand(file, needed=columns, given=table.columns)
    for name in columns:
        kinds, words = KINDS.get(name, (ANY, "values"))
        if pd.api.types.infer_dtype(table[name], skipna=True) not in kinds:
            raise UsageError(f"{file} must have {words} in the column {name}, got {table[name].dtype}")
    return table


def read_timings(folder: Path) -> DataFrame:
    """cell, seconds and perhaps more; no rows where nobody took the time."""
    file = folder / "timings.parquet"
    if file.is_file():
        return read_table(file, columns=("cell", "seconds"))
    return DataFrame({"cell": Series(dtype=str), "seconds": Series(dtype=float)})


def _pictures(folder: Path) -> dict[str, Picture]:
    file = folder / "pictures.safetensors"
    if not file.is_file():
        return {}
    try:
        with strangers.sound():
            return dict(load_file(file))
    except ValueError as error:
        raise unreadable(file, error) from error


def unreadable(file: Path, error: Exception) -> UsageError:
    """The error for a file of a run that is damaged, in one line."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return UsageError(f"{file} cannot be read ({reason}): the same run command writes it again")


def _demand(path: Path, *, needed: Iterable[str], given: Iterable[str]) -> None:
    missing = [name for name in needed if name not in given]
    if missing:
        raise UsageError(f"{path} must hold {', '.join(missing)}; it has {', '.join(map(str, given)) or 'nothing'}")


def choose(argument: str, wanted: str, known: Iterable[str]) -> str:
    """`wanted` if it is known; else an error that offers the nearest names."""
    names = list(known)
    if wanted not in names:
        raise unknown(wanted, names, argument=argument)
    return wanted


def levels(results: Results, factor: str) -> tuple[str, ...]:
    """The values of a factor in the order of run.json's `levels`, or else as they come in the rows."""
    seen = [level for level in results.rows[factor].unique() if level not in ("", NO_MODEL)]
    order = [text(level) for level in results.run["levels"].get(factor, ())]
    return tuple([level for level in order if level in seen] + [level for level in seen if level not in order])


def methods_in(results: Results, frame: DataFrame) -> list[str]:
    """The methods that `frame` has, in the order of the run."""
    there = set(frame["method"])
    return [name for name in results.run["methods"] if name in there]


def nulls_in(results: Results) -> list[str]:
    """The methods of the run that ignore the model."""
    return [name for name, record in results.run["methods"].items() if record.get("null")]


def in_order(results: Results, frame: DataFrame) -> DataFrame:
    """`frame` sorted by its factor columns, in the order of their levels."""
    factors = [factor for factor in results.run["factors"] if factor in frame]
    if not factors:
        return frame

    def places(column: Series) -> Series:
        order = {level: place for place, level in enumerate(levels(results, str(column.name)))}
        return column.map(order)

    return frame.sort_values(factors, key=places, kind="stable")


def took_part(results: Results, metric: str) -> DataFrame:
    """One row per panel, method, seed and sample of the per-sample score `metric`.

    Columns: the factors, `method`, `model_seed`, `sample`, `value`, `status`, `message` and `failed`. A sample without
    a score (zero map, error, not finite) has the worst value, see `counted`: an explanation that says nothing
    earns nothing. Nulls stand in every panel of their dataset. An error of a whole cell (sample -1) is an error of
    each sample.
    """
    record = results.run["metrics"][choose("metric", metric, results.run["metrics"])]
    factors = results.run["factors"]
    rows = without(only(results.rows, part="scores"), status=ABSENT)
    whole = rows["metric"].eq("") & ~rows["status"].isin(SCORED)
    rows = _in_all_panels(rows[rows["metric"].eq(metric) | whole], factors=factors)
    rows = _on_all_samples(rows, factors=factors)
    rows = rows[[*factors, "method", "model_seed", "sample", "value", "status", "message"]]
    return filled(rows, better=record["better"], bounds=record.get("bounds"), within=factors)


def with_failures(rows: DataFrame) -> DataFrame:
    """Rows of several metrics for a figure, by the rule of the boards: who says nothing has the worst value.

    Rows of quantities that are no metric of the catalogue are kept as they are where they are scored.
    """
    if rows.empty:
        return rows
    records = {metric.name: metric for metric in METRICS}
    parts = [
        counted(own, records[name]) if name in records else only(own, status=SCORED)
        for name, own in rows.groupby("metric", sort=False)
    ]
    return concat(parts).sort_index()


def _in_all_panels(rows: DataFrame, *, factors: list[str]) -> DataFrame:
    """Rows of nulls, which know no model, once for each panel of their dataset."""
    if "model" not in factors or rows["model"].eq(NO_MODEL).all():
        return rows
    modelled = without(rows, model=NO_MODEL)
    nulls = only(rows, model=NO_MODEL).drop(columns="model")
    panels = modelled[factors].drop_duplicates()
    shared = [factor for factor in factors if factor != "model"]
    spread = nulls.merge(panels, on=shared) if shared else nulls.merge(panels, how="cross")
    return concat([modelled, spread], ignore_index=True)


def _on_all_samples(rows: DataFrame, *, factors: list[str]) -> DataFrame:
    """Failures of a whole cell (sample -1) once for each sample that others of the panel have."""
    lost = rows["sample"].lt(0)
    if not lost.any():
        return rows
    samples = rows.loc[~lost, [*factors, "sample"]].drop_duplicates()
    spread = rows[lost].drop(columns="sample").merge(samples, on=factors, how="left").fillna({"sample": -1})
    key = [*factors, "method", "model_seed", "sample"]
    return concat([rows[~lost], spread], ignore_index=True).drop_duplicates(key)


def panel_names(results: Results, frame: DataFrame) -> list[str]:
    """A name for each row of `frame`, of the factors that vary in the run: "RIGID-CORR-CNN"; of all if none does."""
    factors = [factor for factor in results.run["factors"] if factor in frame]
    varied = [factor for factor in factors if len(levels(results, factor)) > 1] or factors
    return ["-".join(level for level in row if level) for row in frame[varied].itertuples(index=False)]
