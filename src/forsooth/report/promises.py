"""Who keeps the sum that it promises, in numbers and in words."""

from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from forsooth.frames import only
from forsooth.records import TOLERANCE
from forsooth.wording import share

NO_GAPS = DataFrame({"gap": [], "broken": []}, dtype=float)
NAMED = 0.05  # share of broken promises from which a method is named


def gap_table(rows: DataFrame) -> DataFrame:
    """method -> `gap`, the median of its gaps, and `broken`, the share of samples where it is above the tolerance.

    rows  tidy rows; those of the metric `gap` are read
    """
    rows = only(rows, metric="gap").dropna(subset="value")
    gaps = rows["value"].astype(float).abs()
    by_method = gaps.groupby(rows["method"])
    over = gaps.gt(TOLERANCE).groupby(rows["method"])
    return DataFrame({"gap": by_method.median(), "broken": over.mean()})


def broken_promises(table: DataFrame) -> dict[str, str]:
    """method -> a sentence on its broken promise, for those who break it on more than a few samples.

    table  as from `gap_table`, or any with these columns and the methods as index
    """
    named = table[table["broken"].gt(NAMED)].sort_values("broken", ascending=False, kind="stable")
    return {str(line.Index): _sentence(line) for line in named.itertuples()}


def _sentence(line: Any) -> str:
    return (
        f"{line.Index} does not keep its promised sum on {share(line.broken)} of samples (median gap {line.gap:.2g}): "
        "its maps there are not what the method is defined to be."
    )


def with_word(names: list[str], sentences: Mapping[str, str]) -> list[str]:
    """Names of methods, each that breaks its promise with a word on it, so that nobody is recommended without."""
    return [f"{name} (whose promised sum is not kept)" if name in sentences else name for name in names]
