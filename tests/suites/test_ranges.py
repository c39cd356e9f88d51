"""Every number among the settings of suites and reproductions has a range, which is asked before any plan is made."""

import re
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from forsooth import settings
from forsooth.records import Choice, UsageError
from forsooth.suites import SUITES

ZERO_IS_MEANT = {
    "alpha",  # no signal at all: what chance looks like
    "alphas",
    "sweep",
    "gate",  # whoever was trained is explained
    "gate_reinforce",
    "stop_at",
    "restarts",
    "runs_with_checkpoints",
    "exact_up_to",  # never: permutations for all
    "max_p_value",
    "r_values",
    "level",
    "levels",
}
PROBABILITIES = {("bam", "level")}  # 0 would be a p-value that nothing reaches
MUST_HOLD_ONE = "ks"  # of bam: 1.0 has to be among them


def numbers(record: Any) -> Iterator[tuple[str, Any]]:
    """Name and type of every field that holds a number or several."""
    for owner, name, _ in settings.fields_of(record):
        hint = typing.get_type_hints(type(owner))[name]
        if {int, float} & {hint, *parts(hint)}:
            yield name, hint


def parts(hint: Any) -> set[Any]:
    """The types that a type is made of."""
    inner = typing.get_args(hint)
    return {*inner, *(part for one in inner for part in typing.get_args(one))}


def written(name: str, hint: Any, number: float) -> Any:
    """The number as the field takes it: alone, or as all or the first of several."""
    if typing.get_origin(hint) is not tuple:
        return number
    if Ellipsis not in typing.get_args(hint):
        return (number,) * len(typing.get_args(hint))
    return (number, 1.0) if name == MUST_HOLD_ONE else (number,)


def cases(zero: bool) -> Iterator[Any]:
    """Plan, settings, field, type and title of every number of every suite and reproduction.

    zero  only those that cannot be zero
    """
    for suite in SUITES:
        first = (suite.name, suite.presets["demo"], suite.plan)
        again = [(one.name, one.settings, one.plan) for one in suite.reproductions]
        for title, record, plan in [first, *again]:
            for name, hint in dict(numbers(record)).items():
                meant = name in ZERO_IS_MEANT and (suite.name, name) not in PROBABILITIES
                if not (zero and meant):
                    yield pytest.param(plan, record, name, hint, id=f"{title}: {name}")


def refused(plan: Any, record: Any, name: str, hint: Any, number: float) -> str:
    """What is said of the number; it names the field, what was expected and what came."""
    with pytest.raises(UsageError) as error:
        plan(settings.changed(record, {name: written(name, hint, number)}), Choice())
    words = str(error.value)
    assert re.match(rf"`{name}` must be [a-z0-9].*\d.*, got ", words), words
    assert f"{number:,}" in words.replace(".0", "") and "\n" not in words
    return words


@pytest.mark.parametrize("plan, record, name, hint", list(cases(zero=False)))
def test_no_number_is_negative_or_beyond_all_machines(plan, record, name, hint):
    refused(plan, record, name, hint, -5)
    refused(plan, record, name, hint, 10**12)


@pytest.mark.parametrize("plan, record, name, hint", list(cases(zero=True)))
def test_zero_is_refused_where_it_leaves_nothing(plan, record, name, hint):
    refused(plan, record, name, hint, 0)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_zero_is_taken_where_it_says_something(suite):
    record = suite.presets["demo"]
    for name, hint in numbers(record):
        if name in ZERO_IS_MEANT and (suite.name, name) not in PROBABILITIES:
            assert suite.plan(settings.changed(record, {name: written(name, hint, 0)}), Choice()).tasks, name


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_all_that_a_preset_says_is_in_range(suite):
    for record in suite.presets.values():
        with_few = settings.changed(record, {"trainings": 1})
        assert suite.plan(with_few, Choice()).tasks


@pytest.mark.parametrize("number", [0, 1, 7])
def test_pairs_of_classes_need_two_and_leaves_have_six(number):
    (planted,) = [suite for suite in SUITES if suite.name == "planted"]
    bound = "at most 6" if number > 6 else "at least 2"
    with pytest.raises(UsageError, match=f"`classes` must be {bound}, got {number}"):
        planted.plan(settings.changed(planted.presets["demo"], {"classes": number}), Choice())
