"""Labelled images in every layout a user may have, and the splits made of them."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import forsooth
from forsooth.datasets import labelled
from forsooth.datasets.labelled import by_folders, by_index, images, index_of, there
from forsooth.datasets.remarks import on_images
from forsooth.datasets.splitting import arrange, balanced, hold_out, share_out
from forsooth.records import UsageError

REAL = Path(forsooth.__file__).parents[3] / "shared/data"
COLOURS = {"blue": (0, 0, 255), "green": (0, 255, 0), "red": (255, 0, 0)}


def save(path, array, mode=None, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(np.asarray(array, dtype=np.uint8))
    (image.convert(mode) if mode else image).save(path, **options)


def plain(colour, height=20, width=20):
    return np.full((height, width, 3), colour, dtype=np.uint8)


def zipped(folder, path, prefix=""):
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*"), reverse=True):
            archive.write(file, prefix + file.relative_to(folder).as_posix())
    return path


def fill(folder, count=4):
    for name, colour in COLOURS.items():
        for k in range(count):
            save(folder / name / f"{k}.png", plain(colour))


@pytest.fixture
def album(tmp_path):
    fill(tmp_path / "album")
    (tmp_path / "album" / "notes.md").write_text("not an image")
    return tmp_path / "album"


def test_class_folders_zips_and_wrapped_zips(album, tmp_path):
    wrapped = zipped(album, tmp_path / "wrapped.zip", "top/deep/")
    for source in (album, str(album), zipped(album, tmp_path / "album.zip"), wrapped):
        dataset = images(source, side=8, seed=0)
        assert dataset.x.shape == (12, 3, 8, 8) and dataset.x.dtype == torch.float32
        assert dataset.y.tolist() == [0] * 4 + [1] * 4 + [2] * 4
        assert dataset.facts["classes"] == ["blue", "green", "red"]
        expected = torch.tensor(list(COLOURS.values()))[dataset.y] / 255
        assert torch.equal(dataset.x, expected[:, :, None, None].expand_as(dataset.x))
        assert {name: len(rows) for name, rows in dataset.splits.items()} == {"train": 6, "val": 3, "test": 3}
        assert sorted(torch.cat(list(dataset.splits.values())).tolist()) == list(range(12))
        assert dataset.facts["unreadable"] == [] and dataset.facts["splits_from"] == "drawn by seed"


def test_nothing_is_written(album):
    before = {file: file.stat().st_mtime_ns for file in album.rglob("*")}
    images(album, side=8, seed=0)
    assert {file: file.stat().st_mtime_ns for file in album.rglob("*")} == before


def test_the_seed_moves_the_splits_and_nothing_else(tmp_path):
    fill(tmp_path, count=12)
    one, two, other = (images(tmp_path, side=8, seed=seed) for seed in (0, 0, 1))
    assert all(torch.equal(one.splits[name], two.splits[name]) for name in one.splits)
    assert torch.equal(one.x, other.x) and not torch.equal(one.splits["test"], other.splits["test"])


def test_split_folders_are_kept(tmp_path):
    for split, count in (("Train", 5), ("valid", 2), ("test", 3)):
        fill(tmp_path / split, count)
    dataset = images(tmp_path, side=8, seed=0)
    assert {name: len(rows) for name, rows in dataset.splits.items()} == {"train": 15, "val": 6, "test": 9}
    assert dataset.facts["splits_from"] == "the data's own"


def test_val_without_test_becomes_test(tmp_path):
    fill(tmp_path / "train", 10)
    fill(tmp_path / "val", 2)
    dataset = images(tmp_path, side=8, seed=0)
    assert {name: len(rows) for name, rows in dataset.splits.items()} == {"train": 27, "val": 3, "test": 6}
    assert dataset.facts["splits_from"] == "the data's own, val taken as test, val drawn from train by seed"


def test_a_file_that_index_csv_names_twice_is_taken_once(album):
    lines = ["file,class,split", "red/0.png,warm,train", "red/0.png,warm,test", "blue/0.png,cold,train"]
    (album / "index.csv").write_text("\n".join(lines) + "\n")
    failed: list[str] = []
    listed = there(by_index(index_of(album), album), {"red/0.png": bytes, "blue/0.png": bytes}, failed)
    assert [(entry.file, entry.split) for entry in listed] == [("blue/0.png", "train"), ("red/0.png", "train")]
    assert failed == ["red/0.png: named twice in index.csv, and the first line counts"]


def test_index_csv_decides_where_it_is(album, tmp_path):
    lines = ["file,species,split"]
    for k in range(4):
        split = ("train", "train", "val", "test")[k]
        lines += [f"red/{k}.png,warm,{split}", f"blue/{k}.png,cold,{split}"]
    (album / "index.csv").write_text("\n".join([*lines, "gone.png,cold,train"]) + "\n")
    for source in (album, zipped(album, tmp_path / "album.zip")):
        dataset = images(source, side=8, seed=0)
        assert dataset.facts["classes"] == ["cold", "warm"] and dataset.y.tolist() == [0] * 4 + [1] * 4
        assert {name: rows.tolist() for name, rows in dataset.splits.items()} == {
            "train": [0, 1, 4, 5], "val": [2, 6], "test": [3, 7],
        }  # fmt: skip
        assert dataset.facts["unreadable"] == ["gone.png: named in index.csv, but not there"]
        assert dataset.facts["without_class"] == 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("file,colour\nred/0.png,red\n", "must have a class column in index.csv (class, label"),
        ("file,class,split\nred/0.png,red,later\n", "splits train, val and test in index.csv, got 'later'"),
        ("", "an index.csv that is not a table"),
        ("photo,species\nred/0.png,red\n", "must have a column `file` in index.csv (or image, filename"),
    ],
)
def test_bad_index(album, content, words):
    (album / "index.csv").write_text(content)
    with pytest.raises(UsageError) as caught:
        images(album, side=8, seed=0)
    assert words in str(caught.value)


def test_modes_of_images(tmp_path):
    green = np.zeros((30, 30, 4), dtype=np.uint8)
    green[..., 1], green[..., 3] = 255, 255
    green[:, 15:, 3] = 0  # the right half is transparent: mid-grey
    a, b = tmp_path / "a", tmp_path / "b"
    save(a / "1_rgba.png", green)
    save(a / "2_palette.png", plain((255, 0, 0)), mode="P")
    save(a / "3_grey.png", np.full((30, 30), 51))
    save(b / "4_cmyk.jpg", plain(255), mode="CMYK")
    Image.fromarray(np.full((30, 30), 128 * 256, dtype=np.uint16)).save(b / "5_16bit.png")
    turned = plain((0, 0, 255), 30, 30)
    turned[:15] = 0  # upright: the upper half is black; the file says that it lies on its side
    exif = Image.Exif()
    exif[0x0112] = 6
    save(b / "6_turned.png", turned, exif=exif)
    x = images(tmp_path, side=30, seed=0).x
    assert x[0, :, 15, 3].tolist() == [0, 1, 0]
    torch.testing.assert_close(x[0, :, 15, 26], torch.full((3,), 128 / 255))
    assert x[1].mean((1, 2)).tolist() == pytest.approx([1, 0, 0], abs=0.01)
    assert x[2].mean((1, 2)).tolist() == pytest.approx([0.2] * 3)
    assert x[3].min() > 0.99 and x[4].mean((1, 2)).tolist() == pytest.approx([128 / 255] * 3)
    assert x[5, 2, :, 5].mean() > 0.95 and x[5, 2, :, 25].mean() < 0.05


def test_square_in_the_middle_and_enlarging_is_counted(album):
    wide = np.zeros((30, 90, 3), dtype=np.uint8)
    wide[:, 28:62] = 255  # a little more than the square: the filter reads beyond it
    save(album / "red" / "wide.png", wide)
    dataset = images(album, side=25, seed=0)
    assert dataset.x[-1].min() == 1 and dataset.facts["enlarged"] == 12  # all but the wide one are of 20 px


def test_large_jpeg_decoded_small_is_the_same_picture(album):
    ramp = np.broadcast_to(np.linspace(0, 255, 1600).astype(np.uint8)[:, None, None], (1600, 1200, 3))
    save(album / "red" / "y.jpg", ramp, quality=95)
    save(album / "red" / "z.png", ramp)
    x = images(album, side=16, seed=0).x
    assert (x[-2] - x[-1]).abs().max() < 0.02


def test_damaged_files_are_named_and_hidden_ones_passed_over(album):
    (album / "red" / "broken.jpg").write_bytes(b"no picture at all")
    (album / "red" / ".hidden.png").write_bytes(b"")
    save(album / "stray.png", plain(9))
    facts = images(album, side=8, seed=0).facts
    assert len(facts["unreadable"]) == 1 and facts["unreadable"][0].startswith("red/broken.jpg: cannot identify")
    assert (facts["hidden"], facts["without_class"]) == (1, 1) and facts["counts"]["red"] == 4


def test_classes_that_cannot_be_split_are_refused(album):
    (album / "red" / "0.png").write_bytes(b"")
    (album / "red" / "1.png").write_bytes(b"")
    with pytest.raises(
        UsageError, match=r"at least 3 samples, but 'red' has 2 usable images in .*album\n  red/0.png: "
    ):
        images(album, side=8, seed=0)
    for file in (album / "red").iterdir():
        file.write_bytes(b"")
    with pytest.raises(UsageError, match="but 'red' has 0 usable images"):
        images(album, side=8, seed=0)


def test_one_class_or_none_is_refused(tmp_path):
    save(tmp_path / "one/cats/1.png", plain(1))
    with pytest.raises(UsageError, match=r"at least two classes.*got cats in .*: 1 images, 1 of them in a class"):
        images(tmp_path / "one", side=8, seed=0)
    save(tmp_path / "flat/1.png", plain(1))
    with pytest.raises(UsageError, match=r"got none in .*: 1 images, 0 of them in a class"):
        images(tmp_path / "flat", side=8, seed=0)
    with pytest.raises(UsageError, match="there is nothing at"):
        images(tmp_path / "absent", side=8, seed=0)
    with pytest.raises(UsageError, match="`side` must be at least 1 pixel, got 0"):
        images(tmp_path / "one", side=0, seed=0)


def test_a_class_without_training_images_is_refused(tmp_path):
    fill(tmp_path / "train", 4)
    fill(tmp_path / "test", 3)
    for k in range(3):
        save(tmp_path / f"test/black/{k}.png", plain(0))
    with pytest.raises(UsageError, match="must hold the class 'black' in the train split"):
        images(tmp_path, side=8, seed=0)


def test_limit_shares_the_classes_out(tmp_path):
    fill(tmp_path, 10)
    for k in range(30):
        save(tmp_path / f"red/more{k}.png", plain((255, 0, 0)))
    dataset = images(tmp_path, side=8, seed=0, limit=15)
    assert dataset.facts["counts"] == {"blue": 5, "green": 5, "red": 5} and dataset.facts["available"] == 60
    assert len(images(tmp_path, side=8, seed=0, limit=1000).y) == 60
    with pytest.raises(UsageError, match=r"`limit` must be at least 9 .* got 8"):
        images(tmp_path, side=8, seed=0, limit=8)


def test_more_than_fits_is_refused_before_it_is_read(album, monkeypatch):
    monkeypatch.setattr(labelled, "ROOM", 12 * 8**2 * 11)
    with pytest.raises(UsageError, match="`limit` must be at most 11 images of 8 x 8 px, got 12"):
        images(album, side=8, seed=0)
    assert len(images(album, side=8, seed=0, limit=11).y) == 11


def test_balanced_is_even_and_drawn_by_seed():
    y = torch.tensor([0, 0, 0, 1, 1, 2])
    drawn = [balanced(y, 3, seed=seed).tolist() for seed in range(40)]
    assert all(rows == sorted(rows) and y[rows].tolist() == [0, 1, 2] for rows in drawn)
    assert {row for rows in drawn for row in rows} == set(range(6))  # the first of a class are not preferred
    assert sorted(y[balanced(y, 5, seed=0)].tolist()) == [0, 0, 1, 1, 2]


def test_folders_by_hand():
    assert [e.label for e in by_folders(["cat/1.png", "dog/a/2.png"])] == ["cat", "dog"]
    mixed = by_folders(["train/1.png", "test/x/2.png"])  # a class folder of that name
    assert [(e.label, e.split) for e in mixed] == [("train", None), ("test", None)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(3, 60), min_size=2, max_size=6), st.integers(0, 5))
def test_drawn_splits_hold_every_class(counts, seed):
    y = torch.cat([torch.full((count,), k) for k, count in enumerate(counts)])
    splits, _ = arrange([None] * len(y), y, seed=seed, names=[str(k) for k in range(len(counts))])
    assert sorted(torch.cat(list(splits.values())).tolist()) == list(range(len(y)))
    for rows in splits.values():
        assert len(y[rows].unique()) == len(counts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(3, 40), min_size=6, max_size=6), st.integers(6, 120))
def test_share_out_keeps_the_limit_and_every_class(counts, limit):
    cells = [
        (label, split, n) for (label, split), n in zip([(k // 3, "abc"[k % 3]) for k in range(6)], counts, strict=True)
    ]
    y = torch.cat([torch.full((n,), label) for label, _, n in cells])
    strata = [split for _, split, n in cells for _ in range(n)]
    rows = share_out(y, strata, limit=limit, seed=0)
    assert rows == sorted(set(rows)) and len(rows) <= limit
    assert {(int(y[row]), strata[row]) for row in rows} == {(label, split) for label, split, _ in cells}


def test_hold_out_leaves_the_last_one():
    kept, held = hold_out(torch.tensor([4, 7, 2]), torch.tensor([9, 9, 1, 9, 0, 9, 9, 0]), seed=0, name="val")
    assert sorted(torch.cat([kept, held]).tolist()) == [2, 4, 7] and len(held) == 1 and held[0] in (4, 7)


@pytest.mark.skipif(not REAL.exists(), reason=f"the images are not at {REAL}")
def test_real_images():
    birds = images(REAL / "birds_zhou_128px.zip", side=32, seed=0, limit=160)
    assert {name: len(rows) for name, rows in birds.splits.items()} == {"train": 120, "val": 20, "test": 20}
    assert all(18 <= count <= 22 for count in birds.facts["counts"].values())
    assert 0.3 < birds.x.mean() < 0.7 and birds.facts["unreadable"] == []
    places = images(REAL / "miniplaces_bam10_128px.zip", side=32, seed=0, limit=120)
    assert len(places.facts["classes"]) == 10 and len(places.y) == 120
    with pytest.raises(UsageError, match="`limit` must be at least 3000"):
        images(REAL / "imagenet_sample1000_224px.zip", side=8, seed=0, limit=500)


def test_index_csv_may_call_its_files_images(album):
    lines = ["image,species", *(f"{colour}/{k}.png,{colour}" for colour in ("red", "blue") for k in range(4))]
    (album / "index.csv").write_text("\n".join(lines) + "\n")
    assert images(album, side=8, seed=0).facts["classes"] == ["blue", "red"]


def test_index_csv_needs_no_classes_where_these_play_no_part(album):
    files = sorted(path.relative_to(album).as_posix() for path in album.rglob("*.png"))
    (album / "index.csv").write_text("\n".join(["image", *files[1:]]) + "\n")
    dataset = images(album, side=8, seed=0, least=1)
    assert dataset.facts["classes"] == ["images"] and len(dataset.x) == len(files) - 1
    with pytest.raises(UsageError, match="must have a class column in index"):
        images(album, side=8, seed=0)


def test_masks_are_no_class(tmp_path):
    fill(tmp_path / "images", 4)
    for mask in sorted((tmp_path / "images").rglob("*.png")):
        other = tmp_path / "trimaps" / mask.relative_to(tmp_path / "images")
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_bytes(mask.read_bytes())
    dataset = images(tmp_path, side=8, seed=0)
    assert dataset.facts["classes"] == sorted(COLOURS) and dataset.facts["masks"] == len(dataset.x) == 4 * len(COLOURS)
    assert dataset.facts["without_class"] == 0
    assert f"Masks of other images, by the names of files and folder, left out: {len(dataset.x)}." in on_images(
        dataset.facts
    )


def test_a_class_that_is_called_masks_stays_one(tmp_path):
    """Photographs of masks, with names of their own."""
    fill(tmp_path, 4)
    (tmp_path / "red").rename(tmp_path / "masks")
    for k, photo in enumerate(sorted((tmp_path / "masks").iterdir())):
        photo.rename(photo.with_name(f"carnival{k}.png"))
    assert "masks" in images(tmp_path, side=8, seed=0).facts["classes"]


def test_a_flat_folder_will_do_where_classes_play_no_part(album):
    flat = album / "flat"
    flat.mkdir()
    for k, photo in enumerate(sorted(album.rglob("*.png"))):
        photo.rename(flat / f"{k}.png")
    dataset = images(flat, side=8, seed=0, least=1)
    assert dataset.facts["classes"] == ["images"] and not dataset.y.any() and len(dataset.splits["test"])
    assert on_images(dataset.facts)[0].endswith("images used, all in one class.")
    with pytest.raises(UsageError, match="at least two classes"):
        images(flat, side=8, seed=0)
