"""Finished work on disk. A cell is a folder that appears whole or not at all; its checksums tell if it was damaged."""

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.torch

from forsooth.records import Cell, Row, UsageError

ROWS = "rows.parquet"
TENSORS = "tensors.safetensors"
RENAMED_COLUMNS = {"luck": "p_value"}  # of rows in cells that were made before
META = "meta.json"


class DamagedCell(Exception):
    """A cell whose files are not what was written."""


@dataclass(frozen=True)
class Store:
    """Cells by key under `root/cells`; `root/damaged` holds what was set aside."""

    root: Path

    def path(self, key: str) -> Path:
        return self.root / "cells" / key[:2] / key

    def has(self, key: str) -> bool:
        return self.path(key).is_dir()

    def write(self, key: str, cell: Cell, *, about: dict[str, Any]) -> None:
        """Write beside and rename into place, so that a reader never sees half a cell."""
        beside = self.root / "unfinished" / f"{key}.{secrets.token_hex(4)}"
        try:
            _write_files(beside, cell, about)
            self.path(key).parent.mkdir(parents=True, exist_ok=True)
            beside.rename(self.path(key))
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and self.has(key):
                return  # another process finished the same cell first
            raise unwritable(self.root, error) from error

    def meta(self, key: str) -> dict[str, Any]:
        """The cell's meta.json, checked against its own sum."""
        try:
            meta = json.loads((self.path(key) / META).read_text())
            body = {name: value for name, value in meta.items() if name != "sum"}
            intact = meta["sum"] == _sum(body)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedCell(f"cell {key}: {META} cannot be read ({error})") from error
        if not intact:
            raise DamagedCell(f"cell {key}: {META} was changed")
        return body

    def verify(self, key: str) -> dict[str, Any]:
        """The cell's meta.json, after checking every file against its checksum."""
        meta = self.meta(key)
        for name, digest in meta["files"].items():
            file = self.path(key) / name
            if not file.is_file() or _digest(file) != digest:
                raise DamagedCell(f"cell {key}: {name} is missing or was changed")
        return meta

    def read(self, key: str) -> Cell:
        """The cell, checked against its sums."""
        meta = self.verify(key)
        rows = []
        if ROWS in meta["files"]:
            rows = pq.read_table(self.path(key) / ROWS).to_pylist()
        tensors = {}
        if TENSORS in meta["files"]:
            tensors = safetensors.torch.load_file(self.path(key) / TENSORS)
        return Cell(rows=tuple(rows), tensors=tensors, facts=meta["facts"])

    def rows(self, key: str) -> pa.Table | None:
        """The cell's rows, with the names that columns have now; None where it has none."""
        file = self.path(key) / ROWS
        if not file.is_file():
            return None
        table = pq.read_table(file)
        return table.rename_columns([RENAMED_COLUMNS.get(name, name) for name in table.column_names])

    def set_aside(self, key: str) -> Path:
        """Move a damaged or outdated cell out of the way; nothing is deleted."""
        aside = self.root / "damaged" / f"{key}.{secrets.token_hex(4)}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        self.path(key).rename(aside)
        return aside

    def remove(self, key: str) -> None:
        shutil.rmtree(self.path(key))


def _write_files(folder: Path, cell: Cell, about: Mapping[str, Any]) -> None:
    """The files of a cell, the last of which has the checksums of the others and of itself."""
    folder.mkdir(parents=True)
    if cell.rows:
        pq.write_table(_table(cell.rows), folder / ROWS)
    if cell.tensors:
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in cell.tensors.items()}
        safetensors.torch.save_file(tensors, folder / TENSORS)
    sums = {file.name: _digest(file) for file in sorted(folder.iterdir())}
    body = {"facts": dict(cell.facts), "files": sums, **about}
    (folder / META).write_text(json.dumps({"sum": _sum(body), **body}, indent=1, allow_nan=False))


def _table(rows: Sequence[Row | Mapping[str, Any]]) -> pa.Table:
    """The columns of all rows: left alone, pyarrow takes those of the first row and drops what others have more."""
    flat = [flattened(row) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    return pa.Table.from_pylist([{name: row.get(name) for name in names} for row in flat])


def flattened(row: Row | Mapping[str, Any]) -> Mapping[str, Any]:
    return row.flat() if isinstance(row, Row) else row


def writable(folder: Path, argument: str) -> Path:
    """The folder, made if need be, after trying that a file can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{secrets.token_hex(4)}"
        probe.write_text("forsooth")
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"`{argument}` must be a folder that can be written, got {folder}: {os.strerror(error.errno or 0)}"
        ) from error
    return folder


def unwritable(folder: Path, error: OSError) -> UsageError:
    reason = os.strerror(error.errno or 0)
    return UsageError(
        f"cannot write to {folder}: {reason}. What was finished before is kept; "
        "make room or choose another folder, and the same command goes on from there."
    )


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is either the old one or the new one, never half."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise unwritable(path.parent, error) from error


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _sum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
