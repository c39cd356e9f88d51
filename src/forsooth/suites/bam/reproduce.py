"""The figures of the paper made again, and a verdict on each claim of its section 5. [yang2019benchmarking]"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch

from forsooth import papers
from forsooth.counted import counted
from forsooth.names import find
from forsooth.records import Artefact, Choice, Plan, UsageError
from forsooth.scores import METRICS
from forsooth.scores.contrast import drawn, trial_means
from forsooth.seeds import generator
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites.bam import plan as bam
from forsooth.suites.bam import settings as bam_presets
from forsooth.suites.bam.chance import (
    DRAWS,
    Series,
    means,
    over_both,
    per_image,
    rho_interval,
    series_draws,
    share_over_trainings,
    values_of,
    whole,
)
from forsooth.suites.bam.claims import CLAIMS, change, claims_fine, claims_summary, premise, premises
from forsooth.suites.verdicts import Interval, crossed, mean_of

Perform = Callable[[Plan], Store]
# Without the user's data the figures are made at the scale of the embedded ones, of networks trained to the end.
EMBEDDED = dataclasses.replace(
    bam_presets.QUICK, ks=bam_presets.KS, samples=200, few=40, fine=60, robust=60, test=6, sets=20, stop_at=None
)
TRIALS, SIZE = 10, 100
LEAST = 2  # k that a correlation with the drop needs
ALL = (*bam_presets.PUBLISHED, *bam_presets.MORE, *bam_presets.NULLS)
THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)


def made(choice: Choice, perform: Perform, changes: Mapping[str, Any], *, methods: Sequence[str]) -> pd.DataFrame:
    """All rows of a run with these methods, at paper scale with the user's data and else at the embedded scale."""
    base = bam_presets.PAPER if choice.data else EMBEDDED
    settings = changed(dataclasses.replace(base, methods=tuple(methods)), changes)
    plan = bam.plan(settings, choice)
    store = perform(plan)
    found = [rows for task in plan.tasks if (rows := store.rows(task.key)) is not None]
    rows = pd.DataFrame([row for table in found for row in table.to_pylist()])
    return rows.assign(k=pd.to_numeric(rows["k"]))


