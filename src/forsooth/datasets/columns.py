"""Columns of tables as numbers: which of them can be features, and how much each says of the label."""

import hashlib
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

DATE = r"\d{4}-\d{2}-\d{2}"
CLASSES = 20  # a label with more distinct values is a quantity or a text, not a class
BINS = 10
HUGE = 1e150  # numbers from here on count as missing, as infinity does: the square of their spread has no float64


@dataclass(frozen=True)
class PublicTable:
    """A public table: its label, a column to know it by, columns that give the label away, codes of missing values."""

    label: str
    mark: str
    leaks: str = "$^"  # pattern of a whole name; this one matches none
    missing: tuple[float, ...] = ()


# COMPAS: what happened later (is_recid, r_*, vr_*, event, and start, end, custody, which stop at the new offence), and
# the scores of the tool itself, which are another model's answer to the same question. HELOC: `Probabilities` is the
# output of a model fitted to the label.
PUBLIC_TABLES = (
    PublicTable(label="income", mark="fnlwgt"),
    PublicTable(
        label="two_year_recid",
        mark="decile_score",
        leaks=r"two_year_recid|is_recid|violent_recid|is_violent_recid|r_.*|vr_.*|event|start|end|in_custody|out_custody"
        r"|(v_)?decile_score(\.1)?|(v_)?score_text|(v_)?type_of_assessment",
    ),
    PublicTable(label="RiskPerformance", mark="ExternalRiskEstimate", leaks="Probabilities", missing=(-7, -8, -9)),
    PublicTable(label="class", mark="other_debtors"),
)
IDENTIFIERS = ("id", "index", "unnamed: 0")


@dataclass(frozen=True)
class Column:
    """A column made numeric: values (n,) float64 without gaps, how many gaps were filled, categories if it was text."""

    values: np.ndarray
    missing: int
    categories: int | None


def rank(
    frame: pd.DataFrame, y: np.ndarray, train: np.ndarray, public: PublicTable | None
) -> tuple[dict[str, float], dict[str, str]]:
    """Mutual information with y (n,) of every usable column, in the order of the table; the others with the reason."""
    scores: dict[str, float] = {}
    left_out: dict[str, str] = {}
    seen: dict[bytes, str] = {}  # hash of the values -> the first column that has them
    for name in frame.columns:
        reason = unfit(frame[name], public)
        if reason is None:
            values = numeric(frame[name], train, public).values
            reason = useless(values, train, name, seen)
        if reason is None:
            scores[name] = mutual_information(values[train], y[train])
        else:
            left_out[name] = reason
    return scores, left_out


def useless(values: np.ndarray, train: np.ndarray, name: str, seen: dict[bytes, str]) -> str | None:
    """Why the values (n,) of a column cannot help; None if they can. They are noted in `seen`."""
    first = seen.setdefault(hashlib.sha256(values.tobytes()).digest(), name)
    if not np.ptp(values[train]) > 0:  # also where all is missing: then the values are nan
        return "one value only in the training rows"
    if first != name:
        return f"a copy of {first}"
    return None


def unfit(column: pd.Series, public: PublicTable | None) -> str | None:
    """Why a column cannot be a feature by its name or kind; None if it can."""
    if public and re.fullmatch(public.leaks, str(column.name)):
        return "gives the label away"
    if str(column.name).lower() in IDENTIFIERS:
        return "an identifier"
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return "dates"
    if pd.api.types.is_numeric_dtype(column.dtype):
        return None
    there = column.dropna().astype(str)
    if len(there) and there.str.match(DATE).all():
        return "dates"
    if there.nunique() > max(CLASSES, len(column) / 2):
        return f"an identifier or free text: {there.nunique()} distinct values"
    return None


def numeric(column: pd.Series, train: np.ndarray, public: PublicTable | None) -> Column:
    """The column as numbers, gaps filled by the median of the training rows."""
    categories = None
    if pd.api.types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
        values[~(np.abs(values) < HUGE)] = np.nan
        if public:
            values[np.isin(values, public.missing)] = np.nan
    else:
        values, categories = coded(column, train)
    gaps = np.isnan(values)
    if gaps.any() and not gaps[train].all():
        values[gaps] = np.nanmedian(values[train])
    return Column(values, int(gaps.sum()), categories)


def coded(column: pd.Series, train: np.ndarray) -> tuple[np.ndarray, int]:
    """(n,) float64, the rank of each text by its frequency in the training rows, nan for a gap; and how many there are.

    A text that the training rows lack comes after all.
    """
    texts = column.astype(str).where(column.notna())
    counts = texts.iloc[train].value_counts()
    order = sorted(counts.index, key=lambda category: (-counts[category], category))
    code = {category: float(k) for k, category in enumerate(order)}
    values = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        if not pd.isna(text):
            values[row] = code.get(text, len(order))
    return values, len(order)


def binned(values: np.ndarray) -> tuple[np.ndarray, int]:
    """(n,) int, the bin of each of values (n,) between and on their deciles; and how many bins there are."""
    cuts = np.unique(np.quantile(values, np.arange(1, BINS) / BINS, method="inverted_cdf"))
    below = np.searchsorted(cuts, values, side="left")
    up_to = np.searchsorted(cuts, values, side="right")
    return below + up_to, 2 * len(cuts) + 1


def mutual_information(values: np.ndarray, y: np.ndarray) -> float:
    """Mutual information in nats of values (n,), cut at their deciles, and y (n,) int.

    A value that lies on a cut has a bin of its own, so that a column that is mostly 0 is told from its few others.
    """
    bins, count = binned(values)
    classes = int(y.max()) + 1
    counts = np.bincount(bins * classes + y, minlength=count * classes)
    joint = counts.reshape(-1, classes) / len(y)
    independent = joint.sum(1, keepdims=True) * joint.sum(0)
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / independent[there])).sum())
