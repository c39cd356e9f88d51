"""Tiny tasks for the engine's tests; they must be importable by worker processes."""

import os
from pathlib import Path

import torch

from forsooth.records import Cell, Row, UsageError


def number(*, value: float, trace: str = "") -> Cell:
    if trace:
        with Path(trace).open("a") as file:
            file.write(f"{value}\n")
    return Cell(
        rows=(Row("arithmetic", "scores", metric="value", value=value),), tensors={"value": torch.tensor([value])}
    )


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


def dies_once(*, marker: str) -> Cell:
    """Ends its process the first time."""
    if not Path(marker).exists():
        Path(marker).touch()
        os._exit(3)
    return number(value=1.0)


def broken() -> Cell:
    raise RuntimeError("the task\nbroke")


def broken_once(*, marker: str) -> Cell:
    """Raises the first time and succeeds the second."""
    if not Path(marker).exists():
        Path(marker).touch()
        raise MemoryError("too much")
    return number(value=1.0)


def leaves() -> Cell:
    raise SystemExit(0)


def impossible() -> Cell:
    raise UsageError("`this` cannot be")
