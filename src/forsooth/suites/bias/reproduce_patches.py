"""Is M_bias of the size 1 / √N? Patches against pixels on the same images, networks and methods.

Tables 8 to 12 are published for pixels and made again here for patches: their numbers can be compared only if the bias
of a method grows by the root of the number of pixels in a patch. Here both are measured.
"""

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np
from pandas import DataFrame

from forsooth.counted import counted
from forsooth.frames import lines_by, only, worded
from forsooth.records import Choice, Facts, Judgement, Metric, Outcome, Plan, Reproduction, UsageError
from forsooth.scores.bias import M_BIAS, M_BIAS_SPLIT
from forsooth.stats.claims import surely_above, surely_below
from forsooth.stats.intervals import Student, mean_estimate
from forsooth.suites.bias.experiment import ON_LENET, PHOTOGRAPHS, photographs_or_leaves
from forsooth.suites.bias.plan import plan
from forsooth.suites.bias.reproduce_tables import JUDGED
from forsooth.suites.bias.settings import PUBLISHED, Settings
from forsooth.suites.bias.tables import LIKE, score_rows
from forsooth.suites.planning import planned
from forsooth.suites.verdicts import corrected, judgement

METHODS = tuple(name for name in JUDGED if name != "grad_cam")  # which is judged on units, here as there
NEAR = 1.25  # a factor: nearer than the numbers of two networks are to each other
ONE_MAP = ["model", "model_seed", "method", "sample"]
ONE_METHOD = ["model", "method"]
Rule = Literal["holds", "fails", "is inconclusive"]


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
    """One line per network and method: the mean ratio over images (of logarithms), its 95 % interval, and the `rule`.

    A map that says nothing counts as the worst of its row: `failed` is the share of maps that do so, with patches or
    with pixels, and `ratio_defined` the ratio without them.
    """
    players = {"patches": int(patches["players"].max()), "pixels": int(pixels["players"].max())}
    expected = (players["pixels"] / players["patches"]) ** 0.5
    found = logarithms(patches, pixels, M_BIAS)
    estimates = {key: over_images(own) for key, own in found.groupby(ONE_METHOD)}
    rules = dict(zip(estimates, rules_of(list(estimates.values()), expected), strict=True))

    def line_of(own: DataFrame) -> Facts:
        key = tuple(own.iloc[0][ONE_METHOD])
        interval = estimates[key].interval
        return {
            **players,
            "expected": expected,
            "ratio": np.exp(interval.mean),
            "over_expected": np.exp(interval.mean) / expected,
            "low": np.exp(interval.low) / expected,
            "high": np.exp(interval.high) / expected,
            "images": interval.n,
            "rule": rules[key],
            "failed": own["failed"].gt(0).mean(),
            "ratio_defined": np.exp(over_images(only(own, failed=0)).mean),
        }

    split = logarithms(patches, pixels, M_BIAS_SPLIT).groupby(ONE_METHOD)["value"].mean()
    table = lines_by(found, ONE_METHOD, line_of)
    return table.join(np.exp(split).rename("ratio_split"), on=ONE_METHOD)


def logarithms(patches: DataFrame, pixels: DataFrame, metric: Metric) -> DataFrame:
    """log(bias on patches / on pixels) of every network, training, method and image, from means over the ten rows.

    columns  `ONE_MAP`, value, and failed: which share of the rows of both had no score
    """

    def means(rows: DataFrame) -> DataFrame:
        own = counted(only(rows, metric=metric.name), metric, within=["model", *LIKE])
        return own.groupby(ONE_MAP, sort=False)[["value", "failed"]].mean()

    few = means(patches)
    many = means(pixels)
    found = DataFrame({"value": np.log(few["value"] / many["value"]), "failed": (few["failed"] + many["failed"]) / 2})
    return found.dropna().reset_index()


def over_images(own: DataFrame) -> Student:
    """The mean logarithm of one method; trainings of a network share their images."""
    return mean_estimate(own.groupby("sample")["value"].mean())


def rules_of(estimates: Sequence[Student], expected: float) -> list[Rule]:
    """Whether the rule holds for each method: surely near 1, surely not, or neither; all methods are one family.

    estimates  mean logarithms of the ratio
    """
    least = np.log(expected / NEAR)
    most = np.log(expected * NEAR)
    near = surely_above(estimates, least) & surely_below(estimates, most)
    far = surely_above(estimates, most) | surely_below(estimates, least)
    rules: list[Rule] = []
    for is_near, is_far in zip(near, far, strict=True):
        rules.append(rule_of(is_near, is_far))
    return rules


def rule_of(near: bool, far: bool) -> Rule:
    if near:
        return "holds"
    if far:
        return "fails"
    return "is inconclusive"


def decision(judged: DataFrame) -> str:
    rules = set(judged["rule"])
    if "fails" in rules:
        return "is dropped: published numbers for pixels cannot be compared with ours for patches method by method"
    if rules == {"holds"}:
        return "is kept"
    return "is inconclusive"


SILENT = "{method} ({model}) {failed:.0%}, without them {without:.2f}"
OF_A_METHOD = "{method} ({model}) {over_expected:.2f} [{low:.2f}, {high:.2f}] {rule}"
VERDICT = (
    "{dataset}, {first[patches]} patches against {first[pixels]:,} pixels, {first[images]} images, {permutations} "
    "permutations: the rule that M_bias has the size 1 / √N {decision}.",
    "A factor of {first[expected]:g} is expected; the rule holds for a method that is surely within a factor of {near} "
    "of it and fails for one that surely is not{corrected}; intervals are of a method alone. Ratio over expected: "
    "{by_method}.",
    "With the norm freed of noise the median ratio over expected is {split:.2f}, plain {plain:.2f}.",
)


def verdict(table: DataFrame, dataset: str, settings: Settings) -> list[str]:
    """Keep or drop the rule, by what is sure of the ratio over expected of every published method."""
    judged = only(table, method=PUBLISHED)
    if judged.empty:
        return ["None of these methods is in the published tables, so there is no rule to judge."]
    found = {
        "dataset": dataset,
        "first": judged.iloc[0],
        "permutations": settings.permutations,
        "decision": decision(judged),
        "near": NEAR,
        "corrected": corrected(len(table)),
        "by_method": "; ".join(worded(table, OF_A_METHOD)),
        "split": (judged["ratio_split"] / judged["expected"]).median(),
        "plain": judged["over_expected"].median(),
    }
    return [*(words.format(**found) for words in VERDICT), *silent(table)]


def silent(table: DataFrame) -> list[str]:
    """Whose maps said nothing, and the ratio over expected without them; nothing where all maps are scored."""
    failed = table[table["failed"] > 0]
    who = worded(failed.assign(without=failed["ratio_defined"] / failed["expected"]), SILENT)
    if not who:
        return []
    return [f"Maps without a score count as the worst of their row: {'; '.join(who)}."]


REPRODUCTIONS = (
    Reproduction(
        "bias/patches-against-pixels",
        "does M_bias grow by the root of the pixels?",
        dataclasses.replace(ON_LENET, methods=METHODS, grid=8, samples=4, permutations=20),
        plan_patches,
        judge_patches,
    ),
)
