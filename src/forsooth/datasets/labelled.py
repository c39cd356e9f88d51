"""Labelled images of the user, in colour, from class folders or a zip; and the splits that all read data share."""

import io
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image, ImageOps
from torch import Tensor

from forsooth.datasets.folders import opened
from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator, in_turns

SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}
CLASS_COLUMNS = ("class", "label", "species", "scene", "category", "wnid", "name")
HELD = 0.1  # share of each class that goes to val and to test where nobody says
LEAST = 3  # images or rows that a class needs: one for each split
ROOM = 8 * 2**30  # bytes of images at most; a clear word instead of a machine that swaps


@dataclass(frozen=True)
class Listed:
    """An image file, its class, and its split where the data say one."""

    file: str
    label: str
    split: str | None = None


def images(path: str | Path, *, side: int, seed: int, limit: int | None = None) -> Dataset:
    """Colour images of at least two classes, from a folder or a zip. Nothing is written.

    x      (n, 3, side, side) float32 in [0, 1], in the order of the file names
    y      (n,) int, classes in the order of their names
    truth  None

    Layouts: class folders; split folders (train, val, test) of class folders; or a root `index.csv` with the columns
    `file`, a class (`class`, `label`, `species`, `scene` …) and perhaps `split`. The square in the middle is resized to
    `side`; what is transparent shows mid-grey. Splits that the data name are kept (`arrange`), else a tenth of each
    class goes to val and a tenth to test. `limit` keeps so many images at most, drawn by seed, classes shared out
    evenly. Files that cannot be read are named in `facts`.
    """
    if side < 1:
        raise UsageError(f"`side` must be at least 1 pixel, got {side}")
    path = Path(path)
    with opened(path) as (readers, _, failed):
        listed, facts = listing(path, readers, failed)
        chosen = at_most(listed, limit, path, seed=seed)
        check_room(len(chosen), side)
        pixels, kept, enlarged = read_squares(chosen, readers, side=side, failed=failed)
    names = sorted({entry.label for entry in listed})
    y = torch.tensor([names.index(entry.label) for entry in kept], dtype=torch.int64)
    check_classes(y, names, f"usable images in {path}" + "".join(f"\n  {line}" for line in failed[:5]))
    splits, origin = arrange([entry.split for entry in kept], y, seed=seed, names=names)
    facts |= {
        "classes": names,
        "counts": {name: int((y == k).sum()) for k, name in enumerate(names)},
        "side": side,
        "available": len(listed),
        "enlarged": enlarged,
        "splits_from": origin,
        "unreadable": list(failed),
    }
    return Dataset(f"images-{path.stem}", torch.from_numpy(pixels).float().div_(255), y, None, splits, facts)


def listing(
    path: Path, readers: Mapping[str, Callable[[], bytes]], failed: list[str]
) -> tuple[list[Listed], dict[str, Any]]:
    """All images with their classes, by index.csv where there is one, else by folders; and what was passed over."""
    names = [name for name in readers if not any(part[:1] == "." or part == "__MACOSX" for part in name.split("/"))]
    index = index_of(path)
    if index is None:
        listed = by_folders(names)
    else:
        listed = by_index(index, path)
        failed += [f"{entry.file}: named in index.csv, but not there" for entry in listed if entry.file not in readers]
        listed = sorted((e for e in listed if e.file in readers), key=lambda entry: entry.file)
    if len({entry.label for entry in listed}) < 2:
        came = ", ".join(sorted({entry.label for entry in listed})) or "none"
        raise UsageError(
            f"`data` must hold at least two classes, each a folder of images (or index.csv with `file` and a class "
            f"column), got {came} in {path}: {len(names)} images, {len(listed)} of them in a class"
        )
    passed = {"hidden": len(readers) - len(names), "without_class": len(set(names) - {e.file for e in listed})}
    return listed, passed


def index_of(path: Path) -> pd.DataFrame | None:
    """The table index.csv at the root of a folder or zip, all text, if it is there and has a column `file`."""
    if path.is_dir():
        file = path / "index.csv"
        content = file.read_bytes() if file.is_file() else None
    else:
        with zipfile.ZipFile(path) as archive:
            content = archive.read("index.csv") if "index.csv" in archive.namelist() else None
    if content is None:
        return None
    try:
        index = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False, index_col=False)
    except ValueError as error:  # all of pandas' parser errors are of this kind
        raise UsageError(f"`data` has an index.csv that is not a table, in {path}: {error}") from error
    return index if "file" in index.columns else None