def only(rows: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """The rows where every named column has its value."""
    for column, value in wanted.items():
        rows = rows[rows[column].eq(value)]
    return rows


def spread(values: pd.Series) -> float:
    """Standard deviation over ten trials of 100 images, or of half of them where there are fewer than 200."""
    known = torch.tensor(values.dropna().to_numpy(float))
    if len(known) < 2:
        return float("nan")
    size = max(1, min(SIZE, len(known) // 2))
    draws = drawn(len(known), trials=TRIALS, size=size, generator=generator(0, "trials"))
    return float(trial_means(known, draws).std())


def figure_2(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """What the networks need, and whether the drop falls as k grows."""
    rows = made(choice, perform, changes, methods=("constant",))
    own = pooled(rows[rows["part"].eq("verification") & rows["metric"].isin(["accuracy", "confidence_rises", "drop"])])
    table = own[["net", "shown", "k", "metric", "value", "low", "high", "n"]]
    table = table.assign(**{name: 100 * own[name] for name in ("value", "low", "high")})
    theirs = papers.table("bam_figure_2").drop(columns="k").rename(columns={"value": "published"})
    table = table.merge(theirs, on=["net", "shown", "metric"], how="left").round(1)
    known = own.set_index(["net", "shown", "metric"])
    lines = [on_what(rows), *premises(known)]
    lines += premise(own[own["metric"].eq("drop")])
    return table, "\n".join(lines) + "\n"


def pooled(told: pd.DataFrame) -> pd.DataFrame:
    """Each network, set and k once: shares of the images of all trainings, counted, so that equal drops are equal.

    low, high  the interval of a share over images and trainings; nan for a drop, which is none
    """
    told = told.assign(hits=(told["value"] * told["n"]).round())
    key = ["net", "shown", "k", "metric"]
    lines = []
    for names, own in told.groupby(key, sort=False, dropna=False):
        line = dict(zip(key, names, strict=True))
        ends = share_over_trainings(own["value"], own["n"]) if line["metric"] != "drop" else mean_of([])
        line |= {"value": own["hits"].sum() / own["n"].sum(), "n": own["n"].sum()}
        lines.append({**line, "low": ends.low, "high": ends.high})
    return pd.DataFrame(lines)


def contrasts(
    choice: Choice, perform: Perform, changes: Mapping[str, Any], *, metrics: tuple[str, ...]
) -> tuple[pd.DataFrame, str]:
    """Bars of MCS, IDR or IIR with their baselines, and the claims on them."""
    rows = made(choice, perform, changes, methods=ALL)
    table, words = judged(rows, metrics)
    return table, "\n".join(words) + "\n"


def judged(rows: pd.DataFrame, metrics: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    lines, words = [], [on_what(rows)]
    for metric in metrics:
        asked = rows[rows["metric"].eq(metric) & rows["k"].isna()]
        own = taking_part(asked, metric)
        if own[own["method"].isin(bam_presets.PUBLISHED)].empty:
            why = ", ".join(dict.fromkeys(asked[asked["message"].ne("")]["message"]))
            words.append(f"{metric}: nothing to judge ({why}).")
            continue
        table = bars(own, metric, rows)
        lines.append(table)
        words += CLAIMS[metric](table.set_index("method"), own)
    if not lines:
        raise UsageError(" ".join(words))
    return pd.concat(lines, ignore_index=True).round(4), words


def taking_part(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of a metric as the board counts them: a map that says nothing has the worst value. TCAV has no map."""
    tcav = rows["method"].eq("tcav")
    maps = counted(rows[~tcav], find(metric, METRICS, argument="metrics"))
    scores = rows[tcav & rows["status"].eq("ok")].assign(failed=False)
    return pd.concat([maps, scores]).sort_index()


def bars(own: pd.DataFrame, metric: str, rows: pd.DataFrame) -> pd.DataFrame:
    """One line per method: mean, interval, spread over trials, random mask, other places, the share of maps that say
    nothing and count as the worst, and the mean without them."""
    lines = []
    bounds = find(metric, METRICS, argument="metrics").bounds
    for method in dict.fromkeys(own["method"]):
        mine = own[own["method"].eq(method)]
        scored = mine[mine["part"].isin(["samples", "concepts"]) & mine["mask"].eq("object")]
        values = per_image(scored)
        found = tcav(mine) if method == "tcav" else over_both(scored, bounds=bounds, rate=metric != "mcs")
        line: dict[str, Any] = {"metric": metric, "method": method, "value": found.mean, "low": found.low}
        line |= {"high": found.high, "images": found.n, "sd": spread(values)}
        line["random_mask"] = per_image(only(mine, mask="random", placing="as_built")).mean()
        moved = only(mine, part="robustness", mask="object").groupby("placing", sort=False)
        line |= {f"at_{name}": per_image(part).mean() for name, part in moved}
        if metric == "iir":
            each = only(mine, part="samples")
            changed_by = change(each)
            line["change"] = per_image(each.assign(value=changed_by)).mean()
            line |= {f"t_{t:g}": per_image(each.assign(value=changed_by < t)).mean() for t in THRESHOLDS}
        if metric == "mcs" and method != "tcav":
            line["own_sets"] = own_sets(only(rows, method=method, metric="mcs", part="samples"))
        line |= {"failed": scored["failed"].mean(), "value_defined": per_image(scored[~scored["failed"]]).mean()}
        lines.append(line)
    return pd.DataFrame(lines)


def own_sets(rows: pd.DataFrame) -> float:
    """MCS as printed: the mean of each network over the images that it gets right itself."""
    first, second = (per_image(rows[rows[f"right_{side}"].eq(1)], side).mean() for side in ("first", "second"))
    return float(first - second)


def tcav(rows: pd.DataFrame) -> Interval:
    """TCAV's MCS; without an interval where no layer of one network passes."""
    score = per_image(only(rows, part="concepts", mask="object")).mean()
    parts = [per_image(only(rows, part=part)) for part in ("concept_inputs", "concept_sets")]
    found = crossed(parts[0], parts[1], bounds=(-1, 1))
    return found._replace(mean=float(score))


def figure_13(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """The series of MCS over k, and its correlation with the accuracy drop, beside the published row."""
    rows = made(choice, perform, changes, methods=ALL)
    count, accuracy, ks = accuracies(rows)
    lines = []
    for method in dict.fromkeys(rows[rows["part"].isin(["fine", "concepts"])]["method"]):
        own = series(rows, method, ks)
        if len(own.ks) < LEAST:
            continue
        by_k = dict(zip(own.ks, means(own.values, whole(own.values))[0].tolist(), strict=True))
        line: dict[str, Any] = {"method": method, **{f"k_{k:g}": by_k.get(k) for k in ks}}
        found = rho_interval(own.values, accuracy[:, :, [ks.index(k) for k in own.ks]], count, sets=own.sets)
        line |= {"rho": found.mean, "rho_low": found.low, "rho_high": found.high, "images": found.n, "ks": len(own.ks)}
        line["range"] = max(by_k.values()) - min(by_k.values())
        lines.append(line)
    if not lines:
        raise UsageError(f"fewer than {LEAST} k have an image of the first class that f_s_k and f_s_1 both get right")
    theirs = papers.table("bam_figure_13").rename(columns={"rho": "published"})[["method", "published"]]
    table = pd.DataFrame(lines).merge(theirs, on="method", how="left")
    samples = sorted(rows[rows["part"].isin(["fine", "concept_inputs"]) & rows["k"].notna()]["sample"].unique())
    published = table[table["published"].notna()]["method"]
    known = {method: series(rows, method, ks, samples=samples) for method in published}
    told = [on_what(rows), *premise(pooled(only(rows, part="verification", metric="drop")))]
    told += claims_fine(table, *series_draws(known, accuracy, ks, count))
    return table.round(4), "\n".join(told) + "\n"


def accuracies(rows: pd.DataFrame) -> tuple[int, np.ndarray, list[float]]:
    """Images of a set; accuracies (trainings, 2, ks) of the first class with the feature and without; and the ks."""
    right = rows[rows["part"].eq("verification") & rows["metric"].eq("accuracy") & rows["k"].notna()]
    wide = right.pivot_table(index=["model_seed", "shown"], columns="k", values="value")
    both = [wide.xs(shown, level="shown").to_numpy(float) for shown in ("os", "s")]
    return int(right["n"].min()), np.stack(both, axis=1), list(wide.columns)


def series(rows: pd.DataFrame, method: str, ks: Sequence[float], *, samples: Sequence[int] | None = None) -> Series:
    """MCS of every image and k, of the ks that have any; TCAV's by input, and by random set."""
    own = rows[rows["method"].eq(method) & rows["k"].isin(ks) & rows["mask"].eq("object")]
    own = taking_part(own, "mcs")
    trainings = sorted(rows["model_seed"].unique())
    inputs, sets = own[own["part"].isin(["fine", "concept_inputs"])], only(own, part="concept_sets")
    if inputs.empty:
        return Series([], np.empty((len(trainings), 0, 0)))
    values, names = values_of(inputs, ["k"], trainings=trainings, samples=samples)
    by_set = None if sets.empty else values_of(sets, ["k"], trainings=trainings)[0]
    return Series([k for (k,) in names], values, by_set)


def summary(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """All three metrics side by side, and whether they are complementary."""
    rows = made(choice, perform, changes, methods=ALL)
    table, words = judged(rows, ("mcs", "idr", "iir"))
    coarse = rows[rows["k"].isna() & rows["method"].ne("")]
    coarse = pd.concat([taking_part(own, metric) for metric, own in coarse.groupby("metric", sort=False)])
    return table, "\n".join([*words, *claims_summary(table, coarse)]) + "\n"


def on_what(rows: pd.DataFrame) -> str:
    trained = only(rows, part="training", metric="accuracy")
    times, models = trained["model_seed"].nunique(), ", ".join(dict.fromkeys(trained["model"]))
    if times == 1:
        told = ", ".join(f"{net} {value:.0%}" for net, value in zip(trained["net"], trained["value"], strict=True))
        said = f"test accuracy: {told}. Intervals are over images of one training each, TCAV's also over random sets."
    else:
        told = ", ".join(f"{net} {v:.0%}" for net, v in trained.groupby("net", sort=False)["value"].mean().items())
        said = (
            f"{times} trainings of each, mean test accuracy: {told}. An image counts once, with its mean over them. "
            "Intervals of scores, leads and accuracies are over images and trainings, by Student's t for as many "
            f"trainings; all others are of {DRAWS} draws of images and trainings; TCAV's are also over random sets."
        )
    return (
        f"{len(trained)} networks ({models}), {said} A map that says nothing has the worst value (failed: their share; "
        "value_defined leaves them out). The paper prints its bars without numbers, so claims are judged, "
        "not values."
    )


ARTEFACTS = (
    Artefact("bam/figure-2", "what the networks need, and the premise over ten k", figure_2),
    Artefact("bam/figure-4", "MCS between f_o and f_s", partial(contrasts, metrics=("mcs",))),
    Artefact("bam/figure-8", "IDR of f_s", partial(contrasts, metrics=("idr",))),
    Artefact(
        "bam/figure-10",
        "IIR of f_∅ at t = 10 % and over t, and the average change of Fig. 11",
        partial(contrasts, metrics=("iir",)),
    ),
    Artefact("bam/figure-13", "MCS over k and its correlation with the accuracy drop (also Fig. 6)", figure_13),
    Artefact("bam/section-5", "all three metrics and every claim on them", summary),
)
