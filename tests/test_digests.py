"""The hash of a user's files follows their bytes, and their names, sizes and times where they are too many to read."""

import os
from pathlib import Path

import pytest

from forsooth import digests


def folder(place: Path, **files: str) -> Path:
    place.mkdir()
    for name, text in files.items():
        (place / name).write_text(text)
    return place


def test_files_of_the_same_bytes_have_the_same_hash_wherever_they_lie(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", a="1", b="2")
    other = folder(tmp_path / "other", b="2", a="1")
    assert digests.digest(one) == digests.digest(str(other))
    assert digests.digest(one) != digests.digest(one / "a")


def test_a_file_that_is_replaced_between_two_runs_has_another_hash(tmp_path: Path) -> None:
    file = folder(tmp_path / "data", a="1") / "a"
    before = digests.digest(file)
    file.write_text("2")
    os.utime(file, ns=(1, 1))
    assert digests.digest(file) != before


def test_large_files_are_known_by_name_size_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "READ_WHOLE", 0)
    file = folder(tmp_path / "data", a="1") / "a"
    os.utime(file, ns=(1, 1))
    before = digests.digest(file)
    file.write_text("2")
    os.utime(file, ns=(1, 1))
    assert digests.digest(file) == before  # nobody read it
    os.utime(file, ns=(2, 2))
    assert digests.digest(file) != before
