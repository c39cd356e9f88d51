"""The doctor: versions that are right, stores whose damage is found, nothing changed."""

import numpy as np
import pytest

import forsooth
from forsooth.analysis import health
from forsooth.records import Cell, Row
from forsooth.store import Store


@pytest.fixture
def stored(tmp_path):
    cells = Store(tmp_path / "run" / "store")
    for key in ("aa" * 8, "bb" * 8):
        cells.write(key, Cell(rows=[Row("xaitris", "scores", value=0.5)]), about={"key": key})
    return tmp_path / "run"


def test_versions_and_machine_are_named():
    found = forsooth.doctor()
    table = found.table.set_index("what")["value"]
    assert table["numpy"] == np.__version__ and table["forsooth"] == forsooth.__version__
    assert "All is well." in str(found) or found.problems
    assert "<table" in found._repr_html_()


def test_a_damaged_cell_is_found_and_left_where_it_is(stored):
    assert forsooth.doctor(stored).table["value"].iloc[-1] == "2 cells, 0 damaged"
    (file,) = stored.glob("store/cells/aa/*/rows.parquet")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    found = forsooth.doctor(stored)
    assert found.table["value"].iloc[-1] == "2 cells, 1 damaged" and not found.well
    assert "the same run command makes it again" in found.words and file.exists()


def test_a_folder_without_a_store_is_refused(tmp_path):
    with pytest.raises(forsooth.UsageError, match=r"`runs` must be folders of runs, got .* without store"):
        forsooth.doctor(tmp_path)


def test_what_is_missing_or_scarce_is_said_with_its_cure(monkeypatch):
    monkeypatch.setattr(health, "PACKAGES", ("torch", "no-such-package"))
    monkeypatch.setattr(health, "free_memory", lambda: 0.5)
    found = forsooth.doctor()
    assert found.problems[:2] == (
        "no-such-package is missing: `pip install no-such-package`",
        "only 0.5 GiB of memory are free: use fewer `--workers`",
    )
