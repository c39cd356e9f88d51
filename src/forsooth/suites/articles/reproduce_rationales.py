"""Precision and recall of rationales made again, with a verdict on each claim. [zhou2022feature, section 7]"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from pandas import DataFrame, Series

from forsooth.frames import lines_by, only, without
from forsooth.records import Judgement, Outcome, Reproduction
from forsooth.scores.selection import OPTIMA, Optimum, optimum
from forsooth.stats import SHARE, mean_interval, share_interval
from forsooth.stats.bootstrap import bootstrapped_ratio
from forsooth.stats.intervals import no_interval
from forsooth.suites.articles.plan import plan
from forsooth.suites.articles.selections import RECALL
from forsooth.suites.articles.sentences import accurate, basis, nothing_to_judge
from forsooth.suites.articles.settings import PAPER, REINFORCE, RELAXED
from forsooth.suites.verdicts import above, judgement, verdict

RATIONALES = replace(PAPER, models=(RELAXED, REINFORCE), methods=())
COUNTS = ["hits", "selected", "relevant", "words", "misled"]
KEY = ["kind", "model", "model_seed", "rate"]
MODEL = ["kind", "model", "number", "target"]  # the same in the table
NEAR = 0.05  # a precision or recall that is nearer to the optimum than this is "nearly optimal"
ON_TARGET = 0.02  # a share of the words that is nearer to the asked one than this is what was asked for
FAULTY = 0.07  # the target at which the relaxation of the paper fails


def judge(outcome: Outcome) -> Judgement:
    """Precision and recall of both kinds of model at every target rate, beside the two optima."""
    rows = outcome.rows
    table = selection_table(rows)
    if table.empty:
        raise nothing_to_judge("rationale model", outcome)
    accuracy = only(rows, metric="accuracy").set_index(KEY)["value"]
    table.insert(4, "accuracy", [accuracy.loc[model] for model in table[MODEL].itertuples(index=False, name=None)])
    sentences = [basis(outcome), accurate(rows, "7.1"), *claims_7_1(table), *claims_7_2(table)]
    return judgement(table.round(4), sentences)


def selection_table(rows: DataFrame) -> DataFrame:
    """One line per rationale model, from all rows of a run; models below their gate select nothing."""
    own = only(without(rows, status="below gate"), part="selection", metric=RECALL)
    return lines_by(own.rename(columns=dict(zip(KEY, MODEL, strict=True))), MODEL, line_of)


def line_of(documents: DataFrame) -> dict[str, float]:
    """One model: its rate, precision and recall over all words with 95 % intervals, and the optima at that rate."""
    target = documents["target"].iloc[0]
    totals = documents[COUNTS].astype(float).sum()
    totals["articles"] = totals["hits"] + totals["misled"]
    shares = totals / totals["selected"]  # nan where nothing is selected
    precision = bootstrapped_ratio(documents["hits"], documents["selected"])
    recall = bootstrapped_ratio(documents["hits"], documents["relevant"])
    if not totals["selected"]:
        recall = no_interval(recall.mean)
    rate = totals["selected"] / totals["words"]
    words = torch.tensor(documents[["relevant", "words"]].to_numpy(dtype=float)).T
    best = {line: optimum(line, rate, *words) for line in OPTIMA}
    return {
        "selected": rate,
        "precision": precision.mean,
        "recall": recall.mean,
        "precision_low": precision.low,
        "precision_high": precision.high,
        "recall_low": recall.low,
        "recall_high": recall.high,
        "articles": shares["articles"],
        "misled": shares["misled"],
        "silent": float(documents["selected"].eq(0).mean()),  # documents of which nothing is selected
        **{f"best_{name}_{line}": getattr(best[line], name) for line, name in product(best, Optimum._fields)},
        "best_precision_asked": optimum("dataset", target, *words).precision,
        "on_target": abs(rate - target) <= ON_TARGET,
    }


def claims_7_1(table: DataFrame) -> list[str]:
    """Judged at the rate a model selects, as the figure does: but no more than the largest rate that was asked for."""
    own = only(table, kind="Article")
    most = own["target"].max() + ON_TARGET
    return [claim_7_1(line, most) for line in own.itertuples()]


def claim_7_1(line: Any, most: float) -> str:
    """Whether one model of Article is nearly optimal, and whether the paper says so."""
    who = f"Article, {line.model}, target {line.target:.0%}"
    if not line.selected:
        return f"{who}: selects no word, published otherwise."
    return (
        f"{who}: {finding(line, most)}. Precision {line.precision:.2f} [{line.precision_low:.2f}, "
        f"{line.precision_high:.2f}] of {line.best_precision_dataset:.2f}, recall {line.recall:.2f} "
        f"[{line.recall_low:.2f}, {line.recall_high:.2f}] of {line.best_recall_dataset:.2f}; nothing is selected in "
        f"{line.silent:.0%} of the documents: there only silence can tell the label."
    )


def finding(line: Any, most: float) -> str:
    gap = max(line.best_precision_dataset - line.precision, line.best_recall_dataset - line.recall)
    near = gap <= NEAR and line.selected <= most
    words = "nearly optimal over the data set"
    if not near:
        words = f"not {words}"
    if not line.on_target:
        words += f" with the {line.selected:.0%} of the words that it selects"
    published_near = line.model != RELAXED or line.target > FAULTY
    if near == published_near:
        return f"{words}, as published"
    return f"{words}, published otherwise"


def claims_7_2(table: DataFrame) -> list[str]:
    """The claims on CN and NC."""
    own = without(table, kind="Article")
    if own.empty:
        return []
    gaps = own.assign(
        gap=own["best_precision_dataset"] - own["precision"],
        gap_asked=own["best_precision_asked"] - own["precision"],
    )
    articles = mean_interval(own["articles"], bounds=SHARE)
    misled = mean_interval(own["misled"], bounds=SHARE)
    return [
        above("CN and NC: rationales consist almost exclusively of articles (over 0.95)", articles, 0.95),
        on_target(own),
        *below_optimum(gaps),
        *further_by_reinforce(gaps),
        above("Non-correlating articles are selected (share of the selection)", misled),
    ]


def on_target(table: DataFrame) -> str:
    """Whether all models select what they are asked for, and who does not."""
    reached = share_interval(table["on_target"])
    missed = [
        f"{line.kind}, {line.model}: asked {line.target:.0%}, selected {line.selected:.0%}"
        for line in only(table, on_target=False).itertuples()
    ]
    claim = f"CN and NC: models select the rate they are asked for (within {ON_TARGET:.0%})"
    return verdict(claim, reached, holds=reached.mean == 1, fails=reached.mean < 1, more="; ".join(missed))


def below_optimum(gaps: DataFrame) -> Iterator[str]:
    """For each kind of data and model, at the rate it was asked for and at the one it selects."""
    for (kind, model), own in gaps.groupby(["kind", "model"], sort=False):
        claim = f"{kind}, {model}: precision is markedly below the optimum at the rate it"
        yield markedly(f"{claim} was asked for", own, own["gap_asked"], own["best_precision_asked"])
        yield markedly(f"{claim} selects", own, own["gap"], own["best_precision_dataset"])


def markedly(claim: str, models: DataFrame, gap: Series, best: Series) -> str:
    """The verdict over models, and which of them are surely so by themselves."""
    surely = models[best - models["precision_high"] > NEAR]
    targets = ", ".join(f"{target:.0%}" for target in sorted(surely["target"])) or "no target"
    return above(claim, mean_interval(gap), NEAR, f"single models, over documents: at {targets}")


def further_by_reinforce(gaps: DataFrame) -> list[str]:
    """The verdict on the two kinds of model side by side, where there are both."""
    wide = gaps.pivot_table(index=["kind", "target", "number"], columns="model", values="gap")
    if not {RELAXED, REINFORCE} <= set(wide):
        return []
    difference = mean_interval(wide[REINFORCE] - wide[RELAXED])
    return [above("REINFORCE is further from the optimum than the relaxation (difference)", difference)]


REPRODUCTIONS = (
    Reproduction(
        "articles/figure-8",
        "precision and recall of rationales against the rate of selection",
        RATIONALES,
        plan,
        judge,
    ),
)
