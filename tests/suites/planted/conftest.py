import pandas as pd
import pytest
from suites.planted.smallest import METHODS, TINY

from forsooth import api


@pytest.fixture(scope="session")
def run(tmp_path_factory) -> api.Run:
    """All experiments, with two networks for each of two artefacts."""
    folder = tmp_path_factory.mktemp("planted") / "run"
    return api.run("planted", methods=METHODS, settings=TINY, out=folder)


@pytest.fixture(scope="session")
def rows(run) -> pd.DataFrame:
    return run.rows
