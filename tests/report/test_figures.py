import functools
from collections.abc import Iterator
from io import BytesIO
from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from report.by_hand import run_of, scores

from forsooth.records import UsageError
from forsooth.report import Results, figures
from forsooth.report.drawing import Drawing, colours, rendered, slim
from forsooth.report.figures import FIGURES as SHARED
from forsooth.report.maps import painted
from forsooth.report.medians import Medians, all_medians
from forsooth.suites.xaitris.figures import FIGURES as OWN

EXPECTED = {
    "attention": [],  # of answers on functionless patches alone
    "leaderboard": ["leaderboard"],
    "accuracies": ["accuracies"],
    "boxes": ["boxes_emd", "boxes_ima", "boxes_precision"],
    "examples": ["examples_LLR", "examples_MLP", "examples_CNN"],
    "globals": ["globals_LLR", "globals_MLP", "globals_CNN"],
    "accuracy_by_alpha": ["accuracy_by_alpha"],
    "strategies": ["strategies"],
    **{
        name: []
        for name in (
            "bias_curves",
            "planted_curves",
            "planted_gate",
            "articles_shares",
            "articles_selection",
            "articles_attention",
            "articles_text",
            "bam_verification",
            "bam_contrasts",
            "bam_series",
            "bam_patches",
        )
    },  # this run has no data for them
}

FIGURES = {**SHARED, **OWN}
draw = functools.partial(figures.draw, figures=OWN)


def words(figure: Figure) -> Iterator[Text]:
    """All text that a reader sees."""
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text.get_visible() and text.get_text().strip() and text.get_window_extent().width:
            yield text


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_its_words_inside_and_apart(name: str, results: Results, tables: dict[str, Medians]) -> None:
    drawings = draw(name, results, tables)
    assert [drawing.name for drawing in drawings] == EXPECTED[name]
    for drawing in drawings:
        drawing.figure.draw_without_rendering()
        assert drawing.caption.endswith(".") and drawing.alt and drawing.title
        drawn, (width, height) = drawing.figure.get_tightbbox(), drawing.figure.get_size_inches()
        cut = [drawn.x0 < 0, drawn.y0 < 0, drawn.x1 > width, drawn.y1 > height]
        assert not any(cut), f"{drawing.name} is cut off at the left, foot, right or top: {cut}"
        for axis in drawing.figure.axes:
            for labels in (axis.get_xticklabels(), axis.get_yticklabels()):
                boxes = [label.get_window_extent() for label in labels if label.get_text()]
                assert not any(a.overlaps(b) for a, b in pairwise(boxes)), f"labels overlap in {drawing.name}"


def test_the_leaderboard_names_every_method(results: Results, tables: dict[str, Medians]) -> None:
    (drawing,) = draw("leaderboard", results, tables)
    labels = {label.get_text() for axis in drawing.figure.axes for label in axis.get_yticklabels()}
    assert {name.split(" ")[0] for name in labels} == set(results.run["methods"])
    assert "guided_grad_cam (8/18)" in labels


def test_examples_mark_what_is_missing_and_what_is_zero(results: Results, tables: dict[str, Medians]) -> None:
    cnn = draw("examples", results, tables)[-1]
    seen = [text.get_text() for text in words(cnn.figure)]
    assert seen.count("0") == 8  # LIME on the CNN, in every dataset
    assert "oracle" not in seen and "truth" in seen


def test_runs_without_data_have_no_such_figure() -> None:
    made = run_of(scores("a", [0.1, 0.2]))
    for name in ("accuracies", "examples", "globals", "accuracy_by_alpha", "strategies"):
        assert draw(name, made, all_medians(made)) == ()


@pytest.mark.parametrize("factors", [["model"], ["data"], ["data", "model"]])
def test_other_suites_have_other_factors(factors: list[str]) -> None:
    rows = [
        *scores("a", [0.1, 0.2]),
        *scores("b", [3.0, 4.0], data="b", model="MLP"),
        *scores("random", [1.0, 2.0], model="none"),
    ]
    made = run_of(rows, factors=factors, metric={"better": "lower"})
    for name in ("leaderboard", "boxes"):
        drawings: tuple[Drawing, ...] = draw(name, made, all_medians(made))
        assert rendered(drawings[0].figure, "svg").startswith(b"<?xml")


