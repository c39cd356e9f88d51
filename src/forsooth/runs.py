"""A run's folder: the files joined from its cells, and the object that reads them."""

import dataclasses
import datetime
import importlib
import importlib.metadata
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.torch
import torch
from torch import Tensor

from forsooth import names, plugins, report, store
from forsooth.analysis.select import Only, narrowed
from forsooth.attributions import METHODS
from forsooth.engine import Progress, execute
from forsooth.records import (
    Choice,
    FailedTasks,
    Judgement,
    Method,
    Metric,
    Outcome,
    Plan,
    Reproduction,
    Row,
    Suite,
    UsageError,
)
from forsooth.report import aggregate, page, tables
from forsooth.report.unchanged import drawn_once
from forsooth.strangers import is_there
from forsooth.suites import SUITES
from forsooth.wording import first_line, html_piece

COLUMNS = (
    ("suite", pa.string()),
    ("part", pa.string()),
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("model_seed", pa.int64()),
    ("method", pa.string()),
    ("metric", pa.string()),
    ("sample", pa.int64()),
    ("value", pa.float64()),
    ("status", pa.string()),
    ("message", pa.string()),
    ("cell", pa.string()),
)
FAILED = "failed task"  # the part of a row that stands for a task
PACKAGES = ("forsooth", "torch", "captum", "POT", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow")


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished run in its folder."""

    folder: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))  # a string is welcome, too

    @property
    def failed(self) -> str:
        """How many tasks failed, and why the first did; empty if none."""
        return str(aggregate.about(self.folder).get("failed", ""))

    @property
    def rows(self) -> pd.DataFrame:
        """One row per sample and metric, with the seconds its cell took."""
        if not is_there(self.folder / "run.json"):
            raise UsageError(f"`run` must be the folder of a finished run, got {self.folder} without run.json")
        rows = aggregate.read_table(self.folder / "scores.parquet", columns=("cell",))
        return rows.merge(aggregate.read_timings(self.folder), on="cell", how="left")

    def part(self, only: Only) -> pd.DataFrame:
        """The `rows` of these levels alone, with those of the nulls, which know no model."""
        rows = self.rows
        return rows.loc[narrowed(report.read(self.folder), only).rows.index]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the scores that have a leaderboard."""
        return tuple(report.read(self.folder).run["metrics"])

    @property
    def settings(self) -> dict[str, Any]:
        """What was set: name -> value."""
        return dict(report.read(self.folder).run["settings"])

    def scores(self, metric: str | None = None, *, only: Only | None = None) -> pd.DataFrame:
        """The rows behind a leaderboard, one per panel, method, training and sample.

        Nulls, which know no model, stand in every panel; a map that says nothing has the worst value and is `failed`.
        """
        results = narrowed(report.read(self.folder), only or {})
        return aggregate.took_part(results, metric or _first_metric(results))

    def leaderboard(
        self, metric: str | None = None, *, by: str | None = None, only: Only | None = None
    ) -> pd.DataFrame:
        """Methods by score with intervals, ranks and tie groups; `by` one factor gives a board for each value.

        metric  one of `metrics`; None: the first
        only    factor -> value or values to keep, e.g. {"model": "mlp"}; nulls stay
        """
        results = narrowed(report.read(self.folder), only or {})
        name = metric or _first_metric(results)
        if name not in results.run["metrics"]:
            raise names.unknown(name, results.run["metrics"], argument="metric")
        return report.leaderboard(results, name, by=by)

    def _repr_html_(self) -> str:
        words = f"Open the page: {self.folder / 'report.html'}\n\nMetrics: {', '.join(self.metrics)}\n\n{self.failed}"
        board = tables.display(self.leaderboard())
        return html_piece(f"{self.folder.name}: {next(iter(self.metrics), 'no metric')}", board, words)

    def report(self) -> Path:
        """Write the page again and return its path."""
        return write_page([self.folder])


def _first_metric(results: report.Results) -> str:
    return next(iter(results.run["metrics"]), "")


@dataclasses.dataclass(frozen=True)
class Work:
    """Where a plan is carried out, and by whom.

    cells    the store, which several runs may share
    on       a Dask cluster in the place of processes
    timeout  seconds that a task may take
    """

    folder: Path
    cells: store.Store
    workers: int
    progress: Progress
    on: str | None = None
    timeout: float | None = None


def perform(work: Work, plan: Plan, about: Mapping[str, Any]) -> None:
    """Carry out a plan and leave the files of a run, also where some of its tasks failed."""
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    begun = time.monotonic()
    facts = list(plan.facts)
    failed = {}
    try:
        execute(
            plan.tasks,
            work.cells,
            workers=work.workers,
            progress=work.progress,
            on=work.on,
            timeout=work.timeout,
        )
    except FailedTasks as error:
        if not any(work.cells.rows(task.key) for task in plan.tasks):
            raise  # nothing to put together
        work.progress.say(f"{error}.")
        facts.append(f"Incomplete: {error}.")
        failed = {"failed": str(error)}
    seconds = round(time.monotonic() - begun, 1)
    times = {"started": started, "seconds": seconds}
    assemble(work.folder, plan, work.cells, {**about, **failed, "facts": facts, **times})


def suite_facts(suite: Suite, settings: Any) -> dict[str, Any]:
    """What `run.json` says of the suite. Rows of settings that are not the suite's own have no board."""
    ranked = type(settings) is type(suite.presets["quick"])
    factors: tuple[str, ...] = ()
    exhibits: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    if ranked:
        factors = suite.factors
        exhibits = suite.exhibits
        metrics = suite.metrics(settings)
    return {
        "suite": suite.name,
        "title": suite.title,
        "question": suite.question,
        "settings": dataclasses.asdict(settings),
        "factors": list(factors),
        "levels": {factor: list(getattr(settings, f"{factor}s")) for factor in factors},
        "exhibits": list(exhibits),
        "metrics": {metric.name: described_metric(metric) for metric in metrics},
    }


def choice_facts(choice: Choice, command: str) -> dict[str, Any]:
    return {"choice": dataclasses.asdict(choice), "seed": choice.seed, "command": command}


def outcome_of(work: Work, plan: Plan, settings: Any, choice: Choice) -> Outcome:
    """What the run left, for a judgement, which wants all of it."""
    failed = Run(work.folder).failed
    if failed:
        raise FailedTasks(failed)
    ids = {task.key: task.id for task in plan.tasks}
    rows = pd.read_parquet(work.folder / "scores.parquet")
    about = {task.key: work.cells.meta(task.key) for task in plan.tasks}
    return Outcome(
        rows=rows.assign(task=rows["cell"].map(ids)),
        facts={key: meta["facts"] for key, meta in about.items()},
        settings=settings,
        choice=choice,
        tasks=ids,
        seconds={key: meta.get("seconds", 0.0) for key, meta in about.items()},
    )


def keep_judgement(folder: Path, record: Reproduction, judgement: Judgement) -> None:
    """Write the table and the words beside the run, and into `run.json` for its page."""
    lines = json.loads(judgement.table.to_json(orient="records"))
    told = {"name": record.name, "title": record.title, "words": judgement.words, "table": lines}
    with store.locked(folder):  # another run of the same words may be writing all of them
        about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        store.write_atomically(folder / "table.csv", judgement.table.to_csv(index=False).encode())
        store.write_atomically(folder / "verdict.md", judgement.words.encode())
        store.write_atomically(folder / "run.json", json.dumps({**about, "reproduction": told}, indent=1).encode())


def write_page(folders: str | Path | Sequence[str | Path], out: str | Path | None = None) -> Path:
    """The page of one run, or of several; says where it is. One that shows the same rows already stays as it is."""
    chosen = page.folders_of(folders, out)

    def draw() -> Path:
        figures: dict[str, Callable[..., Any]] = {}
        for suite in SUITES:
            if suite.figures:
                figures |= importlib.import_module(suite.figures).FIGURES
        return report.write_page(folders, out, figures=figures)

    return drawn_once(chosen, page.place_of(chosen, out), draw)


def described_metric(metric: Metric) -> dict[str, Any]:
    bounds = [bound if math.isfinite(bound) else None for bound in metric.bounds]  # JSON has no infinity
    about = first_line(metric.function)
    return {"about": about, "better": metric.better, "bounds": bounds, "cite": metric.cite, "version": metric.version}


def assemble(folder: Path, plan: Plan, cells: store.Store, about: dict[str, Any]) -> None:
    """Join the cells into the files of the run. Nothing here depends on when or where a cell was made."""
    metas = {task.key: cells.meta(task.key) for task in plan.tasks}
    rows = _all_rows(plan, cells, _failures(plan, metas, about["suite"]))
    index, pictures = _pictures(plan, cells, metas)
    timings = [{"cell": task.key, "task": task.name, "seconds": metas[task.key]["seconds"]} for task in plan.tasks]
    noted = [meta["facts"] for meta in metas.values()]
    about = {
        **about,
        "facts": _distinct([*about["facts"], *(line for facts in noted for line in facts.get("said", ()))]),
        "classes": _distinct(line for facts in noted for line in facts.get("drawn", ())),
        "methods": about.get("methods") or _methods(set(rows.column("method").to_pylist()) - {"", None}),
        "pictures": index,
        "cells": list(metas),
    }
    keep_files(folder, rows, pa.Table.from_pylist(timings), pictures, about)


def keep_answer(
    folder: Path, rows: Iterable[Mapping[str, Any]], pictures: Mapping[str, Tensor], about: Mapping[str, Any]
) -> None:
    """The files of a run for an answer, whose rows have no tasks that anybody could name."""
    timings = pa.table({"cell": pa.array([], pa.string()), "seconds": pa.array([], pa.float64())})
    keep_files(folder, _table(rows, ""), timings, pictures, {**about, "cells": []})


def keep_files(
    folder: Path, rows: pa.Table, timings: pa.Table, pictures: Mapping[str, Tensor], about: Mapping[str, Any]
) -> None:
    """Write the files of a run, each whole or not at all, and into `run.json` on what and by what they were made."""
    files = {
        "scores.parquet": _parquet(rows),
        "timings.parquet": _parquet(timings),
        "pictures.safetensors": safetensors.torch.save(dict(pictures)),
    }
    about = {
        **about,
        "versions": {name: _version(name) for name in PACKAGES},
        "hardware": _hardware(),
        "sums": {name: store.file_sum(content) for name, content in files.items()},
    }
    files["run.json"] = json.dumps(about, indent=1).encode()
    with store.locked(folder):
        for name, content in files.items():
            store.write_atomically(folder / name, content)


def _failures(plan: Plan, metas: Mapping[str, Mapping[str, Any]], suite: str) -> list[Row]:
    """A row for every task that failed: nothing is dropped in silence."""
    rows = []
    for task in plan.tasks:
        facts = metas[task.key]["facts"]
        if facts.get("failed") is True and facts.get("unfinished") is True:
            message = str(facts.get("message", ""))
            rows.append(Row(suite, FAILED, status="error", message=message, columns={}))
    return rows


def _all_rows(plan: Plan, cells: store.Store, failures: Sequence[Row]) -> pa.Table:
    """The rows of all cells, of those who could not meet and of tasks that failed, one below the other."""
    tables = []
    for task in plan.tasks:
        rows = cells.rows(task.key)
        if rows is not None:
            tables.append(_table(rows.to_pylist(), task.key))
    tables.append(_table([row.flat() for row in [*plan.skips, *failures]], ""))
    return pa.concat_tables([table for table in tables if table.num_rows], promote_options="permissive")


def _pictures(
    plan: Plan, cells: store.Store, metas: Mapping[str, Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """What the page shows: a list of the pictures, and their tensors by name."""
    index: list[dict[str, Any]] = []
    pictures: dict[str, Tensor] = {}
    for task in plan.tasks:
        shown = metas[task.key]["facts"].get("pictures")
        if not shown:
            continue
        tensors = cells.read(task.key).tensors
        for picture in shown:
            name = f"{task.key}/{picture['tensor']}"
            pictures[name] = tensors[picture["tensor"]]
            index.append({**picture, "tensor": name})
    return index, pictures


def _distinct(lines: Iterable[Any]) -> list[Any]:
    """Every line once, in the order in which they come."""
    seen: dict[str, Any] = {}
    for line in lines:
        seen.setdefault(json.dumps(line, sort_keys=True), line)
    return list(seen.values())


def _hardware() -> dict[str, Any]:
    return {
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "accelerator": _accelerator(),
    }


def _accelerator() -> str:
    if not torch.cuda.is_available():
        return "none"
    try:
        return torch.cuda.get_device_name()
    except RuntimeError:  # even to be asked takes memory, and other processes may have it all
        return "unknown: it did not answer"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"  # run from a source tree


def _methods(names: set[str]) -> dict[str, dict[str, Any]]:
    """What `run.json` says of the methods: those of the catalogue in its order, then the user's."""
    kept = [method for method in METHODS if method.name in names]
    kept += [plugins.method(name, METHODS) for name in sorted(names) if ":" in name]
    return {method.name: described_method(method) for method in kept}


def described_method(method: Method) -> dict[str, Any]:
    fields = ("null", "cite", "promise", "signed", "random", "version", "needs")
    about = {"about": first_line(method.function), "settings": dict(method.settings)}
    return {**{field: getattr(method, field) for field in fields}, **about}


def _table(rows: Iterable[Any], key: str) -> pa.Table:
    """Rows with all columns of the schema; factor columns follow in alphabetical order."""
    rows = [{"message": "", "status": "ok", **row, "cell": key} for row in rows]
    factors = sorted({name for row in rows for name in row} - {name for name, _ in COLUMNS})
    kinds = {name: _kind([row.get(name) for row in rows]) for name in factors}
    return pa.Table.from_pylist(rows, schema=pa.schema([*COLUMNS, *kinds.items()]))


def _kind(values: list[Any]) -> pa.DataType:
    if all(isinstance(v, int) for v in values):
        return pa.int64()
    if all(isinstance(v, int | float) or v is None for v in values):
        return pa.float64()
    return pa.string()


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()
