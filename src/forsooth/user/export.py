"""A suite's data on disk, for whoever makes maps elsewhere: samples with their truth, written and read again."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from forsooth import names, seeds, store
from forsooth.adapters import inputs
from forsooth.records import Choice, Dataset, Names, Suite, UsageError
from forsooth.suites import choose

FILE = "samples.npz"
ABOUT = "samples.json"


@dataclass(frozen=True)
class Samples:
    """What maps are scored against.

    ids    (n,) by which maps find their sample: its number in its dataset, or the name of its file
    truth  (n, *map) bool
    x      (n, *shape); None where the inputs are unknown
    y      (n,) int, the classes; None where they are unknown
    """

    name: str
    ids: Names
    truth: Tensor
    x: Tensor | None = None
    y: Tensor | None = None

    def at(self, rows: Tensor) -> "Samples":
        """Those at these places (k,)."""
        x = None if self.x is None else self.x[rows]
        y = None if self.y is None else self.y[rows]
        return Samples(self.name, tuple(self.ids[row] for row in rows.tolist()), self.truth[rows], x, y)


def export(
    suite: Suite, settings: Any, choice: Choice, folder: Path, *, samples: int | None, split: str = "test"
) -> list[Path]:
    """Write samples of every chosen dataset with a truth, one folder for each; says where they are.

    samples  of each dataset at most, drawn evenly over its classes; None: all
    """
    if suite.datasets is None:
        raise UsageError(f"`suite` must have data whose truth is known, got {suite.name!r}, where nobody knows it")
    folder = store.free_folder(folder, (ABOUT,), "export")
    written = []
    for name, dataset in suite.datasets(settings, choice):
        rows = rows_of(dataset, samples, split=split, seed=choice.seed)
        place = folder / re.sub(r"[^\w.-]+", "_", name)
        write(place, dataset, rows)
        note(place, {"suite": suite.name, "dataset": name, "split": split, "seed": choice.seed})
        written.append(place)
    note(folder, [place.name for place in written])
    return written


def note(folder: Path, about: Any) -> None:
    store.write_atomically(folder / ABOUT, json.dumps(about, indent=1).encode())


def rows_of(dataset: Dataset, samples: int | None, *, split: str, seed: int) -> Tensor:
    """The rows (k,) of a split that are written, in their order in the dataset."""
    if split not in dataset.splits:
        raise names.unknown(split, dataset.splits, argument="split")
    if samples is not None and samples < 1:
        raise UsageError(f"`samples` must be at least 1, got {samples}")
    rows = dataset.splits[split]
    chosen = choose.rows_of(dataset, rows, samples, seed=seeds.derive(seed, "export"), role="exported")
    return chosen.sort().values


def write(folder: Path, dataset: Dataset, rows: Tensor) -> None:
    """samples.npz with x, y, truth and the number of each sample; images also as pictures to look at."""
    assert dataset.truth is not None
    x = dataset.x[rows].numpy()
    truth = dataset.truth[rows].numpy()
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / FILE, x=x, y=dataset.y[rows].numpy(), truth=truth, sample=rows.numpy())
    if x.ndim == 4:
        draw(folder / "images", as_bytes(x), rows)
        draw(folder / "truth", truth[:, None].astype(np.uint8) * 255, rows)


def as_bytes(x: NDArray[Any]) -> NDArray[np.uint8]:
    """Images (n, c, h, w) from the least to the largest value of all of them, as 0 to 255."""
    least = x.min()
    span = max(x.max() - least, np.finfo(np.float32).tiny)
    return np.asarray(np.rint((x - least) / span * 255), dtype=np.uint8)


def draw(folder: Path, images: NDArray[np.uint8], rows: Tensor) -> None:
    """One picture for each image (n, c, h, w), named by its number."""
    folder.mkdir(exist_ok=True)
    for image, row in zip(images, rows.tolist(), strict=True):
        layers = image.transpose(1, 2, 0)
        if layers.shape[2] != 3:
            layers = layers.mean(2).astype(np.uint8)
        Image.fromarray(layers).save(folder / f"{row}.png")


def read_export(folder: str | Path) -> Samples:
    """The samples in a folder that `export_data` wrote: their ids, truth, inputs `x` and classes `y`."""
    file = Path(folder) / FILE
    arrays = inputs.arrays_in(file, "truth")
    missing = {"x", "truth", "sample"} - set(arrays)
    if missing:
        raise UsageError(
            f"`truth` must be a folder of `forsooth export-data`; {file} lacks {', '.join(sorted(missing))}"
        )
    ids = tuple(map(str, arrays["sample"].tolist()))
    truth = torch.from_numpy(arrays["truth"])
    y = None
    if "y" in arrays:
        y = torch.from_numpy(arrays["y"])
    return Samples(Path(folder).resolve().name, ids, truth, torch.from_numpy(arrays["x"]), y)
