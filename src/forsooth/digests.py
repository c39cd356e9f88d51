"""Hashes of files of the user's, so that a task's key changes when its data do."""

import functools
import hashlib
from pathlib import Path

from forsooth.records import UsageError

READ_WHOLE = 2**28  # bytes up to which the files themselves are hashed


def digest(path: str | Path) -> str:
    """A hash of a file, or of all files in a folder: of their bytes if they are few, else of names, sizes and times."""
    place = Path(path)
    files = [place]
    if place.is_dir():
        files = sorted(file for file in place.rglob("*") if file.is_file())
    states = [file.stat() for file in files]
    return _digest(tuple(files), tuple((state.st_size, state.st_mtime_ns) for state in states))


def require_same(now: str, planned: str | None, path: str | Path) -> None:
    """UsageError where files are not those from which the keys of the tasks were made; asked after they were read."""
    if planned is not None and now != planned:
        raise UsageError(
            f"the files at {path} must stay as they are while a run goes on, and `out` must lie outside of them; they "
            "changed after it was planned, and nothing was kept of them. The same command plans again"
        )


@functools.lru_cache(maxsize=8)  # of files and their states, since a file may be replaced between two runs
def _digest(files: tuple[Path, ...], states: tuple[tuple[int, int], ...]) -> str:
    read = sum(size for size, _ in states) <= READ_WHOLE
    total = hashlib.sha256()
    for file, (size, time) in zip(files, states, strict=True):
        content = f"{size} {time}"
        if read:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
        total.update(f"{file.name}\x1f{content}\x1e".encode(errors="surrogateescape"))  # names need not be UTF-8
    return total.hexdigest()[:32]
