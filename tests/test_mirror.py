"""A mirror shows what methods may need, and is known to be as it was."""

from pathlib import Path

import pytest

from forsooth import mirror
from forsooth.mirror import mirrored


def write(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)


def shown(there: Path) -> set[str]:
    return {str(path.relative_to(there)) for path in there.rglob("*") if path.is_file()}


@pytest.fixture
def here(tmp_path) -> Path:
    write(tmp_path / "here/a.txt", tmp_path / "here/data/b.txt", tmp_path / "here/data/deep/c.txt")
    return tmp_path / "here"


ALL = {"a.txt", "data/b.txt", "data/deep/c.txt"}


def test_folders_are_real_and_files_are_links(here, tmp_path):
    made = mirrored(here, tmp_path / "there")
    assert shown(made.there) == ALL and made.too_large == []
    assert (made.there / "data/deep/c.txt").read_text() == "c.txt"
    for name in ALL:
        assert (made.there / name).is_symlink() and not (made.there / name).parent.is_symlink()


def test_results_hidden_folders_and_environments_are_not_shown(here, tmp_path):
    write(here / "run/run.json", here / "stopped/store/cells/x", here / "store/cells/x", here / "forsooth-runs/x")
    write(here / ".git/x", here / "venv/pyvenv.cfg", here / "data/__pycache__/x", here / "forsooth-method-1/x")
    assert shown(mirrored(here, tmp_path / "there").there) == ALL


def test_a_link_to_a_folder_is_followed_once(here, tmp_path):
    (here / "data/up").symlink_to(here)
    (here / "data/deep/other").symlink_to(tmp_path / "other")
    write(tmp_path / "other/d.txt")
    assert shown(mirrored(here, tmp_path / "there").there) == {*ALL, "data/deep/other/d.txt"}


def test_a_folder_is_shown_whole_or_not_at_all_and_what_lies_high_comes_first(here, tmp_path, monkeypatch):
    monkeypatch.setattr(mirror, "MOST", 5)
    write(here / "data/deep/d.txt", here / "small/e.txt")
    made = mirrored(here, tmp_path / "there")
    assert shown(made.there) == {"a.txt", "data/b.txt"} and made.too_large == [
        str(here / "small"),
        str(here / "data/deep"),
    ]


def test_it_is_known_whether_anything_came_or_went(here, tmp_path):
    made = mirrored(here, tmp_path / "there")
    assert made.shows(here) and not made.shows(tmp_path)
    (made.there / "data/deep/c.txt").unlink()
    assert not made.shows(here)
    again = mirrored(here, tmp_path / "again")
    write(here / "data/new.txt")
    assert again.shows(here) is False
    assert mirrored(tmp_path / "gone", tmp_path / "empty").too_large == []
