"""One rule for maps that say nothing."""

import math

import pandas as pd

from forsooth.counted import counted
from forsooth.records import Metric


def metric(better: str, bounds: tuple[float, float]) -> Metric:
    return Metric("score", lambda a: a, reads=(), better=better, bounds=bounds, cite="", version=1)  # type: ignore[arg-type]


ROWS = pd.DataFrame(
    [
        {"end": "top", "value": 0.2, "status": "ok"},
        {"end": "top", "value": 0.5, "status": "ok"},
        {"end": "top", "value": math.nan, "status": "zero map"},
        {"end": "bottom", "value": 3.0, "status": "ok"},
        {"end": "bottom", "value": math.nan, "status": "ok"},
        {"end": "other", "value": math.nan, "status": "error"},
        {"end": "other", "value": math.nan, "status": "below gate"},
        {"end": "other", "value": math.nan, "status": "no anchor"},
    ]
)


def test_a_failure_has_the_worst_bound_and_who_was_not_asked_takes_no_part():
    rows = counted(ROWS, metric("higher", (0.0, 1.0)))
    assert rows["value"].tolist() == [0.2, 0.5, 0.0, 3.0, 0.0, 0.0]
    assert rows["failed"].tolist() == [False, False, True, False, True, True]
    assert rows["status"].tolist() == ["ok", "ok", "zero map", "ok", "not finite", "error"]


def test_without_a_bound_a_failure_has_the_worst_value_seen_among_its_like():
    rows = counted(ROWS, metric("lower", (0.0, math.inf)), within=["end"])
    assert rows["value"].tolist() == [0.2, 0.5, 0.5, 3.0, 3.0, 3.0]  # nobody has a value at the other end: of all


def test_without_any_value_there_is_none_to_charge():
    rows = counted(ROWS[ROWS["status"].eq("error")], metric("lower", (0.0, math.inf)), within=["end"])
    assert rows["value"].isna().all()
    assert rows["failed"].all()
