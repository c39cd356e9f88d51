"""Published tables of the bias paper made again: Tables 3 to 13 and Fig. 8. [anonymous2023evaluation]"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch

from forsooth import papers
from forsooth.counted import counted
from forsooth.engine import known_as, make_task
from forsooth.records import Artefact, Cell, Choice, Plan, Task, UsageError
from forsooth.scores import bias as scores
from forsooth.scores.bias import M_BIAS, M_BIAS_SPLIT
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import data as sources
from forsooth.suites.bias import plan as bias
from forsooth.suites.bias.words import verdict
from forsooth.suites.verdicts import crossed, mean_of

Perform = Callable[[Plan], Store]
CIFAR = {3: "lenet", 4: "resnet20", 5: "resnet32", 6: "resnet44", 7: "resnet56"}
VOC = {8: "resnet50", 9: "resnet101", 10: "alexnet", 11: "vgg16", 12: "vgg19"}
JUDGED = (*bias.PUBLISHED, "lrp", "deep_lift", "random", "constant")
KEY = ["end", "fraction", "method"]
LIKE = ["player", "end", "fraction"]  # whose values can be compared: |S| and the number of players decide their size
AT_LEAST_0 = (0.0, np.inf)


def settings_of(number: int) -> bias.Settings:
    """The settings of Table `number`: pixels as players at 32×32, patches at 224×224, where pixels are too many."""
    if number in CIFAR:
        few = 50 if number < 5 else 16
        ends = (bias.END,) if number == 3 else ()  # as dear as the anchor itself: on the cheapest network only
        return bias.Settings(datasets=(), models=(CIFAR[number],), methods=(*JUDGED, *ends), samples=few)
    net = VOC[number]
    return bias.Settings(datasets=(), models=(net,), methods=JUDGED, grid=16, permutations=100, samples=16, side=224)


def pixel_bias(
    choice: Choice, perform: Perform, changes: Mapping[str, Any], *, number: int
) -> tuple[pd.DataFrame, str]:
    """Table 3 to 12: M_bias of every method at the top and bottom p %, ours beside the published number."""
    dataset = "cifar10" if number in CIFAR else "voc"
    if dataset not in sources.found(choice.data):
        wanted = "CIFAR-10" if number in CIFAR else "Pascal VOC 2012"
        raise UsageError(f"`data` must name a folder with {wanted} to make Table {number} again, got {choice.data}")
    settings = changed(settings_of(number), changes)
    narrowed = dataclasses.replace(choice, only={**choice.only, "dataset": (dataset,)})
    rows, noise = scored(bias.plan(settings, narrowed), perform)
    # a patch and a unit are players of other games; of those on units only Grad-CAM is in the table
    ours = means(rows[rows["player"].eq("input") | rows["method"].eq("grad_cam")])
    table = ours.merge(published(number), on=KEY, how="left")
    return rounded(table), verdict(table, f"Table {number}", settings, rows["sample"].nunique(), noise)


def published(number: int) -> pd.DataFrame:
    """The printed numbers of Table `number`; where it has printing errors, `corrected` beside."""
    name = f"bias_table_{number}"
    table = papers.table(name).rename(columns={"value": "published"})[[*KEY, "published"]]
    return table if papers.errata(name).empty else table.assign(corrected=papers.corrected(name)["value"])


def scored(plan: Plan, perform: Perform) -> tuple[pd.DataFrame, float]:
    """The score rows of a plan, and the median share of noise in the anchors on the input."""
    return rows_of(plan, perform(plan))


def rows_of(plan: Plan, store: Store) -> tuple[pd.DataFrame, float]:
    """The same from a store in which the plan was performed."""
    judged = [task for task in plan.tasks if task.id == "bias.judge"]
    rows = pd.DataFrame([row for task in judged for row in store.read(task.key).rows])
    gated = rows[rows["status"].eq("below gate")]
    if len(gated) == len(rows):
        raise UsageError(f"no network passed its gate, so there is nothing to judge: {gated['message'].iloc[0]}")
    return rows, float(rows.loc[rows["player"].eq("input"), "noise"].median())


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean of M_bias over samples and trainings with a 95 % interval, its sampling error, the mean with the split norm.

    A map that says nothing counts as the worst value (`counted`): `failed` is the share of such maps, and `scored` the
    mean without them, which a paper that leaves them out would print.
    """
    rows = rows.assign(model_seed=rows.get("model_seed", 0))
    plain = counted(rows[rows["metric"].eq("m_bias")], M_BIAS, within=LIKE)
    split = counted(rows[rows["metric"].eq("m_bias_split")], M_BIAS_SPLIT, within=LIKE)
    by_key = split.groupby(KEY, sort=False)["value"].mean()
    lines = [
        {**dict(zip(KEY, key, strict=True)), **line_of(own), "split": by_key.get(key, np.nan), "inputs": len(own)}
        for key, own in plain.groupby(KEY, sort=False)
    ]
    return pd.DataFrame(lines)


def line_of(rows: pd.DataFrame) -> dict[str, float]:
    """The numbers of one method, end and fraction from the counted rows of its maps."""
    by_input = rows.groupby("sample")["value"].mean()
    by_training = rows.groupby("model_seed")["value"].mean()
    one = len(by_training) < 2
    interval = mean_of(by_input, bounds=AT_LEAST_0) if one else crossed(by_input, by_training, bounds=AT_LEAST_0)
    error = rows["error"].mean()  # all inputs walk the same orders, so their errors do not average out
    scored = rows.loc[~rows["failed"], "value"].mean()
    found = {"ours": interval.mean, "low": interval.low, "high": interval.high, "sampling_error": error}
    return {**found, "scored": scored, "failed": rows["failed"].mean()}


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    names = ("ours", "low", "high", "sampling_error", "scored", "split", "published", "corrected")
    return table.round({**{name: 5 for name in names}, "failed": 3})