def by_index(index: pd.DataFrame, path: Path) -> list[Listed]:
    """The images that index.csv names, with their classes and splits."""
    column = next((name for name in CLASS_COLUMNS if name in index.columns), None)
    if column is None:
        raise UsageError(
            f"`data` must have a class column in index.csv ({', '.join(CLASS_COLUMNS)}), "
            f"got {', '.join(index.columns)} in {path}"
        )
    splits = index["split"].str.lower() if "split" in index.columns else [None] * len(index)
    unknown = sorted(set(splits) - set(SPLITS) - {None})
    if unknown:
        raise UsageError(f"`data` must name the splits train, val and test in index.csv, got {unknown[0]!r} in {path}")
    rows = zip(index["file"], index[column], splits, strict=True)
    return [Listed(file, label, SPLITS[split] if split else None) for file, label, split in rows if label]


def by_folders(names: Sequence[str]) -> list[Listed]:
    """Class = the first folder, below split folders where all first folders are such; images in no folder are left."""
    parts = [name.split("/") for name in names]
    depth = 0
    while parts and all(len(p) > depth + 2 for p in parts) and len({p[depth] for p in parts}) == 1:
        depth += 1  # a zip often wraps all in one folder
    inside = [p for p in parts if len(p) > depth + 1]
    if inside and all(p[depth].lower() in SPLITS and len(p) > depth + 2 for p in inside):
        return [Listed("/".join(p), p[depth + 1], SPLITS[p[depth].lower()]) for p in inside]
    return [Listed("/".join(p), p[depth]) for p in inside]


def at_most(listed: Sequence[Listed], limit: int | None, path: Path, *, seed: int) -> list[Listed]:
    """`limit` of the listed images, drawn by seed and shared out over splits by their size and over classes evenly."""
    if limit is None or limit >= len(listed):
        return list(listed)
    names = sorted({entry.label for entry in listed})
    if limit < LEAST * len(names):
        raise UsageError(f"`limit` must be at least {LEAST * len(names)} ({LEAST} a class in {path}), got {limit}")
    y = torch.tensor([names.index(entry.label) for entry in listed])
    return [listed[row] for row in share_out(y, [entry.split or "" for entry in listed], limit=limit, seed=seed)]


def share_out(y: Tensor, strata: Sequence[str], *, limit: int, seed: int) -> list[int]:
    """At most `limit` rows of y (n,), drawn by seed: each stratum by its share, but never less than one row a class."""
    classes, counts = len(y.unique()), Counter(strata).most_common()
    rest = [(name, max(classes, int(min(limit * n / len(y), (limit - classes) / 2)))) for name, n in counts[1:]]
    sizes = {counts[0][0]: limit - sum(size for _, size in rest), **dict(rest)}
    chosen: list[int] = []
    for name, size in sizes.items():
        rows = torch.tensor([row for row, stratum in enumerate(strata) if stratum == name])
        chosen += rows[balanced(y[rows], size, seed=seed)].tolist()
    return sorted(chosen)


def balanced(y: Tensor, count: int, *, seed: int) -> Tensor:
    """Rows (count,) of y (n,) drawn by seed, as many of every class as there are, within one; sorted."""
    return in_turns(y, generator(seed, "balanced"))[:count].sort().values


def check_room(count: int, side: int) -> None:
    """UsageError if `count` colour images of `side` would not fit."""
    if count * 3 * side**2 * 4 > ROOM:
        raise UsageError(
            f"`limit` must be at most {ROOM // (12 * side**2):,} images of {side} x {side} px, got {count:,}, "
            f"which take {count * 12 * side**2 / 2**30:.0f} GiB"
        )


