"""Is the anchor sure enough? Fig. 5 and Proposition 1 made again. [anonymous2023evaluation]

With `--data` these run on CIFAR-10 as in the paper, without on the generated leaves.
"""

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from pandas import DataFrame
from torch import Tensor

from forsooth.engine import task
from forsooth.frames import only, worded
from forsooth.games.shapley import Estimate
from forsooth.records import WHOLE, Cell, Choice, Facts, Judgement, Outcome, Plan, Reproduction, Row, Task
from forsooth.scores import bias as scores
from forsooth.scores import convergence
from forsooth.settings import check_range
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias.experiment import ON_LENET, experiment_on_images, part_rows, title_of
from forsooth.suites.bias.plan import Experiment
from forsooth.suites.bias.settings import Settings
from forsooth.suites.bias.stage import Panel, row_of
from forsooth.suites.planning import planned
from forsooth.suites.verdicts import judgement

CHOOSING = ("gradient", "gradient_x_input", "integrated_gradients", "guided_backprop")  # the maps that choose groups S
MUCH_STABLER = 2


@dataclass(frozen=True)
class Figure5Settings:
    """What decides Fig. 5.

    base          settings of the suite
    sampled       numbers of permutations that are compared
    grids         numbers of patches a side that are compared, with so many permutations
    with_grids    permutations with which grids are compared
    repeats       draws of each, from which instabilities are computed
    """

    base: Settings = field(default=dataclasses.replace(ON_LENET, samples=4, grid=8))
    sampled: tuple[int, ...] = (10, 30, 100, 300, 1000)
    grids: tuple[int, ...] = (2, 4, 8, 16, 32)
    with_grids: int = 100
    repeats: int = 6


def plan_figure_5(settings: Figure5Settings, choice: Choice) -> Plan:
    """Several draws of the anchor for every number of permutations and of patches."""
    check_range(settings, ("sampled", "grids", "with_grids"), 1)
    check_range(settings, ("repeats",), 2, 1_000)  # whose differences are measured
    experiment = experiment_on_images(settings.base, choice)
    tasks: list[Task] = []
    for count in settings.sampled:
        tasks += drawing_tasks(experiment, "samples", settings.repeats, {"permutations": count})
    for grid in settings.grids:
        changes = {"permutations": settings.with_grids, "grid": grid}
        tasks += drawing_tasks(experiment, "variables", settings.repeats, changes)
    return planned(tasks)


def drawing_tasks(experiment: Experiment, varied: str, repeats: int, changes: Facts) -> list[Task]:
    changed = experiment.having(**changes)
    draws = [changed.having(exact_up_to=0).play(f"draw {k}") for k in range(repeats)]
    needs = [*itertools.chain(*draws), *map(changed.explain, CHOOSING)]
    words = f"compare {experiment.title}, {changes}"
    sizes = {"draws": repeats, "parts": len(draws[0]), "permutations": changes["permutations"]}
    return experiment.measured(unstable, words, needs, varied=varied, **sizes)


@task("bias.unstable", version=3)
def unstable(*cells: Cell, panel: Panel, draws: int, parts: int, varied: str, permutations: int) -> Cell:
    """Instability of the values, and of the anchor averaged over the groups that the maps choose; means over inputs."""
    estimates = [anchors.joined(cells[k * parts : (k + 1) * parts]).estimate for k in range(draws)]
    values = torch.stack([scores.unit(estimate.values) for estimate in estimates])  # (draws, n, players)
    maps = [cell.tensors["players"] for cell in cells[draws * parts :]]
    row = row_of(panel, "stability").having(
        metric="anchor_instability",
        sample=WHOLE,
        players=values.shape[2],
        varied=varied,
        permutations=permutations,
        value=convergence.anchor_instability(values, maps),
        values=convergence.instability(values).mean().item(),
    )
    return Cell(rows=(row,))


def judge_figure_5(outcome: Outcome) -> Judgement:
    """Fig. 5: instability of the anchor β beside that of the sampled values, by samples and by variables."""
    rows = part_rows(outcome, "stability", value="anchor", counts=("permutations", "players"))
    table = rows[["varied", "permutations", "players", "values", "anchor"]].round(4)
    table["times"] = (table["values"] / table["anchor"]).round(1)
    return judgement(table, [f"Fig. 5 on {title_of(rows)}: {on_stability(table)}"])


