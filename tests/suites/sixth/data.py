"""A table of noise whose first column decides the label."""

from dataclasses import dataclass

import torch

from forsooth import seeds
from forsooth.plain import remembered
from forsooth.records import Dataset, Row


@dataclass(frozen=True)
class DataSpec:
    """All that decides a table."""

    columns: int
    seed: int


@remembered(2)
def dataset(spec: DataSpec) -> Dataset:
    x = torch.randn(600, spec.columns, generator=seeds.generator(spec.seed, "needle"))
    truth = torch.zeros_like(x, dtype=torch.bool)
    truth[:, 0] = True
    rows = torch.arange(600)
    splits = {"train": rows[:400], "val": rows[400:500], "test": rows[500:]}
    return Dataset("needle", x, (x[:, 0] > 0).long(), truth, splits)


def row(spec: DataSpec, part: str, *, model: str = "none", model_seed: int = -1, method: str = "") -> Row:
    """The row that all rows begin as."""
    return Row(
        suite="needle",
        part=part,
        dataset="needle",
        model=model,
        model_seed=model_seed,
        method=method,
        columns={"columns": spec.columns},
    )
