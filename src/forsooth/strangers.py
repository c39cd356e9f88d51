"""Files of strangers: arrays, tables and packed bytes, whose size is known before any of it is decoded.

Nothing is unpickled. What is wrong with a file is a ValueError in words; who asked adds the name of the argument.
"""

import gzip
import lzma
import math
import struct
import tokenize
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors

LARGEST = 2**32  # bytes of all arrays of an .npz, and of all values of a table, after unpacking
LEAST_VALUE = 8  # bytes that a value of a table takes in memory, however well it was packed
MAGIC = b"\x93NUMPY"
BROKEN = (  # what decoders raise at files that are not sound
    *(OSError, EOFError, KeyError, TypeError, MemoryError, OverflowError, RuntimeError, SyntaxError),
    *(struct.error, zlib.error, lzma.LZMAError, BadZipFile, tokenize.TokenError),
    *(safetensors.SafetensorError, pa.ArrowException),
)


def is_there(path: Path) -> bool:
    """Whether something lies at this path; nothing lies at one that the system cannot hold."""
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


@contextmanager
def sound() -> Iterator[None]:
    """ValueError where a decoder inside finds that a file is not sound, whatever it raises."""
    try:
        yield
    except BROKEN as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(words) from error


def arrays(path: Path, *, most: int | None = None) -> dict[str, Any]:
    """All arrays of a .npy, .npz or .safetensors file by name: tensors of the last, of a .npy that of the file's name.

    most  bytes after unpacking; None: LARGEST
    """
    with sound():
        if path.suffix == ".safetensors":
            with safetensors.safe_open(path, framework="pt") as opened:
                return {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (it is no dict)
        if path.suffix == ".npz":
            return _of_npz(path, LARGEST if most is None else most)
        with path.open("rb") as file:
            return {path.stem: _of_npy(file, path.stat().st_size)}


def _of_npz(path: Path, most: int) -> dict[str, Any]:
    if not is_zipfile(path):  # numpy would take it for a pickle and say so
        raise ValueError("it is no zip archive, as an .npz is")
    with ZipFile(path) as archive:
        entries = archive.infolist()
        size = sum(entry.file_size for entry in entries)
        if size > most:
            raise ValueError(f"at most {most // 2**20} MiB are unpacked, and it holds {size / 2**20:.0f}")
        found = {}
        for entry in entries:
            with archive.open(entry) as file:  # zipfile reads no more than the entry says
                found[entry.filename.removesuffix(".npy")] = _of_npy(file, entry.file_size)
    return found


def _of_npy(file: IO[bytes], size: int) -> Any:
    """The array in a .npy file of so many bytes, whose header may claim more than there is."""
    start = file.read(len(MAGIC))
    if start != MAGIC:
        raise ValueError("it holds something that is no array of numpy's (arrays of objects are never read)")
    file.seek(0)
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"its format {version} holds names of fields, which numbers have not")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError("it holds objects, whose reading could run any code: save numbers")
    if dtype.itemsize == 0 or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"it claims {dtype} of shape {shape}, more than the file holds")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def unpacked(path: Path, most: int) -> bytes:
    """The bytes of a file, those inside if it is a .gz; ValueError if they are more than `most`."""
    with sound(), gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb") as file:
        data: bytes = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it must be at most {most // 2**20} MiB after unpacking, and it holds more")
    return data


def check_parquet(path: Path) -> None:
    """ValueError if a parquet file is not sound or holds more values than fit; a file of 1 kB can hold millions."""
    with sound():
        about = pq.read_metadata(path)
        groups = [about.row_group(k) for k in range(about.num_row_groups)]
        size = max(about.num_rows * about.num_columns * LEAST_VALUE, sum(group.total_byte_size for group in groups))
    if size > LARGEST:
        raise ValueError(f"at most {LARGEST // 2**20} MiB are unpacked, and it holds {size / 2**20:.0f}")
