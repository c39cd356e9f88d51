"""Figures of the planted suite from rows written by hand: who is drawn, where, and that nothing is cut off."""

from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report.by_hand import run_of
from report.made_up import row

from forsooth.report import Results
from forsooth.report.drawing import VERMILION, Drawing
from forsooth.report.figures import draw
from forsooth.suites.planted.figures import FIGURES
from forsooth.suites.planted.tables import model_means, table_of

PLAIN = {"manipulation": "watermark", "model": "net", "kind": "similar", "presence": "with", "er": 0.2, "level": 0}
PLAIN |= {"r": 0.5, "accuracy": 0.99, "epoch": 3, "p_star": None, "metric": "attr", "method": "saliency"}


def scored(part: str, experiment: str, **given: Any) -> list[dict[str, Any]]:
    """Two images with the artefact, of mean 0.5, and two without, of mean 0.3."""
    values = {"with": (0.4, 0.6), "without": (0.2, 0.4)}
    return [
        row(
            "absence" if (part, p) == ("scores", "without") else part,
            **{**PLAIN, "experiment": experiment, "presence": p, "sample": k, "value": value, **given},
        )
        for p, own in values.items()
        for k, value in enumerate(own)
    ]


def trained(experiment: str, value: float, **given: Any) -> dict[str, Any]:
    found = {"experiment": experiment, "metric": "accuracy", "method": "", "presence": None, "p_star": 0.5}
    return row("training", **{**PLAIN, **found, "value": value, **given})


@pytest.fixture(scope="module")
def made() -> Results:
    rows = [*scored("scores", "5.1"), *scored("scores", "5.1", method="grad_cam", manipulation="center_brightness")]
    rows += scored("scores", "5.1", method="random", model="none", value=0.9)
    rows += scored("scores", "5.1", model_seed=1, value=float("nan"), status="error")
    rows += [r for k, a in ((9, 0.9), (1, 0.6), (4, 0.95)) for r in scored("checkpoints", "5.2", epoch=k, accuracy=a)]
    rows += [r for level in (0, 2, 4) for r in scored("visibility", "5.3", level=level)]
    rows += [r for kind in ("similar", "distinct") for x in (0.5, 1.0) for r in scored("r", "5.4", r=x, kind=kind)]
    rows += scored("border", "border", metric="attr_non_informative", er=0.05, value=0.02)
    rows += [trained("5.1", 0.99), trained("5.1", 0.55, status="below gate"), trained("5.4", 0.98, r=1.0, p_star=1.0)]
    return run_of(rows, factors=("manipulation", "model"), nulls=("random",))


def named(made: Results, exhibit: str) -> dict[str, Drawing]:
    return {drawing.name: drawing for drawing in draw(exhibit, made, {}, FIGURES)}


def lines(drawing: Drawing, column: int = 0) -> list[tuple[list[float], list[float], str]]:
    """x, y and style of what is drawn in the first row."""
    found = drawing.figure.axes[column].get_lines()
    return [(list(map(float, a.get_xdata())), list(map(float, a.get_ydata())), str(a.get_linestyle())) for a in found]


def test_every_experiment_has_its_figure_and_nothing_is_cut_off(made: Results) -> None:
    drawings = {**named(made, "planted_curves"), **named(made, "planted_gate")}
    wanted = ("regions", "checkpoints", "visibility", "r", "border", "gate")
    assert list(drawings) == [f"planted_{name}" for name in wanted]
    for drawing in drawings.values():
        drawing.figure.draw_without_rendering()
        assert drawing.caption.endswith(".") and drawing.alt and drawing.title
        drawn, (width, height) = drawing.figure.get_tightbbox(), drawing.figure.get_size_inches()
        assert drawn.x0 >= 0 and drawn.y0 >= 0 and drawn.x1 <= width and drawn.y1 <= height, drawing.name
        for axis in drawing.figure.axes:
            for labels in (axis.get_xticklabels(), axis.get_yticklabels()):
                boxes = [label.get_window_extent() for label in labels if label.get_text()]
                assert not any(a.overlaps(b) for a, b in pairwise(boxes)), f"labels overlap in {drawing.name}"


def test_a_point_is_the_mean_over_the_images_of_one_model(made: Results) -> None:
    regions = named(made, "planted_curves")["planted_regions"]
    titles = [axis.get_title() for axis in regions.figure.axes[:2]]
    own = lines(regions, titles.index("watermark"))
    points = [(x, y) for x, y, style in own if style == "None"]
    assert sorted(y for _, (y,) in points) == [0, 0, pytest.approx(0.3), pytest.approx(0.5)]  # what failed counts as 0
    assert {x for (x,), _ in points} == {0.2}
    words = {axis.get_ylabel() for axis in regions.figure.axes}
    assert {"saliency", "grad_cam"} <= words and "random" not in words


