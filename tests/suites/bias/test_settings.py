"""Settings of the bias suite: presets as they are printed, every field explained, refusals that name the field."""

import dataclasses

import pytest

from forsooth.attributions import METHODS
from forsooth.models import MODELS
from forsooth.records import UsageError
from forsooth.settings import changed
from forsooth.suites.bias import data
from forsooth.suites.bias.settings import DEMO, NULLS, PAPER, PRESETS, PUBLISHED, QUICK, SHAPLEY, Settings, check


def test_the_presets_are_named_and_the_paper_is_the_default() -> None:
    assert list(PRESETS) == ["demo", "quick", "paper"]
    assert Settings() == PAPER and PRESETS["paper"] is PAPER


def test_a_demo_is_a_smaller_quick_run() -> None:
    assert (DEMO.permutations, DEMO.samples, DEMO.trainings) == (60, 8, 2)
    as_large = dataclasses.replace(DEMO, permutations=400, samples=20, trainings=3)
    assert as_large == QUICK


def test_the_paper_is_as_printed() -> None:
    assert (PAPER.permutations, PAPER.samples, PAPER.grid, PAPER.baseline) == (1000, 50, None, "mean")
    assert PAPER.channels == "signed_max" and PAPER.one_colour == "gradients" and not PAPER.same_game
    assert PAPER.fractions == (0.1, 0.3, 0.5, 0.7, 0.9) and PAPER.ends == ("top", "bottom")


def test_every_field_is_explained_in_one_line() -> None:
    lines = [line.strip() for line in str(Settings.__doc__).splitlines()]
    for field in dataclasses.fields(Settings):
        assert any(line.startswith(f"{field.name} ") for line in lines), field.name


@pytest.mark.parametrize("settings", PRESETS.values(), ids=list(PRESETS))
def test_presets_name_methods_networks_and_datasets_that_there_are(settings: Settings) -> None:
    known = {method.name for method in METHODS} | {SHAPLEY}
    assert set(settings.methods) <= known and SHAPLEY in settings.methods
    assert len(set(settings.methods)) == len(settings.methods)
    assert set(settings.models) <= {model.name for model in MODELS}
    assert set(settings.datasets) <= {entry.name for entry in data.ENTRIES}


def test_nulls_ignore_the_model_and_published_methods_do_not() -> None:
    null = {method.name for method in METHODS if method.null}
    assert set(NULLS) <= null and not set(PUBLISHED) & null


def test_less_than_one_training_is_refused() -> None:
    check(Settings(trainings=1))
    with pytest.raises(UsageError, match="`trainings` must be at least 1, got 0"):
        check(Settings(trainings=0))


def test_orders_that_are_played_backwards_come_in_pairs() -> None:
    check(Settings(antithetic=True, permutations=60))
    with pytest.raises(UsageError, match="`permutations` must be even where each is played backwards, got 61"):
        check(Settings(antithetic=True, permutations=61))


def test_words_of_the_command_line_become_settings() -> None:
    settings = changed(QUICK, {"grid": "none", "permutations": "5", "antithetic": "true", "fractions": "0.1,0.5"})
    assert settings.grid is None and settings.permutations == 5
    assert settings.antithetic is True and settings.fractions == (0.1, 0.5)
    with pytest.raises(UsageError, match="`ties` must be a known name, got 'last'"):
        changed(QUICK, {"ties": "last"})
