"""Photographs from folders and zips, of every kind a user may have, and crops from them."""

import io
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import forsooth
from forsooth import digests
from forsooth.datasets.crops import crops, shared_out
from forsooth.datasets.folders import Photos, digest, grey_square, photo_side, photographs
from forsooth.datasets.labelled import colour_square
from forsooth.records import UsageError
from forsooth.seeds import generator

REAL = Path(forsooth.__file__).parents[3] / "shared/data/imagenet_sample1000_224px.zip"
RED = round(0.299 * 255)


def save(path, array, mode=None, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(np.asarray(array, dtype=np.uint8))
    (image.convert(mode) if mode else image).save(path, **options)


def red(height=40, width=40):
    return np.full((height, width, 3), (255, 0, 0), dtype=np.uint8)


def zipped(folder, path):
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*"), reverse=True):
            archive.write(file, file.relative_to(folder).as_posix())
    return path


@pytest.fixture
def album(tmp_path):
    folder = tmp_path / "album"
    save(folder / "b.png", red())
    save(folder / "inner/deep/c.JPG", np.full((50, 90, 3), 200))
    save(folder / "a.bmp", np.full((40, 60), 10))
    (folder / "index.csv").write_text("not an image")
    return folder


def test_folder_and_zip_in_the_order_of_names(album, tmp_path):
    for source in (album, zipped(album, tmp_path / "album.zip")):
        photos = photographs(source, side=20)
        assert photos.images.shape == (3, 20, 20) and photos.images.dtype == torch.uint8
        assert photos.images.float().mean((1, 2)).round().tolist() == [10, RED, 200]
        assert photos.name == source.name and photos.unreadable == ()


def test_nothing_is_written(album):
    before = {file: file.stat().st_mtime_ns for file in album.rglob("*")}
    photographs(album, side=20)
    assert {file: file.stat().st_mtime_ns for file in album.rglob("*")} == before


def test_modes_of_images(tmp_path):
    green = np.zeros((30, 30, 4), dtype=np.uint8)
    green[..., 1], green[..., 3] = 255, 255
    green[:, 15:, 3] = 0  # the right half is transparent: mid-grey
    save(tmp_path / "a_rgba.png", green)
    save(tmp_path / "b_palette.png", red(), mode="P")
    save(tmp_path / "c_palette_transparent.png", red(), mode="P", transparency=b"\x00" * 256)
    save(tmp_path / "d_grey.png", np.full((30, 30), 77))
    save(tmp_path / "e_bits.png", np.full((30, 30), 255), mode="1")
    save(tmp_path / "f_cmyk.jpg", np.full((30, 30, 3), 255), mode="CMYK")
    Image.fromarray(np.full((30, 30), 128 * 256, dtype=np.uint16)).save(tmp_path / "g_16bit.png")
    photos = photographs(tmp_path, side=30)
    assert photos.unreadable == ()
    means = photos.images.float().mean((1, 2)).tolist()
    assert means == pytest.approx([(150 + 128) / 2, RED, 128, 77, 255, 255, 128], abs=1.5)
    assert photos.images[0, 15, [3, 26]].tolist() == [150, 128]


def test_grey_weights_and_square_in_the_middle(tmp_path):
    stripes = np.zeros((30, 90, 3), dtype=np.uint8)
    for k in range(3):
        stripes[:, 30 + 10 * k : 40 + 10 * k, k] = 255  # red, green and blue in the middle third
    save(tmp_path / "wide.png", stripes)
    save(tmp_path / "tall.png", stripes.transpose(1, 0, 2))
    tall, wide = photographs(tmp_path, side=30).images
    assert wide[15, [5, 15, 25]].tolist() == [76, 150, 29] and torch.equal(tall, wide.T)


def test_large_jpeg_decoded_small_is_the_same_picture(tmp_path):
    ramp = np.linspace(0, 255, 1600).astype(np.uint8)
    save(tmp_path / "large.jpg", np.broadcast_to(ramp[:, None], (1600, 1200, 3)[:2]), quality=95)
    save(tmp_path / "large.png", np.broadcast_to(ramp[:, None], (1600, 1200)))
    jpg, png = photographs(tmp_path, side=32).images.int()
    assert (jpg - png).abs().max() <= 3


def test_damaged_and_small_files_are_named(album):
    (album / "x_broken.jpg").write_bytes(b"no picture at all")
    save(album / "y_half.jpg", torch.randint(0, 256, (64, 64), generator=generator(0)))
    whole = (album / "y_half.jpg").read_bytes()
    (album / "y_half.jpg").write_bytes(whole[: len(whole) * 2 // 3])
    save(album / "z_tiny.png", np.zeros((10, 300)))
    Image.fromarray(np.zeros((30, 30), dtype=np.float32)).save(album / "z_float.tiff")
    photos = photographs(album, side=20)
    assert len(photos.images) == 3
    broken, half, floats, tiny = photos.unreadable
    assert broken == "x_broken.jpg: cannot identify image file"
    assert half.startswith("y_half.jpg: image file is truncated")
    assert floats == "z_float.tiff: floating-point pixels have no known white"
    assert tiny == "z_tiny.png: 300 x 10 px is too small, 20 px were asked"


def test_a_damaged_member_of_a_zip_is_named(album, tmp_path):
    path = zipped(album, tmp_path / "album.zip")
    data, inside = bytearray(path.read_bytes()), (album / "a.bmp").read_bytes()
    data[data.find(inside) + 100] ^= 255  # the checksum of a.bmp no longer fits
    path.write_bytes(data)
    photos = photographs(path, side=20)
    assert len(photos.images) == 2 and photos.unreadable == ("a.bmp: Bad CRC-32 for file 'a.bmp'",)


def test_a_folder_that_cannot_be_listed_is_named(album, monkeypatch):
    listed = os.scandir

    def guarded(path):
        if Path(path).name == "inner":
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", guarded)
    photos = photographs(album, side=20)
    assert len(photos.images) == 2 and photos.unreadable == (f"{album / 'inner'}: Permission denied",)


def test_a_bomb_in_a_zip_is_refused_by_its_size_before_it_is_unpacked(album, tmp_path):
    path = zipped(album, tmp_path / "album.zip")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("bomb.png", "w") as bomb:
        for _ in range(300):
            bomb.write(bytes(2**20))
    tracemalloc.start()
    photos = photographs(path, side=20)
    digest(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(photos.images) == 3 and peak < 2**26
    assert photos.unreadable == ("bomb.png: 300 MiB unpacked, at most 256 MiB are read",)


@pytest.mark.parametrize("read", [lambda data: grey_square(data, side=20), lambda data: colour_square(data, side=20)])
def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded(monkeypatch, read):
    file = io.BytesIO()
    Image.new("1", (10_000, 8_000)).save(file, "png")
    monkeypatch.setattr(Image.Image, "convert", lambda *_: pytest.fail("was decoded"))
    with pytest.raises(ValueError, match="10000 x 8000 px are too many, at most 67 million are decoded"):
        read(file.getvalue())


def test_a_pipe_is_no_picture_and_no_zip(album):
    os.mkfifo(album / "pipe.png")
    photos = photographs(album, side=20)
    assert len(photos.images) == 3 and photos.unreadable == ("pipe.png: not a plain file",)
    assert len(digest(album)) == 32
    with pytest.raises(
        UsageError, match=r"folder or readable zip of images, but there is neither of them at .*pipe\.png"
    ):
        photographs(album / "pipe.png", side=20)


def test_names_that_are_not_utf8(tmp_path):
    folder = tmp_path / os.fsdecode(b"alb\xfcm")
    save(folder / "a.png", red())
    save(folder / os.fsdecode(b"caf\xe9.png"), red())
    (folder / os.fsdecode(b"na\xefve.png")).write_bytes(b"no picture")
    photos = photographs(folder, side=20)
    assert len(photos.images) == 2 and photos.name == "alb\\xfcm"
    assert photos.unreadable[0].startswith("na\\xefve.png: cannot identify")
    assert len(digest(folder)) == 32 and len(digests.digest(folder)) == 32


def test_nothing_usable(tmp_path):
    with pytest.raises(UsageError, match=f"folder or readable zip of images, but there is nothing at {tmp_path}/no"):
        photographs(tmp_path / "no", side=20)
    (tmp_path / "notes.csv").write_text("1,2")
    with pytest.raises(UsageError, match=f"neither of them at {tmp_path}/notes.csv"):
        photographs(tmp_path / "notes.csv", side=20)
    with pytest.raises(UsageError, match=rf"`data` must hold images \(.bmp.*{tmp_path}: 1 files, 0 of them images"):
        photographs(tmp_path, side=20)
    (tmp_path / "x.png").write_bytes(b"")
    with pytest.raises(UsageError, match=r"2 files, 1 of them images by name, 1 failed\n  x.png: cannot identify"):
        photographs(tmp_path, side=20)


def test_damaged_zip(album, tmp_path):
    data = bytearray(zipped(album, tmp_path / "album.zip").read_bytes())
    data[data.find(b"PK\x01\x02")] = 0  # the list of contents
    (tmp_path / "album.zip").write_bytes(data)
    with pytest.raises(UsageError, match=r"album.zip is damaged: Bad magic number"):
        photographs(tmp_path / "album.zip", side=20)


def test_digest_says_whether_the_images_are_the_same(album, tmp_path):
    first = digest(album)
    assert digest(zipped(album, tmp_path / "album.zip")) == first == digest(album) and len(first) == 32
    (album / "index.csv").write_text("other words, no image")
    assert digest(album) == first
    save(album / "b.png", red() // 2)
    assert digest(album) != first
    with pytest.raises(UsageError, match="nothing at"):
        digest(tmp_path / "no")


def numbered(k, side):
    """k photographs whose every pixel tells the photograph (its grey), the row and the column."""
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    return Photos((10 * torch.arange(k)[:, None, None] + 3 * rows + columns % 3).to(torch.uint8), "numbered")


def test_random_crops_and_flips_are_parts_of_the_photographs():
    photos, n, size = (
        Photos(torch.randint(0, 256, (3, 7, 7), dtype=torch.uint8, generator=generator(0)), "noise"),
        400,
        5,
    )
    made = crops(photos, [torch.arange(n)], size=size, seed=0)
    assert made.shape == (n, size, size) and made.dtype == torch.float32
    windows = photos.images.unfold(1, size, 1).unfold(2, size, 1).reshape(-1, size, size).float() / 255
    windows = torch.stack([windows, windows.flip(-1)], 1).reshape(-1, size, size)  # 3 x 9 places x 2
    windows -= windows.mean((1, 2), keepdim=True)
    distance = (made[:, None] - windows).abs().amax((2, 3))
    assert (distance.min(1).values < 1e-6).all()
    which = distance.argmin(1)
    assert len(which.unique()) == 54  # every photograph, place and flip comes
    assert torch.bincount(which // 18).tolist() in ([134, 133, 133], [133, 134, 133], [133, 133, 134])


def test_enough_photographs_are_used_whole_and_once():
    photos = Photos(torch.randint(0, 256, (30, 8, 8), dtype=torch.uint8, generator=generator(0)), "noise")
    made = crops(photos, [torch.arange(30)], size=8, seed=0)
    whole = photos.images.float() / 255
    whole -= whole.mean((1, 2), keepdim=True)
    order = (made[:, None] - whole).abs().amax((2, 3)).argmin(1)
    assert sorted(order.tolist()) == list(range(30)) != order.tolist()  # once each, and not in the order of names
    torch.testing.assert_close(made, whole[order])
    assert crops(photos, [torch.arange(12)], size=4, seed=0).shape == (12, 4, 4)


def test_resizing_of_whole_photographs_agrees_with_pillow():
    ramp = (torch.arange(80)[:, None] * 2 + torch.arange(80)).to(torch.uint8)
    made = crops(Photos(ramp[None], "ramp"), [torch.arange(1)], size=64, seed=0)[0]
    pillow = np.asarray(Image.fromarray(ramp.numpy()).resize((64, 64), Image.Resampling.BILINEAR)) / 255
    np.testing.assert_allclose(made, pillow - pillow.mean(), atol=0.004)


def test_crops_have_mean_zero_and_follow_the_seed():
    photos = numbered(5, 12)
    one, two, other = (crops(photos, [torch.arange(50)], size=8, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one, two) and not torch.equal(one, other)
    assert one.mean((1, 2)).abs().max() < 1e-6


def test_photographs_smaller_than_the_crops_are_refused():
    with pytest.raises(UsageError, match="`photos` must be at least 16 px wide, got 12 px"):
        crops(numbered(5, 12), [torch.arange(50)], size=16, seed=0)


def test_side_leaves_room_to_shift():
    assert (photo_side(8), photo_side(64)) == (16, 80)


@pytest.mark.skipif(not REAL.exists(), reason=f"the photographs are not at {REAL}")
def test_real_photographs():
    photos = photographs(REAL, side=photo_side(8))
    assert photos.images.shape == (1000, 16, 16) and photos.unreadable == ()
    assert 0.3 < photos.images.float().mean() / 255 < 0.6


@given(st.integers(3, 40), st.lists(st.integers(1, 30), min_size=3, max_size=3))
def test_photographs_are_shared_out_among_the_splits(k, sizes):
    rows = torch.randperm(sum(sizes), generator=generator(k))
    splits = rows.split(sizes)
    which = shared_out(k, splits, generator=generator(0))
    used = [set(which[part].tolist()) for part in splits]
    assert not (used[0] & used[1] or used[0] & used[2] or used[1] & used[2])
    for part in splits:
        counts = which[part].unique(return_counts=True)[1]
        assert counts.max() - counts.min() <= 1


def test_fewer_photographs_than_splits_are_refused():
    with pytest.raises(UsageError, match="`photos` must be at least 3, one for each of train, val and test, got 2"):
        crops(numbered(2, 16), torch.arange(30).split([20, 5, 5]), size=8, seed=0)


def test_a_zip_whose_names_are_not_what_they_say_is_damaged(tmp_path):
    path = tmp_path / "album.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ä.png", b"")  # its flag says that names are UTF-8
    path.write_bytes(path.read_bytes().replace("ä".encode(), b"\xe7\xa4"))
    with pytest.raises(UsageError, match=r"album.zip is damaged: 'utf-8' codec"):
        photographs(path, side=20)
