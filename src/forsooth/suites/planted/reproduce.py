"""The figures of section 5 made again, and a verdict on each of their claims. [zhou2022feature]"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from forsooth import papers
from forsooth.counted import counted
from forsooth.names import find
from forsooth.records import Artefact, Choice, Plan, UsageError
from forsooth.scores import METRICS
from forsooth.scores.planted import shapley_range
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites.planted import plan as planted
from forsooth.suites.planted import settings as planted_presets
from forsooth.suites.verdicts import (
    Interval,
    above,
    all_above,
    around,
    corrected,
    holm,
    mean_of,
    rise,
    share_of,
    verdict,
)

Perform = Callable[[Plan], Store]
NEAR_ONE = 0.95
MODEL = ["manipulation", "model", "model_seed"]
TRAINED = [*MODEL, "kind", "level", "r"]  # one training; its images, presences and checkpoints are no repetitions of it
FEW = 3  # lines that a trend needs
SURE = 0.05  # level of a family of tests
X = {"5.2": "accuracy", "5.3": "level", "5.4": "r"}  # what an experiment varies


def figure(
    choice: Choice, perform: Perform, changes: Mapping[str, Any], *, experiments: tuple[str, ...]
) -> tuple[pd.DataFrame, str]:
    """Table and words for some of 5.1 to 5.4: Attr% by method, manipulation and presence, and the claims."""
    few = dataclasses.replace(
        planted_presets.PAPER, experiments=experiments, methods=(*planted_presets.PUBLISHED, *planted_presets.ENDS)
    )
    settings = changed(few, changes)
    plan = planted.plan(settings, choice)
    store = perform(plan)
    found = [rows for task in plan.tasks if (rows := store.rows(task.key)) is not None]
    rows = pd.DataFrame([row for table in found for row in table.to_pylist()])
    parts, words = [], [on_what(rows, settings)]
    for experiment in experiments:
        models = of_models(rows, experiment)
        if models.empty:
            raise UsageError(f"no model passed its gate in {experiment}, so there is nothing to judge")
        own = rows[rows["metric"].eq("accuracy") & rows["experiment"].isin([experiment, "5.1"])]
        parts.append(table_of(models, experiment))
        words += [f"Section {experiment}.", *CLAIMS[experiment](models, own)]
    return pd.concat(parts, ignore_index=True).round(4), "\n".join(words) + "\n"


def of_models(rows: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Mean Attr% over the images of each model (and checkpoint) and presence.

    An image without a usable map counts as 0, as it does on the board: `failed` is the share of those, and `defined`
    the mean without them.
    """
    rows = rows[rows["experiment"].eq(experiment) & rows["metric"].eq("attr") & rows["model"].ne("none")]
    rows = counted(rows, find("attr", METRICS, argument="metrics"))
    rows = rows.assign(
        er=rows.groupby(TRAINED, sort=False)["er"].transform("first"), defined=rows["value"].mask(rows["failed"])
    )
    key = [*TRAINED, "method", "presence", "epoch", "accuracy", "er"]
    return rows.groupby(key, sort=False, as_index=False)[["value", "defined", "failed"]].mean()


