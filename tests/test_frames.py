"""Rows with certain values, and one line for each group of them."""

import pandas as pd

from forsooth.frames import lines_by, only, without, worded

ROWS = pd.DataFrame({"a": [1, 1, 2], "b": ["x", "y", "x"]})


def test_rows_that_are_wanted() -> None:
    assert only(ROWS, a=1, b="x").index.tolist() == [0]
    assert only(ROWS, a=(1, 2), b="x").index.tolist() == [0, 2]
    assert only(ROWS, b={"y": "a value"}).index.tolist() == [1]
    assert only(ROWS, b=ROWS["b"][1:2]).index.tolist() == [1]  # values, whatever their index
    assert only(ROWS, b=ROWS["b"].unique()).index.tolist() == [0, 1, 2]
    assert only(ROWS, a=[]).empty and len(only(ROWS)) == 3


def test_rows_that_are_not_wanted() -> None:
    assert without(ROWS, a=1).index.tolist() == [2]
    assert without(ROWS, a=2, b="y").index.tolist() == [0]
    assert without(ROWS, b=("x", "y")).empty and len(without(ROWS)) == 3
    twice = pd.concat([ROWS, ROWS])  # an index that stands twice names no single row
    assert without(twice.assign(c=range(6)), c=(0, 1)).shape == (4, 3)


def test_a_line_for_each_group_in_the_order_in_which_they_come() -> None:
    rows = ROWS.iloc[::-1]
    table = lines_by(rows, ["a", "b"], lambda own: {"n": len(own)})
    assert table.to_dict("list") == {"a": [2, 1, 1], "b": ["x", "y", "x"], "n": [1, 1, 1]}
    assert lines_by(ROWS, ["b"], lambda own: {"n": len(own)}).to_dict("list") == {"b": ["x", "y"], "n": [2, 1]}
    assert lines_by(ROWS[:0], ["a"], lambda own: {}).empty


def test_a_sentence_for_each_line_has_its_columns() -> None:
    table = pd.DataFrame({"method": ["lrp", "lime"], "low": [0.123, 1.0], "n": [3, 4]})
    assert worded(table, "{method} {low:.2f} of {n}") == ["lrp 0.12 of 3", "lime 1.00 of 4"]
    assert worded(table[:0], "{method}") == []
