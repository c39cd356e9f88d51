"""What the metric takes for granted: Fig. 4b, Tables 14 and 15 made again. [anonymous2023evaluation]

With `--data` these run on CIFAR-10 as in the paper, without on LeNet and the generated leaves.
"""

import dataclasses
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from pandas import DataFrame
from scipy.stats import kurtosis
from torch import Tensor

from forsooth import papers, seeds
from forsooth.engine import task
from forsooth.games.walks import walks
from forsooth.records import WHOLE, Cell, Choice, Judgement, Outcome, Plan, Reproduction, Row
from forsooth.scores.masking import order_dependence
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias.experiment import ON_LENET, experiment_on_images, part_rows, title_of
from forsooth.suites.bias.settings import Settings
from forsooth.suites.bias.stage import GameSpec, Panel, Stage, row_of
from forsooth.suites.planning import planned
from forsooth.suites.verdicts import judgement

REGIONS = 3
REGION_SIDE = 5  # pixels
CIFAR_SIDE = 32
FAR_ABOVE = 5  # times its mean gain
HEAVY_TAILS = 1.0  # excess kurtosis


def plan_figure_4b(settings: Settings, choice: Choice) -> Plan:
    experiment = experiment_on_images(settings, choice)
    words = f"mask in many orders, {experiment.title}"
    seed = experiment.seed("contexts")
    masked = experiment.task_on_network(contexts, words, samples=settings.samples, seed=seed)
    return planned([*experiment.trained, masked])


@task("bias.contexts", version=3, spec="game")
def contexts(*trained: Cell, panel: Panel, spec: GameSpec, samples: int, seed: int, device: str) -> Cell:
    """V of every player of a few inputs: a random order gives a random number of others, of random names."""
    stage = Stage(trained, panel, spec, device)
    chosen = stage.samples[:samples]
    template = row_of(panel, "contexts").having(metric="order_dependence")
    rows: list[Row] = []
    for sample, gains in zip(chosen.tolist(), gains_by_order(stage, chosen, seed=seed), strict=True):
        rows += player_rows(template.having(sample=sample), gains)
    return Cell(rows=tuple(rows))


def player_rows(template: Row, gains: Tensor) -> Iterator[Row]:
    """A row for each player, from what it adds in every order. gains (orders, players)"""
    mean = order_dependence(gains[None])[0].tolist()
    median = order_dependence(gains[None], centre="median")[0].tolist()
    largest = (gains / gains.mean(0)).abs().amax(0).tolist()
    for place, value in enumerate(mean):
        yield template.having(value=value, place=place, median=median[place], largest=largest[place])


def gains_by_order(stage: Stage, chosen: Tensor, *, seed: int) -> Iterator[Tensor]:
    """What every player adds in every order, for each input: (orders, players)."""
    generator = seeds.generator(seed, "orders")
    parts = walks(stage.game_of(chosen), stage.spec.permutations, generator, antithetic=False)
    yield from torch.cat([part.cpu() for part in parts], dim=1)


CONTEXTS = (
    "Fig. 4b on {title}: what one player adds when it is masked changes with those masked before. The median of "
    "max(|Δ/Δ̄|, |Δ̄/Δ|) over contexts is {median:.1f} for the middle player; its mean V, which a single gain near "
    "zero can carry away, is {mean:.1f}. {far:.0%} of the players have a context in which they add more than five "
    "times their mean, as the paper reports of some."
)


def judge_figure_4b(outcome: Outcome) -> Judgement:
    """Fig. 4b: what a player adds depends on who is masked before it: V of random players, and the largest gains."""
    rows = part_rows(outcome, "contexts", counts=("place",))
    table = rows[["sample", "place", "value", "median", "largest"]]
    table = table.rename(columns={"place": "player", "value": "mean"})
    finite = table[np.isfinite(table["mean"])]
    far = (table["largest"] > FAR_ABOVE).mean()
    middle = {"median": table["median"].median(), "mean": finite["mean"].median()}
    return judgement(table.round(3), [CONTEXTS.format(title=title_of(rows), far=far, **middle)])


