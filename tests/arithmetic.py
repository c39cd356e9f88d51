"""Tiny tasks for the engine's tests; they must be importable by worker processes."""

import os
from pathlib import Path

import torch

from forsooth.records import Cell


def number(*, value: float, trace: str = "") -> Cell:
    if trace:
        with Path(trace).open("a") as file:
            file.write(f"{value}\n")
    return Cell(rows=({"metric": "value", "value": value},), tensors={"value": torch.tensor([value])})


def add(*cells: Cell, plus: float = 0.0) -> Cell:
    total = sum(cell.tensors["value"].item() for cell in cells) + plus
    return number(value=total)


def flaky(*, marker: str) -> Cell:
    """Records a failure the first time and succeeds the second."""
    first = not Path(marker).exists()
    Path(marker).touch()
    return Cell(facts={"failed": True}) if first else Cell(facts={"status": "ok"})


def threads() -> Cell:
    return Cell(facts={"threads": torch.get_num_threads()})


def worker() -> Cell:
    return Cell(facts={"pid": os.getpid()})


def dies(*cells: Cell) -> Cell:
    os._exit(3)


def broken() -> Cell:
    raise RuntimeError("the task broke")
