"""Objects of Pascal VOC 2012 [everingham2010pascal], cropped by their bounding boxes [anonymous2023evaluation]."""

import io
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor

from forsooth.datasets.folders import check_pixels, failure, read_member, read_plain
from forsooth.datasets.labelled import check_room, rgb
from forsooth.datasets.splitting import HELD, LEAST, class_counts, share_out
from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator

NAMES = (
    "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable", "dog",
    "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip
MEAN = (0.485, 0.456, 0.406)  # of ImageNet
STD = (0.229, 0.224, 0.225)
ZIP = "voc2012_seg_224px.zip"
LEAST_SIDE = 16  # pixels of the photograph as it lies there; what is smaller is a smear
DIFFICULT = "difficult"  # reasons to leave an object out
OTHER_CLASS = "unknown class"
NARROW = f"narrower than {LEAST_SIDE} px"
REASONS = (DIFFICULT, OTHER_CLASS, NARROW)


@dataclass(frozen=True)
class Box:
    """An object: the name of its photograph, its class, its corners in pixels from 0, and whose split it is in."""

    photo: str
    label: int
    corners: tuple[float, float, float, float]  # left, top, right, bottom
    split: str


@dataclass(frozen=True)
class Seen:
    """An object as the annotations have it, before any choice."""

    photo: str
    name: str
    corners: tuple[float, float, float, float]
    difficult: bool
    split: str  # train or val of VOC


def crops(
    path: str | Path, *, seed: int, side: int = 128, limit: int | None = 3000, dtype: torch.dtype = torch.float32
) -> Dataset:
    """Objects of the 20 classes, each stretched to a square, from the reduced zip, a folder with it, or VOCdevkit.

    x      (n, 3, side, side) of `dtype`, RGB in [0, 1] minus `facts["mean"]`, divided by `facts["std"]`
    y      (n,) int, 0 aeroplane to 19 tvmonitor
    truth  None

    [anonymous2023evaluation], appendix I: "we cropped objects using their bounding boxes"; the size and the handling of
    the shape are not said there: we stretch. Objects marked difficult and boxes narrower than 16 px are left out and
    counted in `facts`; truncated objects stay. VOC's train gives train, and val from a tenth of its photographs (so
    that no photograph is in both); VOC's val gives test. `limit` (None: all) shares the classes out evenly: with 3,000
    crops of 128 px x takes 0.6 GB; of 224 px, 1.8 GB in float32 and 0.9 GB in float16.
    """
    if side < 8:
        raise UsageError(f"`side` must be at least 8 pixels, got {side}")
    if dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise UsageError(f"`dtype` must be a floating-point type, got {dtype}")
    with annotated(Path(path)) as (seen, read, layout):
        boxes, left_out = usable(seen, seed=seed)
        chosen = at_most(boxes, limit, path, seed=seed)
        check_room(len(chosen), side)
        pixels, kept, unreadable = cut(chosen, read, side=side)
    y = torch.tensor([box.label for box in kept], dtype=torch.int64)
    splits = {name: rows_of(kept, name) for name in ("train", "val", "test")}
    check(y, splits, path)
    facts = {
        "classes": list(NAMES),
        "counts": class_counts(y, NAMES),
        "mean": list(MEAN),
        "std": list(STD),
        "side": side,
        "layout": layout,
        "available": len(boxes),
        "left_out": left_out,
        "unreadable": unreadable,
    }
    return Dataset("voc2012-crops", normalised(pixels, dtype), y, None, splits, facts)


def rows_of(boxes: list[Box], split: str) -> Tensor:
    """(k,) the places of the boxes of a split."""
    return torch.tensor([k for k, box in enumerate(boxes) if box.split == split], dtype=torch.int64)


@contextmanager
def annotated(path: Path) -> Iterator[tuple[list[Seen], Callable[[str], bytes], str]]:
    """All objects, a reader of photographs by name, and which layout it is."""
    reduced = path
    if (path / ZIP).is_file():
        reduced = path / ZIP
    tree = find_tree(path)
    if reduced.is_file() and zipfile.is_zipfile(reduced):
        with zipfile.ZipFile(reduced) as archive:
            seen = archive_objects(archive, reduced)
            yield seen, lambda photo: read_member(archive, archive.getinfo(f"images/{photo}.jpg")), "reduced zip"
    elif tree:
        photos = tree / "JPEGImages"
        yield tree_objects(tree), lambda photo: read_plain(photos / f"{photo}.jpg"), "VOCdevkit"
    else:
        raise UsageError(
            f"`path` must be {ZIP}, a folder with it, or a folder with VOC2012 (JPEGImages, Annotations, "
            f"ImageSets/Main), but there is none of them at {path}"
        )


def is_tree(folder: Path) -> bool:
    """Whether a folder is VOC2012 itself."""
    return all((folder / part).is_dir() for part in ("JPEGImages", "Annotations", "ImageSets/Main"))


def find_tree(path: Path) -> Path | None:
    """The folder VOC2012: this one, or one at most two below it."""
    folders = (path, *sorted(path.glob("*")), *sorted(path.glob("*/*")))
    return next(filter(is_tree, folders), None)


def archive_objects(archive: zipfile.ZipFile, path: Path) -> list[Seen]:
    """Objects by the tables in the reduced zip at `path`."""
    missing = {"images.csv", "boxes.csv"} - set(archive.namelist())
    if missing:
        raise UsageError(f"`path` must hold images.csv and boxes.csv, got no {min(missing)} in {path}")
    return reduced_objects(archive.read("images.csv"), archive.read("boxes.csv"))


def reduced_objects(images: bytes, boxes: bytes) -> list[Seen]:
    """Objects by the tables of the reduced zip, whose corners are those of VOC (from 1), scaled with the photograph."""
    split = pd.read_csv(io.BytesIO(images)).set_index("image")["split"].to_dict()
    objects = pd.read_csv(io.BytesIO(boxes)).rename(columns={"class": "name"})
    seen: list[Seen] = []
    for row in objects.itertuples():
        corners = (row.xmin, row.ymin, row.xmax, row.ymax)
        seen.append(Seen(row.image, row.name, corners, bool(row.difficult), split[row.image]))
    return seen


def tree_objects(tree: Path) -> list[Seen]:
    """Objects by the XML files of the photographs in ImageSets/Main/train.txt and val.txt."""
    seen = []
    for split in ("train", "val"):
        listed = tree / f"ImageSets/Main/{split}.txt"
        if not listed.is_file():
            raise UsageError(f"`path` must hold the list of photographs {listed}, but it is not there")
        for photo in listed.read_text().split():
            file = tree / f"Annotations/{photo}.xml"
            try:
                seen += [an_object(node, photo, split) for node in ElementTree.parse(file).iterfind("object")]
            except (OSError, ValueError, TypeError, ElementTree.ParseError) as error:
                raise UsageError(f"`path` must hold VOC's annotations, but {file} cannot be read: {error}") from error
    return seen


def an_object(node: ElementTree.Element, photo: str, split: str) -> Seen:
    """One <object> of an annotation. VOC counts pixels from 1 and takes both corners in."""
    sides = ("xmin", "ymin", "xmax", "ymax")
    left, top, right, bottom = (float(node.findtext(f"bndbox/{side}", "")) for side in sides)
    name = node.findtext("name", "").strip()
    difficult = node.findtext("difficult", "0").strip() == "1"
    return Seen(photo, name, (left - 1, top - 1, right, bottom), difficult, split)


def usable(seen: list[Seen], *, seed: int) -> tuple[list[Box], dict[str, int]]:
    """The objects that can be used, in the order of the annotations, and the number of the others by reason."""
    held = held_photos(seen, seed=seed)
    boxes: list[Box] = []
    left_out = Counter(dict.fromkeys(REASONS, 0))
    for one in seen:
        reason = unusable(one)
        if reason is None:
            boxes.append(Box(one.photo, NAMES.index(one.name), one.corners, split_of(one, held)))
        else:
            left_out[reason] += 1
    return boxes, dict(left_out)


def split_of(one: Seen, held: set[str]) -> str:
    """The split of an object, where the photographs `held` are those of val."""
    if one.split == "val":
        return "test"
    if one.photo in held:
        return "val"
    return "train"


def held_photos(seen: list[Seen], *, seed: int) -> set[str]:
    """A tenth of VOC's training photographs, drawn by seed."""
    train = sorted({one.photo for one in seen if one.split == "train"})
    order = torch.randperm(len(train), generator=generator(seed, "split", "val")).tolist()
    return {train[k] for k in order[: round(HELD * len(train))]}


def unusable(one: Seen) -> str | None:
    """The reason, one of REASONS, for which an object is left out; None if it can be used."""
    left, top, right, bottom = one.corners
    if one.difficult:
        return DIFFICULT
    if one.name not in NAMES:
        return OTHER_CLASS
    if min(right - left, bottom - top) < LEAST_SIDE:
        return NARROW
    return None


def at_most(boxes: list[Box], limit: int | None, path: str | Path, *, seed: int) -> list[Box]:
    """`limit` of the boxes, drawn by seed and shared out over splits by their size and over classes evenly."""
    if limit is None or limit >= len(boxes):
        return boxes
    least = LEAST * len({box.label for box in boxes})
    if limit < least:
        raise UsageError(f"`limit` must be at least {least} ({LEAST} a class in {path}), got {limit}")
    y = torch.tensor([box.label for box in boxes])
    return [boxes[row] for row in share_out(y, [box.split for box in boxes], limit=limit, seed=seed)]


def cut(boxes: list[Box], read: Callable[[str], bytes], *, side: int) -> tuple[np.ndarray, list[Box], list[str]]:
    """(k, 3, side, side) uint8 of the boxes whose photographs can be read, which they are, and the others by name."""
    pixels = np.empty((len(boxes), 3, side, side), dtype=np.uint8)
    kept: list[Box] = []
    unreadable: dict[str, str] = {}

    @lru_cache(maxsize=1)  # objects of one photograph follow one another
    def opened(photo: str) -> Image.Image:
        with Image.open(io.BytesIO(read(photo))) as image:
            check_pixels(image)
            return rgb(image)

    for box in boxes:
        try:
            pixels[len(kept)] = square(opened(box.photo), box.corners, side=side)
        except Exception as error:  # a damaged image can raise anything in its decoder; it is named, never dropped
            unreadable[box.photo] = failure(box.photo, error)
            continue
        kept.append(box)
    return pixels[: len(kept)], kept, list(unreadable.values())


def square(photo: Image.Image, corners: tuple[float, float, float, float], *, side: int) -> np.ndarray:
    """(3, side, side) uint8: what is inside the corners, stretched."""
    left, top, right, bottom = map(round, corners)
    inside = (max(left, 0), max(top, 0), min(right, photo.width), min(bottom, photo.height))
    # cropped first: resize with a box would let pixels from outside of it bleed in
    crop = photo.crop(inside).resize((side, side), Image.Resampling.BICUBIC)
    return np.asarray(crop).transpose(2, 0, 1)


def check(y: Tensor, splits: dict[str, Tensor], path: str | Path) -> None:
    """UsageError unless there are two classes to learn and something to test."""
    if len(y[splits["train"]].unique()) < 2 or not len(splits["test"]):
        counts = ", ".join(f"{len(rows)} {name}" for name, rows in splits.items())
        raise UsageError(
            f"`path` must hold objects of two classes in train and some in val, got {counts} crops in {path}"
        )


def normalised(pixels: np.ndarray, dtype: torch.dtype) -> Tensor:
    """(n, 3, h, w) uint8 to the same of `dtype`, in slices, so that no second float copy exists."""
    x = torch.empty(pixels.shape, dtype=dtype)
    mean, std = (torch.tensor(values)[:, None, None] for values in (MEAN, STD))
    for part, raw in zip(x.split(256), torch.from_numpy(pixels).split(256), strict=True):
        part.copy_(raw.float().div_(255).sub_(mean).div_(std))
    return x
