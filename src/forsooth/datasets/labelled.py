"""Labelled images of the user, in colour, from class folders or a zip."""

import io
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image, ImageOps

from forsooth.datasets.folders import (
    Reader,
    check_pixels,
    failure,
    first_few,
    opened,
    printable,
    read_member,
    read_plain,
)
from forsooth.datasets.splitting import LEAST, SPLITS, arrange, check_classes, class_counts, share_out
from forsooth.records import Dataset, UsageError

FILE_COLUMNS = ("file", "image", "filename", "file_name", "path", "filepath", "img")
MASKS = ("mask", "masks", "trimap", "trimaps", "segmentation", "segmentations", "annotation", "annotations", "gt")
CLASS_COLUMNS = ("class", "label", "species", "scene", "category", "wnid", "name")
ROOM = 8 * 2**30  # bytes of images at most; a clear word instead of a machine that swaps


@dataclass(frozen=True)
class Listed:
    """An image file, its class, and its split where the data say one."""

    file: str
    label: str
    split: str | None = None


def images(path: str | Path, *, side: int, seed: int, limit: int | None = None, least: int = 2) -> Dataset:
    """Colour images of at least `least` classes, from a folder or a zip. Nothing is written.

    x      (n, 3, side, side) float32 in [0, 1], in the order of the file names
    y      (n,) int, classes in the order of their names
    truth  None

    Layouts: class folders; split folders (train, val, test) of class folders; or a root `index.csv` with the columns
    `file` (or `image`, `path` …), a class (`class`, `label`, `species`, `scene` …) and perhaps `split`. A folder
    called masks or the like, with the names of images elsewhere, is no class; with `least` 1 a flat folder will do. The
    square in the middle is resized to `side`; what is transparent shows mid-grey. Splits that the data name are kept
    (`arrange`), else a tenth of each class goes to val and a tenth to test. `limit` keeps so many images at most, drawn
    by seed, classes shared out evenly. Files that cannot be read are named in `facts`.
    """
    if side < 1:
        raise UsageError(f"`side` must be at least 1 pixel, got {side}")
    path = Path(path)
    with opened(path) as (readers, _, failed):
        listed, facts = listing(path, readers, failed, least=least)
        chosen = at_most(listed, limit, path, seed=seed)
        check_room(len(chosen), side)
        pixels, kept, enlarged = read_squares(chosen, readers, side=side, failed=failed)
    names = sorted({entry.label for entry in listed})
    y = torch.tensor([names.index(entry.label) for entry in kept], dtype=torch.int64)
    check_classes(y, names, f"usable images in {path}" + first_few(failed))
    splits, origin = arrange([entry.split for entry in kept], y, seed=seed, names=names)
    facts |= {
        "classes": names,
        "counts": class_counts(y, names),
        "side": side,
        "available": len(listed),
        "enlarged": enlarged,
        "splits_from": origin,
        "unreadable": list(failed),
    }
    x = torch.from_numpy(pixels).float().div_(255)
    return Dataset(f"images-{printable(path.stem)}", x, y, None, splits, facts)


def listing(
    path: Path, readers: Mapping[str, Reader], failed: list[str], *, least: int = 2
) -> tuple[list[Listed], dict[str, Any]]:
    """All images with their classes, by index.csv where there is one, else by folders; and what was passed over."""
    names = [name for name in readers if not is_hidden(name)]
    index = index_of(path)
    masks: list[str] = []
    if index is None:
        masks = masks_among(names)
        listed = without_index([name for name in names if name not in set(masks)], least=least)
    else:
        listed = there(by_index(index, path, least=least), readers, failed)
    check_classes_there(listed, path, images=len(names), least=least)
    without_class = set(names) - {entry.file for entry in listed} - set(masks)
    facts = {"hidden": len(readers) - len(names), "without_class": len(without_class)}
    if masks:
        facts["masks"] = len(masks)
    return listed, facts


def without_index(names: Sequence[str], *, least: int) -> list[Listed]:
    """Images by folders, or all in one class where one is enough and none lies in a folder."""
    listed = by_folders(names)
    if least == 1 and not listed:
        return [Listed(name, "images") for name in names]
    return listed


