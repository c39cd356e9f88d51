"""The closed forms of a linear model with a suppressor, held against what methods say in the bias suite."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from forsooth.engine import known_as, make_task
from forsooth.records import Artefact, Cell, Choice, Plan, Task
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import plan as bias
from forsooth.suites.bias import tasks as anchored
from forsooth.suites.bias.closed_forms import FORMS, Case

Perform = Callable[[Plan], Store]
TOLERANCE = 1e-3
ERRORS = 4.5  # standard errors beyond which chance is no excuse


def table(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Every method of the catalogue that has a closed form, asked by the bias suite about the best linear model."""
    base = bias.Settings(
        datasets=("suppressor",), models=("linear",), players=("input",), methods=tuple(FORMS), samples=40
    )
    plan = with_known_network(bias.plan(changed(base, changes), choice))
    store = perform(plan)
    rows = [row_of(name, *answer) for name, answer in answers(plan, store).items()]
    found = pd.DataFrame(rows)
    return found, words_of(found)


@known_as("bias.known_network")
def known_network(*, panel: dict[str, Any], device: str) -> Cell:
    """In place of a training: the best possible network, with every test input to be explained."""
    dataset = anchored.data(panel)
    weight = torch.tensor(dataset.facts["weight"], dtype=torch.float32)
    module = anchored.untrained(panel, dataset)
    module.load_state_dict({"head.weight": torch.stack([-weight, weight])})
    state = {f"net.{name}": value for name, value in module.state_dict().items()}
    everyone = torch.ones(len(dataset.splits["test"]), dtype=torch.bool)
    return Cell(tensors={**state, "correct": everyone}, facts={"passed": True})


def with_known_network(plan: Plan) -> Plan:
    """The plan with trainings replaced by `known_network`; all other tasks are as they were."""
    tasks: dict[str, Task] = {}
    for task in plan.tasks:
        function = task.function
        arguments = dict(task.arguments)
        if function is anchored.train_network:
            function = known_network
            arguments = {name: arguments[name] for name in ("panel", "device")}
        needs = [tasks[key] for key in task.needs]
        tasks[task.key] = make_task(function, arguments, needs, name=task.name, version=task.version)
    return dataclasses.replace(plan, tasks=tuple(tasks.values()))


def answers(plan: Plan, store: Store) -> dict[str, tuple[Tensor, Case]]:
    """method -> what it says (n, 2) and of which inputs, by the order of the closed forms."""
    cells: dict[str, list[Cell]] = {}
    for task in plan.tasks:
        if task.function in (anchored.attribute, anchored.play):
            cells.setdefault(task.arguments.get("method", bias.END), []).append(store.read(task.key))
    panel = next(task.arguments["panel"] for task in plan.tasks if task.function is known_network)
    return {name: answer(cells[name], panel) for name in FORMS}


def answer(cells: list[Cell], panel: dict[str, Any]) -> tuple[Tensor, Case]:
    if "players" in cells[0].tensors:
        values = cells[0].tensors["players"]
        rows = cells[0].tensors["samples"]
    else:
        estimate, samples, _ = anchors.joined(cells)
        values = estimate.values
        rows = torch.tensor(samples)
    return values.double(), case_of(rows, panel)


def case_of(rows: Tensor, panel: dict[str, Any]) -> Case:
    """The inputs with these numbers (n,), and what the closed forms are made of."""
    dataset = anchored.data(panel)
    sign = (2 * dataset.y[rows] - 1).double()[:, None]
    weight = torch.tensor(dataset.facts["weight"], dtype=torch.float64)
    noise = torch.tensor(dataset.facts["covariance"], dtype=torch.float64)
    between = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)  # what the classes add to the covariance
    known = anchored.drawn(panel, dataset, "train", anchored.REFERENCES, role="baseline")
    baseline = dataset.x[known].double()
    return Case(
        x=dataset.x[rows].double(),
        v=sign * weight,
        covariance=noise + between,
        background=baseline[: anchored.BACKGROUND],
        baseline=baseline,
    )


def row_of(name: str, values: Tensor, case: Case) -> dict[str, Any]:
    """The first explained input in numbers; the difference, of all inputs, that chance excuses least, and its error."""
    form = FORMS[name]
    expected = form.value(case)
    difference = (values - expected).abs()
    error = form.error(case).expand_as(difference)
    in_errors = difference / error
    worst = int((difference / (TOLERANCE + ERRORS * error)).argmax())
    return {
        "method": name,
        "closed_form": form.words,
        "signal": round(expected[0, 0].item(), 4),
        "our_signal": round(values[0, 0].item(), 4),
        "suppressor": round(expected[0, 1].item(), 4),
        "our_suppressor": round(values[0, 1].item(), 4),
        "largest_suppressor": round(expected[:, 1].abs().max().item(), 4),
        "difference": float(f"{difference.flatten()[worst].item():.2g}"),
        "standard_error": float(f"{error.flatten()[worst].item():.2g}"),
        "times_error": round(in_errors.square().mean().sqrt().item(), 2) if error.all() else None,
        "agrees": bool((difference <= TOLERANCE + ERRORS * error).all()),
    }


def words_of(found: pd.DataFrame) -> str:
    agreed = int(found["agrees"].sum())
    clean = found[found["largest_suppressor"] < TOLERANCE]["method"]
    lost = ", ".join(found[~found["agrees"]]["method"])
    but = f"; not so {lost}" if lost else ""
    return (
        f"{agreed} of {len(found)} methods say what they must of the best linear model with a suppressor, to "
        f"{TOLERANCE:g} or {ERRORS:g} standard errors of their draws{but}. The suppressor is independent of the label; "
        f"only {' and '.join(clean)} give it nothing. Values are those of the first explained input. Over all inputs: "
        "`largest_suppressor`; the difference that chance excuses least; `times_error`, the root mean square of "
        "differences in standard errors, 1 where draws are what they should be.\n"
    )


ARTEFACTS = (Artefact("bias/suppressor", "A linear model with a suppressor: closed forms and what methods say", table),)
