"""What is planted on: specs as plain values, pairs of classes, who is explained, where the region is."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from PIL import Image
from suites.planted.smallest import LEAVES, PAIR, spec_of

from forsooth.datasets import plain_images
from forsooth.datasets.class_pairs import BIRDS, class_pairs, of_pair
from forsooth.datasets.manipulations import FIXED, NAMES, draw
from forsooth.datasets.plain_images import Images
from forsooth.datasets.planted import Border, kinds_of
from forsooth.datasets.visibility import adjusted, legible
from forsooth.plain import from_plain, to_plain
from forsooth.records import UsageError
from forsooth.suites.planted import data
from forsooth.suites.planted.data import DataSpec

pytestmark = pytest.mark.usefixtures("single")


@pytest.mark.parametrize("spec", [spec_of(pair=PAIR), spec_of("striped_hue", border=True)], ids=["pair", "border"])
def test_a_spec_is_the_same_after_json(spec):
    text = json.dumps(to_plain(spec))
    assert from_plain(json.loads(text), DataSpec) == spec


def test_the_words_of_a_spec_in_keys_stay():
    plain = to_plain(spec_of(pair=PAIR, border=True))
    assert list(plain) == ["base", "pair", "manipulation", "r", "border", "seed"]
    assert list(plain["base"]) == ["path", "digest", "classes", "per_class", "side", "seed"]
    assert plain["manipulation"] == asdict(draw("watermark", 1, seed=0))
    assert plain["border"] == {"share": 0.5, "width": 8} and plain["pair"] == list(PAIR)


def test_factors_tell_specs_apart():
    assert data.factors(spec_of(pair=PAIR, r=1)) == {
        "manipulation": "watermark",
        "visibility": 13.0,
        "r": 1.0,
        "pair": "discs/strata",
    }
    assert data.factors(spec_of())["pair"] == "all"


def test_generated_images_have_a_number():
    with pytest.raises(UsageError, match="`per_class` must be a number where images are generated, got None"):
        Images(None, None, 2, None, 32, 0)


def test_pairs_of_classes():
    birds = [name for pair in BIRDS for name in pair]
    assert class_pairs(sorted(birds))["similar"] == list(BIRDS)
    distinct = class_pairs(sorted(birds))["distinct"]
    assert len({name for pair in distinct for name in pair}) == 4
    assert class_pairs(["a", "b"]) == {"similar": [("a", "b")], "distinct": []}
    assert class_pairs(["a", "b", "c"])["distinct"] == [("a", "c")]
    assert class_pairs(["a", "b", "c", "d"]) == {"similar": [("a", "b"), ("c", "d")], "distinct": [("a", "d")]}


def test_the_printed_artefact_and_the_released_one():
    mark = FIXED[-1]
    assert adjusted(mark, strength=2, variant="released").characters == "hex"
    assert adjusted(mark, strength=2, variant="printed").characters == "digits"
    assert adjusted(mark, strength=2, variant="printed").visibility == 26
    assert adjusted(FIXED[3], strength=100, variant="printed").visibility == 1


@pytest.mark.parametrize("name", NAMES)
def test_small_images_get_artefacts_that_can_be_seen(name):
    large = legible(name, level=3, side=224)
    small = legible(name, level=3, side=64)
    assert large.visibility == draw(name, 3, seed=0, level=3).visibility
    assert small.visibility == pytest.approx(2 * large.visibility)
    assert small == replace(large, visibility=small.visibility)


def test_two_classes_are_taken_and_keep_their_splits():
    whole = data.base(LEAVES)
    pair = of_pair(whole, PAIR)
    first, second = (whole.facts["classes"].index(name) for name in PAIR)
    assert len(pair.x) == int(((whole.y == first) | (whole.y == second)).sum())
    for name, rows in pair.splits.items():
        old = whole.splits[name]
        old = old[(whole.y[old] == first) | (whole.y[old] == second)]
        assert torch.equal(pair.x[rows], whole.x[old])
        assert torch.equal(pair.y[rows], (whole.y[old] == second).long())
        assert torch.equal(pair.strata[rows], whole.y[old])


def test_all_images_are_numbered_in_turn_where_no_pair_is_named():
    whole = data.base(LEAVES)
    everyone = of_pair(whole, None)
    assert torch.equal(everyone.y, whole.y % 2) and torch.equal(everyone.strata, whole.y)
    assert torch.equal(everyone.x, whole.x)


def test_the_last_data_are_kept_and_fresh_ones_are_not():
    spec = spec_of(pair=PAIR)
    assert data.dataset(spec) is data.dataset(replace(spec))
    fresh = data.fresh_dataset(spec)
    assert fresh.x.data_ptr() != data.dataset(spec).x.data_ptr()
    assert torch.equal(fresh.x, data.dataset(spec).x) and torch.equal(fresh.y, data.dataset(spec).y)


def test_images_with_the_artefact_and_without_are_held_out_and_even():
    spec = spec_of(pair=PAIR)
    planted = data.dataset(spec)
    groups = data.explained_rows(planted, spec, samples=6)
    assert list(groups) == ["with", "without"]
    for presence, rows in groups.items():
        assert len(rows.unique()) == 6 and torch.isin(rows, planted.splits["test"]).all()
        assert set(planted.y[rows].tolist()) == {int(presence == "with")}
        counts = kinds_of(planted)[rows].unique(return_counts=True)[1]
        assert counts.max() - counts.min() <= 1
    everyone = torch.cat(list(data.explained_rows(planted, spec, samples=None).values()))
    assert sorted(everyone.tolist()) == sorted(planted.splits["test"].tolist())


def test_where_there_is_a_border_it_is_what_is_present():
    spec = spec_of(pair=PAIR, border=True)
    planted = data.dataset(spec)
    groups = data.explained_rows(planted, spec, samples=None)
    white = (planted.x[:, :, 0] == 1).flatten(1).all(1)  # the first row of pixels
    assert white[groups["with"]].all() and not white[groups["without"]].any()
    assert len(planted.y[groups["with"]].unique()) == 2  # it tells nothing of the label


def test_the_region_of_a_metric():
    spec = spec_of(border=True)
    planted = data.dataset(spec)
    joint = data.region("attr", planted, spec)
    outside = data.region(data.ON_F_N, planted, spec)
    assert torch.equal(joint, planted.truth[0]) and joint.any()
    assert not (joint & outside).any() and outside[0].any() and not outside[8:-8, 8:-8].any()
    assert Border().width * 32 / 224 < 2  # so that one pixel is painted
    assert int((outside | joint)[0].sum()) == 32


def test_counts_of_classes_add_up():
    spec = spec_of(pair=PAIR)
    planted = data.dataset(spec)
    rows = planted.splits["test"]
    lines = data.class_counts(planted, {"explained": rows}, where={"model_seed": 1})
    assert sum(line["count"] for line in lines) == len(rows)
    present = sum(line["count"] for line in lines if line["class"].endswith(", with"))
    assert present == int(planted.y[rows].sum())
    assert {line["class"].split(", ")[0] for line in lines} == set(PAIR)
    assert all(line["role"] == "explained" and line["model_seed"] == 1 for line in lines)


def test_notes_on_generated_images():
    assert data.notes(LEAVES) == ["Images are generated: 360 dead leaves of 3 kinds."]


def test_notes_on_images_of_the_user(tmp_path):
    dice = np.random.default_rng(0)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for k in range(12):
            Image.fromarray(dice.integers(0, 255, (20, 40, 3), dtype=np.uint8)).save(tmp_path / name / f"{k}.png")
    (tmp_path / "one" / "broken.png").write_bytes(b"no image")
    Image.new("RGB", (40, 40)).save(tmp_path / "alone.png")
    images = plain_images.images_at(str(tmp_path), classes=2, per_class=None, side=32, seed=0)
    assert plain_images.class_names(str(tmp_path), 0) == ["one", "two"] and images.digest
    first, *others = data.notes(images)
    assert first.startswith("24 of ") and "images used, in 2 classes (" in first
    (broken,) = [sentence for sentence in others if sentence.startswith("Files that could not be used: 1 (")]
    assert "broken.png" in broken and " object at 0x" not in broken
    assert "Images in no class folder, left out: 1." in others
    assert "Images smaller than 32 px, enlarged: 24." in others
