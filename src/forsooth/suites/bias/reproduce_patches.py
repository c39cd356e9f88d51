"""Is M_bias of the size 1 / √N? Patches against pixels on the same images, networks and methods.

Tables 8 to 12 are published for pixels and made again here for patches: their numbers can be compared only if the bias
of a method grows by the root of the number of pixels in a patch. Here both are measured.
"""

import dataclasses
from typing import Any, Literal

import numpy as np
from pandas import DataFrame, Series

from forsooth.counted import counted
from forsooth.frames import lines_by, only, worded
from forsooth.records import Choice, Judgement, Metric, Outcome, Plan, Reproduction, UsageError
from forsooth.scores.bias import M_BIAS, M_BIAS_SPLIT
from forsooth.stats.intervals import mean_interval
from forsooth.suites.bias.experiment import ON_LENET, PHOTOGRAPHS, photographs_or_leaves
from forsooth.suites.bias.plan import plan
from forsooth.suites.bias.reproduce_tables import JUDGED
from forsooth.suites.bias.settings import PUBLISHED, Settings
from forsooth.suites.bias.tables import LIKE, score_rows
from forsooth.suites.planning import planned
from forsooth.suites.verdicts import judgement

METHODS = tuple(name for name in JUDGED if name != "grad_cam")  # which is judged on units, here as there
NEAR = 1.25  # a factor: nearer than the numbers of two networks are to each other
ONE_MAP = ["model", "model_seed", "method", "sample"]
ONE_METHOD = ["model", "method"]


def plan_patches(settings: Settings, choice: Choice) -> Plan:
    """The same run twice.

    The default is small; --set samples=50 permutations=1000 is the size of Table 3, for an accelerator.
    """
    if settings.grid is None:
        raise UsageError("`grid` must be a number of patches to hold against pixels, got None")
    tasks = [task for grid in (settings.grid, None) for task in plan_of_grid(settings, choice, grid).tasks]
    return planned(tasks)


def plan_of_grid(settings: Settings, choice: Choice, grid: int | None) -> Plan:
    narrowed = dataclasses.replace(choice, only={**choice.only, "dataset": (photographs_or_leaves(choice),)})
    return plan(dataclasses.replace(settings, grid=grid), narrowed)


def judge_patches(outcome: Outcome) -> Judgement:
    """M_bias on patches over M_bias on pixels for every method, beside the root of the ratio of their players."""
    settings: Settings = outcome.settings
    table = ratios(rows_of_grid(outcome, settings.grid), rows_of_grid(outcome, None))
    dataset = photographs_or_leaves(outcome.choice)
    return judgement(table.round(4), verdict(table, {PHOTOGRAPHS: "CIFAR-10"}.get(dataset, dataset), settings))


def rows_of_grid(outcome: Outcome, grid: int | None) -> DataFrame:
    """The rows of scores of the one run or of the other."""
    keys = [task.key for task in plan_of_grid(outcome.settings, outcome.choice, grid).tasks]
    return score_rows(only(outcome.rows, cell=keys))


def ratios(patches: DataFrame, pixels: DataFrame) -> DataFrame:
    """One line per network and method: the mean ratio over images (of logarithms) and its 95 % interval."""
    players = {"patches": int(patches["players"].max()), "pixels": int(pixels["players"].max())}
    expected = (players["pixels"] / players["patches"]) ** 0.5

    def line_of(own: Series) -> dict[str, float]:
        interval = mean_interval(own.groupby("sample").mean())  # trainings of a network share their images
        ratio = np.exp(interval.mean)
        return {
            **players,
            "expected": expected,
            "ratio": ratio,
            "over_expected": ratio / expected,
            "low": np.exp(interval.low) / expected,
            "high": np.exp(interval.high) / expected,
            "images": interval.n,
        }

    split = np.exp(logarithms(patches, pixels, M_BIAS_SPLIT).groupby(ONE_METHOD).mean())
    table = lines_by(logarithms(patches, pixels, M_BIAS), ONE_METHOD, line_of)
    return table.join(split.rename("ratio_split"), on=ONE_METHOD)


def logarithms(patches: DataFrame, pixels: DataFrame, metric: Metric) -> Series:
    """log(bias on patches / on pixels) of every network, training, method and image, from means over the ten rows."""

    def means(rows: DataFrame) -> Series:
        own = counted(only(rows, metric=metric.name), metric, within=["model", *LIKE])
        return own.groupby(ONE_MAP, sort=False)["value"].mean()

    return np.log(means(patches) / means(pixels)).dropna()


def rule_of(line: Any) -> Literal["holds", "fails", "is inconclusive"]:
    """Whether the rule holds for a method: its whole interval near 1, wholly outside, or neither."""
    if line.low >= 1 / NEAR and line.high <= NEAR:
        return "holds"
    if line.low > NEAR or line.high < 1 / NEAR:
        return "fails"
    return "is inconclusive"


def decision(judged: DataFrame) -> str:
    rules = set(judged.apply(rule_of, axis=1))
    if "fails" in rules:
        return "is dropped: published numbers for pixels cannot be compared with ours for patches method by method"
    if rules == {"holds"}:
        return "is kept"
    return "is inconclusive"


OF_A_METHOD = "{method} ({model}) {over_expected:.2f} [{low:.2f}, {high:.2f}] {rule}"
VERDICT = (
    "{dataset}, {first[patches]} patches against {first[pixels]:,} pixels, {first[images]} images, {permutations} "
    "permutations: the rule that M_bias has the size 1 / √N {decision}.",
    "A factor of {first[expected]:g} is expected; a rule holds for a method whose 95 % interval lies within a factor "
    "of {near} of it. Ratio over expected: {by_method}.",
    "With the norm freed of noise the median ratio over expected is {split:.2f}, plain {plain:.2f}.",
)


def verdict(table: DataFrame, dataset: str, settings: Settings) -> list[str]:
    """Keep or drop the rule, by the interval of ratio over expected of every published method."""
    judged = only(table, method=PUBLISHED)
    if judged.empty:
        return ["None of these methods is in the published tables, so there is no rule to judge."]
    ruled = table.assign(rule=table.apply(rule_of, axis=1))
    found = {
        "dataset": dataset,
        "first": judged.iloc[0],
        "permutations": settings.permutations,
        "decision": decision(judged),
        "near": NEAR,
        "by_method": "; ".join(worded(ruled, OF_A_METHOD)),
        "split": (judged["ratio_split"] / judged["expected"]).median(),
        "plain": judged["over_expected"].median(),
    }
    return [words.format(**found) for words in VERDICT]


REPRODUCTIONS = (
    Reproduction(
        "bias/patches-against-pixels",
        "does M_bias grow by the root of the pixels?",
        dataclasses.replace(ON_LENET, methods=METHODS, grid=8, samples=4, permutations=20),
        plan_patches,
        judge_patches,
    ),
)
