"""Objects in scenes: pasted again with Pillow's arithmetic, nothing changed outside the mask, X^k as the paper says."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import forsooth
from forsooth.datasets.compositing import paste
from forsooth.datasets.leaves import scene_classes
from forsooth.datasets.objects import Cutouts, cutouts, drawn
from forsooth.datasets.pasted import VARIANTS, Pastes, Placing, boxes, common, pairs, pasted, rendered
from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator

REAL = Path(forsooth.__file__).parents[3] / "shared/data/voc2012_cutouts_128px.zip"
PER = {"train": 3, "val": 1, "test": 2}


@pytest.fixture(scope="module")
def scenes():
    return scene_classes(classes=5, n=250, side=32, seed=0)


@pytest.fixture(scope="module")
def things():
    return drawn(80, side=32, seed=0, classes=4)


@pytest.fixture(scope="module")
def table(scenes, things):
    return pairs(scenes, things, per_pair=PER, seed=0)


def test_every_pair_of_classes_in_every_split(scenes, things, table):
    assert len(table.scene) == 4 * 5 * 6 and table.present.all()
    for split, rows in table.splits.items():
        pair = things.y[table.cutout[rows]] * 5 + scenes.y[table.scene[rows]]
        assert pair.bincount().tolist() == [PER[split]] * 20
        assert torch.isin(table.scene[rows], scenes.splits[split]).all()  # nothing leaks between the splits
        assert torch.isin(table.cutout[rows], things.splits[split]).all()


def test_pairing_as_released_and_spread(scenes, things, table):
    released = pairs(scenes, things, per_pair=PER, seed=0, pairing="released")
    rows = released.splits["train"].reshape(4, 5, 3)
    for o in range(4):
        for s in range(5):
            assert torch.equal(released.scene[rows[o, s]], released.scene[rows[0, s]])
            assert torch.equal(released.cutout[rows[o, s]], released.cutout[rows[o, 0]])
            assert set(scenes.y[released.scene[rows[o, s]]].tolist()) == {s}
            assert set(things.y[released.cutout[rows[o, s]]].tolist()) == {o}
    assert len(released.cutout[rows].unique()) == 4 * 3 and len(table.cutout[rows].unique()) == 4 * 15
    assert len(released.scene[rows].unique()) == 5 * 3 and len(table.scene[rows].unique()) == 5 * 12


def test_scenes_and_cutouts_are_drawn_and_not_the_first_of_their_class(scenes, things):
    tables = [pairs(scenes, things, per_pair={"train": 1}, seed=seed, pairing="released") for seed in range(30)]
    assert len({int(table.scene[0]) for table in tables}) > 10
    assert len({int(table.cutout[0]) for table in tables}) > 3


def test_nothing_changes_outside_the_mask_to_the_bit(scenes, things, table):
    x, alpha = rendered(table, scenes.x, things)
    plain, same = rendered(table, scenes.x, things, shown="s")
    grey, still = rendered(table, scenes.x, things, shown="og")
    assert torch.equal(plain, scenes.x[table.scene]) and torch.equal(alpha, same) and torch.equal(alpha, still)
    outside = (alpha == 0)[:, None].expand_as(x)
    assert torch.equal(x[outside], plain[outside]) and (grey[outside] == 0.5).all()
    solid = (alpha == 1)[:, None].expand_as(x)
    torch.testing.assert_close(x[solid], grey[solid])  # where nothing shines through, the ground does not matter
    assert alpha.min() == 0 and alpha.max() <= 1 and x.min() >= 0 and x.max() <= 1
    changed = (x != plain).any(1)
    assert (changed & (alpha > 0)).sum() > 0.99 * (alpha > 0).sum()


def test_same_seed_same_images(scenes, things, table):
    again, other = (pairs(scenes, things, per_pair=PER, seed=seed) for seed in (0, 1))
    rows = torch.tensor([5, 77, 3])
    whole, some = rendered(table, scenes.x, things)[0], rendered(again, scenes.x, things, rows=rows)[0]
    assert torch.equal(whole[rows], some)
    assert not torch.equal(whole[rows], rendered(other, scenes.x, things, rows=rows)[0])


def test_ground_may_be_a_colour_and_scenes_bytes(scenes, things, table):
    rows, mean = torch.arange(4), scenes.x.mean((0, 2, 3))
    x, alpha = rendered(table, scenes.x, things, rows=rows, shown="og", ground=mean)
    assert torch.equal(x[2][:, alpha[2] == 0], mean[:, None].expand(3, int((alpha[2] == 0).sum())))
    small = rendered(table, (scenes.x * 255).round().byte(), things, rows=rows)[0]
    torch.testing.assert_close(small, rendered(table, scenes.x, things, rows=rows)[0], atol=0.002, rtol=0)
    double = rendered(table, scenes.x.double(), things, rows=rows)
    assert double[0].dtype == double[1].dtype == torch.float64


def test_pasted_by_pillow():
    rows, columns = np.mgrid[:40, :30]
    bright = ((rows + columns) * 3).astype(np.uint8)
    hole = (255 * ((rows - 20) ** 2 / 400 + (columns - 15) ** 2 / 225 < 1)).astype(np.uint8)
    cut = np.stack([bright, 255 - bright, bright // 2, hole], -1)
    scene = np.full((50, 60, 3), 90, dtype=np.uint8)
    ground, solid = Image.fromarray(scene), Image.fromarray(cut).resize((15, 20), Image.Resampling.BILINEAR)
    ground.paste(solid, (12, 7), solid)
    image, mask = torch.from_numpy(scene).permute(2, 0, 1) / 255, torch.zeros(50, 60)
    paste(image, mask, torch.from_numpy(cut).permute(2, 0, 1), box=(7, 12, 20, 15), seen=True)
    assert (image.permute(1, 2, 0) * 255 - torch.from_numpy(np.asarray(ground).astype(np.float32))).abs().max() < 2
    assert mask.nonzero().amin(0).tolist() == [7, 12] and mask.nonzero().amax(0).tolist() == [26, 26]


@settings(max_examples=100, deadline=None)
@given(
    size=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    scene=st.tuples(st.integers(32, 224), st.integers(32, 224)),
    rule=st.sampled_from(["released", "area"]),
    shares=st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)).map(sorted),
)
def test_boxes_stay_in_the_scene(size, scene, rule, shares):
    chance = torch.rand(50, 3, generator=generator(0))
    box = boxes(chance, torch.tensor([size]).expand(50, 2), scene=scene, placing=Placing(rule, *shares))
    assert box.min() >= 0 and box[:, 2:].min() >= 1
    assert (box[:, 0] + box[:, 2]).max() <= scene[0] and (box[:, 1] + box[:, 3]).max() <= scene[1]
    limiting = (box[:, 2:] / torch.tensor(scene)).amax(1)
    low, high = (math.sqrt(share) for share in shares)
    if rule == "released":
        slack = 0.51 / min(scene) + 1e-6
        assert limiting.min() >= low - slack and limiting.max() <= max(high, 1 / min(scene)) + slack


def test_scale_as_released_and_by_area():
    chance = torch.rand(4000, 3, generator=generator(0))
    square, long = (torch.tensor([size]).expand(4000, 2) for size in ((90, 90), (128, 30)))
    at = {"scene": (128, 128)}
    released = boxes(chance, square, **at, placing=Placing())[:, 2]
    assert (released.min(), released.max()) == (74, 91)  # 128 / √3 and 128 / √2, as the authors' code draws them
    assert released.float().mean().item() == pytest.approx((128 / math.sqrt(3) + 128 / math.sqrt(2)) / 2, abs=0.3)
    area = boxes(chance, square, **at, placing=Placing("area"))[:, 2:].prod(1) / 128**2
    assert 0.325 < area.min() < 0.34 and 0.49 < area.max() < 0.508
    assert area.mean().item() == pytest.approx(5 / 12, abs=0.003)
    assert boxes(chance, long, **at, placing=Placing())[:, 2].max() == 91
    too_long = boxes(chance, long, **at, placing=Placing("area"))
    assert (too_long[:, 2:] == torch.tensor([128, 30])).all() and (too_long[:, 0] == 0).all()


def test_places_are_uniform():
    chance = torch.rand(20000, 3, generator=generator(0))
    box = boxes(chance, torch.ones(20000, 2), scene=(16, 16), placing=Placing(least=0.25, most=0.25))
    assert (box[:, 2:] == 8).all()
    counts = (box[:, 0] * 9 + box[:, 1]).bincount(minlength=81)
    assert len(counts) == 81 and ((counts - 20000 / 81).square().sum() / (20000 / 81)) < 130  # χ² with 80 degrees


def test_variants_move_and_scale_the_same_objects(scenes, things, table):
    seen = {name: rendered(replace(table, placing=p), scenes.x, things)[1] for name, p in VARIANTS.items()}
    area = {name: (alpha > 0).float().mean((1, 2)) for name, alpha in seen.items()}
    assert (area["smaller"] < area["as_built"]).all() and (area["as_built"] < area["larger"]).all()
    step = torch.arange(32.0)
    height = {name: ((alpha > 0).any(2) * step).sum(1) / (alpha > 0).any(2).sum(1) for name, alpha in seen.items()}
    assert (height["top_left"] <= height["centre"]).all() and (height["centre"] <= height["bottom_right"]).all()
    assert (height["centre"] - 15.5).abs().max() <= 1.5
    torch.testing.assert_close(area["centre"], area["as_built"], rtol=0.05, atol=0.01)


@pytest.mark.parametrize("k", [0.2, 0.4, 0.6, 0.8, 1.0])
def test_common_feature_is_in_all_images_of_its_share_of_classes(scenes, things, k):
    table = common(scenes, things, k=k, feature=2, per_class=PER, seed=0)
    label = scenes.y[table.scene]
    assert label.bincount().tolist() == [6] * 5 and (things.y[table.cutout] == 2).all()
    shares = [table.present[label == s].float().mean().item() for s in range(5)]
    assert shares == [1.0] * round(5 * k) + [0.0] * (5 - round(5 * k))
    x, alpha = rendered(table, scenes.x, things)
    changed = (x != scenes.x[table.scene]).flatten(1).any(1)
    assert torch.equal(changed, table.present) and (alpha.amax((1, 2)) > 0.9).all()


def test_common_sets_differ_in_presence_only(scenes, things):
    few, all_of_them = (common(scenes, things, k=k, feature=0, per_class=PER, seed=3) for k in (0.2, 1.0))
    for name in ("scene", "cutout", "chance"):
        assert torch.equal(getattr(few, name), getattr(all_of_them, name))
    given_back = replace(few, present=torch.ones_like(few.present))
    assert torch.equal(rendered(given_back, scenes.x, things)[0], rendered(all_of_them, scenes.x, things)[0])


def test_datasets_of_both_labels(scenes, things, table):
    by_scene, by_object = (pasted(table, scenes, things, label=label) for label in ("scene", "object"))
    assert torch.equal(by_scene.x, by_object.x) and by_scene.truth.dtype == torch.bool
    assert torch.equal(by_scene.y, scenes.y[table.scene]) and torch.equal(by_object.y, things.y[table.cutout])
    assert by_scene.facts["classes"] == scenes.facts["classes"] and by_object.facts["classes"] == list(things.classes)
    plain = pasted(table, scenes, things, label="scene", shown="s")
    differs = (plain.x != by_scene.x).any(1)
    assert torch.equal(plain.truth, by_scene.truth) and not (differs & ~by_scene.truth).any()
    for rows in by_scene.splits.values():
        assert len(by_scene.y[rows].unique()) == 5 and len(by_object.y[rows].unique()) == 4


def test_bad_input(scenes, things, table):
    for k in (0.0, 1.2, 0.3):
        with pytest.raises(UsageError, match=rf"`k` must lie in \(0, 1\] and be a multiple of 1/5.*got {k}"):
            common(scenes, things, k=k, feature=0, per_class=PER, seed=0)
    with pytest.raises(UsageError, match=r"`feature` must be a class number in \[0, 3\], got 4"):
        common(scenes, things, k=1.0, feature=4, per_class=PER, seed=0)
    with pytest.raises(UsageError, match="`scenes` must have the split 'exam', got train, val, test"):
        pairs(scenes, things, per_pair={"exam": 2}, seed=0)
    with pytest.raises(UsageError, match="at least 1 image for each pair of classes in 'val', got 0"):
        pairs(scenes, things, per_pair={"val": 0}, seed=0)
    lacking = replace(things, splits={"train": things.splits["train"][things.y[things.splits["train"]] != 1]})
    with pytest.raises(UsageError, match="`cutouts` must have class 1 in split 'train', but there is none"):
        pairs(scenes, lacking, per_pair={"train": 2}, seed=0)
    with pytest.raises(UsageError, match=r"0 < least <= most <= 1, got 0.5, 1.5"):
        Placing(least=0.5, most=1.5)
    with pytest.raises(UsageError, match=r"`rows` must be two shares in order in \[0, 1\], got 0.9, 0.2"):
        Placing(rows=(0.9, 0.2))
    with pytest.raises(UsageError, match="`rule` must be a known name, got 'areas'; did you mean area"):
        Placing("areas")
    with pytest.raises(UsageError, match="`shown` must be a known name, got 'so'"):
        rendered(table, scenes.x, things, shown="so")
    with pytest.raises(
        UsageError, match=r"`scenes` must be colour images \(m, 3, height, width\), got \(250, 1, 32, 32\)"
    ):
        rendered(table, scenes.x[:, :1], things)
    with pytest.raises(UsageError, match="`label` must be a known name, got 'objekt'; did you mean object"):
        pasted(table, scenes, things, label="objekt")
    with pytest.raises(UsageError, match="`pairing` must be a known name"):
        pairs(scenes, things, per_pair=PER, seed=0, pairing="loose")


@pytest.mark.skipif(not REAL.exists(), reason=f"the cut-outs are not at {REAL}")
def test_real_cutouts_of_different_sizes():
    real = cutouts(REAL, classes=["boat", "bottle"])
    x = torch.randint(0, 256, (20, 3, 60, 90), dtype=torch.uint8, generator=generator(0))
    y, every = torch.arange(20) % 2, torch.arange(20)
    scenes = Dataset("noise", x, y, None, {"train": every, "test": every})
    made = pasted(pairs(scenes, real, per_pair={"train": 5, "test": 1}, seed=0), scenes, real, label="object")
    assert made.x.shape == (24, 3, 60, 90) and made.truth.flatten(1).any(1).all()
    assert isinstance(real, Cutouts) and isinstance(made, Dataset)


def test_a_table_is_small(table):
    numbers = [getattr(table, name) for name in ("scene", "cutout", "chance", "present")]
    assert isinstance(table, Pastes) and sum(t.element_size() * t.numel() for t in numbers) / len(table.scene) < 32
