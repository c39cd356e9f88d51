"""Figures of the articles suite from rows written by hand: who is drawn, where, and that nothing is cut off."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import to_hex
from report.by_hand import run_of
from report.made_up import row
from suites.articles.small import SMALL

from forsooth import api, report
from forsooth.report import Results
from forsooth.report.drawing import BLUE, GREEN, ORANGE, Drawing
from forsooth.report.figures import draw
from forsooth.suites.articles import text_figure
from forsooth.suites.articles.figures import FIGURES
from forsooth.suites.articles.tables import selection_table
from forsooth.suites.articles.text_figure import ACROSS
from forsooth.wording import lines_of, placed

EXHIBITS = ("articles_shares", "articles_selection", "articles_attention", "articles_text")
PLAIN = {"kind": "CN", "model": "attention", "line": None, "rate": None, "frequency": None}
WORDS = ["the", "cat", "saw", "日本", "a", "$x$", "dog", "long" * 40]


def scored(method: str, values: tuple[float, float, float], **given: Any) -> list[dict[str, Any]]:
    """Two documents with the same shares on correlating, non-correlating and other words."""
    metrics = ("attr_words", "attr_words_non_correlating", "attr_words_other")
    return [
        row(
            "shares" if metric.endswith("other") else "scores",
            **{**PLAIN, "method": method, "metric": metric, "sample": k, "value": value, "frequency": 0.04, **given},
        )
        for metric, value in zip(metrics, values, strict=True)
        for k in range(2)
    ]


def selected(model: str, hits: float, chosen: float, **given: Any) -> dict[str, Any]:
    counts = {"hits": hits, "selected": chosen, "relevant": 4.0, "words": 100.0, "misled": 0.0, "rate": 0.05}
    about = {"method": "rationale", "metric": "recall_selected", "sample": 0, "value": hits / 4, "model": model}
    return row("selection", **{**PLAIN, **about, **counts, **given})


@pytest.fixture(scope="module")
def made() -> Results:
    rows = [*scored("attention", (0.2, 0.1, 0.7)), *scored("constant", (0.04, 0.03, 0.93), model="none")]
    rows += scored("gradient", (0.5, 0.2, 0.3)) + scored("gradient", (np.nan,) * 3, status="error", model_seed=1)
    rows += [selected("rationale_relaxed", 3.0, 4.0), selected("rationale_relaxed", 1.0, 2.0, sample=1)]
    rows += [selected("rationale_reinforce", 0.0, 0.0, status="zero map")]
    for line in ("dataset", "document"):
        for metric in ("precision_selected", "recall_selected"):
            about = {"kind": "CN", "metric": metric, "line": line, "model": "none", "frequency": None}
            rows += [row("optimum", **about, rate=rate, value=0.5) for rate in (0.01, 0.1)]
    found = run_of(rows, factors=("kind", "model"), nulls=("constant",))
    articles = np.zeros((2, len(WORDS)))
    articles[0, 0] = articles[1, 4] = 1
    maps = {"document": articles, "attention": np.linspace(0.1, 0.8, len(WORDS)), "gradient": np.zeros(len(WORDS))}
    maps["constant"] = np.full(len(WORDS), np.nan)
    pictures = [
        {"tensor": "document", "shows": "document", "kind": "CN", "model": "none", "method": "", "words": WORDS}
    ]
    for method in ("attention", "gradient", "constant"):
        model = "none" if method == "constant" else "attention"
        pictures.append({"tensor": method, "shows": "weights", "kind": "CN", "model": model, "method": method})
    return replace(found, run={**found.run, "pictures": pictures}, pictures=maps)


def only(made: Results, exhibit: str) -> Drawing:
    (drawing,) = draw(exhibit, made, {}, FIGURES)
    return drawing


@pytest.mark.parametrize("exhibit", EXHIBITS)
def test_every_figure_has_its_words_and_nothing_is_cut_off(made: Results, exhibit: str) -> None:
    drawing = only(made, exhibit)
    drawing.figure.draw_without_rendering()
    assert drawing.caption.endswith(".") and drawing.alt and drawing.title
    drawn, (width, height) = drawing.figure.get_tightbbox(), drawing.figure.get_size_inches()
    assert drawn.x0 >= 0 and drawn.y0 >= 0 and drawn.x1 <= width and drawn.y1 <= height


def test_bars_are_the_mean_shares_one_after_another(made: Results) -> None:
    axis = next(axis for axis in only(made, "articles_shares").figure.axes if axis.get_yticklabels())
    methods = [label.get_text() for label in axis.get_yticklabels()]
    place = methods.index("attention")
    bars = [bar for bar in axis.patches if abs(bar.get_y() + bar.get_height() / 2 - place) < 0.1]
    np.testing.assert_allclose([(bar.get_x(), bar.get_width()) for bar in bars], [(0, 0.2), (0.2, 0.1), (0.3, 0.7)])


def test_selections_are_pooled_over_documents(made: Results) -> None:
    table = selection_table(made.rows).set_index("model")
    assert table.loc["rationale_relaxed", ["selected", "precision", "recall"]].tolist() == pytest.approx(
        [6 / 200, 4 / 6, 4 / 8]
    )
    nothing = table.loc["rationale_reinforce"]
    assert np.isnan(nothing["precision"]) and nothing["recall"] == 0


def test_the_text_is_painted_underlined_and_safe(made: Results) -> None:
    drawing = only(made, "articles_text")
    axis = drawing.figure.axes[0]
    said = [text.get_text() for text in axis.texts]
    assert "gradient 0" in said and "constant –" in said and "attention" in said
    assert any("?? a $x$ dog" in line for line in said)
    paints = [c for c in axis.collections if isinstance(c, PatchCollection)]
    below = [c for c in axis.collections if isinstance(c, LineCollection)]
    assert len(paints) == 3 and [len(c.get_segments()) for c in below] == [1, 1] * 3
    painted = [name for name in made.run["methods"] if name in said or name in ("gradient", "constant")]
    depth = paints[painted.index("attention")].get_facecolor()
    assert depth[-1].sum() < depth[0].sum()  # the last word has the largest weight


def test_words_stay_in_their_lines() -> None:
    places = placed(["word"] * 60 + ["x" * 500], across=ACROSS)
    assert all(place.column + place.width <= ACROSS for place in places)
    assert places[-1].column == 0 and places[-1].width == ACROSS


def test_a_run_without_pictures_or_selections_has_fewer_figures() -> None:
    made = run_of(scored("attention", (0.2, 0.1, 0.7)), factors=("kind", "model"))
    assert len(draw("articles_shares", made, {}, FIGURES)) == 1
    for exhibit in EXHIBITS[1:]:
        assert draw(exhibit, made, {}, FIGURES) == ()


def axes_by_note(drawing: Drawing) -> dict[str, Any]:
    """The axes of a figure by the words above them."""
    return {axis.texts[0].get_text(): axis for axis in drawing.figure.axes}


def interval_of(axis: Any, place: int) -> Any:
    """The ends of the black line of a method."""
    (line,) = [line for line in axis.lines if line.get_ydata()[0] == line.get_ydata()[1] == place]
    return line.get_xdata()


@pytest.mark.parametrize("trainings", [1, 2])
def test_the_page_draws_every_interval_that_the_reproduction_prints(out: Any, trainings: int) -> None:
    methods = ("attention", "rationale", "gradient", "occlusion", "random", "constant", "oracle")
    models = ("attention", "rationale_relaxed")
    settings = {**SMALL, "kinds": ("Article", "CN"), "models": models, "methods": methods, "trainings": trainings}
    settings["rationale_trainings"] = trainings
    table, _ = api.reproduce("articles/post-hoc", settings=settings, out=out)
    results = report.read(api.reproduction_folder("articles/post-hoc", out))
    axes = axes_by_note(only(results, "articles_shares"))
    names = [label.get_text() for label in axes["Article, attention"].get_yticklabels()]
    assert set(names) == set(methods)
    compared = 0
    for line in table.itertuples():
        panels = models if line.model == "none" else (line.model,)
        for model in panels:
            axis = axes[f"{line.kind}, {model}"]
            place = names.index(line.method)
            orange = next(bar for bar in axis.patches if bar.get_center()[1] == pytest.approx(place))
            assert (orange.get_x(), orange.get_width()) == pytest.approx((0, line.attr), abs=1e-4)
            np.testing.assert_allclose(interval_of(axis, place), (line.low, line.high), atol=1e-4)
            compared += 1
    assert compared == 2 * 2 * 6  # kinds, models, and all methods but what the other model says of itself


def test_the_interval_of_several_trainings_is_not_that_of_as_many_documents() -> None:
    """Two trainings that differ on the same two documents: four values, but nothing like four independent ones."""
    rows = scored("lime", (0.2, 0.1, 0.7)) + scored("lime", (0.6, 0.1, 0.3), model_seed=1)
    axis = axes_by_note(only(run_of(rows, factors=("kind", "model")), "articles_shares"))["CN, attention"]
    low, high = interval_of(axis, 0)
    assert (low, high) == (0, 1)  # one degree of freedom; four independent values would have 0.17 to 0.63


def test_the_page_marks_every_model_where_the_reproduction_has_it(out: Any) -> None:
    table, _ = api.reproduce("articles/figure-8", settings=SMALL, out=out)
    results = report.read(api.reproduction_folder("articles/figure-8", out))
    axes = axes_by_note(only(results, "articles_selection"))
    for kind, own in table.groupby("kind"):
        for metric in ("precision", "recall"):
            marks = [mark for group in axes[f"{kind}: {metric}"].collections for mark in group.get_offsets().tolist()]
            drawn = [mark for mark in marks if np.isfinite(np.array(mark, dtype=float)).all()]
            expected = own[["selected", metric]].dropna().to_numpy() * [100, 1]
            np.testing.assert_allclose(sorted(drawn), sorted(expected.tolist()), atol=0.01)
            assert len(marks) == len(own)


def test_the_lines_of_figure_8_are_those_of_the_rows(made: Results) -> None:
    axis = axes_by_note(only(made, "articles_selection"))["CN: recall"]
    assert [line.get_linestyle() for line in axis.lines] == ["-", "--"]
    for line in axis.lines:
        np.testing.assert_allclose(line.get_xydata(), [(1, 0.5), (10, 0.5)])


def test_attention_is_a_bar_for_each_word_in_the_colour_of_its_kind(made: Results) -> None:
    (axis,) = only(made, "articles_attention").figure.axes
    heights = [bar.get_height() for bar in axis.patches]
    np.testing.assert_allclose(heights, np.linspace(0.1, 0.8, len(WORDS)))
    colours = [to_hex(bar.get_facecolor()) for bar in axis.patches]
    assert (colours[0], colours[4], colours[1]) == (ORANGE, BLUE, GREEN)
    assert colours.count(GREEN) == len(WORDS) - 2


def test_lines_of_text_have_their_words_at_their_places() -> None:
    words = ["one", "two", "x" * 200, "three"]
    places = placed(words, across=ACROSS)
    lines = lines_of(words, places)
    assert lines == ["one two", "x" * ACROSS, "three"]
    for word, place in zip(words, places, strict=True):
        assert lines[place.line][place.column : place.column + place.width] == word[: place.width]


@pytest.mark.parametrize(("weights", "mark"), [([0.0, 0.0], " 0"), ([0.0, np.nan], " –"), ([0.0, 0.5], "")])
def test_a_map_that_says_nothing_is_marked(weights: list[float], mark: str) -> None:
    assert text_figure._mark(np.array(weights)) == mark
