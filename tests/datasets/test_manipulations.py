"""The five artefacts against painters who go pixel by pixel, and the promises about their regions."""

import colorsys
import json
import math
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter

from forsooth.datasets import glyphs
from forsooth.datasets.manipulations import (
    FIXED,
    NAMES,
    RANGES,
    Manipulation,
    apply,
    draw,
    joint_region,
    levels,
    region,
)
from forsooth.datasets.scenes import dead_leaves
from forsooth.records import UsageError
from forsooth.seeds import generator

SIZES = st.tuples(st.integers(24, 70), st.integers(24, 70))
LARGER = st.tuples(st.integers(48, 90), st.integers(48, 90))  # below, the least blur is less than half a pixel
EXPERIMENTS = st.sampled_from([1, 3, 4])
BLUR, BRIGHTNESS, HUE, NOISE, WATERMARK = FIXED


def pictures(n, size, *, seed=0, dtype=torch.float32):
    """Random bytes, as colours."""
    return torch.randint(0, 256, (n, 3, *size), generator=generator(seed, "pictures")).to(dtype) / 255


def in_bytes(x):
    return (x * 255).round().int()


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(NAMES), EXPERIMENTS, LARGER, st.integers(0, 10**6), st.booleans())
def test_nothing_changes_outside_the_region(name, experiment, size, seed, on_bytes):
    m = draw(name, experiment, seed=seed, level=len(levels(name, experiment)) - 1)
    x = pictures(3, size, seed=seed) if on_bytes else torch.rand(3, 3, *size, generator=generator(seed))
    before = x.clone()
    out, inside = apply(m, x, seed=seed), region(m, size=size)
    assert torch.equal(x, before)
    assert torch.equal(out[..., ~inside], x[..., ~inside])  # to the bit
    changed = out != x
    assert changed.any()
    assert torch.equal(out[changed], in_bytes(out[changed]).float() / 255) and out.min() >= 0 and out.max() <= 1


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(NAMES), st.integers(0, 10**6), SIZES, st.floats(0.01, 1))
def test_the_region_does_not_depend_on_the_visibility(name, seed, size, visibility):
    drawn = [draw(name, 3, seed=seed, level=k) for k in range(5)]
    assert [m.visibility for m in drawn] == list(levels(name, 3)) == sorted(levels(name, 3))
    expected = region(drawn[0], size=size)
    for m in (*drawn[1:], replace(drawn[0], visibility=visibility)):
        assert torch.equal(region(m, size=size), expected)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(NAMES), EXPERIMENTS, st.integers(0, 99)), max_size=4), SIZES)
def test_the_joint_region_is_the_union(chosen, size):
    drawn = [draw(name, experiment, seed=seed) for name, experiment, seed in chosen]
    union = np.zeros(size, dtype=bool)
    for m in drawn:
        union |= region(m, size=size).numpy()
    assert torch.equal(joint_region([None, *drawn], size=size), torch.from_numpy(union))


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(NAMES), EXPERIMENTS, SIZES, st.integers(0, 10**6))
def test_the_region_pixel_by_pixel(name, experiment, size, seed):
    m, (h, w) = draw(name, experiment, seed=seed), size
    got = region(m, size=size)
    for i in range(h):
        for j in range(w):
            y, x = (i + 0.5) / h * 224, (j + 0.5) / w * 224
            away = math.hypot(i + 0.5 - h / 2, j + 0.5 - w / 2) / min(h, w) * 224
            if abs(away - m.radius) < 1e-6:
                continue
            expected = {
                "peripheral_blur": away > m.radius,
                "center_brightness": away < m.radius,
                "watermark": m.top <= y < m.bottom + 1 and m.left <= x < m.right + 1,
            }.get(name, m.top <= y < m.bottom + 1)
            assert got[i, j] == expected


def test_regions_at_the_size_of_the_paper():
    size = (224, 224)
    rows = region(HUE, size=size)
    assert torch.equal(rows, region(NOISE, size=size))
    assert rows.any(1).nonzero()[:, 0].tolist() == list(range(80, 131)) and rows[80].all()  # inclusive
    box = region(WATERMARK, size=size).nonzero()
    assert box.amin(0).tolist() == [150, 30] and box.amax(0).tolist() == [200, 194] and len(box) == 51 * 165
    assert region(BRIGHTNESS, size=size).sum() == pytest.approx(math.pi * 60**2, rel=0.01)
    assert (~region(BLUR, size=size)).sum() == pytest.approx(math.pi * 80**2, rel=0.01)


