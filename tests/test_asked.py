"""Methods given as Python objects: found again by their own path, or refused with what to write instead."""

import dataclasses

import own_methods
import own_records
import pytest
import tiny

import forsooth
from forsooth import plugins
from forsooth.arguments import chosen_methods, method_path, several, usable_device
from forsooth.attributions import METHODS
from forsooth.attributions.paths import INTEGRATED_GRADIENTS
from forsooth.progress import Silent
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
    "method, name",
    [
        (own_records.IN_A_LIST[0], "live:mine-1"),
        (own_records.record(flip=True), "live:mine-1"),
        (own_records.PARTIAL, "live:truth-1"),
        (own_records.Explainer(), "live:Explainer-1"),
        (own_records.Explainer().map, "live:map-1"),
        (own_records.OTHER_NAME, "live:renamed-1"),
        (lambda model, x, target: x, "live:lambda-1"),
    ],
)
def test_what_no_process_finds_again_is_kept_in_this_one(method, name, monkeypatch):
    monkeypatch.setattr(plugins, "_kept", {})
    assert method_path(method) == name
    assert plugins.is_live(name) and plugins.load(name, argument="methods") is method
    assert method_path(method) == name  # and not a second one
    assert plugins.fingerprint(method) != plugins.fingerprint(method)  # its cells serve no other run


def test_two_things_of_one_name_are_two(monkeypatch):
    monkeypatch.setattr(plugins, "_kept", {})
    first, second = (own_records.Explainer() for _ in range(2))
    assert [method_path(first), method_path(second)] == ["live:Explainer-1", "live:Explainer-2"]


def test_a_live_method_is_asked_here_and_gives_what_its_twin_gives(tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "_kept", {})
    told = []
    progress = Silent()
    monkeypatch.setattr(Silent, "say", lambda self, message: told.append(message))
    tiny = {"sweep": (), "trainings": 1, "samples": 4}
    run = forsooth.run(
        "xaitris",
        preset="demo",
        methods=["saliency", lambda model, x, target: own_methods.gradient(model, x, target).abs()],
        only={"scenario": "LIN", "background": "WHITE", "model": "mlp"},
        settings=tiny,
        out=tmp_path / "run",
        workers=2,
        page=False,
        progress=progress,
    )
    rows = run.rows[run.rows.metric == "ima"]
    mine = rows[rows.method == "live:lambda-1"].sort_values("sample").value.tolist()
    assert mine == pytest.approx(rows[rows.method == "saliency"].sort_values("sample").value.tolist())
    assert len(mine) == 4
    assert any("live:lambda-1 lives in this process alone" in line for line in told)


def test_other_settings_are_another_fingerprint():
    prints = {plugins.fingerprint(record) for record in (own_records.RIGHT, own_records.WRONG)}
    assert len(prints) == 2


@pytest.mark.parametrize("methods", ["saliency, oracle", ["saliency", "oracle"], ("saliency", "oracle")])
def test_names_may_stand_in_one_string(methods, tmp_path):
    run = forsooth.run(
        "xaitris", methods=methods, only={**tiny.ONLY, "model": "llr"}, settings=tiny.SETTINGS, out=tmp_path, page=False
    )
    assert set(run.rows.query("part == 'scores'")["method"]) == {"saliency", "oracle"}


def test_one_thing_is_one_method():
    assert several(own_methods.gradient) == (own_methods.gradient,)
    assert several(own_methods.RECORD) == (own_methods.RECORD,)
    assert several(name for name in ("a", "b")) == ("a", "b") and several("") == ()


def test_all_is_the_catalogue_with_ones_own_methods_behind_it():
    names = tuple(method.name for method in METHODS)
    assert chosen_methods("all") == names and chosen_methods("lime") == ("lime",)
    assert chosen_methods(["all", "lime", len, own_methods.RECORD]) == (*names, len, own_methods.RECORD)
    assert set(names) - set(chosen_methods("all", truth=False)) == {"oracle"}


def test_an_accelerator_by_another_name_is_not_taken_for_a_misspelt_processor():
    with pytest.raises(UsageError, match="`device` must be auto, cpu or cuda, got 'GPU'; an accelerator of NVIDIA"):
        usable_device("GPU")
    with pytest.raises(UsageError, match="`device` must be a known name, got 'cup'; did you mean cpu"):
        usable_device("cup")
