"""The main text of XAI-TRIS at 64×64, in steps: python studies/xaitris64.py FOLDER --device cuda --data ZIP.

Steps (`--steps`, both unless one is named), each of which goes on where it was cut off, since all work is kept in
FOLDER/store:

train    the networks of the chosen scenarios and backgrounds, on an accelerator all of one kind at once
explain  every published method on every network, scored; one scenario and background after the other

FOLDER/results then has `accuracies.csv`, `boxes.csv` (the five numbers of a box for every panel, method and metric),
`seconds.csv` (of tasks, by what they did), `SCENARIO-BACKGROUND.parquet` (every score) and `steps.csv` (seconds on the
clock of every call). ZIP are the photographs behind IMAGENET; without it generated leaves stand for them.
"""

import argparse
import dataclasses
import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from forsooth.engine import execute
from forsooth.progress import Lines
from forsooth.records import Choice, FailedTasks, Task
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites.xaitris import SUITE
from forsooth.suites.xaitris.settings import PRESETS, Settings

STEPS = ("train", "explain")
SCENARIOS = ("LIN", "MULT", "RIGID", "XOR")
BACKGROUNDS = ("WHITE", "CORR", "IMAGENET")
PLACE = ["scenario", "background", "model", "model_seed"]
QUANTILES = {"low": 0.0, "lower": 0.25, "median": 0.5, "upper": 0.75, "high": 1.0}


def tasks_of(settings: Settings, choice: Choice, scenario: str, background: str) -> tuple[Task, ...]:
    only = {**choice.only, "scenario": (scenario,), "background": (background,)}
    return SUITE.plan(settings, dataclasses.replace(choice, only=only)).tasks


def done(tasks: Sequence[Task], store: Store, workers: int) -> None:
    """Carry tasks out; those that fail are named, and the others go on."""
    try:
        execute(tasks, store, workers=workers, progress=Lines())
    except FailedTasks as error:
        print(error, flush=True)


def rows_of(tasks: Sequence[Task], store: Store) -> pd.DataFrame:
    """All rows that the tasks left."""
    tables = [store.rows(task.key) for task in tasks if store.has(task.key)]
    frames = [table.to_pandas() for table in tables if table is not None]
    if not frames:
        return pd.DataFrame()
    return pd.concat(frames, ignore_index=True)


def boxes(scores: pd.DataFrame) -> pd.DataFrame:
    """The quantiles of every panel, method and metric; what says nothing counts as nothing and is `failed`."""
    grouped = scores[scores["metric"].ne("")].groupby([*PLACE, "method", "metric"])
    table = grouped["value"].quantile(list(QUANTILES.values())).unstack()
    table.columns = list(QUANTILES)
    table["images"] = grouped["value"].size()
    table["failed"] = grouped["value"].apply(lambda values: values.isna().mean())
    if "emd_error" in scores:
        table["emd_error"] = grouped["emd_error"].max()
    return table.reset_index()


def seconds(tasks: Sequence[Task], store: Store) -> pd.DataFrame:
    """Seconds of every finished task, with what it did."""
    found = [(task.id, task.name, store.meta(task.key)["seconds"]) for task in tasks if store.has(task.key)]
    return pd.DataFrame(found, columns=["task", "name", "seconds"])


def write(table: pd.DataFrame, file: Path, keys: Sequence[str]) -> None:
    """The table, with the lines that the file has for other places."""
    if file.is_file():
        old = pd.read_csv(file)
        table = pd.concat([old, table]).drop_duplicates(list(keys), keep="last")
    table.to_csv(file, index=False, float_format="%.6g")


def train(args: argparse.Namespace, settings: Settings, choice: Choice, store: Store, results: Path) -> None:
    places = itertools.product(args.scenarios, args.backgrounds)
    tasks = [task for place in places for task in tasks_of(settings, choice, *place)]
    training = [task for task in tasks if task.id == "xaitris.train"]
    done(training, store, args.workers)
    table = rows_of(training, store)
    columns = [*PLACE, "alpha", "value", "status"]
    write(table[columns].rename(columns={"value": "accuracy"}), results / "accuracies.csv", PLACE)
    write(seconds(training, store), results / "seconds.csv", ["name"])
    print(table[columns].to_string(), flush=True)


def explain(args: argparse.Namespace, settings: Settings, choice: Choice, store: Store, results: Path) -> None:
    for scenario, background in itertools.product(args.scenarios, args.backgrounds):
        begun = time.perf_counter()
        tasks = tasks_of(settings, choice, scenario, background)
        done(tasks, store, args.workers)
        rows = rows_of([task for task in tasks if task.id == "xaitris.score"], store)
        if rows.empty:
            print(f"{scenario}-{background}: no network above the gate, nothing explained", flush=True)
            continue
        kept = [*PLACE, "method", "metric", "sample", "value", "status", "emd_error"]
        scores = rows[[name for name in kept if name in rows]].astype({"value": "float32"})
        scores.to_parquet(results / f"{scenario}-{background}.parquet", compression="zstd")
        write(boxes(rows), results / "boxes.csv", [*PLACE, "method", "metric"])
        spent = seconds(tasks, store)
        write(spent, results / "seconds.csv", ["name"])
        by_kind = spent.groupby("task")["seconds"].sum().round(1).to_dict()
        slowest = spent.nlargest(6, "seconds")[["name", "seconds"]].to_string(index=False, header=False)
        print(f"{scenario}-{background}: {time.perf_counter() - begun:.1f} s, tasks {by_kind}\n{slowest}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS)
    parser.add_argument("--preset", choices=("released", "paper"), default="released")
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--backgrounds", nargs="+", choices=BACKGROUNDS, default=BACKGROUNDS)
    parser.add_argument("--models", default="llr,mlp,cnn", help="some of llr,mlp,cnn")
    parser.add_argument("--data", help="folder or zip of photographs")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--trainings", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any other setting")
    args = parser.parse_args()
    given = dict(line.split("=", 1) for line in args.set)
    settings = changed(PRESETS[args.preset], {"sizes": "64", "trainings": args.trainings, **given})
    choice = Choice(only={"model": tuple(args.models.split(","))}, data=args.data, device=args.device)
    results = args.folder / "results"
    results.mkdir(parents=True, exist_ok=True)
    for step in args.steps:
        begun = time.perf_counter()
        {"train": train, "explain": explain}[step](args, settings, choice, Store(args.folder / "store"), results)
        spent = round(time.perf_counter() - begun, 1)
        words = " ".join([*args.scenarios, *args.backgrounds, args.models, f"trainings={args.trainings}"])
        line = {"step": step, "preset": args.preset, "what": words, "device": args.device, "seconds": spent}
        write(pd.DataFrame([line]), results / "steps.csv", ["step", "preset", "what", "device", "seconds"])
        print(f"{step}: {spent} s", flush=True)


if __name__ == "__main__":
    main()
