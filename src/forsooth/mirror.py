"""A folder that looks like another: folders are real and files are links, so that what is deleted there is not lost.

To write into a file of it still reaches the file itself.
"""

import os
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MOST = 2_000  # files and folders of one mirror; a folder that does not fit is left out whole
BARREN = ("__pycache__", "node_modules", "forsooth-runs")  # folders that no method needs
SCRATCH = "forsooth-method-"  # begins the names of temporary folders in which mirrors lie

State = tuple[int, int] | None  # of a folder: changes when something in it comes, goes or is renamed


@dataclass(frozen=True)
class Mirror:
    """A mirror that was made.

    here, there  the folder, and what looks like it
    states       of all folders of both, as they were then
    too_large    folders that were left out for their size
    """

    here: Path
    there: Path
    states: dict[Path, State]
    too_large: list[str]

    def shows(self, here: Path) -> bool:
        """Whether it is one of that folder, and all in both is as it was."""
        return here == self.here and all(_state(folder) == state for folder, state in self.states.items())


def mirrored(here: Path, there: Path) -> Mirror:
    """Let an empty folder `there` look like `here`, what lies highest first.

    Hidden folders, environments of Python and results of runs are left out without a word.
    """
    too_large: list[str] = []
    sources: dict[Path, State] = {}
    seen: set[State] = set()
    copies: list[Path] = []
    room = MOST
    waiting = deque([(here, there)])
    while waiting:
        folder, copy = waiting.popleft()
        state = _state(folder)
        if state in seen:  # a link may lead back up
            continue
        seen.add(state)
        sources[folder] = state
        entries = _entries(folder, room + 1)
        if len(entries) > room:
            too_large.append(str(folder))
            continue
        room -= len(entries)
        copies.append(copy)
        waiting += _filled(copy, entries)
    return Mirror(here, there, {**sources, **{copy: _state(copy) for copy in copies}}, too_large)


def _filled(copy: Path, entries: list[os.DirEntry[str]]) -> list[tuple[Path, Path]]:
    """Make a folder with links to files; the folders among the entries come back, each with its place."""
    copy.mkdir(exist_ok=True)
    folders = []
    for entry in entries:
        if not entry.is_dir():
            (copy / entry.name).symlink_to(entry.path)
        elif _is_wanted(Path(entry.path)):
            folders.append((Path(entry.path), copy / entry.name))
    return folders


def _entries(folder: Path, most: int) -> list[os.DirEntry[str]]:
    """So many of what lies in a folder; nothing where it is gone or cannot be read."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(islice(entries, most), key=lambda entry: entry.name)
    return []


def _is_wanted(folder: Path) -> bool:
    """Whether a method may need it: it is not hidden, and neither results of runs nor an environment of Python."""
    if folder.name.startswith((".", SCRATCH)) or folder.name in BARREN:
        return False
    store = folder if folder.name == "store" else folder / "store"
    with suppress(OSError):
        return not ((folder / "run.json").exists() or (store / "cells").exists() or (folder / "pyvenv.cfg").exists())
    return False  # it cannot be read


def _state(folder: Path) -> State:
    with suppress(OSError):
        about = folder.stat()
        return about.st_ino, about.st_ctime_ns
    return None
