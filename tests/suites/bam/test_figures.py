"""What the page of a BAM run draws is what the reproductions print: every bar, interval, dot and line."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from report.by_hand import run_of
from report.made_up import row
from suites.bam.small import MCS, of, rows_of

from forsooth.report.aggregate import Results, read
from forsooth.report.drawing import BLUE, NULL, ORANGE, VERMILION
from forsooth.suites.bam import SUITE
from forsooth.suites.bam.figures import FIGURES, METRICS, THRESHOLDS, in_order, styles
from forsooth.suites.bam.reproduce import REPRODUCTIONS

JUDGES = {record.name: record.judge for record in REPRODUCTIONS}


@pytest.fixture(scope="module")
def results(judged) -> Results:
    return read(judged.folder)


def drawn(results: Results, name: str):
    (drawing,) = FIGURES[name](results, {})
    return drawing


def by_place(axis) -> dict[int, str]:
    labels = [label.get_text() for label in axis.get_yticklabels()]
    return dict(zip(map(int, axis.get_yticks()), labels, strict=True))


def test_all_exhibits_are_drawn(results):
    assert set(FIGURES) < set(SUITE.exhibits) and SUITE.figures == "forsooth.suites.bam.figures"
    for name in FIGURES:
        drawing = drawn(results, name)
        assert drawing.name == name and "residual_small" in drawing.alt and "{" not in drawing.alt + drawing.caption


@pytest.mark.parametrize("number, metric", list(enumerate(METRICS)))
def test_bars_and_intervals_are_those_of_the_reproduction(judged, results, number, metric):
    figure = drawn(results, "bam_contrasts").figure
    names = by_place(figure.axes[0])
    axis = figure.axes[number]
    table = of(judged.table, metric=metric).set_index("method")
    assert list(names.values())[-1] == "tcav" and set(names.values()) == set(judged.table["method"])
    bars = {names[round(bar.get_y() + bar.get_height() / 2)]: bar.get_width() for bar in axis.patches}
    assert bars == pytest.approx(table["value"].dropna().to_dict(), abs=1e-4)
    intervals = {}
    for lines in [part for part in axis.collections if isinstance(part, LineCollection)]:
        (segment,) = lines.get_segments()
        intervals[names[round(segment[0][1])]] = (segment[0][0], segment[1][0])
    known = table[table["low"].notna()]
    assert set(intervals) == set(known.index)
    for method, ends in intervals.items():
        assert ends == pytest.approx(tuple(known.loc[method, ["low", "high"]]), abs=1e-4)


@pytest.mark.parametrize("number, metric", list(enumerate(METRICS)))
def test_spreads_random_masks_and_other_places_are_those_of_the_reproduction(judged, results, number, metric):
    figure = drawn(results, "bam_contrasts").figure
    names = by_place(figure.axes[0])
    axis = figure.axes[number]
    table = of(judged.table, metric=metric).set_index("method")
    spreads = {names[int(text.xy[1])]: text.get_text() for text in axis.texts if text.get_fontsize() == 6}
    assert spreads == {method: f"{sd:.2f}" for method, sd in table["sd"].dropna().items()}
    for colour, column in ((ORANGE, "random_mask"), (VERMILION, "at_centre")):
        dots = {}
        for part in axis.collections:
            if isinstance(part, PathCollection) and to_hex(part.get_facecolor()[0]) == colour:
                dots |= {names[round(y)]: x for x, y in part.get_offsets().tolist() if x is not None and x == x}
        assert dots == pytest.approx(table[column].dropna().to_dict(), abs=1e-4)


def test_nulls_are_grey(results):
    figure = drawn(results, "bam_contrasts").figure
    names = by_place(figure.axes[0])
    shades = {names[round(bar.get_y() + 0.31)]: to_hex(bar.get_facecolor()) for bar in figure.axes[0].patches}
    assert shades["constant"] == NULL and shades["gradient"] == BLUE == shades["tcav"]


def test_accuracies_are_those_of_figure_2(judged, results):
    axis = drawn(results, "bam_verification").figure.axes[0]
    table = JUDGES["bam/figure-2"](judged.outcome()).table
    names = {place: text.split(" ")[0] for place, text in by_place(axis).items()}
    dots = [tuple(part.get_offsets()[0]) for part in axis.collections]
    shown = sorted((names[round(y)], round(float(x), 1)) for x, y in dots)
    known = of(table, metric="accuracy")
    assert shown == sorted(zip(known["net"], known["value"], strict=True))
    for line in of(table, metric="confidence_rises").itertuples():
        assert any(text == f"{line.net} ({line.value / 100:.0%} rise)" for text in by_place(axis).values())


def test_series_and_correlations_are_those_of_figure_13(judged, results):
    figure = drawn(results, "bam_series").figure
    table = JUDGES["bam/figure-13"](judged.outcome()).table.set_index("method")
    drop, *lines = figure.axes[0].lines
    drops = of(JUDGES["bam/figure-2"](judged.outcome()).table, metric="drop").sort_values("k")
    assert drop.get_xdata().tolist() == drops["k"].tolist()
    np.testing.assert_allclose(100 * np.asarray(drop.get_ydata()), drops["value"], atol=0.06)
    labels = [line.get_label() for line in lines]
    assert {label.split(" ")[0] for label in labels} == set(table.index)
    for line in lines:
        method, _, rho = line.get_label().partition(" ")
        np.testing.assert_allclose(line.get_ydata(), table.loc[method, ["k_0.1", "k_1"]].astype(float), atol=1e-4)
        assert (f"{table.loc[method, 'rho']:+.2f}" == rho) if rho else np.isnan(table.loc[method, "rho"])


def test_curves_over_t_are_those_of_figure_10(judged, results):
    lines = {line.get_label(): line for line in drawn(results, "bam_patches").figure.axes[0].lines}
    table = JUDGES["bam/figure-10"](judged.outcome()).table.set_index("method")
    assert set(table.index) <= set(lines)
    for threshold in (0.01, 0.05, 0.1, 0.5, 1.0):
        place = THRESHOLDS.index(threshold)
        for method in table.index:
            rate = lines[method].get_ydata()[place]
            assert rate == pytest.approx(table.loc[method, f"t_{threshold:g}"], abs=1e-4)


def by_hand(rows: pd.DataFrame) -> Results:
    """Results of rows of one architecture."""
    full = rows.assign(comparison="f_o/f_s", net="", shown="", cell="")
    if "model" not in full:
        full["model"] = "small"
    made = run_of([row("scores", method=name, metric="m") for name in full["method"].unique()], nulls=("constant",))
    return Results(made.folder, made.run, full, made.timings, {})


def test_a_run_of_another_suite_has_no_figures():
    other = run_of([row("scores", method="lrp", metric="m", model="CNN", data="a", sample=0, value=0.5)])
    for name in FIGURES:
        assert not list(FIGURES[name](other, {}))


def test_a_run_with_nothing_to_show_has_no_figures():
    nothing = by_hand(rows_of({"gradient": [np.nan]}, part="scores").assign(status="below gate"))
    for name in FIGURES:
        assert not list(FIGURES[name](nothing, {}))


def test_several_architectures_have_a_figure_each():
    rows = pd.concat([rows_of(MCS).assign(model=model) for model in ("one", "two")], ignore_index=True)
    drawings = list(FIGURES["bam_contrasts"](by_hand(rows), {}))
    assert [drawing.name for drawing in drawings] == ["bam_contrasts_one", "bam_contrasts_two"]
    assert [drawing.alt for drawing in drawings] == [
        f"Bars of MCS, IDR and IIR for 3 methods on {model}" for model in ("one", "two")
    ]


def test_a_single_image_has_a_bar_and_no_interval():
    (drawing,) = FIGURES["bam_contrasts"](by_hand(rows_of({"gradient": [0.4]})), {})
    axis = drawing.figure.axes[0]
    assert [bar.get_width() for bar in axis.patches] == [0.4]
    assert not [part for part in axis.collections if isinstance(part, LineCollection)]


def test_methods_follow_the_run_and_tcav_is_last():
    made = run_of([row("scores", method=name, metric="m") for name in ("b", "constant", "a")], nulls=("constant",))
    table = pd.DataFrame({"method": ["tcav", "a", "constant"]})
    assert in_order(made, table) == {"constant": True, "a": False, "tcav": False}
    looks = styles({"constant": True, "a": False, "tcav": False})
    assert [look["linestyle"] for look in looks.values()] == ["--", "-", ":"] and looks["constant"]["color"] == NULL
