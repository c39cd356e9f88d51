"""Settings of the planted suite: every field is explained, presets are what they say, words are checked."""

import inspect
from dataclasses import fields, replace

import pytest

from forsooth.attributions import METHODS
from forsooth.models import MODELS
from forsooth.records import UsageError
from forsooth.scores import METRICS
from forsooth.suites.planted.settings import (
    DEMO,
    ENDS,
    PAPER,
    PRESETS,
    PUBLISHED,
    QUICK,
    RELEASED,
    RELEASED_MAPS,
    RENAMED,
    Settings,
    check,
)

FIELDS = {field.name for field in fields(Settings)}


def test_the_docstring_explains_every_field_and_no_other():
    lines = inspect.getdoc(Settings).splitlines()
    explained = {line.split()[0] for line in lines[1:] if line and not line.startswith(" ")}
    assert explained == FIELDS


def test_former_names_lead_to_fields_and_are_none_themselves():
    assert set(RENAMED.values()) <= FIELDS
    assert not set(RENAMED) & FIELDS
    assert RENAMED["luck"] == "max_p_value" and RENAMED["rs"] == "r_values"


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_name_what_there_is(preset):
    settings = PRESETS[preset]
    check(settings)
    methods = {method.name for method in METHODS}
    assert {*settings.methods, *settings.methods_followup, *RELEASED_MAPS.values()} <= methods
    assert set(settings.metrics) <= {metric.name for metric in METRICS}
    assert set(settings.models) <= {model.name for model in MODELS}
    assert set(ENDS) <= set(settings.methods_followup)


def test_quick_asks_for_five_artefacts_and_eight_methods():
    null = {method.name for method in METHODS if method.null}
    assert len(QUICK.manipulations) == 5
    assert len(set(QUICK.methods) - null) >= 8


def test_the_demo_is_a_smaller_quick_run():
    assert set(DEMO.experiments) < set(QUICK.experiments)
    assert set(DEMO.manipulations) < set(QUICK.manipulations)
    assert DEMO.samples < QUICK.samples and DEMO.trainings < QUICK.trainings
    assert set(QUICK.methods) - set(DEMO.methods) == {"gradient_shap_200"}
    assert set(DEMO.methods) - set(QUICK.methods) == {"gradient_shap"}


def test_paper_and_released_part_where_text_and_code_do():
    assert PAPER.methods[:5] == PUBLISHED
    assert replace(RELEASED, variant="printed", maps="printed") == PAPER


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"experiments": ("5.5",)}, "`experiments` must be a known name, got '5.5'"),
        ({"presences": ("maybe",)}, "`presences` must be a known name, got 'maybe'"),
        ({"kinds": ("alike",)}, "`kinds` must be a known name, got 'alike'"),
        ({"manipulations": ("watermrk",)}, "`manipulations` .* did you mean watermark"),
        ({"manipulations_followup": ("hue",)}, "`manipulations_followup` .* got 'hue'"),
        ({"level": 5}, "`level` must be 0 to 4, got 5"),
        ({"levels": (0, -1)}, "`levels` must be 0 to 4, got -1"),
    ],
)
def test_words_without_a_meaning_are_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        check(replace(PAPER, **changes))
