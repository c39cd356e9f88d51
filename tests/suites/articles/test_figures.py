"""Figures of the articles suite from rows written by hand: who is drawn, where, and that nothing is cut off."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PatchCollection
from report.by_hand import run_of
from report.made_up import row

from forsooth.report import Results
from forsooth.report.drawing import Drawing
from forsooth.report.figures import draw
from forsooth.suites.articles.figures import pooled
from forsooth.suites.articles.text_figure import ACROSS, placed

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
    (drawing,) = draw(exhibit, made, {})
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
    table = pooled(made.rows[made.rows["part"].eq("selection")]).set_index("model")
    assert table.loc["rationale_relaxed", ["rate", "precision_selected", "recall_selected"]].tolist() == pytest.approx(
        [6 / 200, 4 / 6, 4 / 8]
    )
    nothing = table.loc["rationale_reinforce"]
    assert np.isnan(nothing["precision_selected"]) and nothing["recall_selected"] == 0


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
    places = placed(["word"] * 60 + ["x" * 500])
    assert all(place.column + place.width <= ACROSS for place in places)
    assert places[-1].column == 0 and places[-1].width == ACROSS


def test_a_run_without_pictures_or_selections_has_fewer_figures() -> None:
    made = run_of(scored("attention", (0.2, 0.1, 0.7)), factors=("kind", "model"))
    assert len(draw("articles_shares", made, {})) == 1
    for exhibit in EXHIBITS[1:]:
        assert draw(exhibit, made, {}) == ()
