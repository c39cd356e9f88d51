"""Audits of several trainings: the first as it was alone, all on the same images, an interval over both."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import forsooth
from forsooth.models import recipes
from forsooth.records import Choice, Plan, Task, UsageError
from forsooth.stats import crossed, mean_of
from forsooth.store import Store
from forsooth.suites import audit, sources

FEW = {"samples": 3, "permutations": 40}
LEAVES = {"dataset": "leaves"}
SEED = Choice(only={"dataset": ("leaves",)})
KEYS = {  # of a torch whose version is "pinned"
    "figure-3": ["fcff85eb0b9d45925222f2bf7a78dfc2", "2d44fa1cc19f4090aaf4255063ffb6c3"],
    "appendix-n": ["4c339874babe0cfcad27311871809898", "99c8f23f7c066d54c07b20a251af1a3b"],
}


class Planned(Exception):
    """The plan is all a test wants."""


def tasks_of(artefact: Callable[..., object], **changes: int) -> list[Task]:
    """The tasks that an audit would perform."""
    plans: list[Plan] = []

    def stop(plan: Plan) -> Store:
        plans.append(plan)
        raise Planned

    with pytest.raises(Planned):
        artefact(SEED, stop, changes)
    return list(plans[0].tasks)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two epochs, and no gate: these tests are about the way."""
    monkeypatch.setattr(recipes, "LENET", dataclasses.replace(recipes.LENET, epochs=2))
    monkeypatch.setattr(audit, "PATTERN_GATE", 0.0)
    played = sources.played
    monkeypatch.setattr(sources, "played", lambda name: dataclasses.replace(played(name), gate=0.0))


@pytest.mark.parametrize("artefact", [audit.figure_3, audit.appendix_n])
def test_the_first_training_is_the_one_that_stood_alone(artefact: Callable[..., object]) -> None:
    alone = tasks_of(artefact)
    three = tasks_of(artefact, trainings=3)
    assert len(alone) == 2 and len(three) == 6
    assert alone[0].key == three[0].key
    assert {"panel", "recipe", "seed", "device"} == set(alone[0].arguments)
    assert {"panel", "samples", "permutations", "seed", "device"} == set(alone[1].arguments)
    assert len({task.arguments["seed"] for task in three[:3]}) == 3
    assert [task.arguments.get("training") for task in three[3:]] == [None, 1, 2]
    assert all(list(task.needs) == [other.key for other in three[:3]] for task in three[3:])


def test_keys_of_one_training_are_those_of_earlier_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written down from the audit that knew no trainings: cells on a user's disk must still be found."""
    monkeypatch.setattr(torch, "__version__", "pinned")
    assert [task.key for task in tasks_of(audit.figure_3)] == KEYS["figure-3"]
    assert [task.key for task in tasks_of(audit.appendix_n)] == KEYS["appendix-n"]


def test_all_trainings_meet_the_same_images_and_the_interval_is_over_both(
    tmp_path: Path, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[pd.DataFrame] = []
    line_of = audit.line_of

    def watched(tasks: list[Task], store: Store, kind: str) -> dict[str, float]:
        rows = [pd.DataFrame(store.read(task.key).rows) for task in tasks]
        stored.extend(rows)
        return line_of(tasks, store, kind)

    monkeypatch.setattr(audit, "line_of", watched)
    changes = {**FEW, "trainings": 2}
    table, words = forsooth.reproduce("bias/appendix-n", only=LEAVES, out=tmp_path, settings=changes)
    first, second = stored
    assert first["sample"].tolist() == second["sample"].tolist() and len(first) == 3
    assert not np.allclose(first["value"], second["value"])
    by_image = (first["value"] + second["value"]) / 2
    by_training = pd.Series([first["value"].mean(), second["value"].mean()])
    expected = crossed(by_image, by_training, bounds=audit.BOUNDS["pattern"])
    line = table.iloc[0]
    assert line[["trainings", "below_gate", "inputs"]].tolist() == [2, 0, 3]
    assert line[["mean", "low", "high"]].tolist() == pytest.approx(list(expected[:3]), abs=1e-4)
    assert "over 3 images and 2 trainings" in words


def test_one_training_has_an_interval_over_its_images_and_says_so(tmp_path: Path, short: None) -> None:
    table, words = forsooth.reproduce("bias/appendix-n", only=LEAVES, out=tmp_path, settings=FEW)
    assert table["trainings"].tolist() == [1]
    assert "over 3 images of one training (the interval knows its images alone)" in words


def test_the_interval_grows_with_what_trainings_disagree_about() -> None:
    rows = pd.DataFrame({"training": [0, 0, 0, 1, 1, 1], "sample": [7, 8, 9] * 2})
    same = audit.interval_of(rows.assign(value=[0.49, 0.5, 0.51] * 2), "pattern")
    apart = audit.interval_of(rows.assign(value=[0.48, 0.49, 0.5, 0.5, 0.51, 0.52]), "pattern")
    assert same.mean == pytest.approx(apart.mean) and apart.low < same.low and apart.high > same.high
    alone = audit.interval_of(rows[:3].assign(value=[0.4, 0.5, 0.6]), "pattern")
    assert alone == mean_of([0.4, 0.5, 0.6])


def line(**numbers: float) -> pd.Series:
    usual = {"trainings": 3, "below_gate": 0, "inputs": 5, "gate": 90.0, "low": 0.5, "high": 0.7}
    return pd.Series({**usual, **numbers}, dtype=object)


def test_words_do_not_claim_what_a_wide_interval_cannot() -> None:
    assert "inconclusive" in audit.used(line(low=0.0)) and "inconclusive" in audit.used(line(low=float("nan")))
    assert "holds weakly" in audit.used(line(low=0.05)) and "finding holds:" in audit.used(line(low=0.5))
    assert "inconclusive" in audit.outside(line(high=1.0)) and "a part" in audit.outside(line())
    assert "next to nothing" in audit.outside(line(low=0.99, high=1.0))
    assert audit.drawn_words(line(below_gate=1)).endswith("; 1 below the gate of 90 % left out")


def test_a_training_below_the_gate_is_left_out_and_named(
    tmp_path: Path, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = audit.train.fit
    seeds = [task.arguments["seed"] for task in tasks_of(audit.appendix_n, trainings=3)[:3]]

    def weaker(*given: object, seed: int, **more: object) -> object:
        trained = fit(*given, seed=seed, **more)
        return dataclasses.replace(trained, test_accuracy=0.2 if seed == seeds[1] else 0.95)

    monkeypatch.setattr(audit.train, "fit", weaker)
    monkeypatch.setattr(audit, "PATTERN_GATE", 0.9)
    changes = {**FEW, "trainings": 3}
    table, words = forsooth.reproduce("bias/appendix-n", only=LEAVES, out=tmp_path, settings=changes, workers=1)
    assert table.iloc[0][["trainings", "below_gate", "accuracy"]].tolist() == [2, 1, 95.0]
    assert "3 images and 2 trainings; 1 below the gate of 90 % left out" in words


def test_less_than_one_training_is_refused() -> None:
    with pytest.raises(UsageError, match="`trainings` must be at least 1, got 0"):
        audit.figure_3(SEED, lambda plan: pytest.fail("planned in spite of it"), {"trainings": 0})
