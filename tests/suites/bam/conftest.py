import pandas as pd
import pytest
from suites.bam.small import JUDGED, METHODS, TINY, Judged

from forsooth import api
from forsooth.engine import one_thread


@pytest.fixture(scope="session", autouse=True)
def single_thread():
    """As tasks have it: small work is slower on several threads."""
    with one_thread():
        yield


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> api.Run:
    """One tiny run of all that the suite has, for all files that look at its rows and cells."""
    return api.run("bam", methods=METHODS, settings=TINY, out=tmp_path_factory.mktemp("bam") / "run")


@pytest.fixture(scope="session")
def rows(run: api.Run) -> pd.DataFrame:
    return run.rows


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Section 5 made again of two trainings, with its page."""
    out = tmp_path_factory.mktemp("judged")
    table, words = api.reproduce("bam/section-5", settings=JUDGED, out=out)
    return Judged(out / "bam-section-5", table, words)