def test_checkpoints_are_joined_in_their_order(made: Results) -> None:
    first = lines(named(made, "planted_curves")["planted_checkpoints"])
    assert [x for x, _, style in first if style == "-"][:1] == [[0.6, 0.95, 0.9]]
    assert any(style == "--" and y == pytest.approx([0.2, 0.2]) for _, y, style in first)  # what a random map scores


def test_distinct_classes_are_dashed_and_the_shapley_range_is_green(made: Results) -> None:
    drawing = named(made, "planted_curves")["planted_r"]
    assert {style for _, _, style in lines(drawing)} == {"-", "--"}
    (shade,) = drawing.figure.axes[0].collections
    corners = {tuple(round(float(v), 6) for v in point) for point in shade.get_paths()[0].vertices}
    assert {(0.5, 1.0), (1.0, 0.5), (1.0, 1.0)} <= corners


def test_the_diagonal_is_a_random_map(made: Results) -> None:
    axis = named(made, "planted_curves")["planted_regions"].figure.axes[0]
    (diagonal,) = [line for line in axis.get_lines() if line.get_color() == VERMILION]
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]


def test_the_gate_tells_who_counts(made: Results) -> None:
    (drawing,) = named(made, "planted_gate").values()
    axis = drawing.figure.axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["5.1 watermark", "5.4 watermark, r 1, similar"]
    counts = {c.get_label(): len(c.get_offsets()) for c in axis.collections}
    assert counts["does not count"] == 1 and counts["counts"] == 2
    assert "1 of them do not count" in drawing.alt


def test_other_runs_have_no_such_figure(made: Results) -> None:
    others = Results(made.folder, made.run, made.rows.drop(columns="p_star"), made.timings, made.pictures)
    nothing = Results(made.folder, made.run, made.rows[:0], made.timings, made.pictures)
    for run in (others, nothing):
        assert draw("planted_curves", run, {}, FIGURES) == () == draw("planted_gate", run, {}, FIGURES)


def test_two_models_have_two_figures(made: Results) -> None:
    rows = pd.concat([made.rows, made.rows.assign(model="other")], ignore_index=True)
    both = Results(made.folder, made.run, rows, made.timings, made.pictures)
    assert {"planted_r_net", "planted_r_other"} <= set(named(both, "planted_curves"))


def test_what_failed_without_a_region_is_a_point_too(made: Results) -> None:
    broken = pd.DataFrame(scored("scores", "5.1", method="mine", value=float("nan"), status="error", er=None))
    rows = pd.concat([made.rows, broken], ignore_index=True)
    run = {**made.run, "methods": {**made.run["methods"], "mine": {"null": False}}}
    both = Results(made.folder, run, rows, made.timings, made.pictures)
    regions = named(both, "planted_curves")["planted_regions"]
    axes = {axis.get_ylabel(): axis for axis in regions.figure.axes}
    assert "mine" in axes


def test_the_page_draws_what_the_reproduction_prints(made: Results) -> None:
    """Every point of every panel: their mean is the number of the table, their least squares its slope."""
    figures = {"5.1": "planted_regions", "5.2": "planted_checkpoints", "5.3": "planted_visibility", "5.4": "planted_r"}
    drawings = named(made, "planted_curves")
    for experiment, name in figures.items():
        table = table_of(model_means(made.rows[made.rows["experiment"].eq(experiment)]), experiment)
        drawn = points_of(drawings[name])
        assert set(drawn) == {tuple(key) for key in table[["method", "manipulation", "presence"]].to_numpy()}
        for line in table.to_dict("records"):
            values = drawn[line["method"], line["manipulation"], line["presence"]]
            assert np.mean(values) == pytest.approx(line["attr"]), (experiment, line)


def points_of(drawing: Drawing) -> dict[tuple[str, str, str], list[float]]:
    """(method, manipulation, presence) -> heights of all points of a grid."""
    presences = {"o": "with", "x": "without"}
    grid = drawing.figure.axes[0].get_gridspec()
    axes = drawing.figure.axes
    kinds = [axis.get_title() for axis in axes[: grid.ncols]]
    methods = [axis.get_ylabel() for axis in axes[:: grid.ncols]]
    points: dict[tuple[str, str, str], list[float]] = {}
    for axis, (method, kind) in zip(axes, product(methods, kinds), strict=True):
        for line in axis.get_lines():
            if line.get_marker() in presences:
                key = (method, kind, presences[line.get_marker()])
                points.setdefault(key, []).extend(map(float, line.get_ydata()))
    return points