def hsv_pixel(rgb, *, hue=0.0, value=0.0):
    """Three bytes after a shift in HSV, by the standard library."""
    h, s, v = colorsys.rgb_to_hsv(*rgb)
    return [round(c * 255) for c in colorsys.hsv_to_rgb((h + hue) % 1, s, min(max(v + value, 0), 1))]


def assert_painted(out, expected):
    """Same bytes; one in a hundred may differ by one, where a value lies between two bytes."""
    difference = (in_bytes(out) - torch.as_tensor(expected).int()).abs()
    assert difference.max() <= 1 and (difference > 0).double().mean() < 0.01


@pytest.mark.parametrize("size", [(30, 30), (26, 40)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_brightness_pixel_by_pixel(size, dtype):
    h, w = size
    m, x = Manipulation("center_brightness", 0.25, radius=90), pictures(2, size, dtype=dtype)
    x[0, :, 10:14] = x[0, :1, 10:14]  # greys
    x[0, :, 14:16] = 0
    expected = in_bytes(x)
    for n, i, j in np.ndindex(2, h, w):
        away = math.hypot(i + 0.5 - h / 2, j + 0.5 - w / 2) / min(h, w) * 224
        if away <= 90:
            shift = -0.25 * math.cos(math.pi / 2 * away / 90) ** 2
            expected[n, :, i, j] = torch.tensor(hsv_pixel(x[n, :, i, j].tolist(), value=shift))
    out = apply(m, x, seed=0)
    assert out.dtype == dtype
    assert_painted(out, expected)


@pytest.mark.parametrize("anchor", ["image", "band"])
@pytest.mark.parametrize("size", [(56, 20), (33, 25)])
def test_hue_pixel_by_pixel(anchor, size):
    h, w = size
    m = Manipulation("striped_hue", 0.2, top=60, bottom=170, anchor=anchor)
    x = pictures(2, size, dtype=torch.float64)
    x[0, :, :, 3:6] = x[0, :1, :, 3:6]  # greys have no hue to shift
    expected = in_bytes(x)
    for n, i, j in np.ndindex(2, h, w):
        row = (i + 0.5) / h * 224 - 0.5
        if 60 <= row + 0.5 < 171:
            s = math.sin(2 * math.pi * (row - (112 if anchor == "image" else 60)) / (170 - 60))
            shift = 0.2 * math.copysign(s * s, s)
            expected[n, :, i, j] = torch.tensor(hsv_pixel(x[n, :, i, j].tolist(), hue=shift))
    assert_painted(apply(m, x, seed=0), expected)
    assert torch.equal(apply(m, x, seed=0)[0, :, :, 3:6], x[0, :, :, 3:6])


def test_hue_first_rises_then_falls_when_anchored_at_the_band():
    x = torch.tensor([0.8, 0.4, 0.4])[None, :, None, None].expand(1, 3, 224, 4)  # hue 0
    out = apply(replace(HUE, anchor="band"), x, seed=0)[0, :, :, 0].T
    hues = [colorsys.rgb_to_hsv(*rgb)[0] for rgb in out.tolist()]
    assert all(0 <= hue < 0.5 for hue in hues[80:105]) and all(hue > 0.5 or hue == 0 for hue in hues[106:131])
    assert hues[92] == pytest.approx(0.15, abs=0.01) and hues[118] == pytest.approx(0.85, abs=0.01)


@pytest.mark.parametrize("size", [(60, 60), (48, 72)])
def test_blur_against_scipy(size):
    m, x = Manipulation("peripheral_blur", 6, radius=80), pictures(2, size, dtype=torch.float64)
    inside, sigma = region(m, size=size).numpy(), 6 * min(size) / 224
    blurred = gaussian_filter(x.numpy(), (0, 0, sigma, sigma), mode="nearest", truncate=4.0)
    assert_painted(apply(m, x, seed=0), np.where(inside, (blurred * 255).round(), in_bytes(x).numpy()))


def test_noise_pixel_by_pixel():
    m, size = Manipulation("striped_noise", 0.3, top=50, bottom=150), (40, 24)
    x = pictures(3, size)
    expected = in_bytes(x)
    rows = region(m, size=size).any(1).nonzero()[:, 0].tolist()
    for n, number in enumerate((7, 0, 300)):
        g = generator(5, "striped_noise", number)
        u = torch.rand(len(rows), 24, generator=g)
        colours = torch.randint(0, 256, (3, int((u < 0.3).sum())), generator=g)
        k = 0
        for i, row in enumerate(rows):
            for j in range(24):
                if u[i, j] < 0.3:
                    expected[n, :, row, j] = colours[:, k]
                    k += 1
    assert torch.equal(in_bytes(apply(m, x, seed=5, which=[7, 0, 300])), expected)


def test_noise_hits_its_share_with_uniform_colours():
    m = Manipulation("striped_noise", 0.1, top=20, bottom=200)
    out = apply(m, torch.full((20, 3, 64, 64), 0.5), seed=0)
    hit = (out != 0.5).any(1)[:, region(m, size=(64, 64))]
    assert hit.double().mean() == pytest.approx(0.1, abs=4 * (0.09 / hit.numel()) ** 0.5)
    colours = out.movedim(1, 3)[(out != 0.5).any(1)]
    assert colours.mean() == pytest.approx(0.5, abs=0.02) and colours.std() == pytest.approx(12**-0.5, abs=0.02)


@pytest.mark.parametrize("size, characters, colours", [((224, 224), "hex", "either"), ((100, 150), "digits", "fixed")])
def test_watermark_against_pillow_on_the_whole_picture(size, characters, colours):
    m = replace(WATERMARK, characters=characters, colours=colours)
    x = pictures(6, size)
    scale, alphabet = min(size) / 224, "0123456789ABCDEF" if characters == "hex" else "0123456789"
    places = region(m, size=size).nonzero()
    (top, left), (bottom, right) = places.amin(0).tolist(), (places.amax(0) + 1).tolist()
    face, expected, seen = glyphs.font(13 * scale), [], set()
    for k in range(6):
        g = generator(3, "watermark", k)
        text = "".join(alphabet[c] for c in torch.randint(0, len(alphabet), (4,), generator=g).tolist())
        swapped = torch.randint(0, 2, (), generator=g).item() == 1 and colours == "either"
        u, v = torch.rand(2, generator=g).tolist()
        low = max(40 * scale, face.getlength("IMG"))
        high = right - left - max(40 * scale, face.getlength(text))
        at = (left + round(low + u * (high - low)), top + round(10 * scale + v * (bottom - top - 20 * scale)))
        picture = Image.fromarray(in_bytes(x[k]).byte().permute(1, 2, 0).numpy().copy())
        pen = ImageDraw.Draw(picture)
        pen.text(at, "IMG", font=face, fill=(0, 0, 0) if swapped else (255, 255, 255), anchor="rm")
        pen.text(at, text, font=face, fill=(255, 255, 255) if swapped else (0, 0, 0), anchor="lm")
        expected.append(np.asarray(picture).transpose(2, 0, 1))
        seen.add((text, at))
    out = apply(m, x, seed=3)
    assert (in_bytes(out) - torch.from_numpy(np.stack(expected)).int()).abs().max() <= 1
    assert len(seen) == 6


@pytest.mark.parametrize("level", range(5))
def test_watermark_is_whole_in_the_smallest_rectangle_of_the_paper(level):
    """All ink is there: as much as on a canvas with room to spare."""
    size = levels("watermark", 3)[level]
    pen = glyphs.Pen(glyphs.font(size), 1.0, characters="hex", colours="fixed")
    for u in ((0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.3, 0.8)):
        for text in ("0000", "DDDD", "A1B2"):
            small, large = (glyphs.coverage(text, pen, box=b, u=torch.tensor(u)) for b in ((40, 100), (300, 300)))
            assert torch.equal(in_bytes(small).sum((1, 2)), in_bytes(large).sum((1, 2)))


def test_watermark_switches():
    grey = torch.full((40, 3, 224, 224), 0.5)
    counts = []
    for colours in ("either", "fixed"):
        out = apply(replace(WATERMARK, colours=colours), grey, seed=0)
        ink = (out != 0.5).any(1)
        columns = torch.arange(224).expand(40, 224, 224)
        first = torch.where(ink, columns, 999).flatten(1).argmin(1)  # the leftmost ink belongs to IMG
        value = out[:, 0].flatten(1).gather(1, first[:, None])
        counts.append((value > 0.5).sum().item())
    assert 8 < counts[0] < 32 and counts[1] == 40
    assert len({tuple(image.flatten().nonzero()[:, 0].tolist()) for image in (out != 0.5).any(1)}) == 40


def test_what_is_too_small_for_its_letters_is_cut_and_stays_inside():
    m = Manipulation("watermark", 60, top=100, bottom=120, left=100, right=130)
    x = pictures(2, (64, 64))
    out, inside = apply(m, x, seed=0), region(m, size=(64, 64))
    assert torch.equal(out[..., ~inside], x[..., ~inside]) and (out != x).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("side, slack", [(224, 1.0), (128, 1.0), (64, 0.98)])
def test_visibility_increases_the_change(name, side, slack):
    """At 64 px letters are 2 to 4 px high, and hinting may round two sizes to about the same ink."""
    grey = dead_leaves(8, size=side, generator=generator(0))[:, None]
    x = (grey * torch.tensor([1.0, 0.7, 0.5])[:, None, None] * 255).round() / 255
    changes = [(apply(draw(name, 3, seed=1, level=k), x, seed=2) - x).abs().sum().item() for k in range(5)]
    assert all(more > slack * less for less, more in pairwise(changes)) and changes[4] > 1.3 * changes[0] > 0


@pytest.mark.parametrize("m", FIXED, ids=NAMES)
def test_a_picture_does_not_depend_on_its_company(m):
    x = pictures(40, (48, 40))
    whole = apply(m, x, seed=4)
    which = [39, 3, 17]
    assert torch.equal(apply(m, x[which], seed=4, which=which), whole[which])
    assert torch.equal(apply(m, x, seed=4), whole)
    assert torch.equal(apply(m, x, seed=5), whole) == (m.name not in ("striped_noise", "watermark"))
    assert apply(m, x[:0], seed=4).shape == (0, 3, 48, 40)


@pytest.mark.parametrize("m", [BRIGHTNESS, HUE], ids=["brightness", "hue"])
def test_the_leak_of_the_released_code(m):
    x = pictures(4, (224, 224))
    outside = ~region(m, size=(224, 224))
    fall = (in_bytes(x) - in_bytes(apply(replace(m, leak=True), x, seed=0)))[..., outside]
    assert set(fall.unique().tolist()) == {0, 1}
    assert 0.1 < fall.double().mean() < 0.5 and fall.any(1).double().mean() > 0.3
    for other in (BLUR, NOISE, WATERMARK):  # these never went through HSV
        assert torch.equal(apply(replace(other, leak=True), x[:1], seed=0), apply(other, x[:1], seed=0))


def test_ranges_of_the_paper():
    for experiment, by_name in RANGES.items():
        for name, span in by_name.items():
            drawn = [draw(name, experiment, seed=seed) for seed in range(300)]
            for given_range, found in (
                (span.radius, [m.radius for m in drawn]),
                (span.height, [m.bottom - m.top + 1 for m in drawn]),
                (span.width, [m.right - m.left + 1 for m in drawn]),
            ):
                if given_range is None:
                    continue
                least, largest = given_range
                assert least <= min(found) and max(found) <= largest
                assert min(found) < least + 0.1 * (largest - least) and max(found) > largest - 0.1 * (largest - least)
            assert all(0 <= m.top < m.bottom <= 223 and 0 <= m.left < m.right <= 223 for m in drawn)
    assert [draw(m.name, 4, seed=9) for m in FIXED] == list(FIXED)
    assert draw("watermark", 1, seed=3) == draw("watermark", 2, seed=3) != draw("watermark", 1, seed=4)


@pytest.mark.parametrize("m", FIXED, ids=NAMES)
def test_plain_values_bring_it_back(m):
    assert Manipulation(**json.loads(json.dumps(asdict(m)))) == m
    drawn = draw(m.name, 1, seed=0)
    assert Manipulation(**json.loads(json.dumps(asdict(drawn)))) == drawn


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: draw("watermrk", 1, seed=0), "`name` must be a known name, got 'watermrk'; did you mean watermark"),
        (lambda: draw("watermark", 5, seed=0), "`experiment` must be 1, 2, 3 or 4, got 5"),
        (lambda: draw("watermark", 3, seed=0, level=5), "`level` must be 0 to 4 in experiment 3, got 5"),
        (lambda: region(Manipulation("fog", 1), size=(9, 9)), "`name` must be a known name, got 'fog'"),
        (lambda: region(replace(HUE, visibility=0), size=(9, 9)), "`visibility` must be positive"),
        (lambda: region(replace(NOISE, visibility=1.5), size=(9, 9)), "`visibility` must be positive .*got 1.5"),
        (lambda: region(Manipulation("peripheral_blur", 1), size=(9, 9)), "`radius` must be positive, got 0"),
        (lambda: region(replace(HUE, top=140), size=(9, 9)), "`top` must be less than `bottom`, got 140 and 130"),
        (lambda: region(replace(BLUR, radius=400), size=(9, 9)), "must leave pixels in the region .*got 9 x 9"),
        (
            lambda: apply(HUE, torch.zeros(2, 1, 9, 9), seed=0),
            r"`x` must be .*got torch.float32 of shape \(2, 1, 9, 9\)",
        ),
        (lambda: apply(HUE, torch.zeros(2, 3, 9, 9).byte(), seed=0), "`x` must be floating-point .*got torch.uint8"),
        (lambda: apply(HUE, torch.full((2, 3, 9, 9), 255.0), seed=0), r"`x` must lie in \[0, 1\], got 255 to 255"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(UsageError, match=message):
        call()
