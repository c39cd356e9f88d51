"""Tables made from other tables of `studies/`, without any run: python studies/derived.py writes them again.

`bias/nearness.csv`, `bias/ratios.csv`, `bias/spreads.csv`: ours beside the published numbers of Tables 3 to 12;
`bias/anchor-draws.csv`: what the draw of the anchor would add to their intervals;
`bias/figure-6-methods.csv`: Fig. 6 by method; `bias/rules.csv`: the rule of 1/√N, judged for all methods together;
`bam/by-method.csv`, `bam/by-accuracy.csv`, `bam/rho-small.csv`: BAM's scores in lines;
`planted/by-method.csv`, `planted/trends.csv`: over all artefacts, and over images with and without one;
`articles/`: gaps to the optimum, frequencies of the words, what a constant map has, who is near 1 on rationale models.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from scipy.stats import spearmanr

from forsooth import papers
from forsooth.stats.claims import surely_above
from forsooth.stats.intervals import UPPER_TAIL, Student
from forsooth.suites.articles.reproduce_post_hoc import NEAR_ONE
from forsooth.suites.bias.reproduce_patches import rules_of
from forsooth.suites.bias.reproduce_tables import CIFAR, VOC
from forsooth.suites.bias.reproduce_words import UNSAID, orders
from forsooth.suites.bias.settings import SHAPLEY
from forsooth.suites.bias.tables import KEY

STUDIES = Path(__file__).parent
# What the paper leaves open: layer and superpixels, and a background, which in Tables 4 and 5 makes the difference.
OPEN = (*UNSAID, "deep_shap")


def published_beside_ours() -> pd.DataFrame:
    """Tables 3 to 12 in one, with the columns table and network, and `corrected`: `published` without misprints.

    Tables 8 to 12 are without Grad-CAM, which is judged on units where the others are judged on patches.
    """
    parts = []
    for number, network in {**CIFAR, **VOC}.items():
        table = pd.read_csv(STUDIES / f"bias/table-{number}.csv").dropna(subset=["published"])
        table = table[table["method"].ne("grad_cam")] if number in VOC else table
        intended = table[KEY].merge(papers.corrected(f"bias_table_{number}"), on=KEY, how="left")["value"]
        parts.append(table.assign(table=number, network=network, corrected=intended.to_numpy()))
    return pd.concat(parts)


def nearness(table: pd.DataFrame) -> dict[str, float]:
    """How near ours is to `published`: ρ by row and their median; of the same players also order and size of cells."""
    by_row = orders(table)
    names = by_row["end"] + "_" + (100 * by_row["fraction"]).round().astype(int).astype(str)
    known = table[~table["method"].isin(UNSAID)]
    order = {
        **dict(zip(names, by_row["rho"], strict=True)),
        "median": by_row["rho"].median(),
        "median_without_open": orders(table[~table["method"].isin(OPEN)])["rho"].median(),
    }
    if table["table"].isin(VOC).all():  # patches there against pixels in the paper
        return order
    return {
        **order,
        "all_cells": spearmanr(table["ours"], table["published"]).statistic,
        "within_2": within(table, 2),
        "known_cells": spearmanr(known["ours"], known["published"]).statistic,
        "known_within_2": within(known, 2),
        "known_half_within": 100 * np.expm1(np.log(known["ours"] / known["published"]).abs().median()),
    }


def within(table: pd.DataFrame, factor: float) -> float:
    """Per cent of cells within a factor of the published number."""
    ratio = table["ours"] / table["published"]
    return float(100 * ratio.between(1 / factor, factor).mean())


def bias_nearness(joined: pd.DataFrame) -> pd.DataFrame:
    """`nearness` of each table to the numbers as printed, and as intended where there is a misprint."""
    lines = []
    for (number, network), table in joined.groupby(["table", "network"]):
        for reading, published in (("printed", table["published"]), ("corrected", table["corrected"])):
            line = {"table": number, "network": network, "reading": reading}
            lines.append({**line, **nearness(table.assign(published=published))})
    return pd.DataFrame(lines).round(4)


def bias_ratios(joined: pd.DataFrame) -> pd.DataFrame:
    """Ours over the published number, the median over the ten rows of a table; a column for each method."""
    joined = joined[joined["table"].isin(CIFAR)]
    ratio = joined["ours"] / joined["published"]
    medians = ratio.groupby([joined["table"], joined["network"], joined["method"]]).median()
    return medians.unstack().round(4).reset_index()


def bias_spreads(joined: pd.DataFrame) -> pd.DataFrame:
    """How far a published row sets the known methods apart: its largest number over its smallest."""
    known = joined[~joined["method"].isin(UNSAID)]
    rows = known.groupby(["table", "network", "end", "fraction"], sort=False)["corrected"]
    return (rows.max() / rows.min()).rename("spread").round(3).reset_index()


def bias_anchor_draws() -> pd.DataFrame:
    """1.96 times the error that the draw of the anchor leaves, as a part of half the interval, over a table's lines.

    Without the Shapley values drawn a second time, whose bias is nothing but that error.
    """
    lines = []
    for number, network in {**CIFAR, **VOC}.items():
        table = pd.read_csv(STUDIES / f"bias/table-{number}.csv")
        table = table[table["method"].ne(SHAPLEY)]
        part = 1.96 * table["sampling_error"] / ((table["high"] - table["low"]) / 2)
        lines.append({"table": number, "network": network, "median": part.median(), "largest": part.max()})
    return pd.DataFrame(lines).round(3)


def variants_factors() -> pd.DataFrame:
    """The factor by which a method is off in the median, under each reading of the paper."""
    variants = pd.read_csv(STUDIES / "bias/variants.csv").set_index("reading")
    methods = variants[[name for name in variants if not name.startswith("median ")]]
    return np.exp(methods).round(2).reset_index()


def figure_6_methods() -> pd.DataFrame:
    """M_bias and the accurate bias, each the mean over images, by model and method."""
    maps = pd.read_csv(STUDIES / "bias/figure-6.csv")
    return maps.groupby(["model", "method"])[["m_bias", "accurate"]].mean().round(5).reset_index()


def estimate(mean: float, low: float, high: float, n: int) -> Student:
    """The estimate behind a printed interval over n; a side that was cut off, where no value can be, is the shorter."""
    half = max(mean - low, high - mean)
    return Student(mean, half / stats.t.ppf(UPPER_TAIL, n - 1), n - 1, n)


def bias_rules() -> pd.DataFrame:
    """Whether M_bias has the size 1/√N for each method, all of them one family, as the command judges it."""
    table = pd.read_csv(STUDIES / "bias/patches-against-pixels.csv")
    logs = np.log(table[["over_expected", "low", "high"]])
    ratios = [estimate(*log, n) for log, n in zip(logs.to_numpy(), table["images"], strict=True)]
    return table[["model", "method"]].assign(rule=rules_of(ratios, 1.0))


def articles_near_one() -> pd.DataFrame:
    """Which post-hoc methods are near 1 on rationale models; those of one run are a family, as the command judges it.

    columns  alone: by its own interval; near_one: of all methods and models together
    """
    parts = []
    for networks, name in {"paper": "post-hoc-beer-rationales", "small": "post-hoc-beer-rationales-small"}.items():
        table = pd.read_csv(STUDIES / f"articles/{name}.csv").query("model != 'none'")
        drawn = table["documents"].where(table["trainings"].eq(1), table[["documents", "trainings"]].min(axis=1))
        intervals = table[["attr", "low", "high"]].to_numpy()
        attrs = [estimate(*interval, n) for interval, n in zip(intervals, drawn, strict=True)]
        sure = table[["kind", "model", "method", "attr"]].assign(networks=networks)
        parts.append(sure.assign(alone=table["low"] > NEAR_ONE, near_one=surely_above(attrs, NEAR_ONE)))
    return pd.concat(parts)


def bam_by_method() -> pd.DataFrame:
    """One line for each score of BAM, a column for each method, so that methods can be taken from one another."""
    scores = pd.read_csv(STUDIES / "bam/section-5.csv").pivot(index="metric", columns="method", values="value")
    series = pd.read_csv(STUDIES / "bam/figure-13.csv").set_index("method")[["rho", "range"]].T
    return pd.concat([scores, series]).rename_axis("score").round(4).reset_index()


def bam_by_accuracy() -> pd.DataFrame:
    """Fig. 2 in one line, ours and published: accuracies by network and what is shown, drops by k, in points."""
    ours = pd.read_csv(STUDIES / "bam/figure-2.csv").query("metric == 'accuracy'")
    whole = ours[ours["k"].isna()]
    line = dict(zip(whole["net"] + "_" + whole["shown"], whole["value"], strict=True))
    line |= dict(zip("published_" + whole["net"] + "_" + whole["shown"], whole["published"], strict=True))
    for column, prefix in (("value", "drop"), ("published", "published_drop")):
        by_k = ours.dropna(subset=["k"]).pivot(index="k", columns="shown", values=column)
        line |= {f"{prefix}_{k:g}".replace(".", "_"): drop for k, drop in (by_k["os"] - by_k["s"]).items()}
    return pd.DataFrame([line]).round(2)


def bam_rho_small() -> pd.DataFrame:
    """ρ with the drop of the small network in one line, a column for each method."""
    rho = pd.read_csv(STUDIES / "bam/figure-13-small.csv").dropna(subset=["published"]).set_index("method")["rho"]
    return rho.to_frame().T


def articles_gaps() -> pd.DataFrame:
    """How far the precision of rationale models of CN and NC is below its optimum, and REINFORCE less relaxation."""
    parts = []
    for networks, name in (("paper", "figure-8-beer-paper"), ("small", "figure-8-beer")):
        table = pd.read_csv(STUDIES / f"articles/{name}.csv").query("kind != 'Article'")
        table = table.assign(gap=table["best_precision_dataset"] - table["precision"])
        wide = table.pivot(index=["kind", "target"], columns="model", values="gap").reset_index()
        parts.append(wide.assign(networks=networks, difference=wide["rationale_reinforce"] - wide["rationale_relaxed"]))
    return pd.concat(parts).round(4)


def articles_gap_means() -> pd.DataFrame:
    """The mean gap over rates, at the rate a model selects and at the rate that was asked for, by kind and model."""
    parts = []
    for networks, name in (("paper", "figure-8-beer-paper"), ("small", "figure-8-beer")):
        table = pd.read_csv(STUDIES / f"articles/{name}.csv").query("kind != 'Article'")
        for rate in ("dataset", "asked"):
            gap = table[f"best_precision_{rate}"] - table["precision"]
            means = gap.groupby([table["kind"], table["model"]]).mean().rename("gap").reset_index()
            parts.append(means.assign(networks=networks, rate=rate))
    return pd.concat(parts).round(4)


def articles_frequencies() -> pd.DataFrame:
    """How often the words are, on both corpora, and the variance over trainings of CN over that of Article."""
    parts = []
    for corpus in ("beer", "imdb"):
        table = pd.read_csv(STUDIES / f"articles/table-1-{corpus}.csv").query("words != 'other'")
        spread = table.query("words == 'correlating'").set_index("kind")["sd"]
        ratio = (spread["CN"] / spread["Article"]) ** 2
        parts.append(table[["kind", "words", "frequency"]].assign(corpus=corpus, variance_ratio=ratio))
    return pd.concat(parts).round(4)


def articles_over_constant() -> pd.DataFrame:
    """Attr% of the post-hoc methods on attention models beside what a constant map has, on both corpora."""
    parts = []
    for corpus in ("beer", "imdb"):
        table = pd.read_csv(STUDIES / f"articles/post-hoc-{corpus}.csv")
        constant = table[table["method"].eq("constant")].set_index("kind")["attr"]
        times = table["attr"] / table["kind"].map(constant)
        parts.append(table[["kind", "method", "attr"]].assign(corpus=corpus, times=times))
    return pd.concat(parts).round(4)


def planted_joined() -> pd.DataFrame:
    """The tables of planted artefacts in one; `run` tells ResNet-34 from the small network."""
    runs = {"figure-3": "resnet34", "figure-11": "resnet34", "figure-12": "resnet34", "figure-4-small": "small"}
    return pd.concat([pd.read_csv(STUDIES / f"planted/{name}.csv").assign(run=run) for name, run in runs.items()])


def planted_by_method(joined: pd.DataFrame) -> pd.DataFrame:
    """Attr% and the share of the image over all models of an experiment, and how many are in the Shapley range.

    Each line of the source is a mean over `models`, so lines are weighted by them. `alike` averages both presences.
    """
    lines = []
    for presence in ("with", "without", "alike"):
        part = joined if presence == "alike" else joined[joined["presence"].eq(presence)]
        for (run, experiment, method), rows in part.groupby(["run", "experiment", "method"]):
            models = rows["models"]
            line = {"run": run, "experiment": experiment, "method": method, "presence": presence}
            means = {column: np.average(rows[column], weights=models) for column in ("attr", "er")}
            inside = (rows["in_range"] * models).round().sum()
            lines.append({**line, **means, "models": models.sum(), "in_range": inside, "slope": rows["slope"].mean()})
    return pd.DataFrame(lines).round(4)


def planted_trends(joined: pd.DataFrame) -> pd.DataFrame:
    """Slopes by artefact and method, the mean of images with and without the artefact, and the gap between them."""
    wide = joined.pivot(index=["run", "experiment", "method", "manipulation"], columns="presence")
    slope = wide["slope"].mean(axis=1)
    gap = wide["attr"]["with"] - wide["attr"]["without"]
    return pd.DataFrame({"slope": slope, "with_less_without": gap}).round(4).reset_index()


def planted_leads(by_method: pd.DataFrame) -> pd.DataFrame:
    """SHAP less Gradient over all models of an experiment."""
    wide = by_method.pivot(index=["run", "experiment", "presence"], columns="method", values="attr")
    return (wide["gradient_shap_200"] - wide["saliency"]).rename("shap_less_gradient").round(4).reset_index()


def derived() -> dict[str, pd.DataFrame]:
    """Every derived table by its path under `studies/`."""
    joined = published_beside_ours()
    planted = planted_joined()
    by_method = planted_by_method(planted)
    return {
        "bias/nearness.csv": bias_nearness(joined),
        "bias/ratios.csv": bias_ratios(joined),
        "bias/spreads.csv": bias_spreads(joined),
        "bias/anchor-draws.csv": bias_anchor_draws(),
        "bias/variants-factors.csv": variants_factors(),
        "bias/figure-6-methods.csv": figure_6_methods(),
        "bias/rules.csv": bias_rules(),
        "bam/by-method.csv": bam_by_method(),
        "bam/by-accuracy.csv": bam_by_accuracy(),
        "bam/rho-small.csv": bam_rho_small(),
        "planted/by-method.csv": by_method,
        "planted/leads.csv": planted_leads(by_method),
        "planted/trends.csv": planted_trends(planted),
        "articles/gaps.csv": articles_gaps(),
        "articles/gap-means.csv": articles_gap_means(),
        "articles/frequencies.csv": articles_frequencies(),
        "articles/over-constant.csv": articles_over_constant(),
        "articles/near-one.csv": articles_near_one(),
    }


def main() -> None:
    for path, table in derived().items():
        table.to_csv(STUDIES / path, index=False)
        print(path)


if __name__ == "__main__":
    main()
