"""Objects of Pascal VOC, cropped by their boxes, from the reduced zip and from the ordinary tree."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import forsooth
from forsooth.datasets.voc import MEAN, NAMES, STD, crops
from forsooth.records import UsageError

REAL = Path(forsooth.__file__).parents[3] / "shared/data"
COLOURS = {"cat": (250, 20, 30), "dog": (10, 200, 100), "sheep": (40, 50, 240)}


def photo(path, colours):
    """60 x 90 px: a black ground and a square of 20 px in each of three columns."""
    pixels = np.zeros((60, 90, 3), dtype=np.uint8)
    for k, colour in enumerate(colours):
        pixels[10:30, 30 * k + 5 : 30 * k + 25] = colour
    Image.fromarray(pixels).save(path, "PNG")  # by content; the ending .jpg says nothing to the decoder


def box(k, width=20):
    """Corners of the k-th square, from 0."""
    return 30 * k + 5, 10, 30 * k + 5 + width, 30


def annotation(objects):
    lines = ["<annotation>"]
    for name, (left, top, right, bottom), difficult in objects:
        lines.append(
            f"<object><name>{name}</name><truncated>1</truncated><difficult>{difficult}</difficult><bndbox><xmax>{right}"
            f"</xmax><xmin>{left + 1}</xmin><ymax>{bottom}</ymax><ymin>{top + 1}</ymin></bndbox>"
            f"<part><name>head</name><bndbox><xmin>1</xmin></bndbox></part></object>"
        )
    return "\n".join([*lines, "</annotation>"])


def write_tree(root, count=12):
    tree = root / "VOCdevkit" / "VOC2012"
    for part in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (tree / part).mkdir(parents=True)
    for split in ("train", "val"):
        names = [f"{split}_{k:02}" for k in range(count)]
        (tree / f"ImageSets/Main/{split}.txt").write_text("\n".join(names) + "\n")
        for name in names:
            photo(tree / f"JPEGImages/{name}.jpg", COLOURS.values())
            objects = [(label, box(k), 0) for k, label in enumerate(COLOURS)]
            objects += [("cat", (0, 0, 40, 40), 1), ("dog", box(1, width=15), 0), ("unicorn", (0, 0, 40, 40), 0)]
            (tree / f"Annotations/{name}.xml").write_text(annotation(objects))
    return root


def write_zip(path, tree):
    images, boxes = ["image,split,width,height,classes"], ["image,class,xmin,ymin,xmax,ymax,truncated,difficult"]
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((tree / "VOCdevkit/VOC2012/JPEGImages").iterdir()):
            archive.write(file, f"images/{file.name}")
            images.append(f"{file.stem},{file.stem.split('_')[0]},90,60,cat dog sheep")
            for k, label in enumerate(COLOURS):
                boxes.append(",".join(map(str, (file.stem, label, *box(k), 0, 0))))
        archive.writestr("images.csv", "\n".join(images) + "\n")
        archive.writestr("boxes.csv", "\n".join(boxes) + "\n")
    return path


def check_colours(dataset):
    """Every crop is of the one colour of its class: not a pixel of the black ground."""
    colours = torch.tensor([COLOURS[NAMES[label]] for label in dataset.y.tolist()]) / 255
    by_hand = (colours - torch.tensor(MEAN)) / torch.tensor(STD)
    torch.testing.assert_close(dataset.x, by_hand[:, :, None, None].expand_as(dataset.x), atol=1e-5, rtol=0)


def test_ordinary_tree(tmp_path):
    write_tree(tmp_path)
    for path in (tmp_path, tmp_path / "VOCdevkit", tmp_path / "VOCdevkit/VOC2012"):
        dataset = crops(path, side=16, seed=0)
        assert dataset.x.shape == (72, 3, 16, 16) and dataset.x.dtype == torch.float32
        assert dataset.facts["left_out"] == {"difficult": 24, "unknown class": 24, "narrower than 16 px": 24}
        assert dataset.facts["counts"]["cat"] == 24 and dataset.facts["layout"] == "VOCdevkit"
        check_colours(dataset)


def test_reduced_zip_and_a_folder_with_it(tmp_path):
    file = write_zip(tmp_path / "voc2012_seg_224px.zip", write_tree(tmp_path / "tree"))
    for path in (file, tmp_path):
        dataset = crops(path, side=16, seed=0)
        assert len(dataset.y) == 72 and dataset.facts["layout"] == "reduced zip"
        check_colours(dataset)


def test_no_photograph_is_in_two_splits(tmp_path):
    write_tree(tmp_path)
    one, two, other = (crops(tmp_path, side=8, seed=seed) for seed in (0, 0, 1))
    assert {name: len(rows) for name, rows in one.splits.items()} == {"train": 33, "val": 3, "test": 36}
    photos = [row // 3 for row in one.splits["val"].tolist()]  # three objects a photograph, in order
    assert len(set(photos)) == 1 and one.splits["test"].tolist() == list(range(36, 72))
    assert torch.equal(one.splits["val"], two.splits["val"]) and not torch.equal(one.splits["val"], other.splits["val"])


def test_limit_and_half_precision(tmp_path):
    write_tree(tmp_path)
    dataset = crops(tmp_path, side=8, seed=0, limit=18, dtype=torch.float16)
    assert len(dataset.y) == 18 and dataset.x.dtype == torch.float16 and dataset.facts["available"] == 72
    for rows in dataset.splits.values():  # evenly, within one, in each split
        counts = [int((dataset.y[rows] == NAMES.index(name)).sum()) for name in COLOURS]
        assert sum(counts) == len(rows) and min(counts) >= 1 and max(counts) - min(counts) <= 1
    with pytest.raises(UsageError, match=r"`limit` must be at least 9 .* got 5"):
        crops(tmp_path, side=8, seed=0, limit=5)


def test_boxes_are_stretched_and_kept_inside_the_photograph(tmp_path):
    tree = write_tree(tmp_path) / "VOCdevkit/VOC2012"
    halves = np.zeros((60, 90, 3), dtype=np.uint8)
    halves[:, :45] = 255
    Image.fromarray(halves).save(tree / "JPEGImages/val_00.jpg", "PNG")
    (tree / "Annotations/val_00.xml").write_text(
        annotation([("cat", (-5, -5, 95, 70), 0), ("dog", (200, 0, 250, 40), 0)])
    )
    dataset = crops(tmp_path, side=8, seed=0)
    x = dataset.x[36] * torch.tensor(STD)[:, None, None] + torch.tensor(MEAN)[:, None, None]
    assert x[:, :, :3].min() > 0.95 and x[:, :, 5:].max() < 0.05
    assert len(dataset.facts["unreadable"]) == 1 and dataset.facts["unreadable"][0].startswith("val_00: ")


def test_damaged_photographs_are_named(tmp_path):
    tree = write_tree(tmp_path) / "VOCdevkit/VOC2012"
    (tree / "JPEGImages/train_03.jpg").write_bytes(b"no picture")
    (tree / "JPEGImages/val_05.jpg").unlink()
    dataset = crops(tmp_path, side=8, seed=0)
    assert len(dataset.y) == 66 and [line.split(":")[0] for line in dataset.facts["unreadable"]] == [
        "train_03",
        "val_05",
    ]


def test_what_is_not_voc_is_refused(tmp_path):
    with pytest.raises(UsageError, match="there is none of them at"):
        crops(tmp_path, seed=0)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("images.csv", "")
    with pytest.raises(UsageError, match=r"got no boxes.csv in"):
        crops(tmp_path / "other.zip", seed=0)
    tree = write_tree(tmp_path, count=2) / "VOCdevkit/VOC2012"
    with pytest.raises(UsageError, match="`side` must be at least 8 pixels, got 4"):
        crops(tmp_path, seed=0, side=4)
    with pytest.raises(UsageError, match=r"`dtype` must be a floating-point type, got torch.uint8"):
        crops(tmp_path, seed=0, dtype=torch.uint8)
    (tree / "Annotations/val_01.xml").write_text("<annotation><object><name>cat</name></object></annotation>")
    with pytest.raises(UsageError, match=r"val_01.xml cannot be read: could not convert"):
        crops(tmp_path, seed=0)
    (tree / "ImageSets/Main/val.txt").write_text("")
    with pytest.raises(
        UsageError, match=r"objects of two classes in train and some in val, got \d train, \d val, 0 test"
    ):
        crops(tmp_path, seed=0)
    (tree / "ImageSets/Main/val.txt").unlink()
    with pytest.raises(UsageError, match=r"list of photographs .*val.txt, but it is not there"):
        crops(tmp_path, seed=0)


@pytest.mark.skipif(not REAL.exists(), reason=f"the photographs are not at {REAL}")
def test_real_objects():
    dataset = crops(REAL, side=32, seed=0, limit=200)
    assert len(dataset.y) == 200 and min(dataset.facts["counts"].values()) >= 9
    assert dataset.facts["left_out"] == {"difficult": 830, "unknown class": 0, "narrower than 16 px": 711}
    assert dataset.facts["available"] == 6957 - 830 - 711 and dataset.facts["unreadable"] == []
    assert dataset.x.mean().abs() < 0.5 and 0.9 < dataset.x.std() < 1.4
