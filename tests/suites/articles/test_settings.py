"""What can be set: every field is explained, old words are known, and numbers that cannot be are refused."""

import dataclasses

import pytest
from suites.articles.small import TINY

from forsooth import api
from forsooth.attributions import METHODS
from forsooth.models.train_text import RECIPES
from forsooth.names import find
from forsooth.records import UsageError
from forsooth.suites.articles.settings import (
    ALL_READERS,
    DEMO,
    INTRINSIC,
    NULLS,
    PAPER,
    POST_HOC,
    PRESETS,
    QUICK,
    RELEASED,
    RENAMED,
    Settings,
    check,
)

FIELDS = [field.name for field in dataclasses.fields(Settings)]


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_explained_in_a_line(name):
    lines = [line.split() for line in (Settings.__doc__ or "").splitlines()]
    explained = [line for line in lines if line and line[0] == name]
    assert len(explained) == 1 and len(explained[0]) > 2


def test_the_docstring_speaks_of_no_field_that_is_not_there():
    body = (Settings.__doc__ or "").split("\n\n")[1]
    named = [line.split()[0] for line in body.splitlines() if line.strip()]
    assert sorted(named) == sorted(FIELDS)


def test_old_words_have_new_ones_that_are_fields():
    assert RENAMED == {"cap": "max_vocabulary", "filtered": "require_articles_in_both_halves"}
    assert set(RENAMED.values()) <= set(FIELDS) and not set(RENAMED) & set(FIELDS)


def test_presets_are_those_of_all_suites():
    assert PRESETS == {"demo": DEMO, "quick": QUICK, "paper": PAPER, "released": RELEASED}
    assert Settings() == PAPER
    assert dataclasses.replace(RELEASED, recipe="paper") == PAPER


def test_the_demo_is_a_part_of_quick():
    assert set(DEMO.kinds) < set(QUICK.kinds)
    assert set(QUICK.methods) - set(DEMO.methods) == {"kernel_shap"}
    assert DEMO.samples < QUICK.samples


@pytest.mark.parametrize("settings", PRESETS.values(), ids=PRESETS)
def test_presets_can_be(settings):
    check(settings)
    assert all(find(name, METHODS, argument="methods") for name in settings.methods)


def test_methods_stand_in_their_lists():
    belonging = {name for name in (*INTRINSIC, *POST_HOC, *NULLS) if find(name, METHODS, argument="m").belongs_to}
    ignoring = {name for name in (*INTRINSIC, *POST_HOC, *NULLS) if find(name, METHODS, argument="m").null}
    assert belonging == set(INTRINSIC) and ignoring == set(NULLS)


@pytest.mark.parametrize("preset", RECIPES)
def test_a_rationale_model_has_an_aim_and_attention_has_none(preset):
    aimless = {name for name, recipe in RECIPES[preset].items() if recipe.aim is None}
    assert set(RECIPES[preset]) == set(ALL_READERS)
    assert aimless == {"attention", "text_encoder"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("samples", 0),
        ("trainings", 0),
        ("rationale_trainings", -1),
        ("epochs", 0),
        ("gate", 97),
        ("gate_reinforce", -1),
    ],
)
def test_numbers_that_cannot_be_are_refused_before_any_work(tmp_path, name, value):
    with pytest.raises(UsageError, match=f"`{name}` must be .*, got {value}"):
        check(dataclasses.replace(QUICK, **{name: value}))
    with pytest.raises(UsageError, match=f"`{name}` must be .*, got {value}"):
        api.run("articles", settings={**TINY, name: value}, out=tmp_path / "no")
    assert not (tmp_path / "no" / "store" / "cells").exists()


def test_all_documents_and_the_epochs_of_the_recipe_are_none():
    check(dataclasses.replace(QUICK, samples=None, epochs=None))


@pytest.mark.parametrize(("old", "new"), list(RENAMED.items()))
def test_an_old_word_is_answered_with_the_new_one(tmp_path, old, new):
    with pytest.raises(UsageError, match=f"'{old}' is called '{new}' now"):
        api.run("articles", settings={**TINY, old: 1}, out=tmp_path / "no")
