"""Finished work on disk. A cell is a folder that appears whole or not at all; its checksums tell if it was damaged."""

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.torch
from safetensors import SafetensorError

from forsooth.records import Cell, Row, UsageError

try:
    import fcntl
except ImportError:  # no POSIX
    fcntl = None  # type: ignore[assignment]

ROWS = "rows.parquet"
TENSORS = "tensors.safetensors"
RENAMED_COLUMNS = {"luck": "p_value"}  # of rows in cells that were made before
META = "meta.json"
PARSERS: Mapping[str, Callable[[Path], Any]] = {ROWS: pq.read_table, TENSORS: safetensors.torch.load_file}
ABANDONED = 24 * 3600.0  # seconds after which an unfinished cell is taken for one that nobody writes
LEFT_OVER = re.compile(r"\.(probe-|.+\.)[0-9a-f]{8}")  # probes and half-written files of processes that were killed


class DamagedCell(UsageError):
    """A cell whose files are not what was written under its key."""


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
        beside = self.unfinished(key)
        try:
            _write_files(beside, cell, {"key": key, **about})
            self.path(key).parent.mkdir(parents=True, exist_ok=True)
            beside.rename(self.path(key))
        except SafetensorError as error:  # a full disk, to safetensors, is no OSError
            raise unwritable(self.root, error) from error
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and self.has(key):
                return  # another process finished the same cell first
            raise unwritable(self.root, error) from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)  # nothing is there after the rename

    def unfinished(self, key: str) -> Path:
        """Where this process writes a cell; the name says who it is, so that others can tell when it is dead."""
        return self.root / "unfinished" / f"{key}.{secrets.token_hex(4)}.{os.getpid()}@{platform.node()}"

    def discard(self, unfinished: Path) -> None:
        shutil.rmtree(unfinished, ignore_errors=True)  # it may never have been made

    def sweep(self) -> None:
        """Remove what killed processes of this machine left unfinished, and what others did more than a day ago."""
        for left in self.root.glob("unfinished/*"):
            if _is_abandoned(left):
                shutil.rmtree(left, ignore_errors=True)

    def meta(self, key: str) -> dict[str, Any]:
        """The cell's meta.json, checked against its own sum, its shape and the key."""
        try:
            meta = json.loads((self.path(key) / META).read_text())
            body = {name: value for name, value in meta.items() if name != "sum"}
            intact = meta["sum"] == _sum(body)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DamagedCell(f"cell {key}: {META} cannot be read ({error})") from error
        if not intact or not _is_meta(body):
            raise DamagedCell(f"cell {key}: {META} was changed")
        if body.get("key", key) != key:  # cells of earlier versions name no key
            raise DamagedCell(f"cell {key}: {META} is that of cell {body['key']}")
        return body

    def verify(self, key: str) -> dict[str, Any]:
        """The cell's meta.json, after checking every file against its checksum."""
        meta = self.meta(key)
        for name in meta["files"]:
            self._checked(key, name, meta)
        return meta

    def read(self, key: str) -> Cell:
        """The cell, checked against its sums."""
        meta = self.meta(key)
        rows: list[Row] = []
        if ROWS in meta["files"]:
            rows = [Row.of(line) for line in self._parsed(key, ROWS, meta).to_pylist()]
        tensors = {}
        if TENSORS in meta["files"]:
            tensors = self._parsed(key, TENSORS, meta)
        return Cell(rows=tuple(rows), tensors=tensors, facts=meta["facts"])

    def rows(self, key: str) -> pa.Table | None:
        """The rows of the cell, checked, with the names that columns have now; None where its meta.json lists none."""
        meta = self.meta(key)
        if ROWS not in meta["files"]:
            return None
        table = self._parsed(key, ROWS, meta)
        return table.rename_columns([RENAMED_COLUMNS.get(name, name) for name in table.column_names])

    def _checked(self, key: str, name: str, meta: Mapping[str, Any]) -> Path:
        """A file of the cell that is what was written."""
        file = self.path(key) / name
        if not file.is_file() or _digest(file) != meta["files"][name]:
            raise DamagedCell(f"cell {key}: {name} is missing or was changed")
        return file

    def _parsed(self, key: str, name: str, meta: Mapping[str, Any]) -> Any:
        file = self._checked(key, name, meta)
        try:
            return PARSERS[name](file)
        except (OSError, ValueError, SafetensorError) as error:  # a cell made by hand can have a right sum
            raise DamagedCell(f"cell {key}: {name} cannot be read ({error})") from error

    def set_aside(self, key: str) -> Path:
        """Move a damaged or outdated cell out of the way; nothing is deleted."""
        aside = self.root / "damaged" / f"{key}.{secrets.token_hex(4)}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        self.path(key).rename(aside)
        return aside

    def remove(self, key: str) -> None:
        shutil.rmtree(self.path(key))


