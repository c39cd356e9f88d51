"""The figures of XAI-TRIS with maps and with boxes of scores: the suite's own run, and verdicts on their claims."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pandas import DataFrame, concat

from forsooth import seeds
from forsooth.frames import only, without
from forsooth.names import unknown
from forsooth.records import Choice, Judgement, Outcome, Plan, Reproduction, Sentences, UsageError
from forsooth.settings import check_range
from forsooth.suites import planning
from forsooth.suites.verdicts import judgement
from forsooth.suites.xaitris import tables
from forsooth.suites.xaitris.claims import (
    against_nulls,
    edge_detector,
    lime_fails,
    mlp_follows_photographs,
    question_1,
    question_2,
    question_3,
    question_4,
    shap_variants_agree,
    simple_is_explained_best,
)
from forsooth.suites.xaitris.plan import plan, plan_of_one_size
from forsooth.suites.xaitris.settings import LARGE, PAPER, SMALL, Settings
from forsooth.suites.xaitris.tables import Tables

Claims = Sequence[Callable[[Tables], Sentences]]
QUESTIONS: Claims = (question_1, question_2, question_3, question_4)
FIGURE_3: Claims = (*QUESTIONS, edge_detector)
MAPS: Claims = (simple_is_explained_best, mlp_follows_photographs, lime_fails)
ALL_METHODS: Claims = (question_1, edge_detector, shap_variants_agree)


@dataclass(frozen=True)
class Repeated:
    """The same on several datasets.

    datasets  drawn by seeds of their own; the first is that of a run
    suite     what is asked of each
    """

    datasets: int
    suite: Settings


def choices(settings: Repeated, choice: Choice) -> list[Choice]:
    """What is asked of each dataset: the same, under a seed of its own."""
    others = (seeds.derive(choice.seed, "dataset", k) for k in range(1, settings.datasets))
    return [choice, *(replace(choice, seed=seed) for seed in others)]


def plan_repeated(settings: Repeated, choice: Choice) -> Plan:
    """The suite's plan for every dataset."""
    check_range(settings, ("datasets",), 1, 1_000)
    plans = [plan_of_one_size(settings.suite, one) for one in choices(settings, choice)]
    work: list[planning.Work] = []
    for one in plans:
        work += [*one.tasks, *one.skips]
    return planning.planned(work, plans[0].facts)


def judge(outcome: Outcome, *, metrics: Sequence[str], sentences: Claims) -> Judgement:
    """Boxes of every panel and method, and what they say of the claims."""
    settings, rows = one_suite(outcome)
    lines = [what_was_run(rows)]
    boxes = []
    for wanted in metrics:
        metric = metric_of(wanted, settings)
        by_panel = tables.by_panel(rows, metric)
        if not by_panel:
            raise UsageError("no network passed its gate, so there is nothing to judge")
        lines += [f"{metric}: {line}" for claim in sentences for line in claim(by_panel)]
        failures = tables.by_panel(rows, metric, column="failed")
        boxes.append(tables.boxes(by_panel, failures, metric))
    return judgement(concat(boxes, ignore_index=True).round(4), lines)


def one_suite(outcome: Outcome) -> tuple[Settings, DataFrame]:
    """The suite's settings, and the rows, with the number of their dataset where there were several."""
    settings = outcome.settings
    if isinstance(settings, Settings):
        return settings, outcome.rows
    draws = enumerate(choices(settings, outcome.choice))
    draw_of = {task.key: k for k, choice in draws for task in plan(settings.suite, choice).tasks}
    return settings.suite, outcome.rows.assign(draw=outcome.rows["cell"].map(draw_of))


def metric_of(wanted: str, settings: Settings) -> str:
    """The metric of that name as the settings have it: `emd` may be `emd_released`."""
    found = [name for name in settings.metrics if name.startswith(wanted)]
    if not found:
        raise unknown(wanted, settings.metrics, argument="metrics")
    return found[0]


def what_was_run(rows: DataFrame) -> str:
    """Trainings, images and gates, in a sentence."""
    trained = only(rows, part="training", metric="accuracy")
    passed = trained["status"].eq("ok").sum()
    images = without(only(rows, part="scores"), metric="").groupby(["scenario", "background"])["sample"].nunique()
    return (
        f"{len(trained)} trainings, {passed} of them above the gate; {images.min()} to {images.max()} images explained "
        "in each scenario and background. Intervals of one panel are over images and trainings, those of several over "
        "methods and trainings; where there is one training they are over methods alone."
    )


def figure(
    name: str, title: str, settings: Settings | Repeated, metrics: Sequence[str], sentences: Claims
) -> Reproduction:
    planned = plan_repeated if isinstance(settings, Repeated) else plan_of_one_size
    judged = partial(judge, metrics=metrics, sentences=sentences)
    return Reproduction(f"xaitris/{name}", title, settings, planned, judged)


PRINTED = replace(PAPER, sizes=(64,))
MANY = Repeated(datasets=25, suite=replace(SMALL, trainings=1))
IMA = ("ima",)
EMD = ("emd",)
BOTH = (*EMD, *IMA)
PRECISION = ("precision",)
# All figures of a size ask for the same tasks, so that with one `--out` the first pays for all. The paper's text does
# not say which methods its Fig. 3 shows: all are asked.
REPRODUCTIONS = (
    figure("figure-2", "maps of single images at 64×64", LARGE, IMA, MAPS),
    figure(
        "figure-3",
        "EMD and IMA at 64×64, and the four questions",
        LARGE,
        BOTH,
        FIGURE_3,
    ),
    figure(
        "figure-3-as-printed",
        "the same with networks and training as printed",
        PRINTED,
        BOTH,
        FIGURE_3,
    ),
    figure("figure-b4", "mean maps at 64×64", LARGE, IMA, (*MAPS, question_3)),
    figure("figure-b5", "EMD of every method at 64×64", LARGE, EMD, ALL_METHODS),
    figure("figure-b6", "IMA of every method at 64×64", LARGE, IMA, (*ALL_METHODS, question_2)),
    figure(
        "figure-b7",
        "precision of every method at 64×64",
        LARGE,
        PRECISION,
        (against_nulls, lime_fails, question_1),
    ),
    figure("figure-b10", "maps of single images at 8×8", SMALL, IMA, (simple_is_explained_best,)),
    figure("figure-b11", "mean maps at 8×8", SMALL, IMA, (simple_is_explained_best, question_3)),
    figure("figure-b12", "EMD at 8×8, 25 datasets", MANY, EMD, (simple_is_explained_best, *QUESTIONS)),
    figure(
        "figure-b13",
        "EMD of every method at 8×8, 25 datasets",
        MANY,
        EMD,
        (*ALL_METHODS, simple_is_explained_best),
    ),
    figure(
        "figure-b14",
        "precision of every method at 8×8, 25 datasets",
        MANY,
        PRECISION,
        (against_nulls, question_1),
    ),
)
