"""Work on the user's model: done by tasks that any process can do, or here, where the model lives in memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from forsooth.adapters.methods import NamedMethod
from forsooth.engine import Progress, execute, make_task
from forsooth.progress import fitting_progress
from forsooth.records import Cell, Facts, Task, Tensors
from forsooth.store import Store
from forsooth.suites import explain

Key = tuple[str, str | int]  # what kind of step, and which


@dataclass(frozen=True)
class Step:
    """A piece of work.

    name       what the progress line says
    work       (*cells of needs) -> Cell, on the model that is here
    task       the task function that does the same in any process
    arguments  of the task, beside those that all tasks share
    needs      keys of the steps whose cells it takes, in this order
    """

    name: str
    work: Callable[..., Cell]
    task: Callable[..., Cell]
    arguments: Mapping[str, Any]
    needs: tuple[Key, ...] = ()


Steps = dict[Key, Step]
Cells = Mapping[Key, Cell]  # what the steps gave


def in_pieces(
    kind: str,
    title: str,
    count: int,
    size: int,
    work: Callable[..., Cell],
    task: Callable[..., Cell],
    **arguments: Any,
) -> Steps:
    """Steps for `size` of the inputs each; `work` and `task` take `start` and `stop` beside the arguments."""
    steps: Steps = {}
    for start in range(0, count, size):
        piece = {**arguments, "start": start, "stop": min(start + size, count)}
        name = f"{title}: inputs {start} to {piece['stop'] - 1}"
        steps[kind, start] = Step(name, partial(work, **piece), task, piece)
    return steps


def joined_tensors(pieces: Sequence[Cell]) -> Tensors:
    """The tensors of all pieces, one piece behind the other."""
    return {name: torch.cat([piece.tensors[name] for piece in pieces]) for name in pieces[0].tensors}


def of_kind(cells: Cells, kind: str) -> list[Cell]:
    """The cells of the steps of one kind, in their order."""
    return [cell for (own, _), cell in cells.items() if own == kind]


def carry_out(
    steps: Steps,
    shared: Facts | None,
    folder: Path | None,
    *,
    workers: int,
    progress: Progress | None,
) -> Cells:
    """The cells of all steps: kept in the folder where any process can do the work again.

    shared  arguments that all tasks have; None where the model or a method lives in memory
    """
    bar = progress or fitting_progress()
    if folder is None or shared is None:
        return do_here(steps, bar)
    return do_in_store(steps, shared, Store(folder / "store"), workers=workers, progress=bar)


def do_here(steps: Steps, progress: Progress) -> Cells:
    """The cells of all steps, made in this process."""
    cells: dict[Key, Cell] = {}
    progress.start(total=len(steps), done=0)
    for key, step in steps.items():
        progress.doing([step.name])
        cells[key] = step.work(*(cells[need] for need in step.needs))
        progress.step(step.name)
    return cells


def do_in_store(steps: Steps, shared: Facts, cells: Store, *, workers: int, progress: Progress) -> Cells:
    """The cells of all steps, made by tasks; what the store has is not made again."""
    tasks: dict[Key, Task] = {}
    for key, step in steps.items():
        needs = [tasks[need] for need in step.needs]
        tasks[key] = make_task(step.task, {**shared, **step.arguments}, needs, name=step.name)
    execute(list(tasks.values()), cells, workers=workers, progress=progress)
    return {key: cells.read(task.key) for key, task in tasks.items()}


def shared_arguments(words: Facts | None, digest: str, methods: Sequence[NamedMethod]) -> Facts | None:
    """What all tasks of a request carry; None where something of it lives in memory."""
    if words is None or not all(method.portable for method in methods):
        return None
    return {"words": words, "digest": digest}


def gap_of(answer: Cell) -> Tensor:
    """How far each of the `maps` of an answer is from the sum that its method promises, (n,); nan without a promise."""
    gaps = explain.gaps(answer)
    if gaps is None:
        return torch.full((len(answer.tensors["maps"]),), torch.nan, dtype=torch.float64)
    return gaps
