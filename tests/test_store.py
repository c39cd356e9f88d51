import errno
import json
from pathlib import Path

import pytest
import torch

from forsooth.records import Cell, UsageError
from forsooth.store import DamagedCell, Store, writable, write_atomically

KEY = "ab" + "0" * 30
CELL = Cell(rows=({"metric": "ima", "value": 0.5},), tensors={"maps": torch.arange(6.0)}, facts={"status": "ok"})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path)
    made.write(KEY, CELL, about={"seconds": 1.0})
    return made


def test_a_cell_comes_back_as_it_was(store):
    cell = store.read(KEY)
    assert cell.rows == CELL.rows
    assert cell.facts == CELL.facts
    torch.testing.assert_close(cell.tensors["maps"], CELL.tensors["maps"])


def test_what_only_a_later_row_has_is_kept(store):
    """pyarrow alone would take the columns of the first row."""
    store.write("cd" + "0" * 30, Cell(rows=({"metric": "mcs"}, {"metric": "idr", "mask": "object"})), about={})
    assert [row["mask"] for row in store.read("cd" + "0" * 30).rows] == [None, "object"]


def test_columns_of_cells_made_before_have_the_names_of_now(store):
    store.write("old", Cell(rows=({"value": 0.5, "luck": 0.25},)), about={})
    assert store.rows("old").to_pylist() == [{"value": 0.5, "p_value": 0.25}]


def test_nothing_is_left_beside_a_finished_cell(store):
    assert list((store.root / "unfinished").iterdir()) == []


def test_no_pickle_is_written(store):
    assert {file.suffix for file in store.path(KEY).iterdir()} == {".parquet", ".safetensors", ".json"}


@pytest.mark.parametrize("name", ["rows.parquet", "tensors.safetensors", "meta.json"])
def test_a_changed_byte_is_found(store, name):
    file = store.path(KEY) / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(DamagedCell, match=KEY):
        store.verify(KEY)


@pytest.mark.parametrize("name", ["rows.parquet", "meta.json"])
def test_a_missing_file_is_found(store, name):
    (store.path(KEY) / name).unlink()
    with pytest.raises(DamagedCell, match=name):
        store.verify(KEY)


def test_an_edited_fact_is_found(store):
    file = store.path(KEY) / "meta.json"
    meta = json.loads(file.read_text())
    meta["seconds"] = 0.1
    file.write_text(json.dumps(meta))
    with pytest.raises(DamagedCell, match="was changed"):
        store.meta(KEY)


def test_set_aside_keeps_the_files(store):
    aside = store.set_aside(KEY)
    assert not store.has(KEY)
    assert (aside / "rows.parquet").is_file()


def test_a_second_writer_of_the_same_cell_is_harmless(store):
    store.write(KEY, CELL, about={"seconds": 2.0})
    assert store.meta(KEY)["seconds"] == 1.0


def test_a_full_disk_says_so_and_leaves_no_half_cell(store, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("forsooth.store.pq.write_table", full)
    other = "cd" + "0" * 30
    with pytest.raises(UsageError, match=r"No space left on device.*kept.*same command goes on"):
        store.write(other, CELL, about={})
    assert not store.has(other)
    assert list((store.root / "unfinished").iterdir()) == []
    assert store.read(KEY).rows == CELL.rows


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(
        UsageError, match=rf"`out` must be a folder that can be written, got {file}/sub: Not a directory"
    ):
        writable(file / "sub", "out")
    assert file.read_text() == "mine"


def test_replace_is_whole_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "scores.parquet"
    write_atomically(path, b"old")

    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UsageError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["scores.parquet"]