def test_a_map_is_its_absolute_value_over_its_largest() -> None:
    signed = np.array([[[-2.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.5]]])  # two channels
    np.testing.assert_allclose(painted(signed, "method"), painted(np.array([[4.0, 2.0], [0.0, 3.0]]), "method"))
    assert painted(np.zeros((3, 4, 5)) + np.arange(3.0)[:, None, None], "input")[0, 0].tolist() == [0, 0.5, 1]


def test_colours_tell_methods_apart_and_nulls_are_grey() -> None:
    names = [f"m{k}" for k in range(18)]
    found = colours([*names, "sobel"], {"sobel": True})
    assert len({found[name] for name in names}) == 18
    assert found["sobel"] not in {found[name] for name in names}


def test_the_same_bytes_at_every_call(results: Results, tables: dict[str, Medians]) -> None:
    first, second = (rendered(draw("strategies", results, tables)[0].figure, "svg") for _ in range(2))
    assert first == second


def test_slim_is_smaller_and_keeps_white_white(results: Results, tables: dict[str, Medians]) -> None:
    png = rendered(draw("examples", results, tables)[1].figure, "png")
    small = slim(png, most=10_000)
    image = Image.open(BytesIO(small)).convert("RGB")
    assert len(small) < len(png) / 2 and image.width == 800
    assert image.getpixel((2, 2)) == (255, 255, 255)


def test_unknown_exhibit_offers_the_nearest(results: Results, tables: dict[str, Medians]) -> None:
    with pytest.raises(UsageError, match=r"`exhibits` must be a known name, got 'boxs'; did you mean boxes\?"):
        draw("boxs", results, tables)


def test_long_names_of_plugins_fit() -> None:
    """A method of a user is called package.module:function; in every figure it must stay inside and whole."""
    name, maps = "some_package.some_module:a_rather_long_function", {"t": np.eye(4), "nan": np.full((4, 4), np.nan)}
    made = run_of([*scores(name, [0.1, 0.2]), *scores("b", [0.3, 0.4]), *scores("random", [0.3, 0.1], model="none")])
    pictures = [{"tensor": "t", "kind": kind, "data": "a", "model": "none"} for kind in ("input", "truth")]
    pictures += [{"tensor": "t", "kind": "example", "data": "a", "model": "CNN", "method": name}]
    pictures += [{"tensor": "nan", "kind": "example", "data": "a", "model": "CNN", "method": "b"}]
    made = Results(made.folder, {**made.run, "pictures": pictures}, made.rows, made.timings, maps)
    for exhibit in ("leaderboard", "boxes", "examples"):
        (drawing,) = draw(exhibit, made, all_medians(made))
        drawing.figure.draw_without_rendering()
        drawn, (width, height) = drawing.figure.get_tightbbox(), drawing.figure.get_size_inches()
        assert drawn.x0 >= 0 and drawn.y0 >= 0 and drawn.x1 <= width and drawn.y1 <= height, exhibit
        assert name in {text.get_text() for text in words(drawing.figure)}
    assert [text.get_text() for text in words(drawing.figure)].count("–") == 1  # the map that holds no number


def test_long_names_leave_the_headings_of_boards_apart() -> None:
    made = run_of([*scores("integrated_gradients_smooth_squared", [0.1, 0.2]), *scores("b", [0.3, 0.4])])
    (table,) = all_medians(made).values()
    (drawing,) = draw("leaderboard", made, {name: table for name in ("relative_bias", "m_bias", "m_bias_split")})
    drawing.figure.draw_without_rendering()
    width, _ = drawing.figure.get_size_inches()
    assert drawing.figure.get_tightbbox().x1 <= width
    boxes = [text.get_window_extent() for text in words(drawing.figure)]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_a_sweep_shows_models_below_the_gate_too(results: Results, tables: dict[str, Medians]) -> None:
    rows = results.rows.assign(status="below gate")
    gated = Results(results.folder, results.run, rows, results.timings, results.pictures)
    assert len(draw("accuracy_by_alpha", gated, tables)) == 1
