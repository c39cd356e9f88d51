"""Photographs of the user, from a folder or a zip: read, made grey, made small. Nothing is ever written."""

import hashlib
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from forsooth.records import UsageError
from forsooth.strangers import sound

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
ROOM = 1.25  # a photograph may be enlarged by this much, no more
LARGEST = 2**28  # bytes of one file after unpacking; a zip of 2 MB can hold gigabytes
PIXELS = 2**26  # of one decoded picture; a PNG of 20 kB can hold more

Reader = Callable[[], bytes]  # the bytes of one file


@dataclass(frozen=True)
class Photos:
    """Grey photographs, small enough to keep thousands in memory.

    images      (k, side, side) uint8
    unreadable  "file: reason" for each image file that could not be used
    """

    images: Tensor
    name: str
    unreadable: tuple[str, ...] = ()


def photo_side(size: int) -> int:
    """Side at which photographs are kept when crops of `size` are cut from them: room to shift, little memory."""
    return size + max(8, size // 4)


def photographs(path: str | Path, *, side: int) -> Photos:
    """All images in a folder (with the folders in it) or in a zip, in the order of their names.

    The shorter side is resized to `side`, the square in the middle is kept, and colours become grey by
    0.299 R + 0.587 G + 0.114 B; what is transparent shows mid-grey. Image files that cannot be read, or whose shorter
    side is below side / 1.25, are named in `unreadable`. UsageError if none is left.
    """
    images = []
    with opened(Path(path)) as (readers, files, failed):
        for name, read in readers.items():
            try:
                images.append(grey_square(read(), side=side))
            except Exception as error:  # a damaged image can raise anything in its decoder; it is named, never dropped
                failed.append(failure(name, error))
    if not images:
        raise UsageError(
            f"`data` must hold images ({', '.join(SUFFIXES)}), but none can be used in {path}: {files} files, "
            f"{len(readers)} of them images by name, {len(failed)} failed{first_few(failed)}"
        )
    return Photos(torch.from_numpy(np.stack(images)), printable(Path(path).name), tuple(failed))


def failure(name: str, error: Exception) -> str:
    """One line on a file that could not be used."""
    words = re.sub(r" <_io\.BytesIO.*?>", "", str(error))  # the decoder's name for the bytes of this file
    return f"{name}: {words or type(error).__name__}"


def first_few(lines: Sequence[str]) -> str:
    """Up to five lines for the end of a message, each on its own."""
    return "".join(f"\n  {line}" for line in lines[:5])


def digest(path: str | Path) -> str:
    """Hash of the names and bytes of all image files, the same for a folder and for a zip of it."""
    total = hashlib.sha256()
    with opened(Path(path)) as (readers, _, _):
        for name, read in readers.items():
            try:
                content = hashlib.sha256(read()).hexdigest()
            except Exception as error:  # as in photographs: what cannot be read is part of what the data are
                content = type(error).__name__
            total.update(f"{name}\x1f{content}\x1e".encode())
    return total.hexdigest()[:32]


@contextmanager
def opened(path: Path) -> Iterator[tuple[dict[str, Reader], int, list[str]]]:
    """Readers of the image files by name, sorted; the number of all files; and the folders that cannot be listed."""
    closed: list[str] = []
    with ExitStack() as stack:
        if path.is_dir():
            readers = _in_folder(path, closed)
        elif path.is_file() and zipfile.is_zipfile(path):
            readers = _in_archive(stack.enter_context(_archive(path)))
        else:
            there = "nothing"
            if path.exists():
                there = "neither of them"
            raise UsageError(f"`data` must be a folder or readable zip of images, but there is {there} at {path}")
        images = {name: readers[name] for name in sorted(readers) if name.lower().endswith(SUFFIXES)}
        yield images, len(readers), closed


def _in_folder(path: Path, closed: list[str]) -> dict[str, Reader]:
    """Readers of all files in a folder and the folders in it; those that cannot be listed go to `closed`."""
    readers: dict[str, Reader] = {}
    for here, _, names in os.walk(path, onerror=lambda e: closed.append(f"{printable(e.filename)}: {e.strerror}")):
        for name in names:
            file = Path(here) / name
            readers[printable(file.relative_to(path).as_posix())] = partial(read_plain, file)
    return readers


def _in_archive(archive: zipfile.ZipFile) -> dict[str, Reader]:
    """Readers of all files in a zip."""
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    return {entry.filename: partial(read_member, archive, entry) for entry in entries}


def read_plain(file: Path) -> bytes:
    """The bytes of a file; ValueError where they are too many, or would never end, as those of a pipe."""
    if file.exists() and not file.is_file():
        raise ValueError("not a plain file")
    check_size(file.stat().st_size)
    return file.read_bytes()


def read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """The bytes of a file in a zip; ValueError where they are too many. zipfile reads no more than the entry says."""
    check_size(entry.file_size)
    with sound():
        return archive.read(entry)


def check_size(size: int) -> None:
    if size > LARGEST:
        raise ValueError(f"{size / 2**20:.0f} MiB unpacked, at most {LARGEST // 2**20} MiB are read")


def check_pixels(image: Image.Image) -> None:
    """ValueError if the image, not yet decoded, has too many pixels."""
    if image.width * image.height > PIXELS:
        raise ValueError(
            f"{image.width} x {image.height} px are too many, at most {PIXELS // 10**6} million are decoded"
        )


def printable(name: str) -> str:
    """The name of a file with a backslash for each byte that is not UTF-8: such names can be neither hashed nor told.

    >>> printable("naïve.png"), printable("na\\udcefve.png")
    ('naïve.png', 'na\\\\xefve.png')
    """
    return os.fsencode(name).decode(errors="backslashreplace")


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, UnicodeDecodeError) as error:  # a name that says it is UTF-8 and is not
        raise UsageError(
            f"`data` must be a folder or readable zip of images, but {path} is damaged: {error}"
        ) from error


def grey_square(data: bytes, *, side: int) -> np.ndarray:
    """(side, side) uint8: the middle of the image in the file `data`."""
    with Image.open(io.BytesIO(data)) as image:
        image.draft("L", (2 * side, 2 * side))  # lets a large JPEG decode small; no effect on other formats
        check_pixels(image)
        if min(image.size) * ROOM < side:
            raise ValueError(f"{image.width} x {image.height} px is too small, {side} px were asked")
        grey = _grey(image)
    shorter = min(grey.size)
    left, top = ((length - shorter) / 2 for length in grey.size)
    middle = (left, top, left + shorter, top + shorter)
    return np.asarray(grey.resize((side, side), Image.Resampling.BICUBIC, box=middle))


def _grey(image: Image.Image) -> Image.Image:
    """The image in mode "L", whatever mode it came in."""
    if image.mode == "F":
        raise ValueError("floating-point pixels have no known white")
    if image.mode.startswith("I"):  # 16 bits; Pillow's own conversion would clip at 255
        values = np.asarray(image).astype(np.int64) >> 8
        return Image.fromarray(values.clip(0, 255).astype(np.uint8))
    if image.has_transparency_data:
        solid = image.convert("RGBA")
        ground = Image.new("RGBA", solid.size, (128, 128, 128, 255))
        return Image.alpha_composite(ground, solid).convert("L")
    return image.convert("L")
