"""Table 13 and Fig. 8 made again: M_bias on tables of a few features, whose Shapley values are exact."""

import dataclasses

from pandas import DataFrame, Series, concat

from forsooth import papers
from forsooth.counted import filled
from forsooth.engine import task
from forsooth.frames import only, without
from forsooth.records import Cell, Choice, Judgement, Outcome, Plan, Reproduction, Row, Task
from forsooth.scores import bias as scores
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import data
from forsooth.suites.bias.experiment import ExperimentSettings, part_rows
from forsooth.suites.bias.plan import experiment_on, plan
from forsooth.suites.bias.settings import NULLS, SHAPLEY, Settings
from forsooth.suites.bias.stage import Panel, row_of
from forsooth.suites.bias.tables import means, rounded, score_rows
from forsooth.suites.explain import rows_by_sample
from forsooth.suites.planning import planned
from forsooth.suites.verdicts import judgement
from forsooth.wording import by_name

ON_TABLES = Settings(players=("input",), models=("mlp5",), samples=100, trainings=1)
TABLE_13 = ExperimentSettings(players=("input",), models=("mlp5",), samples=100, trainings=1, exact_up_to=0)
ENUMERATED = 12  # players up to which the exact values of Table 13 are enumerated
TEN_TIMES = 10
RIVALS = ("m_bias", "deep_shap_distance")
FRACTION = ["dataset", "fraction"]
LEAST_BIASED = {"integrated_gradients", "deep_shap"}  # as published


def tables_here(choice: Choice) -> list[str]:
    """The tables to play on: the generated one, and all that `--data` has."""
    chosen = choice.only.get("dataset")
    if chosen:
        return list(chosen)
    return ["interactions", *(name for name in data.datasets_in(choice.data) if data.entry_for(name).kind == "table")]


def plan_table_13(settings: Settings, choice: Choice) -> Plan:
    """Anchors sampled and exact, and DeepSHAP, for every table."""
    tasks: list[Task] = []
    for name in tables_here(choice):
        experiment = experiment_on(name, settings, choice)
        sampled = experiment.play("anchor")
        exact = experiment.having(exact_up_to=ENUMERATED).play("anchor")
        needs = [*sampled, *exact, experiment.explain("deep_shap")]
        tasks += experiment.measured(rivals, f"compare the two metrics, {name}", needs, parts=len(sampled))
    return planned(tasks)


@task("bias.rivals", version=3)
def rivals(*cells: Cell, panel: Panel, parts: int) -> Cell:
    """The exact values of every input judged twice. Cells: sampled anchors, exact ones, what DeepSHAP says."""
    anchor = anchors.joined(cells[:parts])
    exact = anchors.joined(cells[parts : 2 * parts]).estimate.values
    deep = cells[-1].tensors["players"][: len(exact)]
    states = anchors.states(exact, scores.squared_norms(anchor.estimate, "plain")[0])
    template = row_of(panel, "rivals").having(method=SHAPLEY, end="top")
    rows: list[Row] = []
    for fraction in scores.FRACTIONS:
        ours = scores.m_bias(exact, anchor.estimate, fraction=fraction, end="top").value
        theirs = scores.deep_shap_distance(exact, deep, fraction=fraction, end="top")
        for metric, values in zip(RIVALS, (ours, theirs), strict=True):
            own = template.having(metric=metric, fraction=fraction)
            rows += rows_by_sample(own, anchor.samples, value=values, status=states)
    return Cell(rows=tuple(rows))


def judge_table_13(outcome: Outcome) -> Judgement:
    """Table 13: exact Shapley values of ten features, judged by M_bias and by the metric based on DeepSHAP."""
    rows = part_rows(outcome, "rivals")
    table = concat([rival_means(rows, metric) for metric in RIVALS], axis=1).reset_index()
    published = papers.table("bias_table_13").pivot(index="fraction", columns="metric", values="value")
    table = table.join(published.add_prefix("published_"), on="fraction")
    table["times"] = table["deep_shap_distance"] / table["m_bias"]
    table["times_defined"] = table["deep_shap_distance_defined"] / table["m_bias_defined"]
    return judgement(table.round(5), [f"{name}: {on_times(own)}" for name, own in table.groupby("dataset", sort=False)])


def rival_means(rows: DataFrame, metric: str) -> DataFrame:
    """The mean of one of the metrics by dataset and fraction.

    An input on which it says nothing counts as its worst value: METRIC_failed is the share of those, METRIC_defined the
    mean without them. Where the Shapley values are zero there is nothing to judge.
    """
    own = filled(only(rows, metric=metric), better="lower", bounds=None, within=FRACTION)
    defined = own.assign(defined=own["value"].mask(own["failed"]))
    means = defined.groupby(FRACTION, sort=False)[["value", "failed", "defined"]].mean()
    return means.rename(columns={"value": metric, "failed": f"{metric}_failed", "defined": f"{metric}_defined"})


def on_times(table: DataFrame) -> str:
    """How much smaller M_bias of the exact values is, at least."""
    least = table["times"].min()
    published = (table["published_deep_shap_distance"] / table["published_m_bias"]).min()
    how = "at least" if least >= TEN_TIMES else "only"
    return (
        f"M_bias of the exact Shapley values is {how} {least:.0f} times below the metric based on DeepSHAP in every "
        f"column (published: {published:.0f}).{on_failures(table)}"
    )


def on_failures(table: DataFrame) -> str:
    """On how many inputs a metric said nothing, and what comes out without those; empty where there are none."""
    shares = Series({metric: table[f"{metric}_failed"].max() for metric in RIVALS})
    if not shares.any():
        return ""
    who = by_name(shares[shares > 0], "{} {:.0%}")
    least = table["times_defined"].min()
    return f" Inputs without a score count as the worst: {who}. Left out: at least {least:.0f} times."


def plan_figure_8(settings: Settings, choice: Choice) -> Plan:
    return plan(settings, dataclasses.replace(choice, only={"dataset": tuple(tables_here(choice))}))


def judge_figure_8(outcome: Outcome) -> Judgement:
    """Fig. 8: M_bias of every method on tables, with exact Shapley values as the anchor."""
    by_dataset = score_rows(outcome.rows).groupby("dataset", sort=False)
    tables = {str(name): means(rows).assign(dataset=name) for name, rows in by_dataset}
    words = [f"{name}: {on_least_biased(ours)}" for name, ours in tables.items()]
    return judgement(rounded(concat(tables, ignore_index=True)), words)


def on_least_biased(ours: DataFrame) -> str:
    methods = without(ours, method=(SHAPLEY, *NULLS)).groupby("method")["ours"].mean().sort_values()
    best = [f"{method} ({value:.4f})" for method, value in methods.iloc[:2].items()]
    same = "as" if set(methods.index[:2]) == LEAST_BIASED else "not as"
    return (
        f"least biased are {' and '.join(best)}, mean over the ten rows; {same} in the paper, where IG and DeepSHAP "
        "come first."
    )


REPRODUCTIONS = (
    Reproduction(
        "bias/table-13",
        "exact Shapley values, judged by M_bias and by DeepSHAP",
        TABLE_13,
        plan_table_13,
        judge_table_13,
    ),
    Reproduction("bias/figure-8", "M_bias on tables", ON_TABLES, plan_figure_8, judge_figure_8),
)
