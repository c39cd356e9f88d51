"""Methods given as Python objects: found again by their own path, or refused with what to write instead."""

import dataclasses

import own_methods
import own_records
import pytest
import tiny

import forsooth
from forsooth import plugins
from forsooth.arguments import method_path
from forsooth.attributions import METHODS
from forsooth.attributions.paths import INTEGRATED_GRADIENTS
from forsooth.records import UsageError

ELSEWHERE = dataclasses.replace(INTEGRATED_GRADIENTS, settings={"steps": 7})  # its function stands in another module


def test_two_opposite_records_are_two_rows(tmp_path):
    only = {**tiny.ONLY, "model": "llr"}
    methods = [own_records.RIGHT, own_records.WRONG]
    run = forsooth.run("xaitris", methods=methods, only=only, settings=tiny.SETTINGS, out=tmp_path, page=False)
    scores = run.rows.query("part == 'scores' and metric == 'ima'").groupby("method")["value"].mean()
    assert dict(scores) == {"own_records:RIGHT": 1, "own_records:WRONG": 0}


def test_a_record_is_found_by_its_own_name_in_any_module_of_the_user():
    assert method_path(own_methods.RECORD) == "own_methods:RECORD"
    assert method_path(ELSEWHERE) == f"{__name__}:ELSEWHERE"
    assert plugins.method(method_path(ELSEWHERE), METHODS).settings == {"steps": 7}
    assert method_path(INTEGRATED_GRADIENTS) == "integrated_gradients"


def test_a_function_is_found_by_its_name():
    assert method_path(own_methods.gradient) == "own_methods:gradient"


@pytest.mark.parametrize(
    "method, words",
    [
        (own_records.IN_A_LIST[0], "the forsooth.Method 'mine', which no module holds under a name: write `name = "),
        (own_records.record(flip=True), "the forsooth.Method 'mine', which no module holds"),
        (own_records.PARTIAL, "got a partial, which other processes cannot find again: use def at module level"),
        (own_records.Explainer(), "got a Explainer, which other processes cannot find again"),
        (own_records.Explainer().map, "got own_records:Explainer.map, where something else or nothing is"),
        (own_records.OTHER_NAME, "got own_records:renamed, where something else or nothing is"),
    ],
)
def test_what_no_process_finds_again_is_refused_before_any_work(method, words, tmp_path):
    with pytest.raises(UsageError, match="`methods` must hold") as refusal:
        forsooth.run("xaitris", methods=[method])
    assert words in str(refusal.value)
    with pytest.raises(UsageError, match="`methods` must hold"):
        forsooth.dryrun(tmp_path, methods=[method])


def test_other_settings_are_another_fingerprint():
    prints = {plugins.fingerprint(record) for record in (own_records.RIGHT, own_records.WRONG)}
    assert len(prints) == 2
