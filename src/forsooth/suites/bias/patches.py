"""Is M_bias of the size 1 / √N? Patches against pixels on the same images, networks and methods.

Tables 8 to 12 are published for pixels and made again here for patches: their numbers can be compared only if the bias
of a method grows by the root of the number of pixels in a patch. Here both are measured.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from forsooth.counted import counted
from forsooth.records import Artefact, Choice, Plan, UsageError
from forsooth.scores.bias import M_BIAS, M_BIAS_SPLIT
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites.bias import data as sources
from forsooth.suites.bias import plan as bias
from forsooth.suites.bias import reproduce as bias_tables
from forsooth.suites.verdicts import mean_of

Perform = Callable[[Plan], Store]
METHODS = tuple(name for name in bias_tables.JUDGED if name != "grad_cam")  # which is judged on units, here as there
NEAR = 1.25  # a factor: nearer than the numbers of two networks are to each other
ONE_MAP = ["model", "model_seed", "method", "sample"]


def patches_against_pixels(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """M_bias on patches over M_bias on pixels for every method, beside the root of the ratio of their players.

    The default is small; --set samples=50 permutations=1000 is the size of Table 3, for an accelerator.
    """
    real = "cifar10" in sources.found(choice.data)
    usual = bias.Settings(
        datasets=("leaves",), models=("lenet",), players=("input",), methods=METHODS, grid=8, samples=4, permutations=20
    )
    settings = changed(usual, changes)
    if settings.grid is None:
        raise UsageError("`grid` must be a number of patches to hold against pixels, got None")
    narrowed = dataclasses.replace(choice, only={**choice.only, "dataset": ("cifar10" if real else "leaves",)})
    plans = {
        "patches": bias.plan(settings, narrowed),
        "pixels": bias.plan(dataclasses.replace(settings, grid=None), narrowed),
    }
    tasks = {task.key: task for plan in plans.values() for task in plan.tasks}
    store = perform(Plan(tasks=tuple(tasks.values())))
    rows = {name: bias_tables.rows_of(plan, store)[0] for name, plan in plans.items()}
    table = ratios(rows["patches"], rows["pixels"])
    return table.round(4), verdict(table, "CIFAR-10" if real else "leaves", settings)


def ratios(patches: pd.DataFrame, pixels: pd.DataFrame) -> pd.DataFrame:
    """One line per network and method: the mean ratio over images (of logarithms) and its 95 % interval."""
    players = {name: int(rows["players"].max()) for name, rows in (("patches", patches), ("pixels", pixels))}
    expected = (players["pixels"] / players["patches"]) ** 0.5
    plain = logarithms(patches, pixels, "m_bias")
    split = logarithms(patches, pixels, "m_bias_split").groupby(["model", "method"]).mean()
    lines = []
    for (model, method), own in plain.groupby(["model", "method"], sort=False):
        interval = mean_of(own.groupby("sample").mean())  # trainings of a network share their images
        low, high = (np.exp(end) / expected for end in (interval.low, interval.high))
        line = {"model": model, "method": method, **players, "expected": expected, "ratio": np.exp(interval.mean)}
        line |= {"over_expected": np.exp(interval.mean) / expected, "low": low, "high": high, "images": interval.n}
        line["ratio_split"] = np.exp(split.get((model, method), np.nan))
        lines.append(line)
    return pd.DataFrame(lines)


def logarithms(patches: pd.DataFrame, pixels: pd.DataFrame, metric: str) -> pd.Series:
    """log(bias on patches / on pixels) of every network, training, method and image, from means over the ten rows."""
    record = M_BIAS if metric == "m_bias" else M_BIAS_SPLIT
    like = ["model", *bias_tables.LIKE]
    one, other = (
        counted(rows[rows["metric"].eq(metric)], record, within=like).groupby(ONE_MAP, sort=False)["value"].mean()
        for rows in (patches, pixels)
    )
    return np.log(one / other).dropna()


def says(line: Any) -> str:
    """Whether the rule holds for a method: its whole interval near 1, wholly outside, or neither."""
    if line.low >= 1 / NEAR and line.high <= NEAR:
        return "holds"
    if line.low > NEAR or line.high < 1 / NEAR:
        return "fails"
    return "cannot be told"


def verdict(table: pd.DataFrame, dataset: str, settings: bias.Settings) -> str:
    """Keep or drop the rule, by the interval of ratio over expected of every published method."""
    judged = table[table["method"].isin(bias.PUBLISHED)]
    if judged.empty:
        return "None of these methods is in the published tables, so there is no rule to judge.\n"
    found = [says(line) for line in judged.itertuples()]
    decision = "cannot be told"
    if "fails" in found:
        decision = "is dropped: published numbers for pixels cannot be compared with ours for patches method by method"
    elif set(found) == {"holds"}:
        decision = "is kept"
    first = judged.iloc[0]
    lines = [
        f"{dataset}, {first['patches']} patches against {first['pixels']:,} pixels, {first['images']} images, "
        f"{settings.permutations} permutations: the rule that M_bias has the size 1 / √N {decision}.",
        f"A factor of {first['expected']:g} is expected; a rule holds for a method whose 95 % interval lies within a "
        f"factor of {NEAR} of it. Ratio over expected: "
        + "; ".join(
            f"{r.method} ({r.model}) {r.over_expected:.2f} [{r.low:.2f}, {r.high:.2f}] {says(r)}"
            for r in table.itertuples()
        )
        + ".",
        f"With the norm freed of noise the median ratio over expected is "
        f"{(judged['ratio_split'] / judged['expected']).median():.2f}, plain {judged['over_expected'].median():.2f}.",
    ]
    return "\n".join(lines) + "\n"


ARTEFACTS = (
    Artefact("bias/patches-against-pixels", "does M_bias grow by the root of the pixels?", patches_against_pixels),
)
