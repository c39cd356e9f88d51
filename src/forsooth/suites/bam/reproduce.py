"""The figures of the paper made again, and a verdict on each claim of its section 5. [yang2019benchmarking]"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from pandas import DataFrame, concat

from forsooth import papers
from forsooth.frames import only, without, worded
from forsooth.records import Judgement, Outcome, Reproduction, UsageError
from forsooth.stats.bootstrap import DRAWS
from forsooth.suites.bam import tables
from forsooth.suites.bam.claims import CLAIMS
from forsooth.suites.bam.claims_networks import claims_drop, claims_networks
from forsooth.suites.bam.claims_ranks import claims_summary
from forsooth.suites.bam.claims_series import claims_series
from forsooth.suites.bam.plan import plan
from forsooth.suites.bam.settings import KS, MORE, NULLS, PAPER, PUBLISHED, QUICK, Settings
from forsooth.suites.verdicts import judgement
from forsooth.wording import paragraphs

# Without the user's data the figures are made at the scale of the embedded ones, of networks trained to the end.
EMBEDDED = replace(
    QUICK,
    ks=KS,
    samples=200,
    samples_expensive=40,
    samples_per_k=60,
    samples_robustness=60,
    test=6,
    random_sets=20,
    stop_at=None,
)
EVERYONE = (*PUBLISHED, *MORE, *NULLS)
VERIFIED = ("accuracy", "confidence_rises", "drop")


def judge_networks(outcome: Outcome) -> Judgement:
    """Fig. 2: what the networks need, and whether the drop falls as k grows."""
    shares = only(tables.verification_table(outcome.rows), metric=VERIFIED)
    table = shares.copy()
    table[["value", "low", "high"]] *= 100
    table = papers.beside(table, "bam_figure_2", ["net", "shown", "metric"], value="published").round(1)
    lines = [about(outcome.rows)]
    lines += claims_networks(shares.set_index(["net", "shown", "metric"]), class_numbers(outcome))
    lines += claims_drop(tables.drop_table(outcome.rows))
    return judgement(table, lines)


def class_numbers(outcome: Outcome) -> dict[str, int]:
    """Network -> how many classes it tells apart, as its training noted."""
    trained = [facts for facts in outcome.facts.values() if "classes" in facts]
    return {facts["name"]: facts["classes"] for facts in trained}


def judge_contrasts(outcome: Outcome, *, metrics: Sequence[str]) -> Judgement:
    """Figs. 4, 8 and 10: MCS, IDR or IIR with their baselines, and the claims on them."""
    return judgement(*contrasts(outcome.rows, metrics))


def judge_everything(outcome: Outcome) -> Judgement:
    """Section 5: all three metrics side by side, and whether they are complementary."""
    rows = outcome.rows
    metrics = tuple(CLAIMS)
    table, lines = contrasts(rows, metrics)
    parts = [tables.taking_part(tables.coarse_rows(rows, metric), metric) for metric in metrics]
    return judgement(table, lines + claims_summary(table, concat(parts)))


def contrasts(rows: DataFrame, metrics: Sequence[str]) -> tuple[DataFrame, list[str]]:
    """A line per metric and method, and the verdicts on the claims."""
    parts = []
    lines = [about(rows)]
    for metric in metrics:
        everyone = tables.coarse_rows(rows, metric)
        own = tables.taking_part(everyone, metric)
        if own["method"].isin(PUBLISHED).any():
            parts.append(tables.contrast_table(rows, metric))
            lines += CLAIMS[metric](parts[-1].set_index("method"), own)
        else:
            reasons = dict.fromkeys(without(everyone, message="")["message"])
            lines.append(f"{metric}: nothing to judge ({', '.join(reasons)}).")
    if not parts:
        raise UsageError(" ".join(lines))
    return concat(parts, ignore_index=True).round(4), lines


def judge_series(outcome: Outcome) -> Judgement:
    """Figs. 6 and 13: MCS over k, and its correlation with the accuracy drop, beside the published row."""
    rows = outcome.rows
    table = tables.series_table(rows)
    if table.empty:
        least = tables.LEAST_KS
        raise UsageError(f"fewer than {least} k have an image of the first class that f_s_k and f_s_1 both get right")
    table = papers.beside(table, "bam_figure_13", ["method"], rho="published")
    draws = tables.draws_of_series(rows, table[table["published"].notna()]["method"])
    lines = [about(rows), *claims_drop(tables.drop_table(rows)), *claims_series(table, *draws)]
    return judgement(table.round(4), lines)


def about(rows: DataFrame) -> str:
    """Of which networks the numbers are, and over what their intervals, in about.jinja."""
    trained = only(rows, part="training", metric="accuracy")
    words = paragraphs(
        __package__,
        "about.jinja",
        networks=len(trained),
        models=trained["model"].unique(),
        trainings=trained["model_seed"].nunique(),
        accuracy=worded(trained.groupby("net", sort=False, as_index=False)["value"].mean(), "{net} {value:.0%}"),
        draws=DRAWS,
    )
    return " ".join(words)


def reproduction(
    name: str, title: str, judge: Callable[[Outcome], Judgement], methods: tuple[str, ...] = EVERYONE
) -> Reproduction:
    """A figure at the embedded scale, or at that of the paper with the user's scenes and objects."""
    embedded = replace(EMBEDDED, methods=methods)
    paper: Settings = replace(PAPER, methods=methods, trainings=1)  # as printed
    return Reproduction(f"bam/{name}", title, settings=embedded, plan=plan, judge=judge, with_data=paper)


def contrast(name: str, title: str, metric: str) -> Reproduction:
    return reproduction(name, title, partial(judge_contrasts, metrics=(metric,)))


REPRODUCTIONS = (
    reproduction("figure-2", "what the networks need, and the premise over ten k", judge_networks, ("constant",)),
    contrast("figure-4", "MCS between f_o and f_s", "mcs"),
    contrast("figure-8", "IDR of f_s", "idr"),
    contrast("figure-10", "IIR of f_∅ at t = 10 % and over t, and the average change of Fig. 11", "iir"),
    reproduction("figure-13", "MCS over k and its correlation with the accuracy drop (also Fig. 6)", judge_series),
    reproduction("section-5", "all three metrics and every claim on them", judge_everything),
)