def read_squares(
    chosen: Sequence[Listed], readers: Mapping[str, Callable[[], bytes]], *, side: int, failed: list[str]
) -> tuple[np.ndarray, list[Listed], int]:
    """(k, 3, side, side) uint8 of those that can be read, who they are, and how many had to be enlarged."""
    pixels = np.empty((len(chosen), 3, side, side), dtype=np.uint8)
    kept: list[Listed] = []
    enlarged = 0
    for entry in chosen:
        try:
            pixels[len(kept)], shorter = colour_square(readers[entry.file](), side=side)
        except Exception as error:  # a damaged image can raise anything in its decoder; it is named, never dropped
            failed.append(f"{entry.file}: {str(error) or type(error).__name__}")
            continue
        kept.append(entry)
        enlarged += shorter < side
    return pixels[: len(kept)], kept, enlarged


def colour_square(data: bytes, *, side: int) -> tuple[np.ndarray, int]:
    """(3, side, side) uint8: the middle of the image in the file `data`; and its shorter side as it was decoded."""
    with Image.open(io.BytesIO(data)) as image:
        image.draft("RGB", (2 * side, 2 * side))  # lets a large JPEG decode small; no effect on other formats
        colour = rgb(ImageOps.exif_transpose(image))
    shorter = min(colour.size)
    left, top = ((length - shorter) / 2 for length in colour.size)
    middle = (left, top, left + shorter, top + shorter)
    square = colour.resize((side, side), Image.Resampling.BICUBIC, box=middle)
    return np.asarray(square).transpose(2, 0, 1), shorter


def rgb(image: Image.Image) -> Image.Image:
    """The image in mode "RGB", whatever mode it came in; what is transparent becomes mid-grey."""
    if image.mode == "F":
        raise ValueError("floating-point pixels have no known white")
    if image.mode.startswith("I"):  # 16 bits; Pillow's own conversion would clip at 255
        values = np.asarray(image).astype(np.int64) >> 8
        return Image.fromarray(values.clip(0, 255).astype(np.uint8)).convert("RGB")
    if image.has_transparency_data:
        solid = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", solid.size, (128, 128, 128, 255)), solid).convert("RGB")
    return image.convert("RGB")


def check_classes(y: Tensor, names: Sequence[str], what: str) -> None:
    """UsageError unless every class has rows enough for train, val and test."""
    for name, count in zip(names, torch.bincount(y, minlength=len(names)).tolist(), strict=True):
        if count < LEAST:
            raise UsageError(f"every class must have at least {LEAST} samples, but {name!r} has {count} {what}")


def arrange(
    given: Sequence[str | None], y: Tensor, *, seed: int, names: Sequence[str]
) -> tuple[dict[str, Tensor], str]:
    """Indices of train, val and test, and where they come from.

    Named splits are kept. Without test, what is called val becomes test; without val, a tenth of each class of train
    becomes val. Without names a tenth of each class becomes test and a tenth val.
    """
    rows = {name: torch.tensor([k for k, s in enumerate(given) if s == name], dtype=torch.int64) for name in SPLITS}
    train, val, test, origin = rows["train"], rows["val"], rows["test"], "the data's own"
    if not any(given):
        train, test = hold_out(torch.arange(len(y)), y, seed=seed, name="test")
        origin = "drawn by seed"
    elif not len(test):
        val, test, origin = test, val, "the data's own, val taken as test"
    if not len(val):
        train, val = hold_out(train, y, seed=seed, name="val")
        origin += "" if not any(given) else ", val drawn from train by seed"
    splits = {"train": train, "val": val, "test": test}
    lacking = [names[k] for k in range(len(names)) if not (y[train] == k).any()]
    if lacking or not len(test):
        what = f"the class {lacking[0]!r}" if lacking else "anything"
        raise UsageError(f"`data` must hold {what} in the {'train' if lacking else 'val or test'} split")
    return splits, origin


def hold_out(rows: Tensor, y: Tensor, *, seed: int, name: str) -> tuple[Tensor, Tensor]:
    """Rows (k,) of y (n,) in two, kept and held: a tenth of each class is held, but at least one and never the last."""
    order = rows[torch.randperm(len(rows), generator=generator(seed, "split", name))]
    held = torch.zeros(len(y), dtype=torch.bool)
    for label in y[rows].unique():
        own = order[y[order] == label]
        held[own[: min(max(1, round(HELD * len(own))), len(own) - 1)]] = True
    return rows[~held[rows]].sort().values, rows[held[rows]].sort().values
