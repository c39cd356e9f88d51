"""The closed forms of a linear model with a suppressor, held against what methods say in the bias suite."""

import dataclasses

import torch
from pandas import DataFrame
from torch import Tensor

from forsooth.engine import make_task, task
from forsooth.records import WHOLE, Cell, Choice, Judgement, Outcome, Plan, Reproduction, Row, Task
from forsooth.scores.closed_forms import FORMS, Case, differences
from forsooth.suites import networks
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import data
from forsooth.suites.bias.experiment import part_rows
from forsooth.suites.bias.plan import plan
from forsooth.suites.bias.settings import Settings
from forsooth.suites.bias.stage import BACKGROUND, PREFIX, REFERENCES, Network, Panel, drawn, row_of, title
from forsooth.suites.verdicts import judgement

TOLERANCE = 1e-3
ERRORS = 4.5  # standard errors beyond which chance is no excuse
SETTINGS = Settings(
    datasets=("suppressor",), models=("linear",), players=("input",), methods=tuple(FORMS), samples=40, trainings=1
)
BETWEEN_CLASSES = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)  # what they add to the covariance
FOUR_DIGITS = ("signal", "our_signal", "suppressor", "our_suppressor", "largest_suppressor")


def plan_suppressor(settings: Settings, choice: Choice) -> Plan:
    """A run of the suite on the best linear model in place of a trained one, and what its answers should have been."""
    run = plan(settings, choice, training=known_training)
    by_key = {task.key: task for task in run.tasks}
    compared = []
    for scored in run.tasks:
        method = scored.arguments.get("method")
        if scored.id == "bias.judge" and method in FORMS:
            answers = [by_key[key] for key in scored.needs[scored.arguments["played"] :]]
            arguments = {"panel": scored.arguments["panel"], "method": method}
            compared.append(make_task(closed_form, arguments, answers, name=f"hold against its form: {method}"))
    return dataclasses.replace(run, tasks=(*run.tasks, *compared))


@task("bias.known_network", version=2)
def known_network(*, panel: Network, device: str) -> Cell:
    """In place of a training: the best possible network, with every test input to be explained."""
    dataset = data.dataset(panel.source)
    weight = torch.tensor(dataset.facts["weight"], dtype=torch.float32)
    module = data.untrained(panel.net, dataset)
    module.load_state_dict({"head.weight": torch.stack([-weight, weight])})
    everyone = torch.ones(len(dataset.splits["test"]), dtype=torch.bool)
    return Cell(tensors={**networks.weights_of(module, PREFIX), "correct": everyone}, facts={"passed": True})


def known_training(network: Network, choice: Choice) -> Task:
    """In the place of the suite's own training; all other tasks are as they were."""
    return make_task(known_network, {"panel": network, "device": choice.device}, name=f"train {title(network)}")


@task("bias.closed_form")
def closed_form(*answers: Cell, panel: Panel, method: str) -> Cell:
    """What a method says of the two features, beside what it must say."""
    samples = torch.cat([cell.tensors["samples"] for cell in answers])
    values = anchors.players_of(answers).double()
    template = row_of(panel, "closed_forms").having(method=method)
    return Cell(rows=(form_row(template, values, case_of(samples, panel)),))


def case_of(rows: Tensor, panel: Network) -> Case:
    """The inputs with these numbers (n,), and what the closed forms are made of."""
    dataset = data.dataset(panel.source)
    sign = (2 * dataset.y[rows] - 1).double()[:, None]
    weight = torch.tensor(dataset.facts["weight"], dtype=torch.float64)
    noise = torch.tensor(dataset.facts["covariance"], dtype=torch.float64)
    references = drawn(panel, dataset, "train", REFERENCES, role="baseline")
    baseline = dataset.x[references].double()
    return Case(
        x=dataset.x[rows].double(),
        v=sign * weight,
        covariance=noise + BETWEEN_CLASSES,
        background=baseline[:BACKGROUND],
        baseline=baseline,
    )


def form_row(template: Row, values: Tensor, case: Case) -> Row:
    """The first explained input in numbers, and the difference, of all inputs, that chance excuses least."""
    columns = differences(values, FORMS[str(template.method)], case, tolerance=TOLERANCE, errors=ERRORS)
    return template.having(columns, metric="difference", sample=WHOLE)


def judge_suppressor(outcome: Outcome) -> Judgement:
    """Every method of the catalogue that has a closed form, asked by the bias suite about the best linear model."""
    rows = part_rows(outcome, "closed_forms")
    table = DataFrame({"method": rows["method"], "closed_form": [FORMS[name].words for name in rows["method"]]})
    table = table.join(rows[list(FOUR_DIGITS)].round(4))
    table["difference"] = rows["value"].map(two_digits)
    table["standard_error"] = rows["standard_error"].map(two_digits)
    table["times_error"] = rows["times_error"].round(2)
    table["agrees"] = rows["excess"] <= 1
    return judgement(table, [words_of(table)])


def two_digits(value: float) -> float:
    return float(f"{value:.2g}")


WORDS = (
    "{agreed} of {all} methods say what they must of the best linear model with a suppressor, to {tolerance:g} or "
    "{errors:g} standard errors of their draws{but}. The suppressor is independent of the label; only {clean} give it "
    "nothing. Values are those of the first explained input. Over all inputs are `largest_suppressor`, the most that "
    "the suppressor gets; `difference`, the one that chance excuses least; and `times_error`, the root mean square of "
    "differences in standard errors, 1 where draws are what they should be."
)


def words_of(table: DataFrame) -> str:
    others = ", ".join(table[~table["agrees"]]["method"])
    return WORDS.format(
        agreed=table["agrees"].sum(),
        all=len(table),
        tolerance=TOLERANCE,
        errors=ERRORS,
        but=f"; not so {others}" if others else "",
        clean=" and ".join(table[table["largest_suppressor"] < TOLERANCE]["method"]),
    )


REPRODUCTIONS = (
    Reproduction(
        "bias/suppressor",
        "A linear model with a suppressor: closed forms and what methods say",
        SETTINGS,
        plan_suppressor,
        judge_suppressor,
    ),
)
