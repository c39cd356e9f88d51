"""A small version of `benchmarks/classes.py presets`: who is explained and who is background is even over classes."""

import importlib.util
from types import ModuleType

import pytest
from sentences import ROOT

from forsooth.suites import NAMES, choose

pytestmark = pytest.mark.usefixtures("single")


@pytest.fixture(scope="module")
def participants() -> ModuleType:
    spec = importlib.util.spec_from_file_location("participants", ROOT / "benchmarks/participants.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("preset", ["demo", "quick"])
@pytest.mark.parametrize("suite", NAMES)
def test_explained_and_background_samples_are_even_over_classes(participants, suite, preset):
    lines = participants.lines(suite, preset)
    assert lines["why"].eq("").all()
    assert lines["off"].max() <= 1, lines[lines["off"] > 1].to_string()
    assert lines["role"].str.startswith("explained").any() and lines["role"].eq("background").any()
    assert (lines["classes"] > 1).any()


def test_where_all_are_taken_the_table_says_so(participants):
    explained = participants.lines("xaitris", "paper").query("role == 'explained'")
    assert explained["why"].eq("all are taken").all() and explained["off"].max() > 1


@pytest.mark.parametrize("suite", NAMES)
def test_first_rows_are_not_even(participants, suite, monkeypatch):
    monkeypatch.setattr(choose, "evenly", lambda strata, count, **_: strata.sort(stable=True).indices[:count])
    monkeypatch.setattr(choose, "crossed", lambda one, two, count, **_: one.sort(stable=True).indices[:count])
    lines = participants.lines(suite, "demo")
    for roles in ("explained", "background"):
        assert lines[lines["role"].str.startswith(roles)]["off"].max() > 1
