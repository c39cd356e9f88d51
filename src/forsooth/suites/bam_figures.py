"""The figures of the paper made again, and a verdict on each claim of its section 5. [yang2019benchmarking]"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch

from forsooth import papers
from forsooth.records import Artefact, Choice, Plan, UsageError
from forsooth.scores.contrast import drawn, pearson, trial_means
from forsooth.seeds import generator
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites import bam, bam_presets
from forsooth.suites.bam_claims import CLAIMS, claims_fine, premise, premises
from forsooth.suites.planted_figures import Interval, mean_of, share_of

Perform = Callable[[Plan], Store]
# Without the user's data the figures are made at the scale of the embedded ones.
EMBEDDED = dataclasses.replace(
    bam_presets.QUICK, ks=bam_presets.KS, samples=200, few=40, fine=60, robust=60, test=6, sets=20
)
TRIALS, SIZE = 10, 100
DRAWS = 2000
LEAST = 2  # k that a correlation with the drop needs
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


def rho_interval(values: np.ndarray, accuracy: np.ndarray, n: int) -> Interval:
    """Pearson's ρ of the mean of values (images, ks) with the drop, with a bootstrap over the images of both.

    values    nan: the image is not in X_corr for that k
    accuracy  (2, ks) with the common feature and without, over n images; a drop of few points is mostly their chance
    """
    rng, found = np.random.default_rng(0), []
    for _ in range(DRAWS):
        part = values[rng.integers(0, len(values), len(values))]
        with_, without = rng.binomial(n, accuracy) / n
        if not np.isnan(part).all(0).any():
            found.append(pearson(torch.tensor(np.nanmean(part, axis=0)), torch.tensor(with_ - without)))
    known = np.array([one for one in found if one == one])
    low, high = np.quantile(known, [0.025, 0.975]) if len(known) else (np.nan, np.nan)
    rho = pearson(torch.tensor(np.nanmean(values, axis=0)), torch.tensor(accuracy[0] - accuracy[1]))
    return Interval(rho, float(low), float(high), len(values))


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
    own = rows[rows["part"].eq("verification") & rows["metric"].isin(["accuracy", "confidence_rises", "drop"])]
    table = own[["net", "shown", "k", "metric", "value", "n"]].assign(value=100 * own["value"])
    theirs = papers.table("bam_figure_2").drop(columns="k").rename(columns={"value": "published"})
    table = table.merge(theirs, on=["net", "shown", "metric"], how="left").round(1)
    known = own.set_index(["net", "shown", "metric"])
    lines = [on_what(rows), *premises(known)]
    lines += premise(own[own["metric"].eq("drop")])
    return table, "\n".join(lines) + "\n"


def contrasts(
    choice: Choice, perform: Perform, changes: Mapping[str, Any], *, metrics: tuple[str, ...]
) -> tuple[pd.DataFrame, str]:
    """Bars of MCS, IDR or IIR with their baselines, and the claims on them."""
    rows = made(choice, perform, changes, methods=(*bam_presets.PUBLISHED, *bam_presets.MORE, *bam_presets.NULLS))
    lines, words = [], [on_what(rows)]
    for metric in metrics:
        asked = rows[rows["metric"].eq(metric) & rows["k"].isna()]
        own = asked[asked["status"].eq("ok")]
        if own[own["method"].isin(bam_presets.PUBLISHED)].empty:
            why = ", ".join(dict.fromkeys(asked[asked["message"].ne("")]["message"]))
            words.append(f"{metric}: nothing to judge ({why}).")
            continue
        table = bars(own, metric, rows)
        lines.append(table)
        words += CLAIMS[metric](table.set_index("method"), own)
    if not lines:
        raise UsageError(" ".join(words))
    return pd.concat(lines, ignore_index=True).round(4), "\n".join(words) + "\n"


def bars(own: pd.DataFrame, metric: str, rows: pd.DataFrame) -> pd.DataFrame:
    """One line per method: mean, interval, spread over trials, random mask, other places, who was left out."""
    lines = []
    for method in dict.fromkeys(own["method"]):
        mine = own[own["method"].eq(method)]
        values = mine[mine["part"].isin(["samples", "concepts"]) & mine["mask"].eq("object")]["value"]
        found = mean_of(values) if metric == "mcs" else share_of(values > 0.5)
        line: dict[str, Any] = {"metric": metric, "method": method, "value": found.mean, "low": found.low}
        line |= {"high": found.high, "images": found.n, "sd": spread(values)}
        line["random_mask"] = mine[mine["mask"].eq("random") & mine["placing"].eq("as_built")]["value"].mean()
        moved = only(mine, part="robustness", mask="object").groupby("placing", sort=False)["value"].mean()
        line |= {f"at_{name}": value for name, value in moved.items()}
        if metric == "iir":
            each = only(mine, part="samples")
            change = (each["first"] - each["second"]).abs() / each["second"]
            line["change"] = change.replace(np.inf, np.nan).mean()
            line |= {f"t_{t:g}": float((change < t).mean()) for t in THRESHOLDS}
        if metric == "mcs" and method != "tcav":
            line["own_sets"] = own_sets(only(rows, method=method, metric="mcs", part="samples"))
        asked = only(rows, method=method, metric=metric, part="samples")
        line["undefined"] = float((~asked["status"].isin(["ok", "no sample"])).mean())
        lines.append(line)
    return pd.DataFrame(lines)


def own_sets(rows: pd.DataFrame) -> float:
    """MCS as printed: the mean of each network over the images that it gets right itself."""
    first = rows[rows["right_first"].eq(1)]["first"].mean()
    return float(first - rows[rows["right_second"].eq(1)]["second"].mean())


def figure_13(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """The series of MCS over k, and its correlation with the accuracy drop, beside the published row."""
    rows = made(choice, perform, changes, methods=(*bam_presets.PUBLISHED, *bam_presets.MORE, *bam_presets.NULLS))
    right = rows[rows["part"].eq("verification") & rows["metric"].eq("accuracy") & rows["k"].notna()]
    count, accuracy = int(right["n"].min()), right.pivot_table(index="shown", columns="k", values="value")
    lines = []
    for method in dict.fromkeys(rows[rows["part"].isin(["fine", "concepts"])]["method"]):
        values = series(rows, method)
        ks = [k for k in accuracy.columns if k in values]
        if len(ks) < LEAST:
            continue
        means = values.mean()
        line: dict[str, Any] = {"method": method, **{f"k_{k:g}": means.get(k) for k in accuracy.columns}}
        found = rho_interval(values[ks].to_numpy(float), accuracy.loc[["os", "s"], ks].to_numpy(float), count)
        line |= {"rho": found.mean, "rho_low": found.low, "rho_high": found.high, "images": found.n, "ks": len(ks)}
        line["range"] = float(means.max() - means.min())
        lines.append(line)
    if not lines:
        raise UsageError(f"fewer than {LEAST} k have an image of the first class that f_s_k and f_s_1 both get right")
    theirs = papers.table("bam_figure_13").rename(columns={"rho": "published"})[["method", "published"]]
    table = pd.DataFrame(lines).merge(theirs, on="method", how="left")
    told = [on_what(rows), *premise(only(rows, part="verification", metric="drop")), *claims_fine(table)]
    return table.round(4), "\n".join(told) + "\n"


def series(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """MCS of every image (rows) and k (columns, those that have any); nan where it is not in X_corr."""
    own = rows[rows["part"].isin(["fine", "concepts"]) & rows["method"].eq(method) & rows["status"].eq("ok")]
    own = own[own["k"].notna() & own["mask"].eq("object")]
    return own.pivot_table(index="sample", columns="k", values="value")


def summary(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """All three metrics side by side, and whether they are complementary."""
    table, words = contrasts(choice, perform, changes, metrics=("mcs", "idr", "iir"))
    wide = table.pivot_table(index="method", columns="metric", values="value")
    maps = wide[wide.index.isin(bam_presets.PUBLISHED)].dropna()
    lines = [words.rstrip(), "Section 5, summary."]
    if {"mcs", "idr", "iir"} <= set(maps) and "gradient" in maps.index and len(maps) > 2:
        place = maps.rank(ascending=False, method="min").loc["gradient"].astype(int)
        half = len(maps) / 2
        holds = place["idr"] <= half and place["iir"] <= half and place["mcs"] > half
        said = "holds" if holds else "does not hold"
        ranks = ", ".join(f"{name} {place[name]} of {len(maps)}" for name in ("mcs", "idr", "iir"))
        lines.append(f"The metrics are complementary (VG: high IDR and IIR, low MCS): {said}. Ours, ranks: {ranks}.")
    return table, "\n".join(lines) + "\n"


def on_what(rows: pd.DataFrame) -> str:
    trained = only(rows, part="training", metric="accuracy")
    told = ", ".join(f"{net} {value:.0%}" for net, value in zip(trained["net"], trained["value"], strict=True))
    return (
        f"{len(trained)} networks ({', '.join(dict.fromkeys(trained['model']))}), test accuracy: {told}. Intervals are "
        "over images of one training each. The paper prints its bars without numbers, so claims are judged, not values."
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
