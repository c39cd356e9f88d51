"""The parts of the page, each alone: figures, galleries of maps, notes, advice, reasons, families, references."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from report import made_up
from report.by_hand import run_of, scores

from forsooth.attributions import METHODS
from forsooth.papers.references import cited, references
from forsooth.report import Results
from forsooth.report.advice import advice
from forsooth.report.chapter import chapter
from forsooth.report.drawing import rendered, sheet
from forsooth.report.families import FAMILIES, HIDING, kind_of
from forsooth.report.gallery import ACROSS, NO_MAP, ZEROS, Sheet, galleries, magma, shape_of
from forsooth.report.leaderboard import board
from forsooth.report.medians import Medians, all_medians
from forsooth.report.notes import letters, notes
from forsooth.report.reasons import by_reason, skipped_by_reason
from forsooth.report.svg import inline
from forsooth.report.verdict import verdict
from forsooth.scores import METRICS


def drawn(words: str = "one & <two>") -> str:
    figure = sheet(2, 1)
    axis = figure.subplots()
    axis.plot([0, 1, 2], [0.123456789, 1, 0], clip_on=True)
    axis.set_title(words)
    return rendered(figure, "svg").decode()


def test_a_figure_becomes_a_small_piece_of_the_page() -> None:
    whole = drawn()
    piece = inline(whole, name="f7", alt="a line")
    assert len(piece) < len(whole) / 2
    assert ">one &amp; &lt;two&gt;</text>" in piece
    assert "http" not in piece and "<?xml" not in piece and "metadata" not in piece
    ids = re.findall(r' id="([^"]*)"', piece)
    assert ids and all(name.startswith("f7-") for name in ids)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]*)', piece)) <= set(ids)
    assert piece.count("<g") == piece.count("</g>")
    assert max(len(digits) for digits in re.findall(r"\d\.(\d+)", piece)) <= 2
    assert "var(--paper)" in piece and "#ffffff" not in piece


def test_two_figures_of_a_page_share_no_id_and_no_class() -> None:
    pieces = [inline(drawn(), name=name, alt="") for name in ("a", "b")]
    names = [set(re.findall(r'(?: id| class)="([^"]*)"', piece)) - {"plot"} for piece in pieces]
    assert names[0] and not names[0] & names[1]


def values_of(gallery: dict, tile: int) -> np.ndarray:
    """Shares of the largest, read back from the colours of the sheet as the page's script does."""
    import base64
    import io

    image = Image.open(io.BytesIO(base64.b64decode(gallery["sheets"]["maps"].split(",")[1]))).convert("RGB")
    height, width = gallery["shape"]
    pixels = np.asarray(image)[tile // ACROSS * height :, tile % ACROSS * width :][:height, :width]
    places = {tuple(colour): place for place, colour in enumerate(magma().tolist())}
    return np.array([[places[tuple(pixel)] for pixel in line] for line in pixels.tolist()]) / 255


def test_every_pixel_of_a_map_can_be_read_back(results: Results) -> None:
    examples = galleries(results)[0]
    row = next(row for row in examples["rows"] if row["name"] == "LIN-WHITE-CNN")
    column = examples["columns"].index("saliency")
    entries = [
        entry
        for entry in results.run["pictures"]
        if (entry["kind"], entry["scenario"], entry.get("background"), entry["model"], entry["method"])
        == ("example", "LIN", "WHITE", "CNN", "saliency")
    ]
    assert len(entries) == len(row["samples"]) == made_up.SHOWN
    for entry in entries:
        sample = row["samples"][entry.get("place", 0)]
        size = np.abs(results.pictures[entry["tensor"]]).sum(0)
        np.testing.assert_allclose(
            values_of(examples, sample["tiles"][column]), size / size.max(), atol=0.5 / 255 + 1e-6
        )
        assert float(sample["peaks"][column]) == pytest.approx(size.max(), rel=1e-2)


def test_what_is_no_map_and_what_is_zero_is_told_apart(results: Results) -> None:
    examples, means = galleries(results)
    row = {row["name"]: row["samples"][0]["tiles"] for row in examples["rows"]}
    assert row["LIN-WHITE-CNN"][examples["columns"].index("lime")] == ZEROS
    assert row["LIN-WHITE-MLP"][examples["columns"].index("guided_grad_cam")] == NO_MAP
    assert "oracle" not in examples["columns"]
    assert not [row["name"] for row in means["rows"] if "RIGID" in row["name"]]
    assert len({tuple(colour) for colour in magma().tolist()}) == 256


def test_large_maps_are_averaged_down() -> None:
    assert shape_of([np.zeros((1, 224, 112))], 56) == (56, 28)
    made = Sheet((1, 2))
    place, peak = made.add(np.array([[1.0, 3.0, 0.0, 0.0]]), "any")
    assert (place, peak, made.averaged) == (0, "3", True)
    assert values_of({"sheets": {"maps": made.maps()}, "shape": (1, 2)}, 0)[0] == pytest.approx([2 / 3, 0], abs=1 / 255)


def board_of(made: Results) -> tuple[Medians, pd.DataFrame]:
    (table,) = all_medians(made).values()
    return table, board(table)


def test_equal_methods_are_explained() -> None:
    rows = [*scores("lrp", [0.1, 0.2]), *scores("gradient_x_input", [0.1, 0.2]), *scores("mine", [0.1, 0.2])]
    made = run_of(rows)
    words = notes(made, *board_of(made))
    assert sum("without biases" in note for note in words) == 1
    assert sum("have the same score in every panel" in note for note in words) == 3
    other = run_of([*scores("lrp", [0.1, 0.2]), *scores("gradient_x_input", [0.1, 0.3])])
    assert not any("the same score" in note for note in notes(other, *board_of(other)))


def test_a_letter_that_methods_with_intervals_apart_share_is_explained() -> None:
    lines = pd.DataFrame({"group": ["", "A", "A", "B"], "low": [1.0, 0.8, 0.6, 0.1], "high": [1.0, 0.9, 0.85, 0.2]})
    assert list(letters(lines)) == []
    (words,) = letters(lines.assign(group=["", "A", "A", "A"]))
    assert words.startswith("Methods share a letter though their intervals lie apart")


def test_a_large_gap_and_an_empty_spread_are_explained() -> None:
    made = run_of([*scores("lrp", [0.1, 0.2])])
    run = {**made.run, "methods": {"lrp": {"promise": "conserve"}}}
    made = Results(made.folder, run, made.rows, made.timings, made.pictures)
    table, lines = board_of(made)
    words = notes(made, table, lines.assign(gap=0.3, broken=0.9))
    assert any("misses it on 90 % of samples, by 0.3 at the median: relevance that biases" in note for note in words)
    assert any("column spread is empty" in note for note in words)
    assert not any("misses" in note for note in notes(made, table, lines.assign(gap=0.01, broken=0.0)))


def tiles(made: Results) -> dict[str, str]:
    """The counts at the head of the page."""
    times = pd.DataFrame({"cell": ["any"], "seconds": [0.0]})
    return dict(chapter(dataclasses.replace(made, timings=times), all_medians(made))["tiles"])


def test_tiles_count_maps_and_not_what_is_asked_of_them() -> None:
    asked = [{**line, "end": end} for end in ("top", "bottom") for line in scores("lime", [0.1, 0.2])]
    asked += [{**line, "end": "top"} for line in scores("shapley", [0.0, 0.0])]
    assert tiles(run_of(asked, factors=("model", "end"))) == {
        **{"methods": "1", "nulls": "0", "told the truth: shapley": "1"},
        **{"panels": "2", "maps scored": "2", "of them without a score": "0 %", "in all": "0 s"},
    }
    assert tiles(run_of(scores("lime", [0.1, 0.2])))["panel"] == "1"


def test_the_head_says_what_to_do(tables: dict[str, Medians]) -> None:
    lines = board(tables["emd"])
    own = lines[~lines["null"]]["method"].tolist()
    lines = lines.assign(wins=[4 * (name not in own[-2:]) for name in lines["method"]])
    words = advice({"emd": tables["emd"]}, {"emd": lines}, preset="quick")
    alike = lines[~lines["null"] & lines["group"].eq("A")]["method"].tolist()
    assert words.startswith(f"Of 20 methods, reach for {alike[0]} first (or {alike[1]}")
    panels = len(tables["emd"].panels)
    assert f"in 4 of {panels} panels, and in the others it is to be read with care" in words
    assert f"Do not rely on {own[-2]} and {own[-1]} here" in words


def test_where_nothing_is_clear_the_head_says_so() -> None:
    made = run_of([*scores("a", [0.1, 0.2]), *scores("random", [0.15, 0.2], model="none")])
    table, lines = board_of(made)
    words = advice({"emd": table}, {"emd": lines}, preset="quick")
    assert words.startswith("No method can be named to trust") and words.endswith("with more samples and trainings.")
    demo = advice({"emd": table}, {"emd": lines}, preset="demo")
    assert demo.endswith("with more samples and trainings (--preset quick takes minutes).")
    assert advice({}, {}, preset="demo") == ""


def test_what_knows_the_anchor_is_no_method_that_one_can_trust() -> None:
    made = run_of(
        [*scores("a", [0.1, 0.2]), *scores("shapley", [0.9, 0.9]), *scores("random", [0.15, 0.2], model="none")]
    )
    table, lines = board_of(made)
    words = " ".join(verdict(made, {"emd": table}, {"emd": lines}))
    assert "among 1 method and 1 null" in words and "shapley" not in words
    assert "In the one panel no method is clearly better than every map that never looks" in words


def test_reasons_are_said_once() -> None:
    columns = ["method", "status", "message", "metrics", "panels", "share"]
    lost = pd.DataFrame(
        [("a", "zero map", "all 0", "all", 2, 0.4), ("b", "zero map", "all 0", "all", 5, 0.1)], columns=columns
    )
    assert by_reason(lost) == [
        {"reason": "all 0", "status": "zero map", "methods": "a 40 % and b 10 %", "scores": "all", "panels": "5"}
    ]


SKIPS = ["what", "status", "message", "where"]


def test_methods_that_took_no_part_for_one_reason_share_its_line() -> None:
    lines = [("grad_cam", "skipped", "grad_cam needs a layer", ["P", "Q"])]
    lines.append(("layer_cam", "skipped", "layer_cam needs a layer", ["Q", "R"]))
    (line,) = skipped_by_reason(pd.DataFrame(lines, columns=SKIPS), ["grad_cam", "layer_cam", "lime"])
    assert line == {
        "reason": "the method needs a layer",
        "status": "skipped",
        "what": "grad_cam and layer_cam",
        "where": "3 panels: P, Q, R",
    }


def test_a_name_inside_a_reason_stays() -> None:
    lines = [("attention", "skipped", "attention is asked of attention only: rationale has none", list("PQRSTUVW"))]
    (line,) = skipped_by_reason(pd.DataFrame(lines, columns=SKIPS), ["attention", "lime"])
    assert line["reason"] == "the method is asked of attention only: rationale has none"
    assert line["where"] == "8 panels: P, Q, R, S, T, U and 2 more"


def test_where_nobody_took_part_nobody_is_named() -> None:
    lines = [(name, "no correct input", "wrong class", ["P"]) for name in ("lime", "random", "tcav")]
    (line,) = skipped_by_reason(pd.DataFrame(lines, columns=SKIPS), ["lime", "random"])
    assert line["what"] == "all 2 methods and nulls and tcav"


def test_every_method_has_a_family() -> None:
    for method in METHODS:
        family = kind_of({"needs": method.needs, "null": method.null})["family"]
        assert family in {*FAMILIES.values(), HIDING}
        assert (family == "null") == method.null


def test_every_key_is_a_paper_with_a_title_and_a_link() -> None:
    keys = {record.cite for record in (*METHODS, *METRICS)} - {""}
    papers = cited([*keys, "what a user wrote"])
    assert {paper.key for paper in papers} == keys
    for paper in references().values():
        assert paper.title and paper.authors and paper.year.isdigit()
        assert paper.link.startswith("https://")
        assert not set("{}\\") & set(paper.title + paper.authors + paper.place)
