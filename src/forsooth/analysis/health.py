"""Is everything here that a run needs? Versions, devices, memory, and stores whose cells are what was written."""

import importlib.metadata
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from forsooth import __version__
from forsooth.records import UsageError
from forsooth.store import DamagedCell, Store
from forsooth.strangers import is_there
from forsooth.wording import html_piece, plural

PACKAGES = ("torch", "numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "scikit-image", "POT")
OPTIONAL = ("captum", "distributed")
GIB = 2**30
LITTLE_MEMORY = 2.0  # GiB free, below which demo and quick runs may be killed
LITTLE_DISK = 1.0


@dataclass(frozen=True)
class Health:
    """What the machine has.

    table     what, value
    problems  what is not well, in sentences with the cure; none where all is
    """

    table: pd.DataFrame
    problems: tuple[str, ...]

    @property
    def well(self) -> bool:
        return not self.problems

    @property
    def words(self) -> str:
        return "\n".join(self.problems) or "All is well."

    def __str__(self) -> str:
        return f"{self.table.to_string(index=False)}\n\n{self.words}"

    def _repr_html_(self) -> str:
        return html_piece("doctor", self.table, self.words)


def doctor(*runs: str | Path) -> Health:
    """Versions, devices, memory and disk of this machine, and whether the cells of these runs are intact.

    runs  folders of runs, each with its `store`; nothing there is changed
    """
    facts = [*_versions(), *_machine()]
    problems = [*_missing(), *_scarce()]
    for folder in runs:
        cells, damaged = _cells(Path(folder))
        facts.append((f"store of {folder}", f"{plural(cells, 'cell')}, {len(damaged)} damaged"))
        problems += [f"{reason}: the same run command makes it again" for reason in damaged]
    return Health(pd.DataFrame(facts, columns=["what", "value"]), tuple(problems))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _versions() -> Iterator[tuple[str, str]]:
    yield "forsooth", __version__
    yield "python", platform.python_version()
    for package in PACKAGES:
        yield package, _version(package) or "missing"
    for package in OPTIONAL:
        yield package, _version(package) or "not installed (optional)"


def _missing() -> list[str]:
    missing = [package for package in PACKAGES if not _version(package)]
    return [f"{package} is missing: `pip install {package}`" for package in missing]


def _machine() -> Iterator[tuple[str, str]]:
    yield "system", f"{platform.system()} {platform.machine()}"
    yield "processors", str(os.cpu_count())
    yield "threads of torch", str(torch.get_num_threads())
    yield "memory free", _gib(free_memory())
    yield "disk free here", _gib(shutil.disk_usage(Path.cwd()).free / GIB)
    yield "accelerator", _accelerator()


def _accelerator() -> str:
    if not torch.cuda.is_available():
        return "none: runs use the processor"
    free, total = torch.cuda.mem_get_info()
    return f"{torch.cuda.get_device_name()}, {free / GIB:.1f} of {total / GIB:.1f} GiB free"


def _gib(size: float | None) -> str:
    if size is None:
        return "unknown"
    return f"{size:.1f} GiB"


def free_memory() -> float | None:
    """GiB that programs can still have; None where the system does not say."""
    file = Path("/proc/meminfo")
    if not file.is_file():
        return None
    lines = dict(line.split(":") for line in file.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024 / GIB


def _scarce() -> Iterator[str]:
    memory = free_memory()
    if memory is not None and memory < LITTLE_MEMORY:
        yield f"only {memory:.1f} GiB of memory are free: use fewer `--workers`"
    disk = shutil.disk_usage(Path.cwd()).free / GIB
    if disk < LITTLE_DISK:
        yield f"only {disk:.1f} GiB of disk are free here: name another place with `--out`"


def _cells(folder: Path) -> tuple[int, list[str]]:
    """How many cells a run's store has, and what is wrong with the damaged ones."""
    root = folder / "store"
    if not is_there(root):
        raise UsageError(f"`runs` must be folders of runs, got {folder} without store")
    damaged = []
    keys = sorted(path.name for path in root.glob("cells/*/*"))
    for key in keys:
        try:
            Store(root).verify(key)
        except DamagedCell as error:
            damaged.append(str(error))
    return len(keys), damaged