def _is_meta(body: Mapping[str, Any]) -> bool:
    """Whether this has the shape that `_write_files` gives to a meta.json."""
    files = body.get("files")
    seconds = body.get("seconds", 0.0)
    return (
        isinstance(files, dict)
        and files.keys() <= PARSERS.keys()
        and isinstance(body.get("facts"), dict)
        and isinstance(seconds, int | float)
    )


def _is_abandoned(unfinished: Path) -> bool:
    """Whether nobody writes this cell any more; who writes on another machine cannot be seen from here."""
    writer, _, host = unfinished.name.partition("@")
    pid = writer.rpartition(".")[2]
    if host == platform.node() and pid.isdecimal() and not _is_alive(int(pid)):
        return True
    try:
        return time.time() - unfinished.stat().st_mtime > ABANDONED
    except FileNotFoundError:
        return False  # finished by now


def _is_alive(pid: int) -> bool:
    if os.name != "posix":
        return True  # elsewhere the question itself would end the process
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # another user's
    return True


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


def _table(rows: Sequence[Row]) -> pa.Table:
    """The columns of all rows: left alone, pyarrow takes those of the first row and drops what others have more."""
    flat = [row.flat() for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    return pa.Table.from_pylist([{name: row.get(name) for name in names} for row in flat])


def free_folder(folder: Path, earlier: Sequence[str], kind: str) -> Path:
    """The folder, if it is new, empty or holds one of the names `earlier`: a user's files are never written over.

    kind  what such an earlier folder is called, in errors
    """
    is_earlier = any((folder / name).exists() for name in earlier)
    if folder.is_dir() and not is_earlier and _holds_files(folder):
        raise UsageError(f"`out` must be new, empty or an earlier {kind}, got {folder}, which holds other files")
    return writable(folder, "out")


def _holds_files(folder: Path) -> bool:
    """Whether there is something that no killed process of ours left."""
    return any(LEFT_OVER.fullmatch(path.name) is None for path in folder.iterdir())


def writable(folder: Path, argument: str) -> Path:
    """The folder, made if need be, after trying that a file can be written there."""
    try:
        whole = str(folder.absolute())
        told = whole.encode(errors="backslashreplace").decode()
        if told != whole:  # safetensors opens no file of such a name
            raise UsageError(f"`{argument}` must be a folder whose whole path is UTF-8, got {told}")
        folder.mkdir(parents=True, exist_ok=True)
        _try_writing(folder)
    except OSError as error:
        raise UsageError(
            f"`{argument}` must be a folder that can be written, got {folder}: {os.strerror(error.errno or 0)}"
        ) from error
    return folder


def _try_writing(folder: Path) -> None:
    """OSError if no file can be written here; probes of processes that were killed are swept."""
    probe = folder / f".probe-{secrets.token_hex(4)}"
    try:
        probe.write_text("forsooth")
    finally:
        for left in folder.glob(".probe-*"):
            if LEFT_OVER.fullmatch(left.name):
                left.unlink(missing_ok=True)  # another process may sweep as well


def unwritable(folder: Path, error: OSError | SafetensorError) -> UsageError:
    reason = getattr(error, "strerror", None) or str(error)
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


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time in the folder: the files that one run writes together stay together.

    The lock is on the folder itself, so that nothing is left behind. Where the system or a file system knows no such
    locks, the sums in run.json still tell files of two runs apart.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def file_sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _sum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
