"""Tables of the user and the usual public ones: one column stays one feature, so that it can be one player."""

import hashlib
import re
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from forsooth.datasets.splitting import SPLITS, arrange, check_classes
from forsooth.records import Dataset, UsageError

LIBSVM = re.compile(r"[+-]?\d+(\.\d+)?(\s+\d+:\S+)+\s*")
DATE = r"\d{4}-\d{2}-\d{2}"
LABELS = ("label", "target", "class", "y")
CLASSES = 20  # a label with more distinct values is a quantity or a text, not a class
BINS = 10


@dataclass(frozen=True)
class Known:
    """A public table: its label, a column to know it by, columns that give the label away, codes of missing values."""

    label: str
    mark: str
    leaks: str = "$^"  # pattern of a whole name; this one matches none
    missing: tuple[float, ...] = ()


# COMPAS: what happened later (is_recid, r_*, vr_*, event, and start, end, custody, which stop at the new offence), and
# the scores of the tool itself, which are another model's answer to the same question. HELOC: `Probabilities` is the
# output of a model fitted to the label.
KNOWN = (
    Known(label="income", mark="fnlwgt"),
    Known(
        label="two_year_recid",
        mark="decile_score",
        leaks=r"two_year_recid|is_recid|violent_recid|is_violent_recid|r_.*|vr_.*|event|start|end|in_custody|out_custody"
        r"|(v_)?decile_score(\.1)?|(v_)?score_text|(v_)?type_of_assessment",
    ),
    Known(label="RiskPerformance", mark="ExternalRiskEstimate", leaks="Probabilities", missing=(-7, -8, -9)),
    Known(label="class", mark="other_debtors"),
)
IDENTIFIERS = ("id", "index", "unnamed: 0")


@dataclass(frozen=True)
class Column:
    """A column made numeric: values (n,) float64 without gaps, how many gaps were filled, categories if it was text."""

    values: np.ndarray
    missing: int
    categories: int | None


def table(path: str | Path, *, label: str | None = None, features: int | None = 10, seed: int) -> Dataset:
    """One table (.csv, .csv.gz, .tsv, .parquet, or libsvm text as .txt) for classification.

    x      (n, features) float32, each column standardised by the training rows
    y      (n,) int, classes in the order of their values
    truth  None

    Label: the named column, else that of a known table, else `label`, `target`, `class` or `y`, else the last column.
    Text columns become one number, the rank of the category by frequency in the training rows (0 the most frequent,
    ties by name; a category unseen there comes after all): one column stays one player, and the label is not read.
    Missing values ("?", empty, infinite, HELOC's -7, -8, -9) become the training median. Of the columns, the `features`
    with the largest mutual information with the label (training rows, ten quantile bins) are kept, in the order of the
    table. A column `split` is used as such, else a tenth of each class goes to val and a tenth to test.
    Departure: [anonymous2023evaluation] used 10 of the columns of UCI's TV news table and did not say which.
    """
    if features is not None and features < 1:
        raise UsageError(f"`features` must be at least 1, got {features}")
    path = Path(path)
    frame = read(path)
    name, known = label_of(frame, label, path)
    empty = int(frame[name].isna().sum())
    frame = frame[frame[name].notna()].reset_index(drop=True)
    y, classes = classes_of(frame[name], path)
    given = split_of(frame, name)
    splits, origin = arrange(given or [None] * len(y), y, seed=seed, names=classes)
    train = splits["train"].numpy()
    dropped = {name} | ({c for c in frame.columns if given and c.lower() == "split"})
    scores, left_out = rank(frame.drop(columns=list(dropped)), y.numpy(), train, known)
    if not scores:
        raise UsageError(f"`path` must hold a usable column beside the label {name!r}, got none in {path}: {left_out}")
    best = set(sorted(scores, key=lambda column: -scores[column])[:features])
    kept = {column: numeric(frame[column], train, known) for column in scores if column in best}
    values = np.stack([column.values for column in kept.values()], axis=1)  # (n, features)
    mean, std = values[train].mean(0), values[train].std(0)
    facts = {
        "features": list(kept),
        "label": name,
        "classes": classes,
        "mutual_information": {column: round(score, 6) for column, score in scores.items()},
        "missing": {column: c.missing for column, c in kept.items() if c.missing},
        "categories": {column: c.categories for column, c in kept.items() if c.categories},
        "mean": mean.tolist(),
        "std": std.tolist(),
        "left_out": left_out,
        "rows_without_label": empty,
        "splits_from": origin,
    }
    x = torch.from_numpy((values - mean) / std).float()
    return Dataset(f"table-{stem(path)}", x, y, None, splits, facts)


