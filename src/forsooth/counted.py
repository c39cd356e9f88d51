"""What counts: a map that says nothing has the worst value, and who could not be asked takes no part.

Boards and reproductions share this one rule, so that a method cannot gain by silence in one and lose by it in another.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from forsooth.records import SCORED, Metric

# Did not take part: nobody could be scored here. Every other status that is not in `SCORED` is a failure.
ABSENT = (
    "skipped",
    "below gate",
    "no model",
    "no correct input",
    "no such words",
    "too few players",
    "no anchor",
    "no sample",  # what earlier versions wrote for three of these
)


def counted(rows: pd.DataFrame, metric: Metric, *, within: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of one metric that take part, each with a finite `value`, and whether it `failed`.

    rows     columns value, status and those of `within`; one row per map
    within   columns that tell which values can be compared: the panel, the end, the fraction
    returns  a copy without those who did not take part (`ABSENT`); where a map is zero, a score is not finite or a
             method broke, `value` is the worst bound of the metric and `failed` is True. Of a metric without that
             bound it is the worst value that anyone has among the rows that are alike in `within`, and among all rows
             where nobody there has any; nan where there is no value at all.

    The mean over all rows counts failures, that over `rows[~rows["failed"]]` leaves them out as some papers do, and the
    mean of `failed` is their share.
    """
    return filled(rows, better=metric.better, bounds=metric.bounds, within=within)


def filled(
    rows: pd.DataFrame, *, better: str, bounds: Sequence[float | None] | None, within: Sequence[str] = ()
) -> pd.DataFrame:
    """`counted` for a metric known by its direction and bounds alone; a bound of None or infinity is no bound."""
    rows = rows[~rows["status"].isin(ABSENT)]
    value = rows["value"].astype(float)
    ok = rows["status"].isin(SCORED)
    finite = np.isfinite(value)
    failed = ~ok | ~finite
    worst = _worst(rows.assign(value=value.mask(failed)), better=better, bounds=bounds, within=within)
    return rows.assign(
        value=value.mask(failed, worst),
        status=rows["status"].mask(ok & ~finite, "not finite"),
        failed=failed,
    )


def _worst(
    rows: pd.DataFrame, *, better: str, bounds: Sequence[float | None] | None, within: Sequence[str]
) -> pd.Series:
    """What a failure at each row is worth; the value of a row that failed is nan."""
    low, high = bounds or (None, None)
    bound = high
    extreme = "max"
    if better == "higher":
        bound = low
        extreme = "min"
    if bound is not None and np.isfinite(bound):
        return pd.Series(float(bound), index=rows.index)
    everywhere = float(rows["value"].astype(float).agg(extreme))
    if not within:
        return pd.Series(everywhere, index=rows.index)
    return rows.groupby(list(within), dropna=False)["value"].transform(extreme).fillna(everywhere)
