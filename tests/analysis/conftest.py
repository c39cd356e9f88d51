"""A made-up run for all tests of this room."""

from pathlib import Path

import pytest
from report import made_up


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_up.write(tmp_path_factory.mktemp("analysis") / "run", samples=12)
