"""A made-up run, written once for all tests of this room."""

from pathlib import Path

import pytest
from report import made_up

from forsooth.report import Results, read
from forsooth.report.medians import Medians, all_medians


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_up.write(tmp_path_factory.mktemp("runs") / "made up", samples=12)


@pytest.fixture(scope="session")
def results(folder: Path) -> Results:
    return read(folder)


@pytest.fixture(scope="session")
def tables(results: Results) -> dict[str, Medians]:
    return all_medians(results)