def plan_regions(settings: Settings, choice: Choice, *, number: int) -> Plan:
    """The values of Gradient×Input (Table 14) or sampled Shapley values (Table 15), and their moments in regions."""
    experiment = experiment_on_images(settings, choice)
    values = [experiment.explain("gradient_x_input")] if number == 14 else experiment.play("anchor")
    side = experiment.panel.source.side or CIFAR_SIDE
    words = f"regions of {experiment.title}"
    return planned(experiment.measured(regions, words, values, side=side, seed=experiment.seed("regions")))


@task("bias.regions", version=2)
def regions(*cells: Cell, panel: Panel, side: int, seed: int) -> Cell:
    """Moments of the values in three random regions of 5×5 pixels, over all explained inputs."""
    values = anchors.players_of(cells).view(-1, side, side).double()
    corners = torch.randint(side - REGION_SIDE, (REGIONS, 2), generator=seeds.generator(seed, "corners")).tolist()
    template = row_of(panel, "regions")
    rows: list[Row] = []
    for number, (top, left) in enumerate(corners, start=1):
        inside = values[:, top : top + REGION_SIDE, left : left + REGION_SIDE].flatten()
        rows.append(moments_row(template.having(region=number), inside))
    return Cell(rows=tuple(rows))


def moments_row(template: Row, values: Tensor) -> Row:
    """Moments of the values (n,)."""
    moments = {"value": values.var().item(), "mean": values.mean().item(), "values": len(values)}
    tails = float(kurtosis(values.numpy()))
    return template.having(moments, metric="variance", sample=WHOLE, excess_kurtosis=tails)


def judge_regions(outcome: Outcome, *, number: int) -> Judgement:
    """Tables 14 and 15: are the values Gaussian, with one variance for all pixels?"""
    rows = part_rows(outcome, "regions", value="variance", counts=("region", "values"))
    published = papers.table(f"bias_table_{number}").set_index("region").add_prefix("published_")
    columns = ["region", "values", "mean", "variance", "excess_kurtosis"]
    table = rows[columns].join(published, on="region")
    return judgement(table.round(6), [f"Table {number} on {title_of(rows)}: {on_variances(table)}"])


VARIANCES = (
    "the variances of three regions differ by a factor of {factors[variance]:.2f} (published "
    "{factors[published_variance]:.2f}); their scale depends on the network and is not comparable. The excess kurtosis "
    "is {tails:.1f}, so the distribution is {shape}; the paper does not test this part of its assumption."
)


def on_variances(table: DataFrame) -> str:
    """How far the variances of regions are apart, and whether the values can be Gaussian."""
    tails = table["excess_kurtosis"].mean()
    heavy = "far from Gaussian, with heavy tails"
    shape = heavy if tails > HEAVY_TAILS else "near Gaussian by its fourth moment"
    return VARIANCES.format(factors=table.max() / table.min(), tails=tails, shape=shape)


def on_regions(number: int, title: str) -> Reproduction:
    return Reproduction(
        f"bias/table-{number}",
        title,
        dataclasses.replace(ON_LENET, permutations=20),
        partial(plan_regions, number=number),
        partial(judge_regions, number=number),
        with_data=dataclasses.replace(ON_LENET, models=("resnet20", "lenet")),
    )


REPRODUCTIONS = (
    Reproduction(
        "bias/figure-4b",
        "what a player adds depends on the order of masking",
        dataclasses.replace(ON_LENET, samples=4, grid=8, permutations=500),
        plan_figure_4b,
        judge_figure_4b,
    ),
    on_regions(14, "Gradient×Input in three regions: one variance?"),
    on_regions(15, "sampled Shapley values in three regions: one variance?"),
)
