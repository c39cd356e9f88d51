"""Tiny tasks for the engine's tests; they must be importable by worker processes."""

import contextlib
import os
import time
from dataclasses import asdict
from pathlib import Path

import torch

from forsooth import chunks, isolation
from forsooth.engine import task
from forsooth.group import Together
from forsooth.records import Cell, Method, Row, UsageError
from forsooth.suites import explain


def number(*, value: float, trace: str = "") -> Cell:
    if trace:
        with Path(trace).open("a") as file:
            file.write(f"{value}\n")
    return Cell(
        rows=(Row("arithmetic", "scores", metric="value", value=value),), tensors={"value": torch.tensor([value])}
    )


def told(*, word: str) -> Cell:
    """What this process has in its environment."""
    return Cell(facts={"said": [os.environ.get(word, "")], "process": os.getpid()})


GROUPS: list[list[float]] = []  # what was done at once


def at_once(arguments, say):
    if len(arguments) > arguments[0].get("most", 9):
        raise torch.OutOfMemoryError
    GROUPS.append([one["value"] for one in arguments])
    return [number(value=2.0 * one["value"]) for one in arguments]


@task("arithmetic.doubled", together=Together(lambda arguments: arguments["device"], at_once))
def doubled(*, value: float, device: str, most: int = 9) -> Cell:
    """Alone it leaves -1, which tells by whom a cell was made."""
    return number(value=-1.0)


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


def leaves_autocast() -> Cell:
    """As a user's model may whenever it is asked."""
    torch.autocast("cpu", torch.bfloat16).__enter__()
    return Cell()


def autocast(*cells: Cell) -> Cell:
    return Cell(facts={"autocast": torch.is_autocast_enabled("cpu")})


def limits() -> Cell:
    return Cell(facts=asdict(isolation.limits()))


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


def hangs_once(*, marker: str) -> Cell:
    """Does not come back the first time, and does not care for interrupts."""
    if not Path(marker).exists():
        Path(marker).touch()
        until = time.monotonic() + 600
        while time.monotonic() < until:
            with contextlib.suppress(KeyboardInterrupt):
                time.sleep(0.1)
    return number(value=1.0)


def is_full(folder: str, holds: int) -> bool:
    return len(list(Path(folder).iterdir())) > holds


def on_a_card(*, value: float, holds: int, folder: str, device: str) -> Cell:
    """Wants a share of a card that has `holds` of them: a file in the folder for each that is taken.

    Until somebody was refused, all wait for the card to be full: processes of a busy machine may begin long apart.
    """
    if device == "cpu":
        return number(value=-value)
    mine = Path(folder) / f"{value}.{os.getpid()}"
    refused = Path(folder).with_suffix(".refused")
    mine.touch()
    try:
        time.sleep(0.05)
        until = time.monotonic() + 20
        while not refused.exists() and not is_full(folder, holds) and time.monotonic() < until:
            time.sleep(0.05)
        if is_full(folder, holds):
            refused.touch()
            raise torch.OutOfMemoryError("CUDA out of memory")
        time.sleep(0.1)
        return number(value=value)
    finally:
        mine.unlink()


def hangs(*, marker: str = "", value: float = 0.0) -> Cell:
    if marker:
        Path(marker).touch()
    until = time.monotonic() + 600
    while time.monotonic() < until:
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(0.1)
    return number(value=value)


def slow(*, value: float) -> Cell:
    time.sleep(0.1)
    return number(value=value)


def asked_of_a_method(*, device: str) -> Cell:
    """The answer of a method for which no accelerator is large enough."""

    def method(model, x, target):
        if device != "cpu":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return torch.ones_like(x)

    record = Method("hungry", method, needs=(), random=False, signed=True, cite="me", version=1)
    x = torch.zeros(4, 3)
    target = torch.zeros(4, dtype=torch.long)
    asked = explain.Question(lambda x: x, x, target, background=x, fit=x, truth=None, layer=None, seed=0)
    return explain.attribute(record, asked)


def in_halves(*, device: str) -> Cell:
    """Work on four values with memory for one."""

    def hungry(part):
        if len(part) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return part

    return Cell(tensors={"value": chunks.over(hungry, torch.arange(4.0), size=4)})
