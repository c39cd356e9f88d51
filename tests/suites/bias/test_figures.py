"""Curves on the page are the medians of the board, and nothing is reckoned for them."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import forsooth
from forsooth import report
from forsooth.report.aggregate import Results
from forsooth.report.drawing import INK, NULL
from forsooth.report.medians import Medians, all_medians
from forsooth.suites.bias import SUITE
from forsooth.suites.bias.figures import _styles, bias_curves, curves, drawing
from forsooth.suites.bias.settings import QUICK

FEW = {"samples": 3, "permutations": 8, "trainings": 1, "methods": ("gradient", "lrp", "random", "shapley")}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> forsooth.Run:
    out = tmp_path_factory.mktemp("figures")
    return forsooth.run("bias", only={"dataset": "interactions"}, settings=FEW, out=out, page=False)


@pytest.fixture(scope="module")
def results(run: forsooth.Run) -> Results:
    return report.read(run.folder)


@pytest.fixture(scope="module")
def table(results: Results) -> Medians:
    return all_medians(results)["relative_bias"]


def test_the_suite_names_its_figures() -> None:
    drawn = importlib.import_module(SUITE.figures).FIGURES
    assert drawn == {"bias_curves": bias_curves} and "bias_curves" in SUITE.exhibits
    assert SUITE.factors == ("dataset", "model", "player", "end", "fraction")
    assert SUITE.presets["quick"] is QUICK


@pytest.mark.parametrize("end", ["top", "bottom"])
def test_curves_are_medians_over_inputs(run: forsooth.Run, table: Medians, end: str) -> None:
    rows = run.rows[run.rows["metric"].eq("relative_bias") & run.rows["end"].eq(end)]
    expected = rows.groupby(["method", "fraction"])["value"].median()
    drawn = {curve.method: curve for curve in curves(table, table.panels, end)}
    assert set(drawn) == set(FEW["methods"])  # type: ignore[arg-type]
    for method, curve in drawn.items():
        assert curve.p.tolist() == pytest.approx([10, 30, 50, 70, 90])
        np.testing.assert_allclose(curve.heights, expected[method].to_numpy())


def test_a_method_without_any_score_has_no_curve(table: Medians) -> None:
    silent = table.value.copy()
    silent[:, list(table.methods).index("lrp")] = np.nan
    without = Medians(**{**vars(table), "value": silent})
    assert "lrp" not in [curve.method for curve in curves(without, table.panels, "top")]


def test_a_page_has_one_figure_for_each_panel(results: Results, table: Medians) -> None:
    (shown,) = bias_curves(results, {"relative_bias": table})
    assert shown.name == "bias_interactions_mlp5_input"
    assert shown.title.endswith("interactions, mlp5") and "median over inputs" in shown.caption
    top, bottom = shown.figure.axes
    assert len(top.lines) == len(bottom.lines) == len(FEW["methods"])  # type: ignore[arg-type]
    assert top.get_ylim()[0] == 0 and top.get_ylabel() == "relative bias"
    for axis, end in ((top, "top"), (bottom, "bottom")):
        for line, curve in zip(axis.lines, curves(table, table.panels, end), strict=True):
            np.testing.assert_array_equal(line.get_ydata(), curve.heights)
    names = [text.get_text() for text in shown.figure.legends[0].get_texts()]
    assert "random ○" in names and "gradient" in names and len(names) == 4


def test_nothing_is_drawn_of_a_run_without_the_metric(results: Results) -> None:
    assert not list(bias_curves(results, {}))


def test_nulls_are_dashed_and_the_best_possible_is_black(table: Medians) -> None:
    styles = _styles(table)
    assert styles["random"] == {"color": NULL, "linewidth": 1.1, "linestyle": "--"}
    assert styles["shapley"] == {"color": INK, "linewidth": 2.0, "linestyle": "-"}
    assert styles["gradient"]["linestyle"] == "-" and styles["gradient"]["color"] not in (INK, NULL)
    assert styles["gradient"]["color"] != styles["lrp"]["color"]


def test_units_of_a_layer_are_named(table: Medians) -> None:
    panels = pd.DataFrame({"end": ["top"], "fraction": ["0.1"]}, index=[0])
    units = drawing(("leaves", "lenet", "units"), table, panels, [10.0])
    assert units.name == "bias_leaves_lenet_units" and "units of a layer" in units.alt


def test_a_page_shows_the_curves(run: forsooth.Run) -> None:
    page = Path(run.report())
    assert "Bias of the top and of the bottom: interactions, mlp5" in page.read_text()
