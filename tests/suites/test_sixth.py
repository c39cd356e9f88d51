"""A sixth suite, added as a user would add one: one folder, and one line in the catalogue."""

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import forsooth

SOURCE = Path(forsooth.__file__).parent
FOLDER = Path(__file__).parent / "sixth"


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Path:
    """A copy of the package with the folder in it, and the suite named in the catalogue."""
    copy = tmp_path_factory.mktemp("house") / "forsooth"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(FOLDER, copy / "suites" / "needle", ignore=shutil.ignore_patterns("__pycache__"))
    catalogue = copy / "suites" / "__init__.py"
    text = catalogue.read_text()
    line = 'NAMES = ("xaitris", "bias", "planted", "articles", "bam")\n'
    assert line in text
    catalogue.write_text(text.replace(line, line.replace('"bam")', '"bam", "needle")')))
    return copy.parent


def call(house: Path, folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(house)}
    words = (sys.executable, "-m", "forsooth", *words, "--workers", "1", "--quiet")
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_else_was_touched(house):
    compared = filecmp.dircmp(SOURCE, house / "forsooth", ignore=["__pycache__"])
    assert not compared.diff_files and not compared.right_only
    inside = compared.subdirs["suites"]
    assert inside.diff_files == ["__init__.py"] and inside.right_only == ["needle"]


def test_it_runs_and_has_a_page(house, tmp_path):
    call(house, tmp_path, "run", "needle", "--only", "columns=4", "--out", "run")
    rows = pd.read_parquet(tmp_path / "run" / "scores.parquet")
    means = rows[rows["metric"].eq("ima")].groupby("method")["value"].mean()
    assert means["oracle"] == 1 and means["gradient_x_input"] > means["random"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "One column of a table decides the label" in page and "Mean IMA of every method." in page
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    assert {line["count"] for line in about["classes"]} == {6}


def test_its_reproduction_and_its_settings_are_found(house, tmp_path):
    assert "The best is oracle." in call(house, tmp_path, "reproduce", "needle/table-1", "--out", "made")
    assert (tmp_path / "made" / "needle-table-1" / "report.html").is_file()
    shown = subprocess.run(
        (sys.executable, "-m", "forsooth", "settings", "needle", "--format", "json"),
        env={**os.environ, "PYTHONPATH": str(house)},
        capture_output=True,
        text=True,
        check=True,
    )
    settings = {line["setting"]: line["meaning"] for line in json.loads(shown.stdout)["needle"]}
    assert settings["samples"] == "test rows explained"
