"""Generated scenes: painted leaf by leaf a second time, learnable by texture and not by colour, the same by seed."""

import colorsys
import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from forsooth.datasets import scenes
from forsooth.datasets.leaves import LEAVES, SCENES, leaves, painted, scene_classes
from forsooth.datasets.scenes import Leaf, coloured_leaves, rgb
from forsooth.records import UsageError
from forsooth.seeds import generator


@pytest.fixture(scope="module")
def ten():
    return scene_classes(n=1500, side=32, seed=0)


def test_shape_range_and_balance(ten):
    assert ten.x.shape == (1500, 3, 32, 32) and ten.x.dtype == torch.float32
    assert ten.x.min() >= 0 and ten.x.max() <= 1 and ten.truth is None
    assert ten.y.bincount().tolist() == [150] * 10
    assert ten.facts["classes"] == [scene.name for scene in SCENES]
    assert torch.cat(list(ten.splits.values())).sort().values.tolist() == list(range(1500))
    for part in ten.splits.values():
        counts = ten.y[part].bincount(minlength=10)
        assert counts.min() > 0 and counts.max() - counts.min() <= 1


def test_seed_decides_everything():
    one, two, other = (leaves(n=60, side=16, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one.x, two.x) and all(torch.equal(one.splits[k], two.splits[k]) for k in one.splits)
    assert not torch.equal(one.x, other.x)
    assert len({image.numpy().tobytes() for image in one.x}) == 60


def test_a_class_does_not_depend_on_the_number_of_classes():
    two, four = leaves(classes=2, n=40, side=16, seed=3), leaves(classes=4, n=80, side=16, seed=3)
    for k in (0, 1):
        assert torch.equal(two.x[two.y == k], four.x[four.y == k])


def score(features, data):
    train, test = data.splits["train"], torch.cat([data.splits["val"], data.splits["test"]])
    fitted = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(features[train], data.y[train])
    return fitted.score(features[test], data.y[test])


def textures(x):
    """Power in rings and directions of frequency, and how peaked the differences are."""
    grey = x.mean(1)
    grey = (grey - grey.mean((1, 2), keepdim=True)) / grey.std((1, 2), keepdim=True)
    power = torch.nn.functional.avg_pool2d(torch.fft.fftshift(torch.fft.fft2(grey).abs()[:, None], (2, 3)), 4)
    kinks = [grey.diff(dim=d).abs().pow(q).mean((1, 2)) for d in (1, 2) for q in (0.25, 0.5, 1, 2)]
    both = [grey.diff(dim=1)[:, :, 1:], grey.diff(dim=2)[:, 1:]]
    diagonal = [(both[0] * both[1]).abs().pow(q).mean((1, 2)) for q in (0.25, 0.5, 1)]
    return torch.cat([power.flatten(1).log(), torch.stack(kinks + diagonal, 1).log()], 1).numpy()


def test_colour_does_not_tell_the_class_but_texture_does(ten):
    assert 0.1 < score(ten.x.mean((2, 3)).numpy(), ten) < 0.45
    assert score(textures(ten.x), ten) > 0.9


def literal_leaves(leaf, hue, side, g):
    """The same draws as for one scene, painted leaf by leaf with nine copies for the torus, the last one on top."""
    least, largest = max(leaf.least * side, 1.2), max(leaf.largest * side, 2.4)
    area = 2 * math.pi * math.log(largest / least) / (least**-2 - largest**-2)
    count = math.ceil(scenes.COVER * side**2 / area)
    u = torch.rand(count, generator=g)
    hue_off, angle_off = torch.randn(2, count + 1, generator=g).tolist()
    centre = (torch.rand(count, 2, generator=g) * side).tolist()
    saturation, value = torch.rand(2, count + 1, generator=g).tolist()
    radius = ((least**-2 - u * (least**-2 - largest**-2)) ** -0.5).tolist()
    colours = [
        colorsys.hsv_to_rgb((hue + 0.06 * h) % 1, 0.1 + 0.5 * s, 0.15 + 0.8 * v)
        for h, s, v in zip(hue_off, saturation, value, strict=True)
    ]
    image = np.empty((side, side, 3))
    image[:] = colours[-1]
    at = np.arange(side) + 0.5
    for k in range(count):
        long = radius[k] * math.sqrt(leaf.stretch) * {1: 1.2533141, 2: 1.0, math.inf: 0.8862269}[leaf.power]
        c, s = math.cos(leaf.angle + 0.1 * angle_off[k]), math.sin(leaf.angle + 0.1 * angle_off[k])
        for row, column in np.ndindex(3, 3):
            down, right = np.meshgrid(
                at - centre[k][0] + (row - 1) * side, at - centre[k][1] + (column - 1) * side, indexing="ij"
            )
            along, across = abs(right * c + down * s) / long, abs(down * c - right * s) / long * leaf.stretch
            inside = (
                np.maximum(along, across) < 1 if leaf.power == math.inf else along**leaf.power + across**leaf.power < 1
            )
            image[inside] = colours[k]
    return image.transpose(2, 0, 1)


@pytest.mark.parametrize("scene", LEAVES, ids=lambda scene: scene.name)
def test_painted_one_by_one(scene):
    ours = coloured_leaves(scene.paint, torch.tensor([0.3]), side=20, generator=generator(5))[0].numpy()
    theirs = literal_leaves(scene.paint, 0.3, 20, generator(5))
    assert (abs(ours - theirs).max(0) > 1e-5).mean() < 0.02  # a pixel on the very edge of a leaf may go either way


def test_leaves_of_every_shape_have_the_area_of_their_disc():
    radius, centre, angle = (
        torch.full((50,), 8.0),
        40 * torch.rand(50, 2, generator=generator(0)),
        torch.linspace(0, 1, 50),
    )
    for leaf in (Leaf(2), Leaf(math.inf), Leaf(1), Leaf(2, stretch=4)):
        pixel, which = scenes._under(leaf, radius, centre, angle, side=40)
        assert which.bincount().float().mean().item() == pytest.approx(math.pi * 64, rel=0.01)
        assert len({*zip(pixel.tolist(), which.tolist(), strict=True)}) == len(pixel) and pixel.max() < 1600


def test_colours_agree_with_the_standard_library():
    h, s, v = torch.rand(3, 200, generator=generator(0), dtype=torch.float64)
    theirs = [colorsys.hsv_to_rgb(*values) for values in zip(h.tolist(), s.tolist(), v.tolist(), strict=True)]
    np.testing.assert_allclose(rgb(h - 1, s, v), theirs, atol=1e-6)


def test_textures_have_their_frequencies():
    power = torch.fft.rfft2(scenes.blobs(64, side=64, generator=generator(0)) - 0.5).abs().square().mean(0)
    f = (torch.fft.fftfreq(64)[:, None].square() + torch.fft.rfftfreq(64).square()).sqrt() * 64
    assert 4 <= f.flatten()[power.argmax()] <= 6
    clouds = scenes._filtered(64, 64, lambda f: f.clamp(min=1) ** -1.5 * (f > 0), generator(0))
    power = torch.fft.rfft2(clouds).abs().square().mean(0)
    assert (power[(f > 15) & (f < 17)].mean() / power[(f > 3.9) & (f < 4.1)].mean()).item() == pytest.approx(
        4**-3, rel=0.3
    )
    assert clouds.mean((1, 2)).abs().max() < 1e-5 and clouds.var((1, 2)).sub(1).abs().max() < 0.01


def test_other_sides():
    for scene in SCENES:
        for side in (8, 21):
            x = painted(scene, 3, side=side, seed=0)
            assert x.shape == (3, 3, side, side) and x.min() >= 0 and x.max() <= 1 and x.std() > 0.02


def test_bad_arguments():
    with pytest.raises(UsageError, match=r"`classes` must lie in \[2, 6\], got 7"):
        leaves(classes=7, n=100, seed=0)
    with pytest.raises(UsageError, match=r"`classes` must lie in \[2, 10\], got 1"):
        scene_classes(classes=1, n=100, seed=0)
    with pytest.raises(UsageError, match="`n` must be at least 40 for 4 classes in three splits, got 39"):
        leaves(n=39, seed=0)
    with pytest.raises(UsageError, match="`side` must be at least 8 px, got 4"):
        leaves(n=40, side=4, seed=0)