def masks_among(names: Sequence[str]) -> list[str]:
    """Files in folders that are called masks or the like, where files elsewhere have the same names but for the end."""
    inside = [name for name in names if any(part.lower() in MASKS for part in name.split("/")[:-1])]
    stems = {Path(name).stem for name in set(names) - set(inside)}
    return [name for name in inside if Path(name).stem in stems]


def class_names(path: str | Path, *, least: int = 2) -> list[str]:
    """The classes of the images at `path`; nothing is read but the names."""
    with opened(Path(path)) as (readers, _, failed):
        entries, _ = listing(Path(path), readers, failed, least=least)
    return sorted({entry.label for entry in entries})


def check_classes_there(listed: Sequence[Listed], path: Path, *, images: int, least: int) -> None:
    """UsageError unless the listed images are of so many classes."""
    classes = sorted({entry.label for entry in listed})
    if len(classes) < least:
        raise UsageError(
            f"`data` must hold at least two classes, each a folder of images (or index.csv with `file` and a class "
            f"column), got {', '.join(classes) or 'none'} in {path}: {images} images, {len(listed)} of them in a class"
        )


def there(listed: Sequence[Listed], readers: Mapping[str, Reader], failed: list[str]) -> list[Listed]:
    """Those of the listed images that exist, in the order of their names; the others go to `failed`."""
    failed += [f"{entry.file}: named in index.csv, but not there" for entry in listed if entry.file not in readers]
    existing: dict[str, Listed] = {}
    for entry in listed:
        if entry.file in existing:  # once in train and once in test would be a leak
            failed.append(f"{entry.file}: named twice in index.csv, and the first line counts")
        elif entry.file in readers:
            existing[entry.file] = entry
    return sorted(existing.values(), key=lambda entry: entry.file)


def is_hidden(name: str) -> bool:
    """Whether a file is one that operating systems put beside the images."""
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def index_of(path: Path) -> pd.DataFrame | None:
    """The table index.csv at the root of a folder or zip, all text, with a column `file`; None where there is none."""
    content = index_bytes(path)
    if content is None:
        return None
    try:
        index = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False, index_col=False)
    except ValueError as error:  # all of pandas' parser errors are of this kind
        raise UsageError(f"`data` has an index.csv that is not a table, in {path}: {error}") from error
    column = next((name for name in FILE_COLUMNS if name in index.columns), None)
    if column is None:
        raise UsageError(
            f"`data` must have a column `file` in index.csv (or {', '.join(FILE_COLUMNS[1:])}), "
            f"got {', '.join(index.columns)} in {path}: rename it, or take index.csv away"
        )
    return index.rename(columns={column: "file"})


def index_bytes(path: Path) -> bytes | None:
    """What is in the index.csv at the root of a folder or zip; None where there is none."""
    try:
        if path.is_dir():
            return _index_in_folder(path)
        return _index_in_zip(path)
    except ValueError as error:
        raise UsageError(f"`data` has an index.csv that cannot be read, in {path}: {error}") from error


def _index_in_folder(path: Path) -> bytes | None:
    file = path / "index.csv"
    if not file.is_file():
        return None
    return read_plain(file)


def _index_in_zip(path: Path) -> bytes | None:
    if not path.is_file() or not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        if "index.csv" not in archive.namelist():
            return None
        return read_member(archive, archive.getinfo("index.csv"))


def by_index(index: pd.DataFrame, path: Path, *, least: int = 2) -> list[Listed]:
    """The images that index.csv names, with their classes and splits; all in one class where one is enough."""
    column = next((name for name in CLASS_COLUMNS if name in index.columns), None)
    if column is None and least == 1:
        return [
            Listed(file, "images", split) for file, split in zip(index["file"], splits_in(index, path), strict=True)
        ]
    if column is None:
        raise UsageError(
            f"`data` must have a class column in index.csv ({', '.join(CLASS_COLUMNS)}), "
            f"got {', '.join(index.columns)} in {path}"
        )
    rows = zip(index["file"], index[column], splits_in(index, path), strict=True)
    return [Listed(file, label, split) for file, label, split in rows if label]


