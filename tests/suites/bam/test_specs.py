"""Records of tasks keep the words that they had in keys of cells."""

import pytest

from forsooth.attributions import concepts
from forsooth.datasets.worlds import WorldSpec
from forsooth.plain import from_plain, to_plain
from forsooth.records import Row
from forsooth.suites.bam.specs import Ask, ConceptAsk, NetSpec, Panel, fine_name

ASK = Ask(
    method="gradient",
    version=1,
    code="",
    samples=40,
    samples_per_k=30,
    samples_robustness=15,
    placings=("as_built", "centre"),
    trials=8,
    percentile=99.0,
    lowest="zero",
    zero="undefined",
    metrics={"mcs": 1},
    seed=3,
    device="cpu",
)
CONCEPT = ConceptAsk(
    examples=50, random_sets=10, count=30, level=0.01, settings=concepts.CLOSED_FORM, seed=4, device="cpu"
)
WORLD = WorldSpec(path=None, side=48, scenes=300, cutouts=300, feature="", seed=5, first_scene="reeds")


def test_words_of_an_ask():
    words = to_plain(ASK)
    assert words["fine"] == 30 and words["robust"] == 15 and words["placings"] == ["as_built", "centre"]
    assert set(words) == {
        *("method", "version", "code", "samples", "fine", "robust", "placings", "trials", "percentile", "lowest"),
        *("zero", "metrics", "seed", "device"),
    }


def test_words_of_a_concept_and_of_a_world():
    assert to_plain(CONCEPT)["sets"] == 10 and "random_sets" not in to_plain(CONCEPT)
    assert to_plain(CONCEPT)["settings"] == {
        **{"rule": "ridge", "strength": 0.1, "held_out": 0.33, "of": "logit", "against": "random"}
    }
    words = to_plain(WORLD)
    assert words["first"] == "reeds" and words["digest"] is None and not words["same_objects"]
    assert set(words) == {*("path", "side", "scenes", "cutouts", "feature", "seed", "same_objects", "first", "digest")}


@pytest.mark.parametrize("record", [ASK, CONCEPT, WORLD, NetSpec("f_0", "scene", "s", None), Panel("resnet50", 2)])
def test_records_come_back_as_they_went(record):
    assert from_plain(to_plain(record), type(record)) == record


def test_a_panel_is_the_beginning_of_a_row():
    row = Panel("resnet50", 2).row("samples", method="lrp")
    assert row == Row(
        suite="bam",
        part="samples",
        dataset="pasted",
        model="resnet50",
        model_seed=2,
        method="lrp",
        sample=-1,
        columns={"placing": "as_built"},
    )


def test_other_places_have_images_of_their_own():
    assert ASK.count("as_built") == 40 and ASK.count("centre") == 15


def test_networks_are_named_by_their_k():
    assert [fine_name(k) for k in (0.1, 0.25, 1.0)] == ["f_s_0.1", "f_s_0.25", "f_s_1"]
