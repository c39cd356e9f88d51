"""Fig. 6 made again: M_bias beside the accurate bias, which wants far surer Shapley values. [anonymous2023evaluation]

With `--data` this runs on CIFAR-10 as in the paper, without on the generated leaves.
"""

import dataclasses
from typing import NamedTuple

import torch
from pandas import DataFrame

from forsooth.counted import counted
from forsooth.engine import task
from forsooth.frames import only
from forsooth.records import Cell, Choice, Judgement, Outcome, Plan, Reproduction, Row, Task
from forsooth.scores import bias as scores
from forsooth.stats.correlations import pearson, spearman
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias.experiment import ON_LENET, experiment_on_images, part_rows, title_of
from forsooth.suites.bias.plan import Experiment
from forsooth.suites.bias.settings import PUBLISHED, Settings
from forsooth.suites.bias.stage import Panel, row_of
from forsooth.suites.explain import no_scores, rows_by_sample
from forsooth.suites.planning import planned
from forsooth.suites.verdicts import judgement

COMPARED = (*(name for name in PUBLISHED if name != "grad_cam"), "random", "constant")
SURE = 20  # times the permutations, for the accurate bias
ENUMERATED = 16  # players up to which the accurate bias is exact
POSITIVE = 0.3
TOP_TENTH = 0.1


def plan_figure_6(settings: Settings, choice: Choice) -> Plan:
    """The anchor, a far surer one, and maps of every network.

    The default is small: LeNet, 64 patches and so six players in S. --set models=lenet,resnet20,resnet56 asks more
    networks whose weights are in --data, --set grid=none asks pixels, both for an accelerator.
    """
    tasks: list[Task] = []
    for net in settings.models:
        tasks += comparing_tasks(experiment_on_images(dataclasses.replace(settings, models=(net,)), choice))
    return planned(tasks)


def comparing_tasks(experiment: Experiment) -> list[Task]:
    anchor = experiment.having(exact_up_to=0).play("anchor")
    permutations = SURE * experiment.settings.permutations
    sure = experiment.having(exact_up_to=ENUMERATED, permutations=permutations).play("sure")
    needs = [*anchor, *sure, *map(experiment.explain, COMPARED)]
    words = f"compare biases, {experiment.title}"
    return experiment.measured(both_biases, words, needs, parts=len(anchor), methods=COMPARED)


@task("bias.both_biases", version=4)
def both_biases(*cells: Cell, panel: Panel, parts: int, methods: tuple[str, ...]) -> Cell:
    """M_bias and the accurate bias of every method and input; nan where a map or an anchor says nothing."""
    anchor = anchors.joined(cells[:parts])
    sure = anchors.joined(cells[parts : 2 * parts])
    players = anchor.estimate.values.shape[1]
    size = scores.group_size(players, TOP_TENTH)
    template = row_of(panel, "accurate_bias").having(metric="m_bias", players=players, size=size)
    rows: list[Row] = []
    for name, cell in zip(methods, cells[2 * parts :], strict=True):
        own = template.having(method=name)
        if "players" in cell.tensors:
            rows += biases_of(own, cell.tensors["players"], anchor, sure)
        else:
            rows += no_scores(own, ["m_bias"], anchor.samples, cell.facts)
    return Cell(rows=tuple(rows))


def biases_of(template: Row, maps: torch.Tensor, anchor: anchors.Anchor, sure: anchors.Anchor) -> list[Row]:
    """A row for every input of one method, whose maps are (n, players)."""
    norms = [scores.squared_norms(one.estimate, "plain")[0] for one in (anchor, sure)]
    return rows_by_sample(
        template,
        anchor.samples,
        value=scores.m_bias(maps, anchor.estimate, fraction=TOP_TENTH, end="top").value,
        accurate=scores.accurate_bias(maps, sure.estimate, fraction=TOP_TENTH, end="top"),
        status=anchors.states(maps, torch.minimum(*norms)),
    )


def judge_figure_6(outcome: Outcome) -> Judgement:
    """Fig. 6: M_bias of the top 10 % beside the accurate bias, from 20 times the permutations; or exact values."""
    rows = both_counted(part_rows(outcome, "accurate_bias", counts=("players", "size")))
    table = rows.rename(columns={"value": "m_bias"})
    table = table[["dataset", "method", "sample", "players", "size", "m_bias", "accurate", "failed", "model"]]
    sentences = [on_relation(own) for _, own in table.groupby("model", sort=False)]
    return judgement(table.drop(columns="dataset").round(5), sentences)


def both_counted(rows: DataFrame) -> DataFrame:
    """The rows with both biases, where a map that says nothing has the worst of its network in both, and `failed`."""
    missing = rows["value"].isna() | rows["accurate"].isna()
    both = counted(rows.assign(value=rows["value"].mask(missing)), scores.M_BIAS, within=["model"])
    accurate = counted(rows.assign(value=rows["accurate"].mask(missing)), scores.M_BIAS, within=["model"])
    return both.assign(accurate=accurate["value"])


class Relation(NamedTuple):
    """How the two biases go together: Pearson's r and Spearman's ρ over maps, and ρ over the means of methods."""

    pearson: float
    spearman: float
    of_means: float

    def __str__(self) -> str:
        return (
            f"Pearson's r {self.pearson:.2f} and Spearman's ρ {self.spearman:.2f}; over the methods' means ρ "
            f"{self.of_means:.2f}"
        )


def relation_of(table: DataFrame) -> Relation:
    means = table.groupby("method")[["m_bias", "accurate"]].mean()
    return Relation(
        pearson=pearson(table["m_bias"], table["accurate"]),
        spearman=spearman(table["m_bias"], table["accurate"]).rho,
        of_means=spearman(means["m_bias"], means["accurate"]).rho,
    )


RELATION = (
    "Fig. 6 on {title}: over {maps} maps of {methods} methods, with {first[size]} of {first[players]} players in S, "
    "M_bias and the accurate bias have {relation}. The published positive relation {holds}.{failures}"
)
FAILURES = (
    " {lost} maps ({share:.0%}) say nothing and count as the worst in both, which by itself makes the two go together: "
    "without them {relation}."
)


def on_relation(table: DataFrame) -> str:
    """How the two biases go together: with the maps that say nothing, and without them."""
    scored = only(table, failed=False)
    lost = len(table) - len(scored)
    relation = relation_of(table)
    without = relation_of(scored)
    failures = FAILURES.format(lost=lost, share=lost / len(table), relation=without)
    return RELATION.format(
        title=title_of(table),
        maps=len(table),
        methods=table["method"].nunique(),
        first=table.iloc[0],
        relation=relation,
        holds="holds" if min(relation.pearson, without.pearson) > POSITIVE else "is weak here",
        failures=failures if lost else "",
    )


REPRODUCTIONS = (
    Reproduction(
        "bias/figure-6",
        "M_bias beside the accurate bias",
        dataclasses.replace(ON_LENET, samples=8, grid=8, permutations=100),
        plan_figure_6,
        judge_figure_6,
    ),
)