def splits_in(index: pd.DataFrame, path: Path) -> list[str] | list[None]:
    """(n,) the split that index.csv names for each row; None for all where it has no such column."""
    if "split" not in index.columns:
        return [None] * len(index)
    names = index["split"].str.lower()
    unknown = sorted(set(names) - set(SPLITS))
    if unknown:
        raise UsageError(f"`data` must name the splits train, val and test in index.csv, got {unknown[0]!r} in {path}")
    return [SPLITS[name] for name in names]


def by_folders(names: Sequence[str]) -> list[Listed]:
    """Class = the first folder, below split folders where all first folders are such; images in no folder are left."""
    depth = _wrapped([name.split("/") for name in names])
    parts = {name: name.split("/")[depth:] for name in names}
    inside = {name: below for name, below in parts.items() if len(below) > 1}
    if _in_split_folders(inside.values()):
        return [Listed(name, below[1], SPLITS[below[0].lower()]) for name, below in inside.items()]
    return [Listed(name, below[0]) for name, below in inside.items()]


def _in_split_folders(paths: Collection[Sequence[str]]) -> bool:
    """Whether every image lies in a class folder of a split folder."""
    return len(paths) > 0 and all(path[0].lower() in SPLITS and len(path) > 2 for path in paths)


def _wrapped(paths: Sequence[Sequence[str]]) -> int:
    """How many folders wrap all the others, as a zip often has one."""
    depth = 0
    while paths and all(len(path) > depth + 2 for path in paths):
        if len({path[depth] for path in paths}) > 1:
            break
        depth += 1
    return depth


def at_most(listed: Sequence[Listed], limit: int | None, path: Path, *, seed: int) -> list[Listed]:
    """`limit` of the listed images, drawn by seed and shared out over splits by their size and over classes evenly."""
    if limit is None or limit >= len(listed):
        return list(listed)
    names = sorted({entry.label for entry in listed})
    if limit < LEAST * len(names):
        raise UsageError(f"`limit` must be at least {LEAST * len(names)} ({LEAST} a class in {path}), got {limit}")
    y = torch.tensor([names.index(entry.label) for entry in listed])
    strata = [entry.split or "" for entry in listed]
    return [listed[row] for row in share_out(y, strata, limit=limit, seed=seed)]


def check_room(count: int, side: int) -> None:
    """UsageError if `count` colour images of `side` would not fit."""
    if count * 3 * side**2 * 4 > ROOM:
        raise UsageError(
            f"`limit` must be at most {ROOM // (12 * side**2):,} images of {side} x {side} px, got {count:,}, "
            f"which take {count * 12 * side**2 / 2**30:.0f} GiB"
        )


def read_squares(
    chosen: Sequence[Listed], readers: Mapping[str, Reader], *, side: int, failed: list[str]
) -> tuple[np.ndarray, list[Listed], int]:
    """(k, 3, side, side) uint8 of those that can be read, who they are, and how many had to be enlarged."""
    pixels = np.empty((len(chosen), 3, side, side), dtype=np.uint8)
    kept: list[Listed] = []
    enlarged = 0
    for entry in chosen:
        try:
            pixels[len(kept)], shorter = colour_square(readers[entry.file](), side=side)
        except Exception as error:  # a damaged image can raise anything in its decoder; it is named, never dropped
            failed.append(failure(entry.file, error))
            continue
        kept.append(entry)
        enlarged += shorter < side
    return pixels[: len(kept)], kept, enlarged


def colour_square(data: bytes, *, side: int) -> tuple[np.ndarray, int]:
    """(3, side, side) uint8: the middle of the image in the file `data`; and its shorter side as it was decoded."""
    with Image.open(io.BytesIO(data)) as image:
        image.draft("RGB", (2 * side, 2 * side))  # lets a large JPEG decode small; no effect on other formats
        check_pixels(image)
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
        ground = Image.new("RGBA", solid.size, (128, 128, 128, 255))
        return Image.alpha_composite(ground, solid).convert("RGB")
    return image.convert("RGB")
