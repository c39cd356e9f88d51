"""From rows to the numbers of published tables: means of M_bias with their intervals."""

import numpy as np
from pandas import DataFrame, Series

from forsooth.counted import counted
from forsooth.frames import lines_by, only
from forsooth.records import UsageError
from forsooth.scores.bias import M_BIAS, M_BIAS_SPLIT
from forsooth.stats.intervals import AT_LEAST_0, samples_and_trainings

KEY = ["end", "fraction", "method"]
LIKE = ["player", "end", "fraction"]  # whose values can be compared: |S| and the number of players decide their size
FIVE_DIGITS = ("ours", "low", "high", "sampling_error", "scored", "split", "published", "corrected")


def score_rows(rows: DataFrame) -> DataFrame:
    """The rows of scores of those who could be asked; a UsageError where no network was explained."""
    rows = only(rows, task="bias.judge")
    gated = only(rows, status="below gate")
    if len(gated) == len(rows):
        raise UsageError(f"no network passed its gate, so there is nothing to judge: {gated['message'].iloc[0]}")
    return rows


def means(rows: DataFrame) -> DataFrame:
    """Mean of M_bias over samples and trainings with a 95 % interval, its sampling error, the mean with the split norm.

    A map that says nothing counts as the worst value (`counted`): `failed` is the share of such maps, and `scored` the
    mean without them, which a paper that leaves them out would print.
    """
    plain = counted(only(rows, metric="m_bias"), M_BIAS, within=LIKE)
    split = counted(only(rows, metric="m_bias_split"), M_BIAS_SPLIT, within=LIKE)
    by_key = split.groupby(KEY, sort=False)["value"].mean()
    table = lines_by(plain, KEY, line_of).join(by_key.rename("split"), on=KEY)
    return table.assign(inputs=table.pop("inputs"))  # the last column


def line_of(rows: DataFrame) -> dict[str, float]:
    """A method at one end and fraction."""
    return {
        **samples_and_trainings(rows, bounds=AT_LEAST_0).columns("ours", "low", "high"),
        "sampling_error": error_of_mean(rows["error"]),  # which the interval holds already
        "scored": rows.loc[~rows["failed"], "value"].mean(),
        "failed": rows["failed"].mean(),
        "inputs": len(rows),
    }


def error_of_mean(errors: Series) -> float:
    """The standard error of a mean from those of its values (n,), which walked orders of their own.

    A map that says nothing has no error.
    """
    return float(np.sqrt((errors**2).sum()) / len(errors))


def rounded(table: DataFrame) -> DataFrame:
    return table.round({**dict.fromkeys(FIVE_DIGITS, 5), "failed": 3})
