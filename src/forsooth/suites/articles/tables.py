"""From rows to numbers that the page and the reproductions share."""

from itertools import product

import torch
from pandas import DataFrame

from forsooth.frames import lines_by, only, without
from forsooth.scores.selection import OPTIMA, Optimum, optimum
from forsooth.stats import SHARE, Interval
from forsooth.stats.bootstrap import bootstrapped_ratio
from forsooth.stats.intervals import Estimate, estimate_of, no_interval
from forsooth.suites.articles.selections import RECALL

COUNTS = ["hits", "selected", "relevant", "words", "misled"]
KEY = ["kind", "model", "model_seed", "rate"]
MODEL = ["kind", "model", "number", "target"]  # the same in the table
ON_TARGET = 0.02  # a share of the words that is nearer to the asked one than this is what was asked for


def attr_estimate(rows: DataFrame) -> Estimate:
    """Mean Attr% over documents and, where there are several, trainings."""
    return estimate_of(rows, bounds=SHARE)


def attr_interval(rows: DataFrame) -> Interval:
    """The interval of the same; the page draws it as it is printed here."""
    return attr_estimate(rows).interval


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