def table_of(models: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Attr% with its interval over models; where something is varied, its slope; in 5.4 the share in the range."""
    lines = []
    for key, own in models.groupby(["method", "manipulation", "presence"], sort=False):
        line = {"experiment": experiment, **dict(zip(("method", "manipulation", "presence"), key, strict=True))}
        by_model = own.groupby(TRAINED, sort=False)[["value", "er", "failed", "defined"]].mean()  # of its checkpoints
        line |= dict(zip(("attr", "low", "high", "models"), mean_of(by_model["value"]), strict=True))
        beside = by_model[["er", "failed", "defined"]].mean()
        line |= {"er": beside["er"], "failed": beside["failed"], "attr_defined": beside["defined"]}
        if experiment in X:
            slope = mean_of(slopes(own, X[experiment]))
            line |= {"slope": slope.mean, "slope_low": slope.low, "slope_high": slope.high}
        if experiment == "5.4":
            line["in_range"] = in_range(own).mean
        lines.append(line)
    return pd.DataFrame(lines)


def slopes(models: pd.DataFrame, x: str) -> list[float]:
    """How much Attr% rises for each step of x by least squares, for every training or group; presences are averaged."""
    found = []
    for _, own in models.groupby([*MODEL, "kind"], sort=False):
        lines = [line for _, line in own.groupby(["method", "presence"], sort=False) if line[x].nunique() > 1]
        found += [float(np.mean([np.polyfit(line[x], line["value"], 1)[0] for line in lines]))] if lines else []
    return found


def in_range(models: pd.DataFrame) -> Interval:
    """The share of models whose Attr% lies in the range of Shapley values of the manipulated features."""
    least = np.array([shapley_range(r)[0] for r in models["r"]])
    return share_of(models["value"].to_numpy() >= least)


def pick(models: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    """The rows where every named column has its value; a method by the beginning of its name."""
    for column, value in wanted.items():
        own = models[column].str.startswith(value) if column == "method" else models[column].eq(value)
        models = models[own]
    return models


def claims_5_1(models: pd.DataFrame, accuracies: pd.DataFrame) -> list[str]:
    known = papers.table("planted_claims").query("section == 5.1").set_index("quantity")["value"]
    wide = models.pivot_table(index=MODEL, columns="method", values="value")
    best = wide.mean().idxmax()
    top = mean_of(wide[best])
    lines = [
        verdict(f"No method is near 1 (the best: {best})", top, holds=top.high < NEAR_ONE, fails=top.low >= NEAR_ONE),
        around("70 % of models pass 95 % accuracy", share_of(accuracies["value"] > 0.95), known["over_95"]),
    ]
    shap = next((name for name in wide if name.startswith("gradient_shap")), None)
    if shap and len(wide.columns) > 1:
        other = wide.drop(columns=shap).mean().idxmax()
        lines.append(
            above(f"SHAP is the best on average (ours: its lead over {other})", mean_of(wide[shap] - wide[other]))
        )
        size = pick(models, method=shap)["er"].mean()
        more = f"at {known['er']:.0%} of the image; ours at {size:.0%}"
        lines.append(around("Attr% of SHAP on average", mean_of(wide[shap]), known["attr_shap"], more))
    marked = pick(models, manipulation="watermark").pivot_table(
        index=[*MODEL, "method"], columns="presence", values="value"
    )
    if {"with", "without"} <= set(marked):
        ahead = (marked["with"] - marked["without"]).groupby("method", sort=False)
        claim = "The presence of a watermark is seen better than its absence"
        lines += all_above({f"{claim}, {name}": own for name, own in ahead})
    return lines


def claims_of_trend(models: pd.DataFrame, accuracies: pd.DataFrame, *, x: str, words: str) -> list[str]:
    """SHAP rises with x on the watermark, and nobody else does."""
    groups = models.groupby(["method", "manipulation"], sort=False)
    by_pair = {key: slopes(own, x) for key, own in groups}
    trend = {key: mean_of(own) for key, own in by_pair.items()}
    shap = [key for key in trend if key[0].startswith("gradient_shap") and key[1] == "watermark"]
    lines = [above(f"Attr% of SHAP on the watermark rises with {words} (slope)", trend[key]) for key in shap]
    others = {key: by_pair[key] for key in trend if key not in shap and trend[key].n >= FEW}
    lines.append(nobody_rises(others, words=words))
    lines += no_trends(models, x=x, words=words)
    steepest = max(trend, key=lambda key: trend[key].mean if np.isfinite(trend[key].mean) else -np.inf)
    lines.append(f"The steepest is {steepest[0]} on {steepest[1]}: {trend[steepest]}.")
    return lines


def nobody_rises(by_pair: Mapping[tuple[str, str], list[float]], *, words: str) -> str:
    """Whether none of these pairs of method and artefact rises, from the slopes of their trainings.

    A pair has a test of its own over its trainings. Pairs share trainings, so their tests hang together; Holm's
    correction holds all the same. That so many tests cannot tell a rise is no sign that there is none.
    """
    pvalues = [rise(own) for own in by_pair.values()]
    rising = holm(pvalues) <= SURE
    up = [key for key, rises in zip(by_pair, rising, strict=True) if rises]
    which = ", ".join(f"{method} on {kind} {np.mean(by_pair[method, kind]):+.2f}" for method, kind in up)
    alone = sum(p <= SURE for p in pvalues)
    claim = f"No other method rises with {words} on any artefact (ours: the share of pairs that do)"
    more = (
        f"{which or 'none'}; each pair by a t test over its trainings, {len(by_pair)} tests corrected by Holm; asked "
        f"alone {alone} would rise"
    )
    return verdict(claim, share_of(rising), holds=bool(by_pair) and not alone, fails=bool(up), more=more)


def no_trends(models: pd.DataFrame, *, x: str, words: str) -> list[str]:
    """Whether Attr% of each method stays as x grows, all artefacts together; two-sided, corrected for the methods."""
    by_method = {method: slopes(own, x) for method, own in models.groupby("method", sort=False)}
    sides = [(rise(own), rise(-np.asarray(own))) for own in by_method.values()]
    adjusted = holm([2 * min(pair) for pair in sides])
    lines = []
    for (method, own), p in zip(by_method.items(), adjusted, strict=True):
        together = mean_of(own)
        enough = together.n >= FEW
        claim = f"{method} has no trend with {words}, all artefacts together (slope){corrected(len(by_method))}"
        still = enough and together.low <= 0 <= together.high
        lines.append(verdict(claim, together, holds=still and not p <= SURE, fails=enough and p <= SURE))
    return lines


def claims_5_4(models: pd.DataFrame, accuracies: pd.DataFrame) -> list[str]:
    known = papers.table("planted_claims").query("section == 5.4").set_index("quantity")["value"]
    own = accuracies[accuracies["experiment"].eq("5.4")]
    lines = [around("All models pass 95 % accuracy", share_of(own["value"] > 0.95), known["over_95"])]
    marked = pick(models, manipulation="watermark")
    falls = mean_of([-slope for slope in slopes(pick(marked, method="gradient_shap"), "r")])
    lines.append(above("Attr% of SHAP on the watermark falls as r grows (minus the slope)", falls))
    for presence, inside in (("with", True), ("without", False)):
        found = in_range(pick(marked, method="saliency", presence=presence))
        claim = f"Gradient {'tracks' if inside else 'leaves'} the Shapley range {presence} the watermark (share inside)"
        high, low = found.low > 0.5, found.high < 0.5
        lines.append(verdict(claim, found, holds=high if inside else low, fails=low if inside else high))
    for (method, presence), group in models.groupby(["method", "presence"], sort=False):
        kind, best = max(group.groupby("manipulation"), key=lambda item: in_range(item[1]).mean)
        lines.append(
            f"{method}, {presence} the artefact, in the range: {in_range(group)}; most: {kind} {in_range(best)}."
        )
    wide = models.pivot_table(
        index=["manipulation", "model", "model_seed", "method", "r"], columns="kind", values="value"
    )
    if {"similar", "distinct"} <= set(wide):
        gap = mean_of((wide["distinct"] - wide["similar"]).groupby(MODEL).mean())
        none = gap.low <= 0 <= gap.high
        lines.append(
            verdict(
                "Similar and distinct classes do not differ (distinct less similar)", gap, holds=none, fails=gap.n > 1
            )
        )
    return lines


CLAIMS: Mapping[str, Callable[[pd.DataFrame, pd.DataFrame], list[str]]] = {
    "5.1": claims_5_1,
    "5.2": partial(claims_of_trend, x="accuracy", words="test accuracy"),
    "5.3": partial(claims_of_trend, x="level", words="visibility"),
    "5.4": claims_5_4,
}


def on_what(rows: pd.DataFrame, settings: planted_presets.Settings) -> str:
    trained = rows[rows["metric"].eq("accuracy")]
    counted = int(trained["status"].eq("ok").sum())
    again = f" Trainings were begun anew {settings.restarts} times at most." if settings.restarts else ""
    return (
        f"{len(trained)} models ({', '.join(settings.models)}) on {rows['dataset'].iloc[0]} at {settings.side} px, "
        f"{counted} of them beat p* beyond luck and pass {settings.gate:.0%}; intervals are over models; an "
        f"image without a usable map counts as 0 (failed: their share; attr_defined leaves them out).{again}"
    )


def _artefact(number: int, title: str, *experiments: str) -> Artefact:
    return Artefact(f"planted/figure-{number}", title, partial(figure, experiments=experiments))


ARTEFACTS = (
    _artefact(3, "Attr% against the size of the region and against accuracy", "5.1", "5.2"),
    _artefact(4, "Attr% against visibility and against r", "5.3", "5.4"),
    _artefact(10, "Attr% against the size of the region, 100 models", "5.1"),
    _artefact(11, "Attr% against visibility, 100 models", "5.3"),
    _artefact(12, "Attr% against r, 120 models", "5.4"),
    _artefact(13, "Attr% against test accuracy, 100 models", "5.2"),
)
