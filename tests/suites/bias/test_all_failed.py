"""A run none of whose scores could be computed still has a page, which says so."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from forsooth import api, report
from forsooth.progress import Silent
from forsooth.records import FailedTasks
from forsooth.suites.bias import anchor

SMALL = {"samples": 2, "permutations": 4, "trainings": 1}
ONE_NETWORK: Mapping[str, Any] = {**SMALL, "datasets": "interactions", "models": "mlp5", "players": "input"}


def no_scores(*given: Any, **named: Any) -> None:
    raise ValueError("no scores today")


def test_a_run_without_a_score_has_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchor, "biases", no_scores)
    methods = ["saliency", "random"]
    run = api.run("bias", preset="demo", methods=methods, settings=ONE_NETWORK, out=tmp_path / "run", progress=Silent())
    assert run.failed.startswith("2 of 6 tasks failed") and "no scores today" in run.failed
    assert "no scores today" in (run.folder / "report.html").read_text()
    rows = report.read(run.folder).rows
    assert set(rows["end"]) == set(rows["fraction"]) == {""}
    assert run.leaderboard().empty


def test_a_reproduction_without_a_score_has_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchor, "biases", no_scores)
    with pytest.raises(FailedTasks, match="no scores today"):
        api.reproduce("bias/suppressor", settings=SMALL, out=tmp_path, progress=Silent())
    assert "no scores today" in (tmp_path / "bias-suppressor" / "report.html").read_text()
