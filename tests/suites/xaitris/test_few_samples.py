"""LIME and Kernel SHAP taken apart: one thing changes at a time, and empty maps earn nothing."""

import pandas as pd
import pytest
import torch

from forsooth import api
from forsooth.records import Choice
from forsooth.scores.localisation import nonzero_pixels
from forsooth.settings import changed
from forsooth.suites.xaitris import few_samples

SMALL = {"sizes": (8,), "n": 600, "alpha": 0.6, "samples": 4, "masks": (10, 40), "draws": 2}


def test_pixels_by_hand():
    maps = torch.tensor([[[0.0, 1.0], [2.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]])
    truth = torch.tensor([[True, True], [False, False]]).expand(3, 2, 2)
    found = nonzero_pixels(maps, truth)
    assert found["nonzero"].tolist() == [2, 0, 4]
    assert found["own right"][[0, 2]].tolist() == [0.5, 0.5] and found["own right"][1].isnan()


def lines(draw: int, imas: list[float | None]) -> list[dict[str, object]]:
    """Rows of one draw: None is a map of zeros."""
    where = {"method": "lime", "masks": 25, "draw": draw, "message": ""}
    rows: list[dict[str, object]] = []
    for sample, ima in enumerate(imas):
        empty = ima is None
        status = "zero map" if empty else "ok"
        about = {**where, "sample": sample}
        rows.append({**about, "metric": "ima", "value": ima, "status": status})
        rows.append({**about, "metric": "precision", "value": None if empty else 0.5, "status": status})
        rows.append({**about, "metric": "nonzero", "value": 0 if empty else 8, "status": "ok"})
        rows.append({**about, "metric": "own right", "value": None if empty else 0.25, "status": "ok"})
    return rows


def test_a_line_of_the_table_by_hand():
    rows = lines(0, [0.2, 0.4, None]) + lines(1, [0.6, 0.5, 0.7]) + lines(2, [None, None, 0.9])
    line = few_samples.summary(pd.DataFrame(rows)).iloc[0]
    assert line["estimator"] == "LIME, ridge" and line["masks"] == 25 and line["draws"] == 3
    assert (line["ima_low"], line["ima"], line["ima_high"]) == (0.0, 0.2, 0.6)  # medians 0.2, 0.6 and 0
    assert line["precision"] == 0.5  # medians 0.5, 0.5 and 0
    assert line["zero"] == pytest.approx(3 / 9) and line["nonzero"] == pytest.approx(6 * 8 / 9)
    assert line["own_right"] == 0.25
    assert line["ima_defined"] == 0.6 and line["precision_defined"] == 0.5  # without the zeros 0.3, 0.6 and 0.9


def test_empty_maps_are_told_with_the_number_that_leaves_them_out():
    random = [{**row, "method": "random", "masks": None} for row in lines(0, [0.2, 0.2, 0.2])]
    table = few_samples.summary(pd.DataFrame([*lines(0, [0.5, 0.7, None, None]), *random]))
    assert "0.250 [0.250, 0.250] with 25 masks, 50% of maps empty, 0.600 without them;" in few_samples.verdict(table)


def test_what_failed_is_a_line_with_its_reason():
    failed = [{"method": "lime", "masks": 25, "draw": 0, "metric": "", "value": None, "message": "no map today"}]
    random = [{**row, "method": "random", "masks": None} for row in lines(0, [0.2, 0.2, 0.2])]
    table = few_samples.summary(pd.DataFrame([*failed, *random]))
    assert table["status"].tolist() == ["no map today", "ok"]
    assert "nothing with 25 masks: no map today" in few_samples.verdict(table)


def test_tasks_differ_in_one_thing_at_a_time():
    tasks = few_samples.plan(changed(few_samples.Settings(), SMALL), Choice()).tasks[1:]
    varied = ("method", "version", "masks", "draw", "seed")
    assert len({str({k: v for k, v in t.arguments["ask"].items() if k not in varied}) for t in tasks}) == 1
    cells = [(t.arguments["ask"]["method"], t.arguments["ask"]["masks"], t.arguments["ask"]["draw"]) for t in tasks]
    assert len(set(cells)) == len(cells) == 2 * (4 * 2 + 1)
    assert {t.arguments["ask"]["draw"]: t.arguments["ask"]["seed"] for t in tasks}.keys() == {0, 1}
    assert len({t.arguments["ask"]["seed"] for t in tasks}) == 2  # every estimator meets the same two draws


def test_more_masks_are_more_masks_whatever_the_estimator(tmp_path):
    table, words = api.reproduce("xaitris/few-samples", settings=SMALL, out=tmp_path)
    assert table["status"].eq("ok").all() and len(table) == 9
    scores = table.set_index(["estimator", "masks"])["ima"]
    for estimator in few_samples.ESTIMATORS.values():
        assert scores[estimator, 40] != scores[estimator, 10]
        assert estimator in words
    assert words.startswith("Random maps: median IMA")
