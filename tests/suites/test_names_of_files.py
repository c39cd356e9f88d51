"""Files and folders of the user whose names are not UTF-8, as old disks and archives have them."""

import os
from pathlib import Path

import pytest
from suites.test_changed_data import CASES, Case, asked, forget

from forsooth import api
from forsooth.progress import Silent
from forsooth.records import UsageError


def odd(name: str) -> str:
    return os.fsdecode(b"b\xe9d-") + name


def rename_within(place: Path) -> None:
    """One file and one folder that holds no folder get odd names as well."""
    inside = sorted(place.rglob("*"))
    if not inside:  # one file, which has its name already
        return
    file = next(path for path in inside if path.is_file())
    file.rename(file.with_name(odd(file.name)))
    for folder in [path for path in inside if path.is_dir() and not any(one.is_dir() for one in path.iterdir())][:1]:
        folder.rename(folder.with_name(odd(folder.name)))


@pytest.mark.parametrize("suite", CASES)
def test_a_run_on_files_of_such_names_ends_with_a_page(tmp_path: Path, suite: str) -> None:
    known: Case = CASES[suite]
    forget(known)
    place = tmp_path / odd(known.name)
    known.write(place)
    rename_within(place)
    only = known.asked.get("only", {})
    if suite == "bias":
        only = {"dataset": r"b\xe9d-mine"}
    run = asked(suite, known, tmp_path, data=place, only=only, page=True)
    forget(known)
    assert (run.folder / "report.html").read_text() and len(run.rows)


@pytest.mark.parametrize("inside", [False, True])
def test_a_folder_of_such_a_name_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    """Named so itself, or named in plain letters in a working folder that is named so."""
    out = tmp_path / odd("here")
    if inside:
        out.mkdir()
        monkeypatch.chdir(out)
        out = Path("run")
    with pytest.raises(UsageError, match=r"`out` must be a folder whose whole path is UTF-8, got .*b\\udce9d-here"):
        api.run("xaitris", methods=["random"], out=out, progress=Silent())
    assert not out.exists()
