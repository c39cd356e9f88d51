"""Generated objects with alpha, and cut-outs read from folders and zips."""

import math
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import forsooth
from forsooth.datasets.objects import NAMES, SILHOUETTES, Cutouts, alpha, by_place, cutouts, drawn, objects, trimmed
from forsooth.records import UsageError
from forsooth.seeds import generator

REAL = Path(forsooth.__file__).parents[3] / "shared/data/voc2012_cutouts_128px.zip"


def test_shape_range_labels_and_seed():
    (one, label), (two, _), (other, _) = (objects(25, side=24, seed=seed) for seed in (0, 0, 1))
    assert one.shape == (25, 4, 24, 24) and one.dtype == torch.float32
    assert one.min() >= 0 and one.max() <= 1
    assert label.tolist() == [k % 10 for k in range(25)]
    assert torch.equal(one, two) and not torch.equal(one, other)
    assert torch.equal(objects(9, side=24, seed=0, classes=3)[0][::3], objects(30, side=24, seed=0)[0][:30:10])


def test_alpha_has_soft_edges_and_stays_inside():
    rgba, _ = objects(200, side=32, seed=0)
    a = rgba[:, 3]
    assert set((a * 16).unique().tolist()) == set(range(17))  # 4 x 4 points to a pixel
    border = torch.cat([a[:, 0], a[:, -1], a[:, :, 0], a[:, :, -1]])
    assert (border > 0).float().mean() < 0.02
    assert (a.amax((1, 2)) == 1).all()


def lens(r, q, apart):
    """Area that two circles of radii r and q share."""
    to_r = (apart**2 + r**2 - q**2) / (2 * apart)
    sectors = ((r, to_r), (q, apart - to_r))
    return sum(s**2 * math.acos(d / s) - d * math.sqrt(s**2 - d**2) for s, d in sectors)


AREAS = {  # worked out by hand, of the silhouette with radius 1
    "arrow": 2 * 0.24 * 1.0 + 0.8 * 0.95,
    "bow": 4 * (0.08 * 0.82 + 0.58 * 0.82**2 / 2),
    "crescent": math.pi - lens(1, 0.72, 0.45),
    "cross": 2 * (2 * 0.95 * 2 * 0.28) - (2 * 0.28) ** 2,
    "disc": math.pi * 0.95**2,
    "heart": 3.66197 / (1.35 * 1.3),  # the area of the sextic heart curve is a known number
    "ring": math.pi * (1 - 0.55**2),
    "square": 1.4**2,
    "star": 10 * 0.5 * 0.42 * math.sin(math.pi / 5),
    "triangle": 3 * math.sqrt(3) / 4,
}


@pytest.mark.parametrize("name, inside", SILHOUETTES, ids=NAMES)
def test_silhouettes_by_hand(name, inside):
    at = (torch.arange(1200, dtype=torch.float64) + 0.5) / 500 - 1.2
    v, u = torch.meshgrid(at, at, indexing="ij")
    chosen = inside(u, v)
    assert torch.hypot(u, v)[chosen].max() < 1.02  # so that it stays in the picture at every turn
    area = chosen.sum().item() / 500**2
    assert area == pytest.approx(AREAS[name], rel=0.005)


def test_alpha_is_the_covered_share():
    a = alpha("disc", 40, side=16, generator=generator(2))
    width = torch.rand(2, 40, 1, 1, generator=generator(2))[1].flatten()
    expected = math.pi * (0.95 * (0.7 + 0.28 * width) * 8) ** 2
    torch.testing.assert_close(a.sum((1, 2)), expected, rtol=0.01, atol=0)
    with pytest.raises(UsageError, match="`name` must be a known name, got 'hart'; did you mean heart"):
        alpha("hart", 1, side=16, generator=generator(0))


def test_fill_says_nothing_of_the_class():
    rgba, label = objects(2000, side=16, seed=0)
    colour = rgba[:, :3].mean((2, 3))
    means = torch.stack([colour[label == k].mean(0) for k in range(10)])
    error = colour.std(0) / math.sqrt(200)
    assert ((means - colour.mean(0)).abs() < 4.5 * error).all()


