"""One small run of the suite that its tests share, and documents of all odd kinds."""

import pandas as pd
import pytest
from suites.articles.small import TINY, odd_documents

from forsooth import api
from forsooth.datasets.articles import Articles

METHODS = (
    "attention",
    "rationale",
    "gradient",
    "gradient_x_input",
    "integrated_gradients",
    "occlusion",
    "random",
    "constant",
    "oracle",
    "own_methods:raises",
)


@pytest.fixture(scope="session")
def run(tmp_path_factory) -> api.Run:
    return api.run("articles", methods=METHODS, settings=TINY, out=tmp_path_factory.mktemp("articles") / "run")


@pytest.fixture(scope="session")
def rows(run) -> pd.DataFrame:
    return run.rows


@pytest.fixture(scope="session")
def odd() -> Articles:
    return odd_documents()


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    """The folder of all reproductions, which share their cells."""
    return tmp_path_factory.mktemp("articles-reproductions")
