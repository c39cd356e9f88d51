"""Figs. B2 and B9 made again: accuracy over the strength of the signal, and the search for the weakest that will do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from pandas import DataFrame

from forsooth import papers
from forsooth.frames import gap_between, lines_by, only, without, worded
from forsooth.records import Choice, Judgement, Outcome, Plan, Reproduction, Sentences
from forsooth.settings import check_range
from forsooth.stats import mean_interval
from forsooth.suites.verdicts import above, below, judgement
from forsooth.suites.xaitris.plan import check_one_size, chosen_data, sweep_tasks
from forsooth.suites.xaitris.settings import LARGE, SMALL, Settings

CHANCE = 0.55  # a mean accuracy below it is no more than chance here; the published ones reach 54 %
ENOUGH = 0.8  # the paper's threshold
NEAR = 3.0  # points within which a published number counts as met
FACTORS = ["scenario", "background", "model"]
MISSED = (
    "{scenario}-{background} {model} at alpha {alpha:g}: published {accuracy} %, "
    "ours {ours:.2f} [{low:.2f}, {high:.2f}], n = {trainings}."
)


@dataclass(frozen=True)
class Sweep:
    """Which strengths are tried, on which networks.

    alphas  of the signal; the paper's search tries 20, its figure shows about ten
    suite   size, scenarios, backgrounds, networks and trainings of each strength
    """

    alphas: tuple[float, ...]
    suite: Settings


def plan(settings: Sweep, choice: Choice) -> Plan:
    """Every network on every dataset and strength; the linear model too, where it must be at chance."""
    suite = settings.suite
    check_range(settings, ("alphas",), 0, 1, what="a share of signal from 0 to 1")
    check_one_size(suite, choice)
    specs = chosen_data(suite, choice)
    return Plan(tuple(sweep_tasks(specs, suite, choice, alphas=settings.alphas, trainings=suite.trainings)))


def judge(outcome: Outcome, *, published: str) -> Judgement:
    """Accuracy (%) by strength, published beside it where it is known; and the claims of the caption."""
    rows = only(outcome.rows, metric="accuracy")
    rows = rows.assign(background=rows["background"].str.partition(" ")[0])
    table = summary(rows)
    lines = [*at_chance(rows), *rigid(rows), *sweet_spots(rows)]
    if published:
        table = papers.beside(table, published, [*FACTORS, "alpha"], accuracy="accuracy")
        lines += met(table)
    return judgement(table.round(2), lines)


def summary(rows: DataFrame) -> DataFrame:
    """Mean and interval over trainings, in per cent."""
    columns = ("ours", "low", "high", "trainings")
    return lines_by(rows, [*FACTORS, "alpha"], lambda own: mean_interval(100 * own["value"]).columns(*columns))


def at_chance(rows: DataFrame) -> Sentences:
    """The linear model is at chance where the problem is not linear."""
    own = only(without(rows, scenario="LIN"), model="llr")
    if own.empty:
        return []
    means = own.groupby(["scenario", "background", "alpha"])["value"].mean()
    top = means.idxmax()
    more = f"the highest is {means.max():.2f} in {top[0]}-{top[1]} at alpha {top[2]:g}"
    return [below(f"the linear model is at chance off LIN (at most {CHANCE:g})", mean_interval(means), CHANCE, more)]


def rigid(rows: DataFrame) -> Sentences:
    """In RIGID the CNN is ahead of the MLP, by training and strength."""
    place = ["background", "alpha"]
    ahead = gap_between(only(rows, scenario="RIGID"), [*place, "model_seed"], model=("cnn", "mlp"))
    if ahead is None:
        return []
    words = "in RIGID the CNN is more accurate than the MLP (over backgrounds and strengths)"
    return [above(words, mean_interval(ahead.groupby(level=place).mean()))]


def sweet_spots(rows: DataFrame) -> Sentences:
    """The weakest signal at which every network that can solve the problem is right in 80 %, beside what was chosen."""
    able = rows[rows["model"].ne("llr") | rows["scenario"].eq("LIN")]
    for (size, scenario, background), own in able.groupby(["size", "scenario", "background"], sort=False):
        words = f"{sweet_spot(own)}; published {chosen(size, scenario, background)}"
        yield f"Sweet spot of {scenario}-{background} at {size}×{size}: {words}."


def sweet_spot(rows: DataFrame) -> str:
    """From which strength on every network of a dataset is good enough on average, in words."""
    enough = rows.groupby(["alpha", "model"])["value"].mean().unstack().min(axis=1) >= ENOUGH
    if not enough.any():
        return f"no tried strength reaches {ENOUGH:.0%} with every network"
    first = enough.idxmax()
    words = f"{ENOUGH:.0%} with every network from alpha {first:g} on"
    if enough.loc[first:].all():
        return words
    return f"{words} (not at each above it)"


def chosen(size: int, scenario: str, background: str) -> str:
    """The strength that the paper chose."""
    table = papers.table("xaitris_table_1" if size > 8 else "xaitris_table_b2")
    own = only(table, scenario=scenario, background=background)["alpha"]
    return f"{own.iloc[0]:g}" if len(own) else "none"


def met(table: DataFrame) -> Sentences:
    """How many of the published accuracies come out, and which do not."""
    known = table.dropna(subset="accuracy")
    if known.empty:
        return ["None of the published strengths was tried."]
    off = (known["ours"] - known["accuracy"]).abs() > NEAR
    came = f"{(~off).sum()} of {len(known)} published accuracies come out within {NEAR:g} points."
    return [came, *worded(known[off], MISSED)]


def figure(name: str, title: str, suite: Settings, alphas: Sequence[float], published: str) -> Reproduction:
    sweep = Sweep(alphas=tuple(alphas), suite=replace(suite, trainings=10))
    return Reproduction(f"xaitris/{name}", title, sweep, plan, partial(judge, published=published))


PUBLISHED_ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
TEN = tuple(np.linspace(0.05, 0.95, 10).round(2).tolist())
REPRODUCTIONS = (
    figure(
        "figure-b2",
        "accuracy over alpha at 64×64",
        LARGE,
        PUBLISHED_ALPHAS,
        "xaitris_figure_b2",
    ),
    figure("figure-b9", "accuracy over alpha at 8×8", SMALL, TEN, ""),
)
