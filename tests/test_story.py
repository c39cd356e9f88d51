"""The whole way of the data on the easiest question: which pixels does a linear model need?"""

import pytest

from forsooth import api
from forsooth.records import Choice
from forsooth.suites.xaitris.plan import plan
from forsooth.suites.xaitris.settings import QUICK, SOUND


@pytest.fixture(scope="module")
def ima(tmp_path_factory):
    """Median IMA by method in LIN-WHITE with the LLR, as `quick` runs it but for fewer images."""
    run = api.run(
        "xaitris",
        only={"scenario": "LIN", "background": "WHITE", "model": "llr"},
        settings={"sweep": (), "samples": 60},
        out=tmp_path_factory.mktemp("story") / "run",
    )
    rows = run.rows.query("part == 'scores' and metric == 'ima' and sample >= 0")
    return rows.fillna({"value": 0.0}).groupby("method")["value"].median()


NULLS = {"sobel", "laplace", "random", "rectified_input", "constant", "oracle"}
ASKED = [name for name in QUICK.methods if name not in NULLS | {"guided_grad_cam"}]


@pytest.mark.parametrize("method", ASKED)
def test_every_method_beats_random_where_the_question_is_linear(ima, method):
    assert ima[method] > ima["random"] + 0.02


def test_random_is_at_chance_and_the_oracle_at_one(ima):
    assert ima["random"] == pytest.approx(8 / 64, abs=0.03)
    assert ima["constant"] == pytest.approx(8 / 64)
    assert ima["oracle"] == 1


def test_quick_runs_the_sixteen_methods_of_the_paper_and_all_nulls():
    asked = {task.arguments["ask"]["method"] for task in plan(QUICK, Choice()).tasks if task.id == "xaitris.explain"}
    assert set(SOUND) <= asked
    assert len(set(SOUND) - NULLS) == 18