def tables_in(folder: str | Path) -> list[str]:
    """Names of the files in a folder that `table` reads; of the .txt files, those whose first line is libsvm."""
    if not Path(folder).is_dir():
        raise UsageError(f"`folder` must be a folder, but there is none at {folder}")
    files = sorted(file for file in Path(folder).iterdir() if file.is_file())
    return [file.name for file in files if suffix(file) in READERS and (suffix(file) != ".txt" or is_libsvm(file))]


def suffix(path: Path) -> str:
    """The end of the name that says what is in the file, `.csv.gz` taken as one."""
    return ".csv.gz" if path.name.lower().endswith(".csv.gz") else path.suffix.lower()


def stem(path: Path) -> str:
    """`adult` of tab_adult.csv.gz."""
    return path.name[: -len(suffix(path))].removeprefix("tab_")


def read(path: Path) -> pd.DataFrame:
    """The file as a frame with at least two columns and one row."""
    if not path.is_file():
        raise UsageError(f"`path` must be a table, but there is no file at {path}")
    if suffix(path) not in READERS:
        raise UsageError(f"`path` must end in one of {', '.join(READERS)}, got {path.name}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
            frame = READERS[suffix(path)](path)
    except (ValueError, OSError, EOFError, zlib.error, pd.errors.ParserWarning) as error:  # what the parsers raise
        raise UsageError(f"`path` must be a table, but {path} cannot be read as one: {error}") from error
    if frame.shape[1] < 2 or not len(frame):
        rows, columns = frame.shape
        raise UsageError(f"`path` must hold rows and at least two columns, got {rows} rows and {columns} in {path}")
    frame.columns = frame.columns.map(str)
    if suffix(path) in (".csv", ".csv.gz", ".tsv") and all(is_number(name) for name in frame.columns):
        raise UsageError(
            f"`path` must start with a line of column names, got {', '.join(frame.columns[:3])} … in {path}"
        )
    return frame


def is_number(text: str) -> bool:
    """Whether a column name is a number: then the first line of the table is data."""
    return re.fullmatch(r"[+-]?\d+(\.\d+)*(e[+-]?\d+)?", text.lower()) is not None


def read_text(path: Path, separator: str) -> pd.DataFrame:
    """Comma- or tab-separated text; "?" is missing."""
    return pd.read_csv(path, sep=separator, na_values=["?"], skipinitialspace=True, index_col=False, low_memory=False)


def read_libsvm(path: Path) -> pd.DataFrame:
    """`label index:value …` a line, kept sparse; columns are called by their index in the file."""
    if not is_libsvm(path):
        raise ValueError("its first line is not `label index:value …`")
    from sklearn.datasets import load_svmlight_file  # takes most of a second, and few tables are such

    x, y = load_svmlight_file(str(path), zero_based=True)
    frame = pd.DataFrame.sparse.from_spmatrix(x.tocsc())
    return frame.assign(label=y)


def is_libsvm(path: Path) -> bool:
    """Whether the first line of a text file reads `label index:value …`."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return LIBSVM.fullmatch(file.readline()) is not None


READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": lambda path: read_text(path, ","),
    ".csv.gz": lambda path: read_text(path, ","),
    ".tsv": lambda path: read_text(path, "\t"),
    ".parquet": pd.read_parquet,
    ".txt": read_libsvm,
}


def label_of(frame: pd.DataFrame, label: str | None, path: Path) -> tuple[str, Known | None]:
    """The name of the label's column, and the public table that this is, if it is one."""
    known = next((k for k in KNOWN if {k.label, k.mark} <= set(frame.columns)), None)
    if label is not None:
        if label not in frame.columns:
            raise UsageError(f"`label` must be a column of {path}: {', '.join(frame.columns)}; got {label!r}")
        return label, known
    if known:
        return known.label, known
    lower = {str(name).lower(): str(name) for name in frame.columns}
    return next((lower[name] for name in LABELS if name in lower), str(frame.columns[-1])), None


def classes_of(column: pd.Series, path: Path) -> tuple[torch.Tensor, list[str]]:
    """y (n,) and the names of the classes. UsageError if they are too few or too many to be classes."""
    values, y = np.unique(column.to_numpy(dtype=None if column.dtype.kind in "biuf" else str), return_inverse=True)
    if not 2 <= len(values) <= CLASSES:
        raise UsageError(
            f"`label` must have 2 to {CLASSES} classes, got {len(values)} in the column {column.name!r} of {path}"
        )
    names = [f"{value:g}" if column.dtype.kind == "f" else str(value) for value in values]
    labels = torch.from_numpy(y.astype(np.int64))
    check_classes(labels, names, f"rows in {path}")
    return labels, names


def split_of(frame: pd.DataFrame, label: str) -> list[str | None] | None:
    """The table's own splits by row, if it has a column `split` that holds nothing but their names."""
    column = next((c for c in frame.columns if c.lower() == "split" and c != label), None)
    if column is None or not set(frame[column].astype(str).str.lower()) <= set(SPLITS):
        return None
    return [SPLITS[value] for value in frame[column].str.lower()]


def rank(
    frame: pd.DataFrame, y: np.ndarray, train: np.ndarray, known: Known | None
) -> tuple[dict[str, float], dict[str, str]]:
    """Mutual information with y (n,) of every usable column, in the order of the table; the others with the reason."""
    scores: dict[str, float] = {}
    left_out: dict[str, str] = {}
    seen: dict[bytes, str] = {}
    for name in frame.columns:
        reason = unfit(frame[name], known)
        if reason:
            left_out[name] = reason
            continue
        values = numeric(frame[name], train, known).values
        first = seen.setdefault(hashlib.sha256(values.tobytes()).digest(), name)
        if not np.ptp(values[train]) > 0:  # also where all is missing: then the values are nan
            left_out[name] = "one value only in the training rows"
        elif first != name:
            left_out[name] = f"a copy of {first}"
        else:
            scores[name] = mutual_information(values[train], y[train])
    return scores, left_out


def unfit(column: pd.Series, known: Known | None) -> str | None:
    """Why a column cannot be a feature by its name or kind; None if it can."""
    if known and re.fullmatch(known.leaks, str(column.name)):
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


def numeric(column: pd.Series, train: np.ndarray, known: Known | None) -> Column:
    """The column as numbers, gaps filled by the median of the training rows."""
    categories = None
    if pd.api.types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
        values[~np.isfinite(values) | np.isin(values, known.missing if known else ())] = np.nan
    else:
        texts = column.astype(str).where(column.notna())
        counts = texts.iloc[train].value_counts()
        order = sorted(counts.index, key=lambda category: (-counts[category], category))
        code = {category: float(k) for k, category in enumerate(order)}
        values = np.array([np.nan if pd.isna(text) else code.get(text, len(order)) for text in texts])
        categories = len(order)
    gaps = np.isnan(values)
    if gaps.any() and not gaps[train].all():
        values[gaps] = np.nanmedian(values[train])
    return Column(values, int(gaps.sum()), categories)


def mutual_information(values: np.ndarray, y: np.ndarray) -> float:
    """Mutual information in nats of values (n,), cut at their deciles, and y (n,) int.

    A value that lies on a cut has a bin of its own, so that a column that is mostly 0 is told from its few others.
    """
    cuts = np.unique(np.quantile(values, np.arange(1, BINS) / BINS, method="inverted_cdf"))
    bins = np.searchsorted(cuts, values, side="left") + np.searchsorted(cuts, values, side="right")
    classes = int(y.max()) + 1
    joint = np.bincount(bins * classes + y, minlength=(2 * len(cuts) + 1) * classes).reshape(-1, classes) / len(y)
    independent = joint.sum(1, keepdims=True) * joint.sum(0)
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / independent[there])).sum())