def test_trimmed_and_splits():
    image = torch.zeros(4, 9, 12)
    image[3, 2:5, 4:11] = 0.5
    assert trimmed(image).shape == (4, 3, 7) and (trimmed(image)[3] == 0.5).all()
    parts = by_place(torch.tensor([0] * 10 + [1] * 20))
    assert parts["val"].tolist() == [8, 26, 27] and parts["test"].tolist() == [9, 28, 29]
    assert torch.cat(list(parts.values())).sort().values.tolist() == list(range(30))
    made = drawn(100, side=16, seed=0)
    assert all((made.y[part].bincount(minlength=10) > 0).all() for part in made.splits.values())
    assert all((image[3, [0, -1]].sum(1) > 0).all() for image in made.images)


def test_bad_arguments():
    with pytest.raises(UsageError, match=r"`classes` must lie in \[1, 10\], got 11"):
        objects(5, side=16, seed=0, classes=11)
    with pytest.raises(UsageError, match="`side` at least 8 px, got 5 and 4"):
        objects(5, side=4, seed=0)
    with pytest.raises(UsageError, match="alpha is 0 everywhere"):
        trimmed(torch.zeros(4, 5, 5))
    with pytest.raises(UsageError, match="alpha is 0 everywhere at 1"):
        Cutouts("x", (torch.ones(4, 2, 2), torch.zeros(4, 2, 2)), torch.zeros(2), ("a",), {})
    with pytest.raises(UsageError, match=r"`images` must each be \(4, height, width\), got \(3, 2, 2\) at 0"):
        Cutouts("x", (torch.ones(3, 2, 2),), torch.zeros(1), ("a",), {})


def save(path, alpha_channel, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((*alpha_channel.shape, 4), 200, dtype=np.uint8)
    pixels[..., 3] = alpha_channel
    Image.fromarray(pixels).save(path, **options)


@pytest.fixture
def album(tmp_path):
    box = np.zeros((30, 40), dtype=np.uint8)
    box[5:20, 10:15] = 255
    for name in ("dog/a.png", "dog/b.png", "cat/c.webp"):
        save(tmp_path / "album" / name, box, **({"lossless": True} if name.endswith("webp") else {}))
    save(tmp_path / "album/cat/empty.png", 0 * box)
    Image.fromarray(np.zeros((9, 9, 3), dtype=np.uint8)).save(tmp_path / "album/cat/solid.png")
    (tmp_path / "album/cat/broken.png").write_bytes(b"no picture")
    return tmp_path / "album"


def test_folder_and_zip_of_class_folders(album, tmp_path):
    with zipfile.ZipFile(tmp_path / "album.zip", "w") as archive:
        for file in album.rglob("*.*"):
            archive.write(file, file.relative_to(album).as_posix())
    for source in (album, tmp_path / "album.zip"):
        found = cutouts(source)
        assert found.classes == ("cat", "dog") and found.y.tolist() == [0, 1, 1] and found.name == source.name
        assert all(image.shape == (4, 15, 5) and image.dtype == torch.uint8 for image in found.images)
        broken, empty, solid = found.unreadable
        assert broken.startswith("cat/broken.png: cannot identify") and empty.startswith(
            "cat/empty.png: a cut-out must"
        )
        assert solid == "cat/solid.png: no transparency: the object is not cut out"


def test_index_names_the_class_and_classes_choose(album):
    (album / "index.csv").write_text("file,class,split\ndog/a.png,wolf,train\n")
    assert cutouts(album).classes == ("cat", "dog", "wolf")
    assert cutouts(album, classes=["wolf"]).y.tolist() == [0] and cutouts(album, side=9).images[0].shape == (4, 9, 3)
    with pytest.raises(UsageError, match="`classes` must be a known name, got 'wulf'; did you mean wolf"):
        cutouts(album, classes=["wulf", "dog"])
    with pytest.raises(UsageError, match="nothing at"):
        cutouts(album / "no")


def test_nothing_cut_out(tmp_path):
    Image.fromarray(np.zeros((9, 9, 3), dtype=np.uint8)).save(tmp_path / "solid.png")
    with pytest.raises(UsageError, match="`path` must hold images with transparency, but none can be used"):
        cutouts(tmp_path)


@pytest.mark.skipif(not REAL.exists(), reason=f"the cut-outs are not at {REAL}")
def test_real_cutouts():
    found = cutouts(REAL, classes=["bird", "dog"])
    assert found.classes == ("bird", "dog") and found.y.bincount().tolist() == [120, 120] and found.unreadable == ()
    assert {max(image.shape[1:]) for image in found.images} <= set(range(120, 129))
