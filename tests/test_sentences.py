"""No number of the README, the findings or a study parts from its table: each is held against the csv file."""

import re
from collections.abc import Iterator

import pandas as pd
import pytest
import sentences
from sentences import (
    ROOT,
    Entry,
    entries,
    entry_of,
    faults,
    misquoted,
    numbers_of,
    problems,
    table_cells,
    table_of,
    uncovered,
    value_of,
)

FILES = [ROOT / "README.md", ROOT / "docs/findings.md", *sorted((ROOT / "studies").glob("*.md"))]
DOCUMENTS = {path.stem: path for path in FILES}


def document_of(name: str) -> str:
    """A study and the findings whole; of the README what was found."""
    text = DOCUMENTS[name].read_text()
    return re.search(r"^## What was found\n.*", text, flags=re.S | re.M).group() if name == "README" else text


def listed(name: str) -> list[Entry]:
    return entries(ROOT / f"studies/sentences/{name}.txt")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_number_is_that_of_its_table_or_has_a_reason(name):
    assert problems(document_of(name), listed(name)) == []


def quotes(listed: list[Entry], document: str) -> Iterator[tuple[Entry, str, float]]:
    """Numbers that stand in a document as they do in one cell of a table: the line, the column, one unit as printed."""
    for entry in (*listed, *(cell.entry for cell in table_cells(listed, document))):
        if entry.kind in ("sentence", "cell"):
            frame = table_of(entry.table)
            rows = frame.query(entry.rows) if entry.rows else frame
            for number, column in zip(numbers_of(entry.text), entry.values.split(";"), strict=True):
                if column.strip() in rows and len(rows) == 1:
                    yield entry, column.strip(), 10.0 ** -len(number.partition(".")[2])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_changed_number_of_a_table_is_caught(name, monkeypatch):
    """No word of the document is touched: the cell is off by two units of what is printed, in a copy of its table."""
    found = list(quotes(listed(name), document_of(name)))
    assert found
    for entry, column, unit in found[:: 1 + len(found) // 40]:
        changed = table_of(entry.table).astype({column: float})
        changed.loc[changed.eval(entry.rows) if entry.rows else changed.index, column] += 2 * unit
        with monkeypatch.context() as patch:
            patch.setattr(sentences, "table_of", lambda table, changed=changed: changed)
            assert faults(entry), (entry.text, column)


def test_a_changed_digit_is_caught():
    rows = "end == 'top' and fraction == 0.1 and method == 'grad_cam'"
    line = f"Table 3 has {{}} :: papers/bias_table_3.csv :: {rows} :: _; value"
    assert faults(entry_of(line.format("0.1726"))) == []
    assert len(faults(entry_of(line.format("0.1736")))) == 1
    assert len(faults(entry_of(line.format("0.1726 [0.1, 0.2]")))) == 1


def test_a_changed_cell_of_a_markdown_table_is_caught():
    lines = [
        entry_of("TABLE | method | ρ"),
        entry_of("ROW GC ::  :: label == 'GC'"),
        entry_of("COLUMN ρ :: papers/bam_figure_13.csv ::  :: rho"),
    ]
    right = "| method | ρ |\n|---|---|\n| GC | 0.92 |\n"
    cells = [cell.entry for cell in table_cells(lines, right)]
    assert len(cells) == 1
    assert faults(cells[0]) == []
    assert uncovered(right, lines) == []
    wrong = [cell.entry for cell in table_cells(lines, right.replace("0.92", "0.93"))]
    assert len(faults(wrong[0])) == 1


def test_a_quote_that_is_gone_or_a_row_without_a_cell_is_named():
    lines = [entry_of("has 0.92 :: papers/bam_figure_13.csv :: label == 'GC' :: rho"), entry_of("0.5 :: why: a bound")]
    assert misquoted("It has 0.92 of 0.5 and 0.5.", lines) == []
    assert len(misquoted("It has 0.93. It has 0.92, no, it has 0.92.", lines)) == 2
    table = [entry_of("TABLE | method | ρ"), entry_of("ROW GC ::  :: "), entry_of("COLUMN r ::  :: ")]
    assert len(misquoted("| method | ρ |\n|---|---|\n| GC | 0.92 |\n", table)) == 2


def test_a_number_that_no_line_names_is_found():
    assert len(uncovered("SHAP has 0.75 and 6 of 24 do, at 5 %.", [])) == 4
    assert uncovered("On 16 images, `--set gate=0.3`, ResNet-50.", []) == []
    assert len(uncovered("It has 0.75 here.", [Entry("why", "0.7")])) == 1  # a part of a number is not the number


def test_expressions_are_a_small_language():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 8.0]})
    assert value_of("median(b / a)", frame) == 3
    assert value_of("100 * mean(a)", frame) == 150
    assert value_of("count(a < 2)", frame) == 1
    for expression in ("a", "__import__('os')", "a.sum()", "[a for a in b]", "open('x')"):
        with pytest.raises(ValueError, match=r"one value|not a column"):
            value_of(expression, frame)


def test_numbers_are_read_as_they_are_printed():
    assert numbers_of("−0.84 [−0.9, +0.1], 1,024 of ResNet-20 at 5 %") == ["−0.84", "−0.9", "+0.1", "1,024", "5"]
