"""Folders of runs that came from strangers or from a bad disk: one clear line, never a traceback."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from forsooth.records import UsageError
from forsooth.report import read
from forsooth.report.chapter import chapter
from forsooth.report.medians import all_medians
from forsooth.report.tables import accuracies
from forsooth.runs import Run, write_page

ODD = (None, [], {}, "", "x", "$\\frac$", "\ud800", "a/../b", -1, 0, 1e308, float("nan"), True, [[]], {"a": {}}, [None])
CHANGES = 100


@pytest.fixture(scope="module")
def small(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two methods and two nulls in one scenario, whose page is quick to write."""
    target = tmp_path_factory.mktemp("small") / "run"
    shutil.copytree(folder, target)
    keep = ("saliency", "lime", "sobel", "random")
    rows = pd.read_parquet(target / "scores.parquet")
    rows = rows[rows["scenario"].eq("LIN") & rows["background"].eq("WHITE") & rows["sample"].lt(4)]
    rows[rows["method"].isin([*keep, ""])].to_parquet(target / "scores.parquet")
    run = json.loads((target / "run.json").read_text())
    run["methods"] = {name: record for name, record in run["methods"].items() if name in keep}
    run["metrics"] = {"emd": run["metrics"]["emd"]}
    run["pictures"] = [p for p in run["pictures"] if p["scenario"] == "LIN" and p["method"] in (*keep, "")][:12]
    run["classes"] = run["classes"][:4]
    run |= {"exhibits": ["accuracies", "examples"], "cells": run["cells"][:3], "levels": {"model": ["LLR", "MLP"]}}
    run |= {"answer": ["yes"], "reproduction": None}
    (target / "run.json").write_text(json.dumps(run))
    return target


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside a JSON value."""
    inside: dict[Any, Any] = {}
    if isinstance(value, dict):
        inside = value
    elif isinstance(value, list):
        inside = dict(enumerate(value))
    found = [(*way, key) for key in inside]
    for key, part in inside.items():
        found += places(part, (*way, key))
    return found


def change(run: Any, draw: random.Random) -> str:
    """Change one value of `run` in place; says what was done."""
    way = draw.choice([place for place in places(run) if draw.random() < 0.9 ** len(place)])
    holder = run
    for key in way[:-1]:
        holder = holder[key]
    kind = draw.choice(("replace", "replace", "replace", "remove", "rename", "wrap"))
    if kind == "replace":
        holder[way[-1]] = draw.choice(ODD)
    elif kind == "wrap":
        holder[way[-1]] = [holder[way[-1]]]
    elif kind == "rename" and isinstance(holder, dict):
        holder[draw.choice(("$x$ {", "x/../y"))] = holder.pop(way[-1])
    else:
        del holder[way[-1]]
    return f"{kind} {'.'.join(map(str, way))}: {str(holder)[:80]}"


def shown(target: Path, *, drawn: bool) -> None:
    """The whole page, or its words alone, which is quicker."""
    if drawn:
        write_page(target)
        return
    results = read(target)
    chapter(results, all_medians(results))
    Run(target).leaderboard()


def test_a_changed_run_json_is_shown_or_refused_in_one_line(small: Path, tmp_path: Path) -> None:
    target = tmp_path / "run"
    shutil.copytree(small, target)
    draw = random.Random(0)
    original = (small / "run.json").read_text()
    refused = 0
    for k in range(CHANGES):
        run = json.loads(original)
        done = change(run, draw)
        (target / "run.json").write_text(json.dumps(run))
        try:
            shown(target, drawn=k % 4 == 0)
        except UsageError as error:
            refused += 1
            assert str(error).count("\n") == 0 and len(str(error)) > 20, done
        except Exception as error:
            raise AssertionError(done) from error
    assert 10 < refused < CHANGES


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"5", b"null", b"\xff\xfe{}", b"[" * 100_000, b'{"a":1' + b"1" * 5000]
)
def test_a_run_json_that_is_none(small: Path, tmp_path: Path, content: bytes) -> None:
    target = tmp_path / "run"
    shutil.copytree(small, target)
    (target / "run.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"run\.json"):
        write_page(target)


@pytest.mark.parametrize("name", ["scores.parquet", "timings.parquet", "pictures.safetensors"])
def test_damaged_files_are_named(small: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / "run"
    shutil.copytree(small, target)
    whole = (small / name).read_bytes()
    for content in (b"", b"no such file", whole[: len(whole) // 2], bytes(100) + whole[100:]):
        (target / name).write_bytes(content)
        with pytest.raises(UsageError, match=rf"{name} cannot be read"):
            write_page(target)
        if name.endswith("parquet"):
            with pytest.raises(UsageError, match=rf"{name} cannot be read"):
                _ = Run(target).rows


@pytest.mark.parametrize(
    "column, value",
    [
        ("value", "high"),
        ("sample", "first"),
        ("model_seed", "x"),
        ("method", 5),
        ("part", 1.5),
        ("status", 2),
        ("cell", 1),
    ],
)
def test_columns_of_another_kind_are_named(small: Path, tmp_path: Path, column: str, value: object) -> None:
    target = tmp_path / "run"
    shutil.copytree(small, target)
    rows = pd.read_parquet(target / "scores.parquet").assign(**{column: value})
    rows.to_parquet(target / "scores.parquet")
    with pytest.raises(UsageError, match=rf"scores\.parquet must have .* in the column {column}"):
        write_page(target)


def test_a_run_without_timings_still_gives_its_rows(small: Path, tmp_path: Path) -> None:
    target = tmp_path / "run"
    shutil.copytree(small, target)
    (target / "timings.parquet").unlink()
    assert Run(target).rows["seconds"].isna().all()


def test_pictures_of_odd_shapes_are_left_blank(small: Path, tmp_path: Path) -> None:
    target = tmp_path / "run"
    shutil.copytree(small, target)
    names = [picture["tensor"] for picture in json.loads((target / "run.json").read_text())["pictures"]]
    shapes = [(), (3,), (0, 4), (1, 2, 3, 4)]
    save_file({name: np.ones(shapes[k % 4]) for k, name in enumerate(names)}, target / "pictures.safetensors")
    assert write_page(target).is_file()


def test_dollars_in_names_are_plain_signs(small: Path, tmp_path: Path) -> None:
    target = tmp_path / "run"
    shutil.copytree(small, target)
    rows = pd.read_parquet(target / "scores.parquet")
    rows["method"] = rows["method"].replace("saliency", "$\\frac{$")
    rows.to_parquet(target / "scores.parquet")
    text = (target / "run.json").read_text().replace('"saliency"', '"$\\\\frac{$"')
    (target / "run.json").write_text(text)
    assert "$\\frac{$" in write_page(target).read_text()


@pytest.mark.parametrize("factors", [["size", "background", "model"], ["size", "alpha", "model"]])
def test_a_run_by_other_factors_than_the_paper_has_no_published_accuracy(
    small: Path, tmp_path: Path, factors: list[str]
) -> None:
    target = tmp_path / "run"
    shutil.copytree(small, target)
    run = json.loads((target / "run.json").read_text())
    (target / "run.json").write_text(json.dumps({**run, "factors": factors}))
    assert accuracies(read(target))["published"].isna().all()


def test_a_run_without_metrics_has_no_board(small: Path, tmp_path: Path) -> None:
    target = tmp_path / "run"
    shutil.copytree(small, target)
    run = json.loads((target / "run.json").read_text())
    (target / "run.json").write_text(json.dumps({**run, "metrics": {}}))
    with pytest.raises(UsageError, match="`metric` must be a known name, got ''; known: none"):
        Run(target).leaderboard()
