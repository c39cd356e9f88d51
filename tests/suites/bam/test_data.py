"""The sets of the BAM suite: which images, in which split, in which states."""

from dataclasses import replace

import pytest
import torch
from suites.bam.small import changed, spec_of

from forsooth.datasets.worlds import world
from forsooth.records import UsageError
from forsooth.suites.bam import data, settings
from forsooth.suites.bam.plan import F_0, F_O, F_S
from forsooth.suites.bam.questions import BACKGROUND
from forsooth.suites.bam.specs import NetSpec

ALWAYS = NetSpec("f_s_1", "scene", "os", 1.0)


@pytest.mark.parametrize("same", [False, True])
def test_cut_outs_of_the_test_are_new_unless_asked_otherwise(same):
    table = data.table(spec_of(train=2, same_objects=same), None)
    seen = {name: set(table.cutout[rows].tolist()) for name, rows in table.splits.items()}
    assert bool(seen["train"] & seen["test"]) == same
    scenes = {name: set(table.scene[rows].tolist()) for name, rows in table.splits.items()}
    assert not scenes["train"] & scenes["test"]


def test_a_spec_has_the_sizes_of_the_settings():
    spec = data.data_spec(changed(train=3, val=2, test=1, fine_train=9, fine_val=8, fine_test=7), None, 5)
    assert spec.sizes.per_pair == {"train": 3, "val": 2, "test": 1}
    assert spec.sizes.per_class == {"train": 9, "val": 8, "test": 7}
    assert spec.world.seed == 5 and spec.world.scenes == 300


def test_without_a_number_as_many_scenes_as_cut_outs_are_generated():
    assert data.data_spec(changed(scenes=None, cutouts=12), None, 0).world.scenes == 12


def test_every_pair_of_classes_has_its_images():
    spec = spec_of(train=2, val=1, test=3)
    table = data.table(spec, None)
    here = world(spec.world)
    pairs = 10 * here.scenes.y[table.scene] + here.cutouts.y[table.cutout]
    for split, each in (("train", 2), ("val", 1), ("test", 3)):
        assert torch.bincount(pairs[table.splits[split]], minlength=100).tolist() == [each] * 100


@pytest.mark.parametrize("k, share", [(0.1, 0.1), (0.5, 0.5), (1.0, 1.0)])
def test_the_common_feature_is_in_the_share_k_of_the_classes(k, share):
    spec = spec_of()
    table = data.table(spec, k)
    here = world(spec.world)
    assert table.present.double().mean().item() == pytest.approx(share)
    assert set(here.cutouts.y[table.cutout].tolist()) == {here.feature}


def test_a_k_that_is_no_share_of_the_classes_is_refused():
    with pytest.raises(UsageError, match=r"multiple of 1/10 with 10 scene classes, got 0.25"):
        data.table(spec_of(), 0.25)


def test_states_of_an_image_differ_where_they_should():
    seen = data.images(spec_of(), None, count=6)
    outside = ~seen.mask[:, None].expand_as(seen.os)
    assert torch.equal(seen.os[outside], seen.s[outside]) and not torch.equal(seen.os, seen.s)
    assert (seen.og[outside] == 0.5).all()
    assert seen.os.shape == (6, 3, 32, 32) and len(seen.rows) == len(seen.scene) == len(seen.kind) == 6


def test_images_of_the_first_class_alone():
    seen = data.images(spec_of(), 1.0, count=None, first_only=True)
    assert len(seen.rows) == 4 and set(seen.scene.tolist()) == {0}


def test_fewer_images_are_the_first_of_more():
    spec = spec_of()
    few, many = (data.images(spec, None, count=count) for count in (4, 12))
    assert few.rows.tolist() == many.rows.tolist()[:4]


def test_objects_in_the_middle_are_the_same_objects():
    spec = spec_of()
    built, centre = (data.images(spec, None, count=5, placing=placing) for placing in ("as_built", "centre"))
    assert torch.equal(built.rows, centre.rows) and torch.equal(built.s, centre.s)
    places = torch.stack([mask.nonzero().double().mean(0) for mask in centre.mask])
    assert (places - 15.5).abs().max() < 2


@pytest.mark.parametrize("net, label", [(F_O, "kind"), (F_S, "scene"), (F_0, "scene"), (ALWAYS, "scene")])
def test_labels_are_those_of_the_network(net, label):
    seen = data.images(spec_of(), net.k, count=7)
    assert torch.equal(data.labels_of(net, seen), getattr(seen, label))


@pytest.mark.parametrize("net", [F_O, F_S, F_0, ALWAYS], ids=lambda net: net.name)
def test_a_dataset_has_the_labels_and_the_state_of_its_network(net):
    spec = spec_of()
    dataset = data.dataset(spec, net)
    names = dataset.facts["classes"]
    assert dataset.facts["shown"] == net.shown and dataset.facts["label"] == net.label
    assert len(names) == len(dataset.y.unique()) == 10
    again = data.dataset(spec, net)
    dataset.x.zero_()
    assert again.x.sum() > 0  # a user of a dataset may change it in place


def test_the_background_is_drawn_from_training_and_shown_as_the_network_saw_it():
    spec = spec_of(train=2)
    table = data.table(spec, None)
    chosen, x = data.background(spec, F_0, count=30)
    assert torch.isin(chosen.rows, table.splits["train"]).all() and len(x) == 30
    assert torch.equal(x, data.render(spec, table, chosen.rows, "s")[0])
    assert torch.bincount(chosen.scene).tolist() == [3] * 10 == torch.bincount(chosen.kind).tolist()


def test_classes_of_both_labels_are_counted():
    spec = spec_of()
    seen = data.images(spec, None, count=20)
    lines = data.class_counts(spec.world, seen, role="explained", where={"set": "X_os"})
    assert {line["label"] for line in lines} == {"scene", "object"} and {line["count"] for line in lines} == {2}
    assert all(line["role"] == "explained" and line["set"] == "X_os" for line in lines) and len(lines) == 20
    assert {line["class"] for line in lines if line["label"] == "object"} == set(world(spec.world).cutouts.classes)


def even(labels: torch.Tensor) -> bool:
    counts = torch.bincount(labels, minlength=10)
    return int(counts.max() - counts.min()) <= 1


@pytest.mark.parametrize("preset", settings.PRESETS)
def test_presets_explain_all_classes_evenly(preset):
    chosen = replace(settings.PRESETS[preset], side=8, scenes=40, cutouts=20, val=1, test=10)
    chosen = replace(chosen, train=min(chosen.train, 8), fine_train=20, fine_val=1, fine_test=10)
    spec = data.data_spec(chosen, None, 0)
    for k, count in ((None, chosen.samples), (None, chosen.samples_robustness), (1.0, min(100, chosen.samples))):
        seen = data.images(spec, k, count=count)
        assert len(seen.rows) == count and even(seen.scene)
        assert even(seen.kind) or k == 1.0  # there the object is the common feature everywhere
    for net in (F_O, F_S, F_0):
        behind, x = data.background(spec, net, count=BACKGROUND)
        assert len(x) == BACKGROUND and even(behind.scene) and even(behind.kind)