def tables_here(choice: Choice) -> list[str]:
    """The tables to play on: the generated one, and those that `--data` has (the first two by name)."""
    here = [name for name in sources.found(choice.data) if sources.is_table(name)]
    asked = choice.only.get("dataset")
    return list(asked) if asked else ["interactions", *here]


def table_13(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Table 13: exact Shapley values of ten features, judged by M_bias and by the metric based on DeepSHAP."""
    base = bias.Settings(players=("input",), models=("mlp5",), samples=100)
    sampled = changed(dataclasses.replace(base, exact_up_to=0), changes)
    sure = dataclasses.replace(sampled, exact_up_to=12)
    tasks: list[Task] = []
    compared: dict[str, Task] = {}
    for name in tables_here(choice):
        narrowed = dataclasses.replace(choice, only={"dataset": (name,)})
        settings = dataclasses.replace(sampled, datasets=tuple({*sampled.datasets, name}))
        panel = next(iter(bias.chosen_panels(settings, narrowed)))
        trained = bias.training_tasks(panel, narrowed)
        anchor = bias.playing_tasks(panel, trained, sampled, narrowed, "anchor")
        exact = bias.playing_tasks(panel, trained, sure, narrowed, "anchor")
        deep = bias.judging_tasks("deep_shap", panel, trained, anchor, sampled, narrowed)[0]
        needs = [*anchor, *exact, deep]
        compared[name] = make_task(
            rivals, {"parts": len(anchor)}, needs, name=f"compare the two metrics, {name}", version=1
        )
        tasks += [*trained, *needs, compared[name]]
    store = perform(Plan(tasks=tuple({task.key: task for task in tasks}.values())))
    rows = pd.DataFrame([{"dataset": name, **row} for name, t in compared.items() for row in store.read(t.key).rows])
    published = papers.table("bias_table_13").pivot(index="fraction", columns="metric", values="value")
    table = rows.join(published.add_prefix("published_"), on="fraction")
    table["times"] = table["deep_shap_distance"] / table["m_bias"]
    worst = table.groupby("dataset", sort=False)["times"].min()
    lines = [
        f"{name}: M_bias of the exact Shapley values is {'at least ' if low >= 10 else 'only '}{low:.0f} times below "
        "the "
        f"metric based on DeepSHAP in every column (published: {published_times():.0f})."
        for name, low in worst.items()
    ]
    return table.round(5), "\n".join(lines) + "\n"


def published_times() -> float:
    wide = papers.table("bias_table_13").pivot(index="fraction", columns="metric", values="value")
    return float((wide["deep_shap_distance"] / wide["m_bias"]).min())


@known_as("bias.rivals")
def rivals(*cells: Cell, parts: int) -> Cell:
    """The exact values judged twice. Cells: sampled anchors, exact ones, what DeepSHAP says."""
    anchor, _, _ = anchors.joined(list(cells[:parts]))
    exact, _, _ = anchors.joined(list(cells[parts : 2 * parts]))
    deep = cells[-1].tensors["players"][: len(exact.values)]
    rows = []
    for fraction in scores.FRACTIONS:
        ours = scores.m_bias(exact.values, anchor, fraction=fraction, end="top")
        theirs = scores.deep_shap_distance(exact.values, deep, fraction=fraction, end="top")
        found = {"m_bias": ours.value, "deep_shap_distance": theirs}
        rows.append({"fraction": fraction, **{name: float(torch.nanmean(v)) for name, v in found.items()}})
    return Cell(rows=tuple(rows))


def figure_8(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Fig. 8: M_bias of every method on tables, with exact Shapley values as the anchor."""
    parts, words = [], []
    for name in tables_here(choice):
        settings = bias.Settings(datasets=tuple({*sources.GENERATED, name}), players=("input",), models=("mlp5",))
        settings = changed(dataclasses.replace(settings, samples=100), changes)
        rows, _ = scored(bias.plan(settings, dataclasses.replace(choice, only={"dataset": (name,)})), perform)
        ours = means(rows)
        parts.append(ours.assign(dataset=name))
        methods = ours[~ours["method"].isin([bias.END, *bias.NULLS])].groupby("method")["ours"].mean().sort_values()
        best = list(methods.index[:2])
        same = {"integrated_gradients", "deep_shap"} == set(best)
        words.append(
            f"{name}: least biased are {best[0]} ({methods.iloc[0]:.4f}) and {best[1]} ({methods.iloc[1]:.4f}), mean "
            "over "
            f"the ten rows; {'as' if same else 'not as'} in the paper, where IG and DeepSHAP come first."
        )
    return rounded(pd.concat(parts, ignore_index=True)), "\n".join(words) + "\n"


ARTEFACTS = (
    *(
        Artefact(f"bias/table-{k}", f"M_bias of {net}, CIFAR-10, needs --data", partial(pixel_bias, number=k))
        for k, net in CIFAR.items()
    ),
    *(
        Artefact(f"bias/table-{k}", f"M_bias of {net}, Pascal VOC, needs --data", partial(pixel_bias, number=k))
        for k, net in VOC.items()
    ),
    Artefact("bias/table-13", "exact Shapley values, judged by M_bias and by DeepSHAP", table_13),
    Artefact("bias/figure-8", "M_bias on tables", figure_8),
)
