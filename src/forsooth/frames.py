"""Tables of rows: those with certain values, and one line for each group of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd


def only(rows: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """The rows where every named column has its value, or one of several.

    >>> table = pd.DataFrame({"method": ["lrp", "lime", "lime"], "status": ["ok", "ok", "error"]})
    >>> len(only(table, status="ok")), len(only(table, method=("lrp", "lime"), status="ok"))
    (2, 2)
    >>> len(only(table, method=pd.Series(["lime"], index=[7])))
    2
    """
    keep = pd.Series(True, index=rows.index)
    for column, value in wanted.items():
        keep &= _has(rows[column], value)
    return rows[keep]


def without(rows: pd.DataFrame, **unwanted: Any) -> pd.DataFrame:
    """The rows where no named column has its value, nor one of several.

    >>> table = pd.DataFrame({"method": ["lrp", "lime", "lime"], "status": ["ok", "ok", "error"]})
    >>> len(without(table, status="ok")), len(without(table, method=("lrp", "lime")))
    (1, 0)
    """
    keep = pd.Series(True, index=rows.index)
    for column, value in unwanted.items():
        keep &= ~_has(rows[column], value)
    return rows[keep]


def _has(column: pd.Series, value: Any) -> "pd.Series[bool]":
    """Where a column has the value, or one of several."""
    if pd.api.types.is_list_like(value):
        return column.isin(list(value))
    return column.eq(value)


def worded(table: pd.DataFrame, template: str) -> list[str]:
    """The template with the columns of each line in the places that go by their names.

    >>> worded(pd.DataFrame({"method": ["lrp", "lime"], "share": [0.25, 1.0]}), "{method}: {share:.0%}")
    ['lrp: 25%', 'lime: 100%']
    """
    return [template.format_map(line) for line in table.to_dict("records")]


def gap_between(rows: pd.DataFrame, key: Sequence[str], **levels: tuple[Any, Any]) -> "pd.Series[float] | None":
    """The mean value at the first level of a column less that at the second, side by side for each `key`.

    levels   column=(one, other)
    returns  None where the rows lack one of the levels

    >>> table = pd.DataFrame({"training": [0, 0, 1, 1], "end": ["top", "low", "top", "low"], "value": [3, 1, 5, 2]})
    >>> gap_between(table, ["training"], end=("top", "low")).tolist()
    [2.0, 3.0]
    """
    ((column, (one, other)),) = levels.items()
    table = rows.pivot_table(index=list(key), columns=column, values="value")
    if one not in table or other not in table:
        return None
    return table[one] - table[other]


def lines_by(
    rows: pd.DataFrame, key: Sequence[str], line_of: Callable[[pd.DataFrame], Mapping[str, Any]]
) -> pd.DataFrame:
    """One line for each group of rows that are alike in `key`, in the order in which they come.

    >>> table = pd.DataFrame({"method": ["lrp", "lime", "lime"], "value": [1, 2, 4]})
    >>> lines_by(table, ["method"], lambda own: {"mean": own["value"].mean()})["mean"].tolist()
    [1.0, 3.0]
    """
    lines = []
    for names, own in rows.groupby(list(key), sort=False):
        lines.append({**dict(zip(key, names, strict=True)), **line_of(own)})
    return pd.DataFrame(lines)
