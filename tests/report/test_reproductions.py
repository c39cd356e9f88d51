"""The page of a published table made again: ours beside theirs, whether or not its rows make a board."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from report.by_hand import run_of, scores
from report.made_up import row

from forsooth import store
from forsooth.records import Judgement, Reproduction
from forsooth.report.chapter import chapter
from forsooth.report.medians import all_medians
from forsooth.runs import keep_judgement, write_page

TABLE = pd.DataFrame({"model": ["mlp", "<b>cnn"], "ours": [0.5, 12345.678], "published": [0.75, None], "n": [3, 4]})
RECORD = Reproduction("made/table-1", "what was published", settings=None, plan=lambda *_: None, judge=lambda _: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run without panels or metrics, as the rows of an audit make one."""
    rows = [row("audit", method="", metric="mass", model="mlp", model_seed=0, sample=s, value=0.5) for s in range(3)]
    run = {"suite": "made", "title": "Made up", "factors": [], "metrics": {}, "methods": {}}
    (tmp_path / "run.json").write_text(json.dumps(run))
    pd.DataFrame(rows).to_parquet(tmp_path / "scores.parquet")
    return tmp_path


def test_the_table_and_the_words_are_kept_beside_the_run(folder):
    keep_judgement(folder, RECORD, Judgement(TABLE, "It holds.\nAll of it.\n"))
    pd.testing.assert_frame_equal(pd.read_csv(folder / "table.csv"), TABLE)
    assert (folder / "verdict.md").read_text() == "It holds.\nAll of it.\n"
    assert json.loads((folder / "run.json").read_text())["reproduction"]["name"] == "made/table-1"


def test_a_verdict_waits_for_whoever_writes_the_run(folder):
    """The run.json that it adds to must be the one of the files beside it."""
    judging = threading.Thread(target=keep_judgement, args=(folder, RECORD, Judgement(TABLE, "It holds.\n")))
    with store.locked(folder):
        judging.start()
        judging.join(0.3)
        assert judging.is_alive()
        (folder / "run.json").write_text(json.dumps({"suite": "written meanwhile"}))
    judging.join(60)
    about = json.loads((folder / "run.json").read_text())
    assert about["suite"] == "written meanwhile" and about["reproduction"]["words"] == "It holds.\n"


def test_the_page_shows_ours_beside_theirs_and_no_empty_boards(folder):
    keep_judgement(folder, RECORD, Judgement(TABLE, "It holds.\nAll of it.\n"))
    page = write_page(folder).read_text()
    assert "made/table-1: what was published" in page
    assert "<p>It holds.</p><p>All of it.</p>" in page
    assert "Ours beside theirs" in page and "Leaderboards" not in page and "Panel by panel" not in page
    assert "0.500" in page and "1.23e+04" in page  # written as all numbers of a page are
    assert "&lt;b&gt;cnn" in page and "<b>cnn" not in page


def test_a_reproduction_that_has_panels_has_its_boards_too():
    results = run_of([*scores("good", [0.9, 0.8, 0.9]), *scores("random", [0.1, 0.2, 0.1])])
    about = {"name": "made/figure-2", "title": "t", "words": "Holds.\n", "table": [{"a": 1.0}, {"b": None}]}
    untimed = pd.DataFrame({"cell": pd.Series(dtype=str), "seconds": pd.Series(dtype=float)})
    results = replace(results, run={**results.run, "reproduction": about}, timings=untimed)
    with pytest.raises(KeyError):
        chapter(results, all_medians(results))  # a line without a column of the table is no table
    about["table"] = [{"a": 1.0, "b": None}]
    shown = chapter(results, all_medians(results))
    assert shown["verdict"] == ("Holds.",)
    assert shown["reproduction"]["lines"] == [{"a": "1.000", "b": ""}]
    assert list(shown["boards"]) == ["m"]
