"""Dead leaves against a painter who lays one disc at a time, and against the statistics of photographs."""

import math

import numpy as np
import pytest
import torch

from forsooth.datasets import scenes
from forsooth.datasets.scenes import dead_leaves
from forsooth.seeds import generator


def literal_leaves(n, size, g):
    """The same draws, painted disc by disc on a torus, the last one on top."""
    least, largest = 2.0, max(size / 4, 4.0)
    area = 2 * math.pi * math.log(largest / least) / (least**-2 - largest**-2)
    discs = n * math.ceil(6 * size**2 / area)
    u = torch.rand(discs, generator=g)
    centre = (torch.rand(discs, 2, generator=g) * size).numpy()
    grey = torch.rand(discs + n, generator=g).numpy()
    radius = ((least**-2 - u * (least**-2 - largest**-2)) ** -0.5).numpy()
    images = np.stack([np.full((size, size), ground) for ground in grey[-n:]])
    middle = np.arange(size, dtype=np.float32) + 0.5
    for k in range(discs):
        away = [np.minimum(abs(middle - c), size - abs(middle - c)) for c in centre[k]]
        images[k % n][away[0][:, None] ** 2 + away[1] ** 2 < radius[k] ** 2] = grey[k]
    return images


@pytest.mark.parametrize("n, size", [(1, 24), (3, 16), (2, 8)])
def test_painted_one_by_one(n, size):
    ours = dead_leaves(n, size=size, generator=generator(7)).numpy()
    theirs = literal_leaves(n, size, generator(7))
    assert (ours != theirs).mean() < 0.01  # a pixel on the very edge of a disc may go either way


def test_radii_follow_the_inverse_cube(monkeypatch):
    seen = {}
    pixels = scenes._pixels

    def spy(chosen, radius, centre, *, reach, size):
        seen["radius"] = radius
        return pixels(chosen, radius, centre, reach=reach, size=size)

    monkeypatch.setattr(scenes, "_pixels", spy)
    dead_leaves(8, size=64, generator=generator(0))
    radius = seen["radius"]
    assert radius.min() >= 2 and radius.max() <= 16
    for r in (2.5, 4, 8):  # share of discs wider than r: integral of r^-3
        expected = (r**-2 - 16**-2) / (2**-2 - 16**-2)
        assert (radius > r).float().mean().item() == pytest.approx(expected, abs=0.02)


def radial_power(images):
    """(size / 2,) mean power at each whole frequency."""
    size = images.shape[-1]
    power = torch.fft.fft2(images - images.mean((1, 2), keepdim=True)).abs().square().mean(0)
    f = torch.fft.fftfreq(size) * size
    ring = (f[:, None] ** 2 + f**2).sqrt().round().long().flatten()
    mean = torch.bincount(ring, weights=power.flatten().double()) / torch.bincount(ring)
    return mean[: size // 2].numpy()


def test_statistics_of_photographs():
    images = dead_leaves(48, size=128, generator=generator(0))
    assert images.shape == (48, 128, 128) and images.min() >= 0 and images.max() <= 1
    f = np.arange(3, 40)
    slope = np.polyfit(np.log(f), np.log(radial_power(images)[f]), 1)[0]
    assert -2.5 < slope < -1.5
    gradient = images.diff(dim=2)
    kurtosis = gradient.pow(4).mean() / gradient.pow(2).mean() ** 2
    assert kurtosis > 6  # a Gaussian has 3
    assert 0.2 < images.std() < 0.35 and 0.45 < images.mean() < 0.55
    white = torch.rand(48, 128, 128, generator=generator(1))  # what the test must tell apart
    assert abs(np.polyfit(np.log(f), np.log(radial_power(white)[f]), 1)[0]) < 0.2


def test_seed_and_number_of_images():
    one, two, other = (dead_leaves(40, size=16, generator=generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(one, two) and not torch.equal(one, other) and len(one) == 40
    assert len({tuple(image.flatten().tolist()) for image in one}) == 40
