"""A page is drawn again only where what it shows has changed: a run resumed with nothing to do keeps its page."""

import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from forsooth.report.aggregate import SUMMED
from forsooth.store import write_atomically

TIMES = ("started", "seconds")  # of the last call, which may have had nothing to do
LIBRARIES = ("matplotlib", "pandas", "pillow", "jinja2")
MARK = b"\n<!-- drawn from "


def drawn_once(folders: Sequence[Path], page: Path, draw: Callable[[], object]) -> Path:
    """The page as it is, if it and its figures are what was drawn from these runs; else it is drawn."""
    source = of_runs(folders)
    if source is not None and page.is_file():
        body, _, end = page.read_bytes().rpartition(MARK)
        if end == stamp(source, body, page.parent):
            return page
    draw()
    if source is not None:
        body = page.read_bytes()
        write_atomically(page, body + MARK + stamp(source, body, page.parent))
    return page


def stamp(source: str, body: bytes, folder: Path) -> bytes:
    """What a page ends with: a sum of what it was drawn from, and one of the page itself and the figures beside it."""
    figures = [file for file in sorted((folder / "figures").rglob("*")) if file.is_file()]
    return f"{source}, is {total([body, *(file.read_bytes() for file in figures)])} -->\n".encode()


def of_runs(folders: Sequence[Path]) -> str | None:
    """A sum of all that decides a page but the times of the last call; None where a run cannot be read."""
    parts = [code()]
    for folder in folders:
        try:
            about = json.loads((folder / "run.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return None  # whoever draws the page says what is wrong with it
        if not isinstance(about, dict):
            return None
        shown = {name: value for name, value in about.items() if name not in TIMES}
        parts += [folder.resolve().name.encode(errors="replace"), json.dumps(shown, sort_keys=True).encode()]
        parts += [(folder / name).read_bytes() if (folder / name).is_file() else b"" for name in SUMMED]
    return total(parts)


@cache
def code() -> bytes:
    """A sum of this package's files, and the versions of those that draw."""
    here = Path(str(resources.files("forsooth")))
    files = sorted(path for path in here.rglob("*") if path.suffix in (".py", ".html", ".jinja", ".css", ".js", ".csv"))
    versions = [importlib.metadata.version(name).encode() for name in LIBRARIES]
    return total([*(path.read_bytes() for path in files), *versions]).encode()


def total(parts: Iterable[bytes]) -> str:
    """A sum of several contents, each with its length, so that none can pass for the end of another."""
    found = hashlib.sha256()
    for part in parts:
        found.update(f"{len(part)} ".encode() + part)
    return found.hexdigest()[:32]
