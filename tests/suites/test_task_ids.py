"""Tasks go by ids of their own: a file may move, and no cell of anyone's store goes stale for it."""

import pytest

from forsooth import engine
from forsooth.records import Cell, Choice
from forsooth.suites import SUITES

PINNED = {
    "xaitris": {"xaitris.train", "xaitris.show", "xaitris.explain", "xaitris.score", "xaitris.strategies"},
    "bam": {"bam.train", "bam.show", "bam.verify", "bam.patches", "bam.tcav", "bam.explain"},
    "planted": {"planted.train", "planted.show", "planted.explain"},
    "articles": {"articles.train", "articles.show", "articles.select", "articles.optimum", "articles.explain"},
    "bias": {"bias.train", "bias.show", "bias.play", "bias.explain", "bias.judge"},
}


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_the_ids_of_a_suite_are_these_and_stay_these(suite):
    planned = suite.plan(suite.presets["quick"], Choice())
    assert {task.id for task in planned.tasks} == PINNED[suite.name]


def work(*, number: int) -> Cell:
    return Cell(facts={"number": number})


def test_a_key_follows_the_id_and_not_the_place_of_the_function():
    here = engine.task("demo.work")(work)

    def elsewhere(*, number: int) -> Cell:
        return Cell(facts={"number": number})

    moved = engine.task("demo.work")(elsewhere)
    other = engine.task("demo.other")(lambda *, number: Cell())
    keys = [engine.make_task(f, {"number": 1}, name="any", version=1).key for f in (here, moved, other)]
    assert keys[0] == keys[1] != keys[2]
