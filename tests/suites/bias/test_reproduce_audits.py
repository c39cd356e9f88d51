"""Fig. 3 and appendix N: intervals over images and trainings, and words that claim no more than these allow."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import forsooth
from forsooth.records import Choice, Judgement, Outcome
from forsooth.stats import SHARE, crossed_interval, mean_interval
from forsooth.suites.bias import audit
from forsooth.suites.bias.audit import AuditSettings
from forsooth.suites.bias.reproduce_audits import Line, appendix_n, figure_3, line_of, words_of

ANY = Line(
    dataset="leaves",
    model="lenet",
    accuracy=95.0,
    gate=90.0,
    trainings=3,
    below_gate=0,
    inputs=5,
    mean=0.6,
    low=0.5,
    high=0.7,
    plain=0.55,
    published=0.898,
)


def audited(values: list[list[float]], accuracies: list[float], *, gate: float = 0.9) -> pd.DataFrame:
    """Rows of trainings and of their audits, values by training and image."""
    about = {"dataset": "leaves", "model": "lenet", "gate": gate}
    rows = []
    for number, accuracy in enumerate(accuracies):
        status = "ok" if accuracy >= gate else "below gate"
        training = {"part": "training", "value": accuracy, "status": status, "sample": -1, "plain": np.nan}
        rows.append({**about, **training, "model_seed": number})
        for sample, value in enumerate(values[number]):
            own = {"part": "audit", "value": value, "status": "ok", "sample": sample, "plain": value / 2}
            rows.append({**about, **own, "model_seed": number})
    return pd.DataFrame(rows)


def test_one_training_has_an_interval_over_its_images() -> None:
    line = line_of(audited([[0.4, 0.5, 0.6]], [0.95]), 0.898, bounds=SHARE)
    assert (line.mean, line.low, line.high) == pytest.approx(mean_interval([0.4, 0.5, 0.6], bounds=SHARE)[:3])
    assert (line.inputs, line.trainings, line.below_gate, line.accuracy) == (3, 1, 0, 95.0)
    assert line.plain == pytest.approx(0.25)


def test_several_trainings_have_an_interval_over_both() -> None:
    line = line_of(audited([[0.4, 0.5, 0.6], [0.6, 0.7, 0.8]], [0.95, 0.97]), 0.898, bounds=SHARE)
    expected = crossed_interval([0.5, 0.6, 0.7], [0.5, 0.7], bounds=SHARE)
    assert (line.mean, line.low, line.high) == pytest.approx(expected[:3])
    assert line.accuracy == pytest.approx(96.0)


def test_the_interval_grows_with_what_trainings_disagree_about() -> None:
    same = line_of(audited([[0.49, 0.5, 0.51]] * 2, [1.0, 1.0]), 1.0, bounds=SHARE)
    apart = line_of(audited([[0.48, 0.49, 0.5], [0.5, 0.51, 0.52]], [1.0, 1.0]), 1.0, bounds=SHARE)
    assert same.mean == pytest.approx(apart.mean) and apart.low < same.low and apart.high > same.high


def test_a_training_below_the_gate_is_left_out_and_named() -> None:
    line = line_of(audited([[0.4, 0.5], [], [0.4, 0.6]], [0.95, 0.2, 0.95]), 0.898, bounds=SHARE)
    assert (line.trainings, line.below_gate, line.accuracy) == (2, 1, 95.0)
    drawn = "over 2 images and 2 trainings; 1 below the gate of 90 % left out (published 0.898"
    assert drawn in words_of(line, kind="region") and drawn in words_of(line, kind="pattern")


def test_a_network_that_has_not_learned_is_not_audited() -> None:
    line = line_of(audited([[]], [0.5]), 0.898, bounds=SHARE)
    assert line.inputs == 0 and np.isnan(line.mean)
    below = "leaves, lenet (50 % accurate): below its gate of 90 %, so not audited."
    assert words_of(line, kind="region") == words_of(line, kind="pattern") == below
    nothing = line_of(audited([[]], [0.95]), 0.898, bounds=SHARE)
    assert "no image with a region got right, so not audited" in words_of(nothing, kind="region")
    assert "not audited" not in words_of(ANY, kind="region")


def test_words_do_not_claim_what_a_wide_interval_cannot() -> None:
    def used(**numbers: float) -> str:
        return words_of(dataclasses.replace(ANY, **numbers), kind="region")  # type: ignore[arg-type]

    def outside(**numbers: float) -> str:
        return words_of(dataclasses.replace(ANY, **numbers), kind="pattern")  # type: ignore[arg-type]

    assert "inconclusive" in used(low=0.0) and "inconclusive" in used(low=float("nan"))
    assert "holds weakly" in used(low=0.05) and "finding holds:" in used(low=0.5)
    assert outside(high=1.0).endswith("; whether a part of it lies outside is inconclusive.")
    assert outside().endswith("; a part of it lies outside.")
    assert "next to nothing" in outside(low=0.99, high=1.0)
    assert "5 images of one training (the interval knows its images alone) (published" in used(trainings=1)


@pytest.mark.parametrize(("judge", "published"), [(figure_3, 1.0336), (appendix_n, 0.898)])
def test_the_published_number_stands_beside(judge: Callable[[Outcome], Judgement], published: float) -> None:
    rows = audited([[0.4, 0.5, 0.6]], [0.95])
    judgement = judge(Outcome(rows=rows, facts={}, settings=AuditSettings(), choice=Choice()))
    assert judgement.table["published"].tolist() == [published]
    assert f"(published {published}" in judgement.words and "0.500 [0.252, 0.748]" in judgement.words
    assert ("plain" in judgement.table) == (judge is appendix_n)


@pytest.mark.parametrize("name", ["figure-3", "appendix-n"])
def test_audits_run_on_generated_data(name: str, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {net: dataclasses.replace(recipe, epochs=1, gate=0.0) for net, recipe in audit.RECIPES.items()}
    monkeypatch.setattr(audit, "RECIPES", short)
    monkeypatch.setattr(audit, "REGIONS", 2)
    known = audit.audit_spec
    monkeypatch.setattr(audit, "audit_spec", lambda *given: dataclasses.replace(known(*given), gate=0.0))
    few = {"samples": 1 if name == "figure-3" else 2, "permutations": 3, "trainings": 2}
    table, words = forsooth.reproduce(f"bias/{name}", out=shelf, settings=few)
    assert table["inputs"].le(2).all() and table["inputs"].max() > 0 and table["trainings"].eq(2).all()
    number = "mean" if name == "figure-3" else "plain"  # from three orders, what is freed of noise may be anything
    assert table[number].dropna().between(0, 16).all()
    if name == "appendix-n":
        assert set(table["dataset"]) == {"leaves", "tetromino"} and table["plain"].max() <= 1
        assert "images and 2 trainings" in words
    rows = pd.read_parquet(shelf / f"bias-{name}" / "scores.parquet")
    assert (
        rows.groupby(["dataset", "model_seed"])["sample"].unique().map(tuple).groupby("dataset").nunique().eq(1).all()
    )
