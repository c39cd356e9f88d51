import errno
import json
import os
import shutil
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest
import safetensors
import torch

from forsooth.records import Cell, Row, UsageError
from forsooth.store import DamagedCell, Store, free_folder, writable, write_atomically

KEY = "ab" + "0" * 30
ROW = Row("s", "scores", metric="ima", value=0.5)
CELL = Cell(rows=(ROW,), tensors={"maps": torch.arange(6.0)}, facts={"status": "ok"})


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
    store.write("cd" + "0" * 30, Cell(rows=(ROW, ROW.having(mask="object"))), about={})
    assert [row.columns["mask"] for row in store.read("cd" + "0" * 30).rows] == [None, "object"]


def test_columns_of_cells_made_before_have_the_names_of_now(store):
    store.write("old", Cell(rows=(ROW.having(luck=0.25),)), about={})
    (line,) = store.rows("old").to_pylist()
    assert (line["value"], line["p_value"]) == (0.5, 0.25) and "luck" not in line


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


def forged(store, **changes):
    """The meta.json of the cell with changes and a right sum; a change to None takes the entry out."""
    body = {**store.meta(KEY), **changes}
    body = {name: value for name, value in body.items() if value is not None}
    text = json.dumps(body, sort_keys=True)
    (store.path(KEY) / "meta.json").write_text(json.dumps({"sum": sha256(text.encode()).hexdigest(), **body}))


def test_a_cell_under_the_key_of_another_is_not_served(store):
    other = "cd" + "0" * 30
    shutil.copytree(store.path(KEY), store.path(other))
    for read in (store.meta, store.verify, store.read, store.rows):
        with pytest.raises(DamagedCell, match=f"cell {other}.*{KEY}"):
            read(other)


def test_an_old_cell_that_has_no_key_is_served(store):
    forged(store, key=None)
    assert "key" not in store.meta(KEY)
    assert store.read(KEY).rows == CELL.rows


@pytest.mark.parametrize(
    "changes",
    [
        {"files": []},
        {"files": "rows.parquet"},
        {"files": {"../../../secret": "0"}},
        {"files": {"rows.parquet": 5}},
        {"facts": []},
        {"facts": None},
        {"files": None},
        {"seconds": "1"},
    ],
)
def test_a_meta_of_another_shape_is_damage_even_with_a_right_sum(store, changes):
    forged(store, **changes)
    with pytest.raises(DamagedCell, match=KEY):
        store.verify(KEY)


@pytest.mark.parametrize("content", ["[]", "5", "null", '"text"', "[" * 100_000])
def test_a_meta_that_is_no_object_is_damage(store, content):
    (store.path(KEY) / "meta.json").write_text(content)
    with pytest.raises(DamagedCell, match=KEY):
        store.meta(KEY)


def test_rows_that_are_not_listed_are_not_served(store):
    forged(store, files={})
    assert store.rows(KEY) is None
    assert store.read(KEY).rows == ()


def test_rows_with_a_wrong_sum_are_not_served(store):
    other = "cd" + "0" * 30
    store.write(other, Cell(rows=(ROW.having(value=1.0),)), about={})
    shutil.copy(store.path(other) / "rows.parquet", store.path(KEY) / "rows.parquet")
    with pytest.raises(DamagedCell, match=r"rows\.parquet is missing or was changed"):
        store.rows(KEY)


@pytest.mark.parametrize("name", ["rows.parquet", "tensors.safetensors"])
def test_a_file_of_another_kind_is_damage_even_with_a_right_sum(store, name):
    (store.path(KEY) / name).write_bytes(b"no such file")
    forged(store, files={name: sha256(b"no such file").hexdigest()})
    with pytest.raises(DamagedCell, match=f"{KEY}.*{name}"):
        store.read(KEY)


def test_damage_is_told_in_one_line():
    assert issubclass(DamagedCell, UsageError)


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


def test_a_disk_that_fills_up_inside_safetensors_says_so(store, monkeypatch):
    def full(*_args, **_kwargs):
        raise safetensors.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("forsooth.store.safetensors.torch.save_file", full)
    with pytest.raises(UsageError, match=r"cannot write to .*No space left on device.*same command goes on"):
        store.write("cd" + "0" * 30, CELL, about={})
    assert not store.has("cd" + "0" * 30)
    assert list((store.root / "unfinished").iterdir()) == []


def test_nothing_is_left_beside_where_facts_are_no_json(store):
    with pytest.raises(ValueError, match="JSON"):
        store.write("cd" + "0" * 30, Cell(facts={"loss": float("nan")}), about={})
    assert list((store.root / "unfinished").iterdir()) == []


def killed_while_writing(store, moment):
    """What a process leaves that dies in the middle of a cell, written so many seconds ago."""
    code = (
        "import os, sys, pathlib, forsooth.store as s; s._write_files = lambda folder, *_: (folder.mkdir(parents=True),"
        f"os._exit(0)); s.Store(pathlib.Path({str(store.root)!r})).write('ef' * 16, None, about={{}})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    (left,) = (store.root / "unfinished").iterdir()
    os.utime(left, (time.time() - moment,) * 2)
    return left


def test_what_a_dead_process_left_is_swept(store):
    left = killed_while_writing(store, 0)
    store.sweep()
    assert not left.exists()


def test_what_another_machine_or_a_living_process_writes_is_swept_after_a_day_only(store):
    left = killed_while_writing(store, 3600)
    there = left.rename(left.with_name(left.name.partition("@")[0] + "@another"))
    mine = store.root / "unfinished" / store.unfinished(KEY).name
    mine.mkdir()
    old_form = store.root / "unfinished" / f"{KEY}.0123abcd"
    old_form.mkdir()
    store.sweep()
    assert there.exists() and mine.exists() and old_form.exists()
    for path in (there, mine, old_form):
        os.utime(path, (time.time() - 90_000,) * 2)
    store.sweep()
    assert list((store.root / "unfinished").iterdir()) == []


def test_a_store_that_is_not_there_yet_has_nothing_to_sweep(tmp_path):
    Store(tmp_path / "none").sweep()
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(
        UsageError, match=rf"`out` must be a folder that can be written, got {file}/sub: Not a directory"
    ):
        writable(file / "sub", "out")
    assert file.read_text() == "mine"


def test_a_full_disk_leaves_no_probe(tmp_path, monkeypatch):
    def full(path, *_args, **_kwargs):
        path.touch()  # the name still fits on the disk
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(UsageError, match=r"`out` must be a folder that can be written.*No space left"):
        writable(tmp_path, "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [".probe-0123abcd", ".scores.parquet.0123abcd"])
def test_what_a_killed_process_left_blocks_no_folder(tmp_path, name):
    (tmp_path / name).touch()
    assert free_folder(tmp_path, ("run.json", "store"), "run") == tmp_path
    assert not list(tmp_path.glob(".probe-*"))


@pytest.mark.parametrize("name", [".probe-mine", ".git", "notes.txt", "scores.parquet.0123abcd"])
def test_a_folder_with_files_of_the_user_is_refused(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match=r"`out` must be new, empty or an earlier run, got .* which holds other files"):
        free_folder(tmp_path, ("run.json", "store"), "run")
    assert (tmp_path / name).read_text() == "mine"


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
