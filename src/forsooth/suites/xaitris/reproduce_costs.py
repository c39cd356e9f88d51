"""What the scores make of named strategies (Fig. B3), and what a scenario costs (Appendix B.3), made again."""

from collections.abc import Mapping
from dataclasses import replace

from pandas import DataFrame, Series

from forsooth import papers
from forsooth.records import Choice, Judgement, Outcome, Plan, Reproduction, Sentences
from forsooth.suites.verdicts import judgement, outcome
from forsooth.suites.xaitris.plan import chosen_data, plan_of_one_size, strategy_tasks
from forsooth.suites.xaitris.settings import LARGE, SMALL, Settings, check

STEPS = {"training": "xaitris.train", "explaining": "xaitris.explain", "scoring": "xaitris.score"}
STEP = "{0.step}: published {0.low:g} to {0.high:g} {0.unit} on {0.on}, ours {0.ours:.3g}."
SECONDS = {"minutes a network": 60.0, "hours a scenario": 3600.0}


def plan_strategies(settings: Settings, choice: Choice) -> Plan:
    check(settings)
    return Plan(tasks=tuple(strategy_tasks(list(chosen_data(settings, choice)), settings)))


def judge_strategies(found: Outcome) -> Judgement:
    """Every score of every strategy, and the claims of the caption."""
    table = found.rows.pivot_table(index=["size", "method"], columns="metric", values="value").reset_index()
    lines: list[str] = []
    for size, own in table.groupby("size"):
        scores = own.set_index("method")
        lines += claims_of_strategies(scores, f"{size}×{size}")
    return judgement(table.round(4), lines)


def claims_of_strategies(scores: DataFrame, where: str) -> Sentences:
    """They are exact numbers, so that there are no intervals.

    scores  a line for each strategy
    """
    emd = scores[next(name for name in scores if str(name).startswith("emd"))]
    strategies = emd.drop(["truth", "whole image"])
    yield f"{where}, EMD: {compared('a part of the truth is better than its outline', part_of(emd), emd['outline'])}"
    worst = strategies.idxmin()
    yield (
        f"{where}, EMD: the outline is the worst of the strategies: {outcome(worst == 'outline', worst != 'outline')} "
        f"(the worst is '{worst}' with {strategies.min():.3f})."
    )
    if "precision" in scores:
        words = "missing a half costs less by EMD than by precision"
        yield f"{where}: {compared(words, 1 - part_of(scores['precision']), 1 - part_of(emd))}"


def part_of(scores: "Series[float]") -> float:
    return float(scores["half of each piece"])


def compared(words: str, larger: float, smaller: float) -> str:
    """Whether the first of two exact numbers is above the second."""
    return f"{words}: {outcome(larger > smaller, larger <= smaller)} ({larger:.3f} against {smaller:.3f})."


def judge_costs(found: Outcome) -> Judgement:
    """Seconds of tasks, of each one core or a share of the accelerator, beside the published hours."""
    scenarios = max(1, found.rows["scenario"].nunique())
    networks = int(found.rows["part"].eq("training").sum())
    table = cost_table(found, {"minutes a network": max(1, networks), "hours a scenario": scenarios})
    words = [
        f"{networks} networks, {scenarios} scenarios on {found.choice.device}: seconds of tasks, each on one core or "
        "a share of the accelerator; tasks that ran side by side are added up, so that the clock shows less."
    ]
    return judgement(table, words + [STEP.format(line) for line in table.itertuples()])


def cost_table(found: Outcome, counts: Mapping[str, int]) -> DataFrame:
    """Published and ours, step by step.

    counts  how many of what stands in a unit: networks, scenarios
    """
    table = papers.table("xaitris_costs")
    spent = Series(dict(found.seconds)).groupby(dict(found.tasks)).sum()  # by the kind of work
    steps = zip(table["step"], table["unit"], strict=True)
    table["ours"] = [spent.get(STEPS[step], 0.0) / counts[unit] / SECONDS[unit] for step, unit in steps]
    table["times less"] = table["low"] / table["ours"]
    return table


REPRODUCTIONS = (
    Reproduction(
        "xaitris/figure-b3",
        "what the scores make of parts, outlines and the whole of the truth",
        replace(SMALL, scenarios=("LIN",), backgrounds=("WHITE",)),
        plan_strategies,
        judge_strategies,
    ),
    Reproduction(
        "xaitris/costs",
        "what a scenario costs, beside Appendix B.3",
        replace(LARGE, scenarios=("LIN",)),
        plan_of_one_size,
        judge_costs,
    ),
)
