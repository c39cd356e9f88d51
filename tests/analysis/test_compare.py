"""Two runs: what changed is found, with paired differences where they share networks and samples."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import forsooth


def changed(folder: Path, target: Path, edit: Callable[[pd.DataFrame], pd.DataFrame], **about: object) -> Path:
    """A copy of the run with other rows and other facts."""
    shutil.copytree(folder, target)
    edit(pd.read_parquet(target / "scores.parquet")).to_parquet(target / "scores.parquet")
    facts = json.loads((target / "run.json").read_text())
    (target / "run.json").write_text(json.dumps({**facts, **about}))
    return target


def worse(rows: pd.DataFrame) -> pd.DataFrame:
    """Deep Taylor loses 0.125 everywhere."""
    return rows.assign(value=rows["value"] - 0.125 * rows["method"].eq("deep_taylor"))


def elsewhere(rows: pd.DataFrame) -> pd.DataFrame:
    """The same, of networks that were trained apart."""
    return worse(rows).assign(cell="other " + rows["cell"])


def test_one_method_of_many_has_changed(folder, tmp_path):
    other = changed(folder, tmp_path / "b", worse, preset="paper", settings={"alpha": 0.3})
    found = forsooth.compare(folder, forsooth.Run(other), "ima")
    table = found.table.set_index("method")
    assert found.paired and list(table.index[table["clear"]]) == ["deep_taylor"]
    assert table["difference"]["deep_taylor"] == pytest.approx(-0.125)
    assert table.drop("deep_taylor")["difference"].abs().max() == 0
    board = forsooth.Run(folder).leaderboard("ima").set_index("method")["score"]
    assert table["a"]["saliency"] == pytest.approx(board["saliency"])
    assert found.words.startswith("deep_taylor has a clearly different score, of 26.")
    settings = found.settings.set_index("setting")
    assert settings["b"]["preset"] == "paper" and settings["b"]["settings.alpha"] == "0.3"
    assert "settings.alpha" in str(found) and found._repr_html_().count("<table") == 2


def test_networks_trained_apart_are_not_paired_and_have_wider_intervals(folder, tmp_path):
    other = changed(folder, tmp_path / "b", elsewhere)
    found = forsooth.compare(folder, other, "ima")
    line = found.table.set_index("method").loc["deep_taylor"]
    assert not found.paired and "their variances add" in found.words
    alone = forsooth.Run(folder).leaderboard("ima").set_index("method").loc["deep_taylor"]
    assert line["high"] - line["low"] == pytest.approx(2**0.5 * (alone["high"] - alone["low"]), rel=0.05)


def test_a_part_of_a_run_is_paired_with_the_whole(folder, tmp_path):
    part = changed(folder, tmp_path / "b", lambda rows: worse(rows[rows["background"].ne("CORR")]))
    for found in (forsooth.compare(part, folder, "ima"), forsooth.compare(folder, part, "ima")):
        table = found.table.set_index("method")
        assert found.paired and table["difference"].abs()["deep_taylor"] == pytest.approx(0.125)
        assert table.drop("deep_taylor")["difference"].abs().max() == 0


def test_of_one_training_nothing_is_claimed_but_of_nulls(folder, tmp_path):
    def single(rows: pd.DataFrame) -> pd.DataFrame:
        lower = rows["method"].isin(["random", "deep_taylor"])
        one = rows.assign(value=rows["value"] - 0.2 * lower, cell="other " + rows["cell"])
        return one[one["model_seed"].eq(0) | one["model"].eq("none")]

    found = forsooth.compare(folder, changed(folder, tmp_path / "b", single), "emd")
    clear = found.table.loc[found.table["clear"], "method"]
    assert "random" in set(clear) and "deep_taylor" not in set(clear)
    assert "With one training in a run nothing is claimed" in found.words


def test_what_cannot_be_compared_is_refused(folder, tmp_path):
    other = changed(folder, tmp_path / "b", lambda rows: rows, factors=["model"], suite="bias")
    with pytest.raises(forsooth.UsageError, match="`b` must be a run of the same suite as `a`"):
        forsooth.compare(folder, other)
    with pytest.raises(forsooth.UsageError, match="`metric` must be a known name, got 'imma'; did you mean ima"):
        forsooth.compare(folder, folder, "imma")
