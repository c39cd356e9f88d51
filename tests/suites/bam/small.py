"""The smallest BAM runs, and rows of them written out by hand."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from forsooth.engine import typed
from forsooth.records import Cell, Choice, Outcome, Row, Task
from forsooth.store import Store
from forsooth.suites.bam import plan, settings
from forsooth.suites.bam.data import DataSpec, data_spec
from forsooth.suites.bam.specs import Panel
from forsooth.suites.bam.tasks import NetworkFacts

METHODS = ("gradient", "deep_lift", "grad_cam", "random", "constant", "absolute_input", "own_methods:raises")
TINY: dict[str, Any] = {
    **{"side": 32, "scenes": 60, "cutouts": 40, "train": 4, "val": 1, "test": 2, "epochs": 6, "gate": 0.0},
    **{"fine_train": 25, "fine_val": 3, "fine_test": 15, "samples": 60, "samples_expensive": 10, "samples_per_k": 15},
    **{"placings": ("as_built", "centre"), "samples_robustness": 10, "trials": 5, "ks": (0.1, 1.0), "examples": 10},
    **{"random_sets": 3, "trainings": 1},
}
FEW: dict[str, Any] = {
    **{**TINY, "train": 1, "test": 1, "epochs": 1, "fine_train": 5, "fine_test": 4, "samples": 6, "scenes": 20},
    **{"cutouts": 10, "placings": ("as_built",), "random_sets": 2, "examples": 5, "samples_per_k": 4, "trials": 2},
}
JUDGED: dict[str, Any] = {
    **{**TINY, "trainings": 2, "epochs": 4, "samples": 30, "level": 1.0, "random_sets": 2, "fine_train": 10},
    "methods": ("gradient", "grad_cam", "guided_backprop", "gradient_x_input", "constant"),
}
ANYONE = Choice()
PANEL = Panel("residual_small", 0)
SIDES = {"first": 0.5, "second": 0.5, "right_first": 1, "right_second": 1}


class Judged(NamedTuple):
    """A reproduction in its folder, with the table and the words that it prints."""

    folder: Path
    table: pd.DataFrame
    words: str

    def outcome(self) -> Outcome:
        """What its run left, for other judgements."""
        rows = pd.read_parquet(self.folder / "scores.parquet")
        cells = Store(self.folder.parent / "store")
        facts = {key: cells.meta(key)["facts"] for key in rows["cell"].unique()}
        return Outcome(rows=rows, facts=facts, settings=changed(**JUDGED), choice=ANYONE)


def changed(**changes: Any) -> settings.Settings:
    return dataclasses.replace(settings.QUICK, **changes)


def spec_of(**changes: Any) -> DataSpec:
    """The data of a small run."""
    return data_spec(changed(**{**FEW, **changes}), None, 0)


def tasks(changes: Mapping[str, Any], choice: Choice = ANYONE) -> dict[str, Task]:
    """The tasks of a plan by what the progress line says."""
    return {task.name: task for task in plan.plan(changed(**changes), choice).tasks}


def carried_out(task: Task, *needs: Cell, **changes: Any) -> Cell:
    """A task run here, some of its arguments replaced."""
    return task.function(*needs, **{**typed(task.function, task.arguments), **changes})


def flat(rows: Sequence[Row]) -> pd.DataFrame:
    return pd.DataFrame([row.flat() for row in rows])


def of(rows: pd.DataFrame, **wanted: object) -> pd.DataFrame:
    """The rows where every named column has its value; there must be some."""
    for column, value in wanted.items():
        rows = rows[rows[column].eq(value)]
    assert len(rows)
    return rows


def trained_facts(net: plan.NetSpec, **changes: Any) -> NetworkFacts:
    facts = NetworkFacts(net.name, net, "residual_small", 10, 32, True, 0.9)
    return dataclasses.replace(facts, **changes)


def rows_of(values: Mapping[str, Sequence[float]], *, metric: str = "mcs", **more: object) -> pd.DataFrame:
    """One row per method and image of one training."""
    shared = {"metric": metric, "part": "samples", "mask": "object", "placing": "as_built", "model_seed": 0, **more}
    lines = [{**shared, "method": m, "sample": i, "value": v} for m, own in values.items() for i, v in enumerate(own)]
    lines = [{"k": np.nan, **line} for line in lines]
    return pd.DataFrame(lines).assign(status="ok", message="f_o: 1 of 1 layers", failed=False, **SIDES)


MCS = {"grad_cam": [0.5, 0.7, 0.6], "gradient": [0.1, 0.3, 0.2], "smooth_grad": [0.2, 0.3, 0.1]}


def with_tcav(inputs: list[float], sets: list[float]) -> pd.DataFrame:
    """Rows of three maps, and of TCAV by input and by set."""
    parts = {"concepts": [sum(inputs) / len(inputs)], "concept_inputs": inputs, "concept_sets": sets}
    scores = [rows_of({"tcav": own}, part=part) for part, own in parts.items()]
    return pd.concat([rows_of(MCS), *scores], ignore_index=True)


def verification_rows(
    shares: Mapping[tuple[str, str, str], float], *, n: int = 10, k: float = np.nan, seed: int = 0
) -> pd.DataFrame:
    """Rows of what networks need, by net, set and metric."""
    lines = [
        {"part": "verification", "net": net, "shown": shown, "metric": metric, "value": value}
        for (net, shown, metric), value in shares.items()
    ]
    return pd.DataFrame(lines).assign(k=k, n=n, model_seed=seed, method="", sample=-1, status="ok", message="")


def series_rows(by_method: Mapping[str, Mapping[float, Sequence[float]]], *, seed: int = 0) -> pd.DataFrame:
    """Rows over k: method -> k -> a value for each image."""
    parts = []
    for method, by_k in by_method.items():
        for k, values in by_k.items():
            parts.append(rows_of({method: values}, part="fine", k=k, model_seed=seed))
    return pd.concat(parts, ignore_index=True)


def drop_rows(with_feature: Mapping[float, float], without: Mapping[float, float], *, n: int = 100) -> pd.DataFrame:
    """Accuracies of the first class by k, and the drop."""
    parts = []
    for k, before in with_feature.items():
        shares = {
            ("f", "os", "accuracy"): before,
            ("f", "s", "accuracy"): without[k],
            ("f", "s", "drop"): before - without[k],
        }
        shares = {(f"f_s_{k:g}", shown, metric): value for (_, shown, metric), value in shares.items()}
        parts.append(verification_rows(shares, n=n, k=k))
    return pd.concat(parts, ignore_index=True)


def training_rows(accuracy: Mapping[str, float], *, seed: int = 0) -> pd.DataFrame:
    shared = {"part": "training", "metric": "accuracy", "model": "resnet50", "model_seed": seed}
    return pd.DataFrame([{**shared, "net": net, "value": value} for net, value in accuracy.items()])


def outcome_of(rows: pd.DataFrame, facts: Mapping[str, Mapping[str, Any]] | None = None) -> Outcome:
    return Outcome(rows=rows, facts=facts or {}, settings=settings.QUICK, choice=Choice())
