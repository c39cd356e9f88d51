"""The published recipes: values as the paper and its code have them."""

import pytest

from forsooth.models.recipes import RECIPES, check, recipe
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


def test_unknown_preset_and_size():
    with pytest.raises(UsageError, match=r"must be one of paper 8, paper 64, .* quick 64; got papers 8"):
        recipe("papers", size=8, scenario="LIN")
    with pytest.raises(UsageError, match="got paper 32"):
        recipe("paper", size=32, scenario="RIGID")
