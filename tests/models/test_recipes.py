"""The published recipes: values as the paper and its code have them."""

import pytest

from forsooth.models import recipes
from forsooth.models.recipes import RECIPES, Recipe, check, recipe
from forsooth.records import UsageError


@pytest.mark.parametrize(
    ("preset", "size", "scenario", "rate"),
    [
        ("paper", 8, "LIN", 0.004),
        ("paper", 8, "XOR", 0.004),
        ("paper", 8, "RIGID", 0.0004),
        ("paper", 8, "rigid", 0.0004),
        ("paper", 64, "RIGID", 0.0005),
        ("released", 8, "RIGID", 0.0005),
        ("released", 64, "LIN", 0.0005),
    ],
)
def test_published_learning_rates(preset, size, scenario, rate):
    found = recipe(preset, size=size, scenario=scenario)
    assert (found.learning_rate, found.batch, found.epochs, found.patience) == (rate, 512, 500, None)
    released = preset == "released"
    assert (found.double_softmax, found.evaluate_in_train_mode) == (released, released)


def test_every_recipe_can_be_followed():
    for found in RECIPES.values():
        check(found)
        assert found.gate == 0.8


def test_recipes_of_the_larger_networks_can_be_followed():
    for name in ("LENET", "TABLE", "VISION", "RESIDUAL", "PLANTED", "PLANTED_QUICK"):
        found = getattr(recipes, name)
        check(found)
        assert (found.gate, found.restarts) == (0.0, 0)  # the suite knows the data, and sets the gate


def test_the_recipe_of_planted_artefacts_is_the_published_one():
    found = recipes.PLANTED
    assert (found.learning_rate, found.batch, found.epochs, found.augment) == (0.001, 128, 50, "none")
    assert (found.stop_at, found.checkpoints) == (0.97, 0.05)


def test_what_a_recipe_adds_is_off_by_default():
    plain = Recipe(learning_rate=0.1)
    assert (plain.augment, plain.weight_decay, plain.autocast) == ("none", 0.0, False)
    assert plain.stop_at is None and plain.checkpoints is None


def test_only_quick_transformers_of_8_pixels_stop_where_every_image_is_right():
    asked = [(preset, size, attends) for preset, size in RECIPES for attends in (False, True)]
    stopping = [words for words in asked if recipe(words[0], size=words[1], scenario="LIN", attends=words[2]).stop_at]
    assert stopping == [("quick", 8, True)]
    assert recipes.QUICK_8_ATTENDING.epochs == recipes.QUICK_8.epochs


def test_unknown_preset_and_size():
    with pytest.raises(UsageError, match=r"must be one of paper 8, paper 64, .* quick 64; got papers 8"):
        recipe("papers", size=8, scenario="LIN")
    with pytest.raises(UsageError, match="got paper 32"):
        recipe("paper", size=32, scenario="RIGID")
