"""Settings that cannot be are refused in one line before any work, and no folder is left behind."""

import pytest
import tiny

from forsooth import api
from forsooth.progress import Silent
from forsooth.records import UsageError


@pytest.mark.parametrize(
    "name, value",
    [
        ("samples", -5),
        ("samples", 0),
        ("trainings", 0),
        ("trainings", 99999999999999999999),
        ("alpha", float("nan")),
        ("alpha", float("inf")),
        ("n", 0),
        ("metrics", "gap"),
        ("sizes", ""),
        ("scenarios", ""),
    ],
)
def test_a_setting_that_cannot_be_is_refused_before_any_work(tmp_path, name, value):
    settings = {**tiny.SETTINGS, name: value}
    with pytest.raises(UsageError, match=f"`{name}` must") as refused:
        api.run("xaitris", methods=["random"], settings=settings, out=tmp_path / "run", page=False, progress=Silent())
    assert "\n" not in str(refused.value) and not (tmp_path / "run").exists()


@pytest.mark.parametrize("suite, name", [("planted", "manipulations"), ("bam", "models"), ("bias", "datasets")])
def test_settings_that_leave_nothing_to_do_are_refused(tmp_path, suite, name):
    with pytest.raises(UsageError, match="`settings` must leave something to do"):
        api.run(suite, settings={name: ""}, out=tmp_path / "run", page=False, progress=Silent())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("suite, given", [("articles", "truth and x"), ("planted", "truth")])
def test_a_metric_of_another_suite_is_refused(tmp_path, suite, given):
    message = f"`metrics` must read no more than {given} beside the map; gap reads total, too"
    with pytest.raises(UsageError, match=message):
        api.run(suite, settings={"metrics": "gap"}, out=tmp_path / "run", page=False, progress=Silent())


def test_a_metric_that_takes_one_map_is_refused_where_two_are_compared(tmp_path):
    with pytest.raises(UsageError, match="`metrics` must be a known name, got 'gap'; known: idr, iir, mcs"):
        api.run("bam", settings={"metrics": "gap"}, out=tmp_path / "run", page=False, progress=Silent())
    assert not (tmp_path / "run").exists()


def started(what, **words):
    """A door that reads photographs and writes a folder."""
    doors = {
        "run": lambda: api.run("xaitris", methods=["random"], settings=tiny.SETTINGS, page=False, **words),
        "reproduce": lambda: api.reproduce("xaitris/table-b2", **words),
        "export": lambda: api.export_data("xaitris", **words),
    }
    return doors[what]()


@pytest.mark.parametrize("door", ["run", "reproduce", "export"])
def test_results_inside_of_the_data_are_refused_before_any_work(tmp_path, monkeypatch, door):
    """They would be part of the data that the next run reads."""
    photos = tmp_path / "photos"
    photos.mkdir()
    monkeypatch.chdir(photos)
    for place in ({"out": photos / "run"}, {}):  # the default is below the working folder
        with pytest.raises(UsageError, match="`out` must lie outside of `data`"):
            started(door, data=".", **place)
    assert not [*photos.iterdir()]
