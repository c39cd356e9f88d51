"""What the settings of BAM say, and what they refuse."""

import dataclasses
import re

import pytest
from suites.bam.small import changed

from forsooth import api, papers
from forsooth.attributions import METHODS as CATALOGUE
from forsooth.records import UsageError
from forsooth.suites.bam import settings
from forsooth.suites.bam.settings import DEMO, PAPER, QUICK, RELEASED

FIELDS = [field.name for field in dataclasses.fields(settings.Settings)]


@pytest.mark.parametrize("name", FIELDS)
def test_every_setting_is_explained_on_a_line_of_its_own(name):
    assert re.search(rf"^    {name}  +\S", settings.Settings.__doc__ or "", re.MULTILINE)


def test_presets_say_what_the_paper_and_the_code_do():
    null = {method.name for method in CATALOGUE if method.null}
    assert len(set(QUICK.methods) - null) >= 9 and set(settings.NULLS) <= set(QUICK.methods)
    assert len(PAPER.ks) == 10 and PAPER.models == ("resnet50",)
    assert RELEASED.lowest == "minimum" and RELEASED.zero == "failure" and RELEASED.random_sets == 2
    assert "smooth_grad_squared" in RELEASED.methods and "smooth_grad" not in RELEASED.methods
    assert set(papers.table("bam_figure_13")["method"]) == {*settings.PUBLISHED, "tcav"}


def test_the_released_maps_are_the_published_but_for_two_squares():
    differing = [
        (ours, theirs)
        for ours, theirs in zip(settings.PUBLISHED, settings.RELEASED_MAPS, strict=True)
        if ours != theirs
    ]
    assert differing == [
        ("smooth_grad", "smooth_grad_squared"),
        ("integrated_gradients_smooth", "integrated_gradients_smooth_squared"),
    ]


def test_quick_and_demo_leave_out_what_takes_long():
    assert set(PAPER.methods) - set(QUICK.methods) == {"gradient_shap"}
    costs = {method.name: method.cost for method in CATALOGUE}
    assert not [name for name in DEMO.methods if costs[name] == "expensive" or name.startswith("smooth_grad")]
    slow = {name for name in QUICK.methods if costs[name] == "expensive" or name.startswith("smooth_grad")}
    assert set(QUICK.methods) - set(DEMO.methods) == slow


def test_commonalities_are_tenths():
    assert tuple(tenth / 10 for tenth in range(1, 11)) == settings.KS


@pytest.mark.parametrize("preset", settings.PRESETS)
def test_presets_pass_their_own_check(preset):
    settings.check(settings.PRESETS[preset])


def test_a_former_name_is_answered_with_the_new_one(tmp_path):
    with pytest.raises(UsageError, match="the setting 'few' is called 'samples_expensive' now"):
        api.run("bam", settings={"few": 3}, out=tmp_path)


def test_former_names_lead_to_settings_and_are_none_themselves():
    assert set(settings.RENAMED.values()) <= set(FIELDS) and not set(settings.RENAMED) & set(FIELDS)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"ks": (0.1, 0.5)}, r"`ks` must hold 1.0, which the others are set against, got \(0.1, 0.5\)"),
        ({"placings": ("as_built", "middle")}, "`placings` must be a known name, got 'middle'"),
        ({"placings": ("centre",)}, r"`placings` must hold as_built, which is ranked, got \('centre',\)"),
        ({"samples": 0}, "`samples` must be at least 1, got 0"),
        ({"samples_expensive": 0}, "`samples_expensive` must be at least 1, got 0"),
        ({"samples_per_k": -1}, "`samples_per_k` must be at least 1, got -1"),
        ({"samples_robustness": 0}, "`samples_robustness` must be at least 1, got 0"),
        ({"trials": 0}, "`trials` must be at least 1, got 0"),
        ({"trainings": 0}, "`trainings` must be at least 1, got 0"),
        ({"random_sets": 1}, "`random_sets` must be at least 2, got 1"),
    ],
)
def test_what_cannot_be_is_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        settings.check(changed(**changes))
