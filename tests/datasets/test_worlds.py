"""The scenes and cut-outs of the BAM suite: which classes, in which order, from where."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from forsooth.datasets import objects, worlds
from forsooth.datasets.objects import Cutouts
from forsooth.datasets.worlds import WorldSpec, world
from forsooth.records import UsageError

SPEC = WorldSpec(path=None, side=16, scenes=10, cutouts=10, feature="", seed=0)


@pytest.fixture
def photos(tmp_path):
    """Five classes of scenes and two of objects, as a user has them."""
    dice = np.random.default_rng(0)
    for kind, mode, names in (
        ("scenes", "RGB", ("sea", "wood", "hill", "town", "road")),
        ("objects", "RGBA", ("cat", "dog")),
    ):
        for name in names:
            folder = tmp_path / "data" / kind / name
            folder.mkdir(parents=True)
            for i in range(6):
                image = dice.integers(0, 200, (12, 12, len(mode)), dtype=np.uint8)
                image[..., 3:] = 255
                Image.fromarray(image, mode=None).save(folder / f"{i}.png")
    return tmp_path / "data"


def many_classes(counts: dict[str, int]) -> Cutouts:
    y = torch.tensor([k for k, count in enumerate(counts.values()) for _ in range(count)])
    images = tuple(torch.full((4, 3, 3), 1.0 + k) for k in y.tolist())
    return Cutouts("many", images, y, tuple(counts), objects.by_place(y))


def test_ten_classes_of_objects_at_most():
    counts = dict.fromkeys("abcdefghijkl", 2) | {"b": 3, "c": 3}
    few = worlds.few_classes(many_classes(counts), "l")
    assert len(few.classes) == 10 and {"b", "c", "l"} <= set(few.classes) and list(few.classes) == sorted(few.classes)
    assert torch.bincount(few.y).tolist()[few.classes.index("b")] == 3


def test_the_largest_classes_are_kept_with_their_own_images():
    few = worlds.few_classes(many_classes({"ant": 1, "bee": 4, "cow": 2, "dog": 1}), "", most=2)
    assert few.classes == ("bee", "dog")  # the dog is the common feature
    assert [image[0, 0, 0].item() for image in few.images] == [2.0] * 4 + [4.0]
    assert worlds.few_classes(few, "", most=2) is few


def test_the_scene_that_always_has_the_feature_can_be_chosen():
    plain, led = (world(replace(SPEC, first_scene=name)).scenes for name in ("", "reeds"))
    names, order = list(plain.facts["classes"]), list(led.facts["classes"])
    assert order == ["reeds", *(name for name in names if name != "reeds")]
    assert [names[k] for k in plain.y.tolist()] == [order[k] for k in led.y.tolist()] and torch.equal(plain.x, led.x)
    with pytest.raises(UsageError, match="`first_scene` must be a known name, got 'moon'"):
        worlds.with_digest(replace(SPEC, first_scene="moon"))
    with pytest.raises(UsageError, match="`first_scene` must be a known name, got 'moon'"):
        worlds.led_by(plain, "moon")


@pytest.mark.parametrize(
    "feature, classes, number",
    [("", ("cat", "dog"), 1), ("", ("cat", "disc"), 1), ("", ("cat", "cow"), 0), ("cow", ("cat", "cow", "dog"), 1)],
)
def test_the_common_feature_is_named_or_a_dog_or_a_disc(feature, classes, number):
    assert worlds.feature_number(feature, classes) == number


def test_a_feature_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="`feature` must be a known name, got 'dinosaur'"):
        worlds.with_digest(replace(SPEC, feature="dinosaur"))


def test_generated_scenes_need_a_number():
    with pytest.raises(UsageError, match="`scenes` must be a number where scenes are generated, got None"):
        world(replace(SPEC, scenes=None))


def test_the_last_world_is_kept_and_another_is_made():
    assert world(SPEC) is world(replace(SPEC, side=16))
    assert world(SPEC) is not world(replace(SPEC, seed=1))


def test_a_spec_changes_with_the_users_files(photos):
    spec = replace(SPEC, path=str(photos), scenes=None)
    before = worlds.with_digest(spec)
    assert before.digest and before.digest == worlds.with_digest(spec).digest
    Image.new("RGB", (12, 12)).save(photos / "scenes" / "sea" / "0.png")
    assert worlds.with_digest(spec).digest != before.digest
    assert worlds.with_digest(SPEC).digest is None


def test_the_users_scenes_and_objects_are_read(photos):
    here = world(replace(SPEC, path=str(photos), scenes=None))
    assert len(here.scenes.y) == 30 and here.scenes.facts["classes"][0] == "hill"
    assert here.cutouts.classes == ("cat", "dog") and here.feature == 1
    few = world(replace(SPEC, path=str(photos), scenes=4))
    assert len(few.scenes.y) == 20


def test_a_folder_without_scenes_or_objects_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"`data` must be a folder with scenes in scenes or scenes\.zip or"):
        worlds.scenes_at(str(tmp_path))
    (tmp_path / "scenes").mkdir()
    assert worlds.scenes_at(str(tmp_path)) == tmp_path / "scenes"
    with pytest.raises(UsageError, match=r"objects with transparency in objects or objects\.zip or .*, where there is"):
        worlds.objects_at(str(tmp_path))


def test_notes_say_what_the_data_are():
    (note,) = worlds.notes(SPEC)
    assert note.startswith("Scenes and objects are generated: 100 scenes of 10 classes, 100 cut-outs of 10 classes")
    assert (
        f"The common feature is the disc; the class that always has it is {world(SPEC).scenes.facts['classes'][0]}."
        in note
    )
    (again,) = worlds.notes(replace(SPEC, same_objects=True))
    assert again == f"Test images show the cut-outs of training, in other scenes and places. {note}"


def test_notes_say_which_files_could_not_be_used(photos):
    (photos / "scenes" / "sea" / "torn.png").write_bytes(b"no image")
    yours, broken = worlds.notes(replace(SPEC, path=str(photos), scenes=None))
    assert yours.startswith("Scenes and objects are yours: 30 scenes of 5 classes")
    assert broken.startswith("1 files could not be used: ") and "torn.png" in broken
