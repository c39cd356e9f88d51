"""The page says who was explained, of which class, and for what."""

import dataclasses
from pathlib import Path

from report.by_hand import run_of, scores

from forsooth.report import Results
from forsooth.report.classes import classes
from forsooth.runs import write_page


def counted(lines: list[dict[str, object]]) -> Results:
    results = run_of(scores("a", [0.5] * 4))
    return dataclasses.replace(results, run={**results.run, "classes": lines})


def test_panels_with_the_same_counts_share_a_row(results: Results) -> None:
    table = classes(results)
    assert table.columns.tolist() == ["panels", "explained", "background"]
    assert table["explained"].tolist() == ["T: 6, L: 6", "++: 3, --: 3, +-: 3, -+: 3"]
    assert table["background"].tolist() == ["T: 50, L: 50", "++: 25, --: 25, +-: 25, -+: 25"]
    assert table["panels"].tolist() == [
        "LIN-WHITE, LIN-CORR, MULT-WHITE, MULT-CORR, RIGID-WHITE, RIGID-CORR",
        "XOR-WHITE, XOR-CORR",
    ]


def test_one_panel_that_differs_has_a_row_of_its_own(results: Results) -> None:
    lines = [dict(line) for line in results.run["classes"]]
    lines[1]["count"] = 5
    table = classes(dataclasses.replace(results, run={**results.run, "classes": lines}))
    assert table["panels"].tolist()[0] == "LIN-WHITE" and table["explained"].tolist()[0] == "T: 6, L: 5"
    assert len(table) == 3


def test_many_classes_are_summed_up() -> None:
    counts = [5] * 9 + [4]
    lines = [{"role": "explained", "class": str(k), "count": count} for k, count in enumerate(counts)]
    lines += [{"role": "fit", "class": str(k), "count": 7} for k in range(10)]
    table = classes(counted(lines))
    assert table.to_dict("records") == [
        {"panels": "all", "explained": "49: 4 to 5 of each of 10 classes", "fit": "70: 7 of each of 10 classes"}
    ]


def test_a_run_without_counts_has_no_table() -> None:
    assert classes(counted([])).empty


def test_the_page_shows_who_was_explained(folder: Path, tmp_path: Path) -> None:
    page = write_page(folder, out=tmp_path).read_text()
    assert "Who was explained" in page and "++: 3, --: 3, +-: 3, -+: 3" in page
