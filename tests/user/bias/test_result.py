"""Failures count as the worse of the nulls, and inputs without an anchor do not count."""

import numpy as np
import pytest
import torch

from forsooth.games.shapley import Estimate
from forsooth.records import Cell
from forsooth.user.bias import result

NAN = float("nan")


def estimate(values):
    values = torch.tensor(values, dtype=torch.float64)
    return Estimate(values, 0 * values, values[..., None], torch.tensor([1]), 0)


def test_a_failure_is_the_worse_of_the_nulls():
    values = np.array([[0.1, NAN, NAN], [0.3, 0.5, NAN], [0.4, 0.2, NAN], [NAN, NAN, NAN]])
    left = np.repeat(values[..., None], 2, axis=2)
    scores = result.filled(values, left, nulls=[1, 2])
    assert scores.values.tolist() == [[0.1, 0.5], [0.3, 0.5], [0.4, 0.2], [0.4, 0.5]]  # the third has no anchor
    assert scores.failed.tolist() == [0.5, 0, 0, 1]
    assert scores.mean[:3].tolist() == pytest.approx([0.3, 0.4, 0.3]) and np.isnan(scores.mean[3])
    assert scores.left[0].tolist() == [[0.1, 0.1], [0.5, 0.5]]


def test_nothing_is_known_without_an_anchor():
    scores = result.filled(np.full((2, 3), NAN), np.full((2, 3, 4), NAN), nulls=[0, 1])
    assert scores.failed.tolist() == [1, 1] and np.isnan(scores.mean).all()
    assert scores.sampling_parts(np.ones(4)) is None


@pytest.mark.parametrize(
    "attribution, anchored, expected",
    [
        (torch.zeros(2, 3), True, "every map is zero"),
        (torch.full((2, 3), torch.nan), True, "no map is usable: zero, nan or infinite"),
        (torch.ones(2, 3), False, "all Shapley values are zero"),
    ],
)
def test_why_there_is_no_score(attribution, anchored, expected):
    assert result.why_nothing(attribution, anchored=anchored) == expected


def test_the_worst_row_is_named():
    pairs = [("top", 0.1), ("bottom", 0.5)]
    assert result.worst(np.array([[0.1, 0.3], [0.2, 0.4], [9.0, NAN]]), pairs) == "bottom 50 %"
    assert result.worst(np.full((2, 2), NAN), pairs) == ""


def test_lines_and_rows_of_all_who_were_asked():
    """Ten players in order, a map that is right, its mirror, and two who say nothing."""
    shapley = [[float(k) for k in range(10)], [float(k * k) for k in range(10)]]
    anchor = estimate(shapley)
    answers = {
        "right": Cell(tensors={"players": anchor.values, "gap": torch.tensor([0.0, 0.3])}),
        "mirror": Cell(tensors={"players": -anchor.values}),
        "constant": Cell(tensors={"players": torch.ones_like(anchor.values)}),
        "random": Cell(tensors={"players": torch.rand(2, 10, dtype=torch.float64)}),
        "shapley": Cell(tensors={"players": anchor.values}),
        "raises": Cell(facts={"status": "error", "message": "no"}),
        "left": Cell(facts={"status": "skipped", "message": "it needs more"}),
    }
    kinds = {name: "method" for name in answers} | {"shapley": "anchor", "constant": "null", "random": "null"}
    judged = result.Judged(anchor, [0.0, 0.1], torch.tensor([2, 1]), answers, kinds)
    table, rows = result.tabled(judged)
    assert table["method"].tolist()[:2] == ["right", "shapley"] and table["m_bias"].iloc[0] == pytest.approx(0)
    assert table["method"].tolist()[-2:] == ["raises", "left"] and table["status"].tolist()[-2:] == ["error", "skipped"]
    assert table.set_index("method").loc["right", ["gap", "broken"]].tolist() == pytest.approx([0.15, 0.5])
    scored = rows[rows["method"].eq("right") & rows["metric"].eq("m_bias")]
    assert len(scored) == 20 and set(scored["status"]) == {"ok", "broken promise"}
    assert rows[rows["sample"].eq(0)]["target"].eq(2).all() and rows[rows["sample"].eq(1)]["noise"].eq(0.1).all()
    assert rows[rows["method"].eq("left")][["metric", "status"]].drop_duplicates().to_numpy().tolist() == [
        ["m_bias", "skipped"]
    ]
