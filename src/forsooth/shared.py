"""Datasets made once for all processes of a run: the first to ask leaves them in a folder, and all map them from there.

Of a mapped dataset only those images are in memory that somebody reads, once for all processes. One is made at a time,
so that many processes that begin together do not make many.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from forsooth.records import Dataset

try:
    import fcntl
except ImportError:  # not on Windows, where every process makes its own
    fcntl = None  # type: ignore[assignment]

FOLDER = "FORSOOTH_SHARED"  # tells the processes of a run where the folder is


@contextmanager
def lent(folder: Path) -> Iterator[None]:
    """Processes begun inside share datasets in this folder, which is gone in the end."""
    if fcntl is None or FOLDER in os.environ:
        yield
        return
    os.environ[FOLDER] = str(folder.resolve())
    try:
        yield
    finally:
        del os.environ[FOLDER]
        shutil.rmtree(folder, ignore_errors=True)  # it is made by the first dataset


def once(name: str, make: Callable[[], Dataset]) -> Dataset:
    """The dataset of this name: mapped where it is there, else made. Outside of a run everybody makes his own."""
    if FOLDER not in os.environ:
        return make()
    folder = Path(os.environ[FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / name
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # given back with the file, also by a process that dies
        if not place.is_dir():
            _write(make(), place)
    return _mapped(place)


def _write(dataset: Dataset, place: Path) -> None:
    """Leave the dataset in a folder that is there as a whole or not at all."""
    beside = place.with_suffix(".unfinished")
    shutil.rmtree(beside, ignore_errors=True)  # of a process that died here
    beside.mkdir()
    tensors = {"x": dataset.x, "y": dataset.y}
    tensors |= {f"split {name}": rows for name, rows in dataset.splits.items()}
    for name in ("truth", "strata"):
        if getattr(dataset, name) is not None:
            tensors[name] = getattr(dataset, name)
    written = {name: _write_tensor(tensor, beside / name) for name, tensor in tensors.items()}
    about = {"name": dataset.name, "facts": dataset.facts, "tensors": written}
    (beside / "about.json").write_text(json.dumps(about))
    beside.rename(place)


def _write_tensor(tensor: Tensor, file: Path) -> dict[str, Any]:
    """Leave a tensor in a file; one whose rows are all the same one leaves that row."""
    same = tensor.ndim > 1 and len(tensor) > 1 and tensor.stride(0) == 0
    kept = tensor[:1] if same else tensor
    with file.open("wb") as out:
        for part in kept.split(4096):
            out.write(part.contiguous().numpy().tobytes())
    return {"shape": list(tensor.shape), "kept": list(kept.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}


def _mapped(place: Path) -> Dataset:
    about = json.loads((place / "about.json").read_text())
    tensors = {name: _map_tensor(place / name, **said) for name, said in about["tensors"].items()}
    splits = {name.removeprefix("split "): rows for name, rows in tensors.items() if name.startswith("split ")}
    rest = {name: tensors.get(name) for name in ("truth", "strata")}
    return Dataset(about["name"], tensors["x"], tensors["y"], rest["truth"], splits, about["facts"], rest["strata"])


def _map_tensor(file: Path, *, shape: list[int], kept: list[int], dtype: str) -> Tensor:
    count = 1
    for size in kept:
        count *= size
    if not count:
        return torch.empty(shape, dtype=getattr(torch, dtype))
    flat = torch.from_file(str(file), shared=False, size=count, dtype=getattr(torch, dtype))
    return flat.view(kept).expand(shape)
