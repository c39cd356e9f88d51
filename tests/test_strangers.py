"""What strangers put into files runs no code and is measured before it is decoded."""

import io
import json
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from torch import nn

from forsooth import strangers
from forsooth.adapters import inputs
from forsooth.datasets import tables, voc
from forsooth.models import weights
from forsooth.records import UsageError
from forsooth.report import aggregate
from forsooth.user.score import given

SMALL = 2**20


class Trap:
    """Pickled, it would write a file when it is read."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self):
        return (Path.touch, (self.place,))


def npz(path: Path, **entries: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)
    return path


def header(shape, descr="<f4") -> bytes:
    sink = io.BytesIO()
    np.lib.format.write_array_header_1_0(sink, {"descr": descr, "fortran_order": False, "shape": shape})
    return sink.getvalue()


@pytest.mark.parametrize("end", [".npy", ".npz"])
def test_objects_are_never_unpickled(tmp_path, end):
    trap = np.array([Trap(tmp_path / "ran"), None], dtype=object)
    sink = io.BytesIO()
    np.save(sink, trap, allow_pickle=True)
    path = tmp_path / f"x{end}"
    path.write_bytes(sink.getvalue())
    if end == ".npz":
        npz(path, x=sink.getvalue())
    for read in (lambda: inputs.batch(path, "inputs"), lambda: strangers.arrays(path)):
        with pytest.raises((UsageError, ValueError), match="objects"):
            read()
    (tmp_path / "pickled.npy").write_bytes(pickle.dumps(Trap(tmp_path / "ran")))
    with pytest.raises(UsageError, match=r"`inputs` must be a file of plain numbers.*never read"):
        inputs.batch(tmp_path / "pickled.npy", "inputs")
    assert not (tmp_path / "ran").exists()


def test_a_bomb_is_refused_by_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(strangers, "LARGEST", SMALL)
    path = npz(tmp_path / "bomb.npz", x=header((SMALL,)) + bytes(4 * SMALL))
    assert path.stat().st_size < SMALL / 100
    tracemalloc.start()
    with pytest.raises(UsageError, match=r"`inputs` must be .*at most 1 MiB are unpacked, and it holds 4"):
        inputs.from_file(path, "inputs")
    with pytest.raises(UsageError, match=r"`path` must be .*at most 1 MiB"):
        weights.load(nn.Linear(3, 2), path)
    assert tracemalloc.get_traced_memory()[1] < SMALL
    tracemalloc.stop()


@pytest.mark.parametrize("shape", [(2**40,), (2**62, 2**62), (-1,)])
@pytest.mark.parametrize("end", [".npy", ".npz"])
def test_a_header_that_claims_more_than_there_is(tmp_path, shape, end):
    path = tmp_path / f"x{end}"
    path.write_bytes(header(shape) + bytes(8))
    if end == ".npz":
        npz(path, x=header(shape) + bytes(8))
    with pytest.raises(UsageError, match=r"`inputs` must be a file of plain numbers.*more than the file holds"):
        inputs.from_file(path, "inputs")


def test_an_npz_with_a_wrong_sum(tmp_path):
    path = npz(tmp_path / "x.npz", x=header((64,)) + np.random.default_rng(0).bytes(256))
    data = bytearray(path.read_bytes())
    data[150] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(UsageError, match="`inputs` must be a file of plain numbers"):
        inputs.from_file(path, "inputs")


def test_a_safetensors_header_that_lies(tmp_path):
    claim = json.dumps({"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(claim).to_bytes(8, "little") + claim + bytes(8))
    with pytest.raises(UsageError, match="`inputs` must be a file of plain numbers"):
        inputs.from_file(path, "inputs")


def test_a_parquet_file_of_many_equal_values(tmp_path, monkeypatch):
    monkeypatch.setattr(strangers, "LARGEST", SMALL)
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"a": np.zeros(SMALL), "label": np.zeros(SMALL)}), path)
    assert path.stat().st_size < SMALL / 20
    with pytest.raises(UsageError, match=r"`path` must be a table.*at most 1 MiB are unpacked, and it holds 16"):
        tables.table(path, seed=0)
    with pytest.raises(UsageError, match=r"cannot be read \(at most 1 MiB"):
        aggregate.read_table(path, columns=())


def test_a_packed_table(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "LARGEST", SMALL)
    path = tmp_path / "t.csv.gz"
    pd.DataFrame({"a": np.zeros(SMALL), "label": 0}).to_csv(path, index=False)
    with pytest.raises(UsageError, match=r"`path` must be a table.*at most 1 MiB after unpacking"):
        tables.table(path, seed=0)


def test_pictures_of_maps_with_too_many_pixels(tmp_path, monkeypatch):
    monkeypatch.setattr("forsooth.datasets.folders.PIXELS", 100)
    Image.new("L", (20, 20)).save(tmp_path / "0.png")
    with pytest.raises(UsageError, match=r"`maps` must be images that can be read, .*20 x 20 px are too many"):
        given.from_file(tmp_path / "0.png", "maps")


def test_photographs_of_voc_with_too_many_pixels(monkeypatch):
    monkeypatch.setattr("forsooth.datasets.folders.PIXELS", 100)
    sink = io.BytesIO()
    Image.new("RGB", (20, 20)).save(sink, "PNG")
    box = voc.Box("photo", 0, (0, 0, 20, 20), "train")
    _, kept, unreadable = voc.cut([box], lambda photo: sink.getvalue(), side=8)
    assert not kept and "too many" in unreadable[0]
