import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report.by_hand import run_of, scores

from forsooth.records import UsageError
from forsooth.report import Results, read
from forsooth.report.aggregate import levels, panel_names, took_part


def test_read_gives_text_factors_and_defaults(folder: Path, tmp_path: Path) -> None:
    run = json.loads((folder / "run.json").read_text())
    for name in ("settings", "facts", "exhibits", "pictures", "command"):
        del run[name]
    (tmp_path / "run.json").write_text(json.dumps(run))
    pd.read_parquet(folder / "scores.parquet").to_parquet(tmp_path / "scores.parquet")
    bare = read(tmp_path)
    assert set(bare.rows["size"]) == {"8"}
    assert (bare.run["settings"], bare.run["exhibits"], bare.run["command"]) == ({}, [], "")
    assert bare.pictures == {} and bare.timings.empty


def test_read_names_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"`run_dir` must hold .* got {tmp_path} without run.json"):
        read(tmp_path)
    (tmp_path / "run.json").write_text('{"suite": "x", "title": "y", "factors": ["k"], "metrics": {}, "methods": {}}')
    pd.DataFrame({"part": []}).to_parquet(tmp_path / "scores.parquet")
    with pytest.raises(UsageError, match=r"scores\.parquet must hold model, .*, cell; it has part"):
        read(tmp_path)
    (tmp_path / "run.json").write_text('{"suite": "x"}')
    with pytest.raises(UsageError, match=r"run\.json must hold title, factors, metrics, methods"):
        read(tmp_path)


def test_levels_come_as_in_the_rows_or_as_the_run_says() -> None:
    made = run_of([*scores("a", [0.1], model="MLP"), *scores("a", [0.1]), *scores("random", [0.1], model="none")])
    assert levels(made, "model") == ("MLP", "CNN")
    made.run["levels"]["model"] = ["CNN"]
    assert levels(made, "model") == ("CNN", "MLP")
    made.run["levels"].clear()


def test_panel_names_leave_out_what_does_not_vary(results: Results) -> None:
    frame = pd.DataFrame({"size": ["8"], "scenario": ["RIGID"], "background": ["CORR"], "model": ["CNN"]})
    assert panel_names(results, frame) == ["RIGID-CORR-CNN"]


def test_took_part_says_why_a_sample_is_lost() -> None:
    rows = took_part(run_of(scores("a", [0.3, np.nan, np.inf])), "m")
    assert rows["status"].tolist() == ["ok", "not finite", "not finite"]
    assert rows["failed"].tolist() == [False, True, True]
    assert rows["value"].tolist() == [0.3, 0.0, 0.0]
