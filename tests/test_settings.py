import dataclasses
from dataclasses import dataclass
from typing import Literal

import pytest

from forsooth.records import Choice, Suite, UsageError
from forsooth.settings import changed, configured, described, values_of
from forsooth.suites import SUITES


@dataclass(frozen=True)
class Inner:
    labels: Literal["bernoulli", "balanced"] = "bernoulli"


@dataclass(frozen=True)
class Outer:
    trainings: int = 1
    alpha: float | None = None
    sizes: tuple[int, ...] = (8,)
    warm: bool = False
    inner: Inner = Inner()


SUITE = Suite(
    name="s",
    title="",
    question="",
    presets={"quick": Outer()},
    plan=None,
    factors=(),
    metrics=None,
    exhibits=(),
    cite="",
)


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"trainings": "3"}, Outer(trainings=3)),
        ({"alpha": "0.25"}, Outer(alpha=0.25)),
        ({"alpha": "none"}, Outer()),
        ({"alpha": 0.5}, Outer(alpha=0.5)),
        ({"sizes": "8,64"}, Outer(sizes=(8, 64))),
        ({"sizes": [64]}, Outer(sizes=(64,))),
        ({"sizes": ""}, Outer(sizes=())),
        ({"sizes": 8}, Outer(sizes=(8,))),
        ({"sizes": "8, 64"}, Outer(sizes=(8, 64))),
        ({"trainings": 3.0}, Outer(trainings=3)),
        ({"alpha": 1}, Outer(alpha=1.0)),
        ({"warm": "true"}, Outer(warm=True)),
        ({"labels": "balanced"}, Outer(inner=Inner(labels="balanced"))),
    ],
)
def test_a_field_is_changed_by_word_or_value(changes, expected):
    assert configured(SUITE, "quick", changes) == expected


@pytest.mark.parametrize(
    "preset, changes, message",
    [
        ("quik", {}, r"`preset` must be a known name, got 'quik'; did you mean quick\?"),
        ("quick", {"training": "3"}, r"unknown setting 'training' in `set`; did you mean trainings"),
        ("quick", {"trainings": "many"}, r"`trainings` must be a whole number, got 'many'"),
        ("quick", {"trainings": 2.7}, r"`trainings` must be a whole number, got 2.7"),
        ("quick", {"trainings": "2.7"}, r"`trainings` must be a whole number, got '2.7'"),
        ("quick", {"trainings": True}, r"`trainings` must be a whole number, got True"),
        ("quick", {"alpha": "nan"}, r"`alpha` must be a number, got 'nan'"),
        ("quick", {"alpha": float("inf")}, r"`alpha` must be a number, got inf"),
        ("quick", {"labels": "balance"}, r"`labels` must be a known name, got 'balance'; did you mean balanced\?"),
        ("quick", {"warm": "perhaps"}, r"`warm` must be true or false, got 'perhaps'"),
    ],
)
def test_what_cannot_be_is_refused(preset, changes, message):
    with pytest.raises(UsageError, match=message):
        configured(SUITE, preset, changes)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_demo_is_a_small_quick_run(suite):
    demo, quick = (suite.plan(suite.presets[name], Choice()) for name in ("demo", "quick"))
    assert 0 < len(demo.tasks) <= len(quick.tasks)
    assert "paper" in suite.presets and suite.metrics(suite.presets["demo"])


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_setting_is_explained_and_has_a_value_in_every_preset(suite):
    lines = described(suite)
    assert {line["setting"] for line in lines} == set(values_of(suite.presets["quick"]))
    assert [line["setting"] for line in lines if not line["meaning"]] == []
    assert all(set(suite.presets) <= set(line) for line in lines)


def test_a_setting_that_had_another_name_is_answered_with_the_new_one():
    renamed = dataclasses.replace(SUITE, renamed={"runs": "trainings"})
    with pytest.raises(UsageError, match="the setting 'runs' is called 'trainings' now"):
        configured(renamed, "quick", {"runs": "3"})


def test_a_change_is_for_every_record_inside_that_has_the_field():
    @dataclass(frozen=True)
    class Two:
        one: Outer = Outer()
        other: Outer = Outer(trainings=7)

    made = changed(Two(), {"trainings": "3"})
    assert (made.one.trainings, made.other.trainings) == (3, 3)


def test_a_tuple_of_fixed_length_has_that_many_values():
    @dataclass(frozen=True)
    class Sized:
        sizes: tuple[int, int] = (1, 2)

    assert changed(Sized(), {"sizes": "3,4"}).sizes == (3, 4)
    with pytest.raises(UsageError, match="`sizes` must be 2 values, got '3'"):
        changed(Sized(), {"sizes": "3"})