STABILITY = (
    "the anchor is {least:.1f} to {most:.1f} times as stable as the sampled values. From {few[permutations]} to "
    "{many[permutations]} permutations the instability of the values falls from {few[values]:.3f} to "
    "{many[values]:.3f}, that of the anchor from {few[anchor]:.3f} to {many[anchor]:.3f}. The published claim, that "
    "the anchor is much the more stable one, {holds}."
)


def on_stability(table: DataFrame) -> str:
    """How much more stable the anchor is, and what more permutations do."""
    few, many = only(table, varied="samples").iloc[[0, -1]].to_dict("records")
    least = table["times"].min()
    holds = "holds" if least > MUCH_STABLER else "does not hold everywhere"
    return STABILITY.format(least=least, most=table["times"].max(), few=few, many=many, holds=holds)


def plan_proposition_1(settings: Settings, choice: Choice) -> Plan:
    experiment = experiment_on_images(settings, choice)
    anchor = experiment.play("anchor")
    needs = [*anchor, *map(experiment.explain, CHOOSING)]
    words = f"measure the factor, {experiment.title}"
    return planned(experiment.measured(ratios, words, needs, parts=len(anchor), methods=CHOOSING))


@task("bias.ratios", version=2)
def ratios(*cells: Cell, panel: Panel, parts: int, methods: tuple[str, ...]) -> Cell:
    """Variance of one value over that of the mean over S, for the groups S that methods choose."""
    anchor = anchors.joined(cells[:parts]).estimate
    template = row_of(panel, "proposition_1").having(metric="variance_ratio", sample=WHOLE)
    rows: list[Row] = []
    for name, cell in zip(methods, cells[parts:], strict=True):
        rows += factor_rows(template.having(method=name), cell.tensors["players"], anchor)
    return Cell(rows=tuple(rows))


def factor_rows(template: Row, maps: Tensor, anchor: Estimate) -> Iterator[Row]:
    """A row for every group that the maps (n, players) choose; the median over inputs."""
    for end, fraction in scores.PAIRS:
        factor = convergence.variance_ratio(maps, anchor, fraction=fraction, end=end).nanmedian().item()
        size = scores.group_size(maps.shape[1], fraction)
        yield template.having(end=end, fraction=fraction, value=factor, size=size)


PROPOSITION_1 = (
    "Proposition 1 on {title}: the variance of one value over that of the mean over S, median over maps, ends and "
    "inputs: {factors}. The paper says |S|. It holds within {off:.0%} for the smallest groups; for the largest the "
    "factor is {largest:.1f} times |S|, because the gains of a permutation sum to a constant, so that the errors of "
    "many players cancel. The anchor is surer than claimed."
)


def judge_proposition_1(outcome: Outcome) -> Judgement:
    """Proposition 1: Var[A_i] / Var[mean of A over S], which the paper proves to be |S| for independent errors."""
    rows = part_rows(outcome, "proposition_1", value="factor", counts=("size",))
    table = rows[["method", "end", "fraction", "size", "factor"]]
    by_size = table.groupby(["fraction", "size"], as_index=False)["factor"].median()
    factors = ", ".join(worded(by_size, "{factor:.0f} for |S| = {size}"))
    times = by_size["factor"] / by_size["size"]
    ends = {"off": abs(times.iloc[0] - 1), "largest": times.iloc[-1]}
    return judgement(table.round(3), [PROPOSITION_1.format(title=title_of(rows), factors=factors, **ends)])


REPRODUCTIONS = (
    Reproduction(
        "bias/figure-5",
        "instability of the anchor and of the sampled values",
        Figure5Settings(),
        plan_figure_5,
        judge_figure_5,
    ),
    Reproduction(
        "bias/proposition-1",
        "how much surer the anchor is than one value",
        dataclasses.replace(ON_LENET, samples=8, grid=8, exact_up_to=0),
        plan_proposition_1,
        judge_proposition_1,
    ),
)
