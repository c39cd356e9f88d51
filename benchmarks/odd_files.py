"""Files that are not what they should be, for `fuzz.py`: changed bytes, other contents, false headers."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import safetensors.torch
import torch
from PIL import Image

WORDS = (
    *("", " ", "0", "-1", "1", "nan", "inf", "-inf", "1e400", "99999999999999999999", "none", "true", "null", ",", "="),
    *(
        "a=b",
        "a,b",
        "\x00",
        "\ud800",
        "é",
        "🦊",
        "..",
        "../..",
        "/",
        "[bold]",
        "<script>",
        "$x^{",
        "\\frac{",
        "%s",
        "{}",
    ),
    *(
        "x" * 300,
        "a:b",
        ":",
        "a:b:c",
        "json:dumps",
        "nothing:here",
        "grid:0",
        "grid:99999",
        "units:",
        "size:-1",
        "None",
    ),
)
NUMBERS = (0, -1, 1, 2, 3, 2**31, 2**63, -(2**70), 0.5, -0.0, 1e-320, 1e308, float("nan"), float("inf"), True)
DTYPES = ("<f4", "<f8", "<f2", ">f8", "<i8", "|u1", "|b1", "<c16", "<U5", "|S3", "O", "<M8[s]", "|V4", "<f4,<i4", "|S0")
SHAPES = ((), (0,), (1,), (3,), (0, 3), (3, 0), (2, 3), (2, 1, 4, 4), (2, 3, 4, 4), (1, 1, 1, 1, 1), (6,), (6, 8, 8))


def odd_value(dice: Random, depth: int = 2) -> Any:
    """Anything that JSON can hold."""
    kind = dice.randrange(7 if depth else 4)
    if kind == 0:
        return dice.choice(WORDS)
    if kind in (1, 2):
        return dice.choice(NUMBERS)
    if kind == 3:
        return None
    if kind == 4:
        return {dice.choice(WORDS): odd_value(dice, depth - 1) for _ in range(dice.randrange(4))}
    return [odd_value(dice, depth - 1) for _ in range(dice.randrange(4))]


def changed_json(value: Any, dice: Random) -> Any:
    """The same with something replaced, taken away, added or under another name, at a random depth."""
    if not isinstance(value, dict | list) or not value or dice.random() < 0.2:
        return odd_value(dice)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = dice.choice(keys)
    changed = value.copy()
    act = dice.randrange(6)
    if act == 0:
        del changed[key]
    elif act == 1 and isinstance(value, dict):
        changed[dice.choice(WORDS)] = changed.pop(key)
    else:
        changed[key] = changed_json(value[key], dice)
    return changed


def changed_bytes(data: bytes, dice: Random) -> bytes:
    """The same with some bytes changed, taken away or doubled."""
    if not data:
        return dice.randbytes(dice.randrange(40))
    start = dice.randrange(len(data))
    stop = min(len(data), start + dice.choice((1, 1, 4, 64, len(data))))
    act = dice.randrange(5)
    if act == 0:
        return data[:start]
    if act == 1:
        return data[:start] + data[stop:]
    if act == 2:
        return data[:stop] + data[start:]
    if act == 3:
        return data[:start] + bytes(stop - start) + data[stop:]
    return data[:start] + dice.randbytes(stop - start) + data[stop:]


def odd_array(dice: Random) -> np.ndarray:
    """An array of any kind and shape."""
    shape = dice.choice(SHAPES)
    dtype = np.dtype(dice.choice(DTYPES))
    values = np.random.default_rng(dice.randrange(9)).integers(-2, 5, shape)
    try:
        made = np.asarray(values).astype(dtype)
    except (TypeError, ValueError):
        made = np.zeros(shape, dtype)
    if made.dtype.kind == "f" and made.size and dice.random() < 0.3:
        made.flat[0] = dice.choice((np.nan, np.inf, np.finfo(made.dtype).max, np.finfo(made.dtype).tiny))
    return made


def as_npy(array: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=True)
    return sink.getvalue()


def lying_npy(dice: Random) -> bytes:
    """A header that claims anything, and little behind it."""
    sink = io.BytesIO()
    shape = dice.choice(((2**40,), (2**62, 2**62), (-1,), (2, 3), (0, 2**60)))
    np.lib.format.write_array_header_1_0(
        sink, {"descr": dice.choice(("<f4", "<f8", "|b1", "<U999999", "|S0")), "fortran_order": False, "shape": shape}
    )
    return sink.getvalue() + bytes(24)


def npy(dice: Random) -> bytes:
    return lying_npy(dice) if dice.random() < 0.3 else as_npy(odd_array(dice))


def npz(dice: Random) -> bytes:
    names = ("x", "truth", "sample", "words", "vectors", "y", "maps", "../x", "", "é")
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", dice.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name in dice.sample(names, dice.randrange(5)):
            archive.writestr(f"{name}.npy", dice.choice((npy, lying_npy, lambda dice: b"no array"))(dice))
    return sink.getvalue()


def tensors(dice: Random) -> bytes:
    """A safetensors file; or one whose header claims anything."""
    if dice.random() < 0.4:
        claims = {
            dice.choice(WORDS[:20]): {"dtype": dice.choice(("F32", "F8_E4M3", "BF16", "BOOL", "X", "U64", "C64"))}
        }
        for about in claims.values():
            about |= {"shape": list(dice.choice(SHAPES)), "data_offsets": [0, dice.choice((0, 4, 8, 24, 2**50))]}
        header = json.dumps(claims).encode()
        return len(header).to_bytes(8, "little") + header + bytes(24)
    array = odd_array(dice)
    if array.dtype.kind not in "bif" or array.dtype.byteorder == ">":
        array = np.zeros((2, 3), dtype=np.float32)
    made = torch.from_numpy(np.ascontiguousarray(array)).reshape(array.shape)
    return safetensors.torch.save({dice.choice(("x", "0.weight", "maps")): made})


def table(dice: Random) -> pd.DataFrame:
    rows = dice.choice((0, 1, 5, 60))
    columns = {}
    for name in dice.sample(("a", "b", "label", "text", "split", "", "1", "é", "y"), dice.randrange(5)):
        some = [dice.choice((*WORDS[:12], "é", *map(str, range(5)))) for _ in range(rows)]
        columns[name] = dice.choice((some, list(range(rows)), [float(k % 3) for k in range(rows)], [None] * rows))
    return pd.DataFrame(columns)


def csv(dice: Random) -> bytes:
    return table(dice).to_csv(index=False, sep=dice.choice(",;\t")).encode(errors="replace")


def parquet(dice: Random) -> bytes:
    sink = io.BytesIO()
    table(dice).to_parquet(sink)
    return sink.getvalue()


def text(dice: Random) -> bytes:
    lines = dice.choices((*WORDS, "a good film", "the cat sat on a mat"), k=dice.randrange(30))
    return "\n".join(lines).encode(dice.choice(("utf-8", "utf-16", "latin-1")), errors="replace")


def picture(dice: Random) -> bytes:
    mode = dice.choice(("L", "RGB", "RGBA", "P", "1", "I;16", "F", "CMYK", "LA"))
    kind = "TIFF" if mode in ("F", "CMYK", "I;16") else dice.choice(("PNG", "GIF", "WEBP", "BMP"))
    if mode == "LA" or (kind == "WEBP" and mode not in ("RGB", "RGBA")):
        kind = "PNG"
    if kind == "BMP" and mode == "RGBA":
        mode = "RGB"
    if kind == "GIF" and mode in ("RGBA", "I;16"):
        mode = "RGB"
    sink = io.BytesIO()
    Image.new(mode, (dice.choice((1, 8, 40)), dice.choice((1, 8, 40)))).save(sink, kind)
    return sink.getvalue()


def archive(dice: Random) -> bytes:
    """Class folders of images in a zip, with names that leave it, index.csv, or anything."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as made:
        for number in range(dice.randrange(12)):
            folder = dice.choice(("cat", "dog", "train/cat", "test/dog", "..", "/etc", "é", ""))
            content = picture(dice) if dice.random() < 0.7 else text(dice)
            made.writestr(f"{folder}/{number}.{dice.choice(('png', 'jpg', 'txt', 'npy'))}", content)
        if dice.random() < 0.3:
            made.writestr("index.csv", dice.choice((csv(dice), b"file,class\ncat/0.png,cat\n../x.png,dog\n")))
    return sink.getvalue()


def gz(dice: Random) -> bytes:
    return gzip.compress(dice.choice((text, csv))(dice))


KINDS: dict[str, Callable[[Random], bytes]] = {
    **{".npy": npy, ".npz": npz, ".safetensors": tensors, ".csv": csv, ".tsv": csv, ".csv.gz": gz, ".parquet": parquet},
    **{".txt": text, ".txt.gz": gz, ".zip": archive, ".png": picture, ".jpg": picture},
}


def written(folder: Path, dice: Random, end: str) -> Path:
    """A file whose name ends so: sometimes sound, sometimes odd, sometimes with changed bytes."""
    path = folder / f"odd{end}"
    content = KINDS[end](dice)
    for _ in range(dice.choice((0, 0, 1, 3))):
        content = changed_bytes(content, dice)
    path.write_bytes(content)
    return path
